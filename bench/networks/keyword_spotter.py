# SPDX-License-Identifier: Apache-2.0
"""A convolution, two bidirectional GRUs, two fully connected layers: is it the keyword?

Arik et al., "Convolutional Recurrent Neural Networks for Small-Footprint Keyword
Spotting", 2017, its architecture of 229 thousand parameters.
"""

from bench.networks.builder import Net

FRAMES, BANDS = 151, 40
HIDDEN = 32


def keyword_spotter(net: Net, size: int) -> None:
    """size: frames of 10 ms; features are (1, 1, frames, 40) mel energies.

    A resizable one takes the mean of all steps, not a weight for each.
    """
    x = net.input("features", 1, size, BANDS)
    steps, bands = -(-size // 8), BANDS // 2
    rows, columns = (steps - 1) * 8 + 20 - size, (bands - 1) * 2 + 5 - BANDS
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
