# SPDX-License-Identifier: Apache-2.0
"""Whisper-tiny's encoder, a voice detector like Silero's, and a keyword spotter.

Radford et al., "Robust Speech Recognition via Large-Scale Weak Supervision", 2022, as
the package transformers has it; the detector has the layers of Silero VAD 5 for 16 kHz:
a Fourier transform by a convolution, four convolutions, an LSTM; Arik et al.,
"Convolutional Recurrent Neural Networks for Small-Footprint Keyword Spotting", 2017,
its architecture of 229 thousand parameters.
"""

from functools import partial

import numpy as np

from bench.networks.attention import apart, block
from bench.networks.builder import Net, normal

BANDS, HEAD, POSITIONS = 80, 64, 1500


def whisper_tiny(net: Net, size: int) -> None:
    """size: frames of 10 ms, two of which make a token.  Keys have no bias."""
    width = net.channels(384, HEAD)
    x = net.input("mel", BANDS, size)
    x = net.gelu(net.conv(x, "conv1", width, 3, plain=True))
    x = net.gelu(net.conv(x, "conv2", width, 3, stride=2, pads=[1, 1], plain=True))
    x = net.transpose(x, 0, 2, 1)
    tokens = POSITIONS if net.resizable else net.shape(x)[1]
    where = net.weight("embed_positions.weight", (tokens, width), normal(0.5))
    if net.resizable:
        first, axis = (net.constant(np.array([0])) for _ in range(2))
        where = net.op("Slice", [where, first, net.size(x, 1), axis])
    x = net.op("Add", [x, where], "positions" if net.resizable else "")
    attention = partial(apart, net, heads=width // HEAD, key_bias=False)
    for number in range(4):
        x = block(net, x, f"layers/{number}", attention, epsilon=1e-5)
    net.output(net.layer_norm(x, "layer_norm"), "last_hidden_state")


WINDOW, HOP = 256, 128
ENCODER = ((128, 1), (64, 2), (64, 2), (128, 1))
"""Channels and stride."""


def silero_vad(net: Net, size: int) -> None:
    """size: values of a wave; probabilities of speech in steps of 512."""
    x = net.op("Unsqueeze", [net.input("wave", size), net.constant(np.array([1]))])
    ends = net.constant(np.array([0, 0, 0, 0, 0, WINDOW // 4]))
    x = net.op("Pad", [x, ends], mode="reflect")
    basis = net.weight("stft", (WINDOW + 2, 1, WINDOW), fourier)
    shape = {"kernel_shape": [WINDOW], "strides": [HOP], "pads": [0, 0]}
    x = net.op("Conv", [x, basis], "stft", **shape)
    two = net.constant(np.float32(2), node=True)
    parts = [net.op("Pow", [y, two]) for y in net.split(x, *[WINDOW // 2 + 1] * 2)]
    x = net.op("Sqrt", [net.add(*parts)])
    for number, (out, stride) in enumerate(ENCODER):
        shape = {"stride": stride, "pads": [1, 1], "plain": True}
        x = net.relu(net.conv(x, f"encoder/{number}", net.channels(out), 3, **shape))
    x = net.lstm(net.transpose(x, 2, 0, 1), "decoder/rnn", net.channels(128))
    x = net.relu(net.transpose(x, 1, 2, 0))
    x = net.op("Sigmoid", [net.conv(x, "decoder/out", 1, plain=True, gain=1)])
    net.output(net.op("Squeeze", [x, net.constant(np.array([1]))]), "speech")


def fourier(_rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Cosines and sines of all frequencies under Hann's window."""
    at = np.arange(WINDOW)
    angles = 2 * np.pi * np.arange(WINDOW // 2 + 1)[:, None] * at / WINDOW
    window = 0.5 - 0.5 * np.cos(2 * np.pi * at / WINDOW)
    return (np.concatenate([np.cos(angles), -np.sin(angles)]) * window).reshape(shape)


ENERGIES, HIDDEN = 40, 32


def keyword_spotter(net: Net, size: int) -> None:
    """A convolution, two bidirectional GRUs, two fully connected layers.

    size: frames of 10 ms; features are (1, 1, frames, 40) mel energies.
    A resizable one takes the mean of all steps, not a weight for each.
    """
    x = net.input("features", 1, size, ENERGIES)
    steps, bands = -(-size // 8), ENERGIES // 2
    rows, columns = (steps - 1) * 8 + 20 - size, (bands - 1) * 2 + 5 - ENERGIES
    pads = [rows // 2, columns // 2, rows - rows // 2, columns - columns // 2]
    x = net.relu(net.conv(x, "conv", HIDDEN, (20, 5), stride=(8, 2), pads=pads))
    x = net.transpose(x, 2, 0, 1, 3)
    batch = net.batch if net.resizable else -1
    x = net.reshape(x, steps, batch, HIDDEN * bands)
    for number in range(2):
        x = net.gru(x, f"rnn/l{number}", HIDDEN)
    if net.resizable:
        x = net.op("ReduceMean", [x], axes=[0], keepdims=0)
    else:
        x = net.reshape(net.transpose(x, 1, 0, 2), -1, steps * 2 * HIDDEN)
    x = net.relu(net.linear(x, "fc1", 64, gain=2))
    net.output(net.op("Softmax", [net.linear(x, "fc2", 2)], axis=-1), "probabilities")
