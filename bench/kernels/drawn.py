# SPDX-License-Identifier: Apache-2.0
"""Networks of random layers and sizes, of which the tables of costs are made."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from bench.networks.attention import apart, block
from bench.networks.builder import Net

SIZES = (7, 10, 14, 20, 28, 33, 56)
CHANNELS = (3, 8, 12, 16, 20, 24, 30, 32, 40, 48, 64, 72, 96, 100, 128, 160, 192, 256)
KINDS = (
    *("1x1", "1x1", "3x3", "3x3", "depthwise", "depthwise"),
    *("large", "strided", "groups"),
)
ACTIVATIONS = ("relu", "relu", "none", "leaky", "clip")
MOST_MACS, MOST_OF_LAYER = 150e6, 40e6
LAYERS, ENDS = 16, 3
OPSET, OPSET_OF_TOKENS = 13, 20

Options = dict[str, object]
PLAIN: Options = {"plain": True}
VARIANTS: dict[str, Options] = {
    "": PLAIN,
    "default": {},
    "int16": {"plain": True, "bits": 16},
    "fast": {"plain": True, "fast": True},
}
"""How networks are calibrated, by what comes after their names."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A network, and keywords of calibrate_model."""

    net: Net
    options: Options


def networks() -> Iterator[Drawn]:
    counts = (
        *(
            (convolutions, 40, ""),
            (convolutions, 10, "int16"),
            (convolutions, 10, "fast"),
            (residual, 8, "fast"),
            (sevens, 8, ""),
        ),
        *((maps, 10, ""), (maps, 8, "default"), (maps, 8, "int16")),
        *((tokens, 12, ""), (tokens, 8, "default"), (tokens, 8, "int16")),
        *((sequence, 6, ""), (heads, 8, ""), (enlarged, 8, ""), (enlarged, 4, "int16")),
    )
    for kind, count, variant in counts:
        for seed in range(count):
            name = f"{kind.__name__}{seed}{variant}"
            opset = OPSET_OF_TOKENS if kind is tokens else OPSET
            net = Net(name, opset, seed=seed)
            kind(net, np.random.default_rng(seed))
            yield Drawn(net, VARIANTS[variant])


def convolutions(net: Net, rng: np.random.Generator) -> None:
    """Convolutions of all kinds, one after another; some add what they read."""
    size = int(rng.choice(SIZES))
    first = net.input("x", int(rng.choice(CHANNELS)), size, size + int(rng.integers(5)))
    x, ends = first, []
    for number in range(LAYERS):
        y = convolution(net, x, f"layer{number}", rng)
        x = y
        if min(net.shape(y)[2:]) < 4 or net.macs > MOST_MACS * (len(ends) + 1) / ENDS:
            ends.append(y)
            x = first
        if net.macs > MOST_MACS:
            break
    for number, end in enumerate([*ends, x][:ENDS]):
        out = int(rng.choice([1, 10, 100, 257]))
        pooled = net.op("Flatten", [net.op("GlobalAveragePool", [end])])
        net.output(net.linear(pooled, f"fc{number}", out), f"y{number}")


def residual(net: Net, rng: np.random.Generator) -> None:
    """Blocks of two 3x3 convolutions, the second of which adds what the first reads."""
    size = int(rng.choice(SIZES))
    channels = int(rng.choice(CHANNELS[1:]))
    while channels > 8 and 18 * channels**2 * size**2 > MOST_OF_LAYER:
        channels //= 2
    x = net.input("x", channels, size, size + int(rng.integers(5)))
    x = net.relu(net.conv(x, "stem", channels, 1, plain=True))
    for number in range(3):
        y = net.conv(x, f"a{number}", channels, 3, plain=True, pads=[1] * 4)
        y = net.conv(net.relu(y), f"b{number}", channels, 3, plain=True, pads=[1] * 4)
        x = net.relu(net.add(y, x))
    net.output(x, "y")


def sevens(net: Net, rng: np.random.Generator) -> None:
    """Sums on maps of 7 n pixels, for which the Cortex-A55 has tiles of 7."""
    height, width = rng.choice([(7, 7), (7, 7), (7, 15), (14, 15)])
    x = net.input("x", int(rng.choice(CHANNELS[1:])), int(height), int(width))
    for number in range(5):
        channels, wide = (int(rng.choice(CHANNELS[1:])) for _ in range(2))
        x = net.relu(net.conv(x, f"in{number}", channels, 1, plain=True))
        y = net.relu(net.conv(x, f"wide{number}", wide, 1, plain=True))
        kernel = int(rng.choice([1, 1, 3]))
        pads = [kernel // 2] * 4
        y = net.conv(y, f"out{number}", channels, kernel, plain=True, pads=pads)
        x = net.add(y, x)
    net.output(x, "y")


def convolution(net: Net, x: str, name: str, rng: np.random.Generator) -> str:
    """A convolution, its activation, and perhaps a sum with what it reads."""
    inside = net.shape(x)[1]
    out, kind = int(rng.choice(CHANNELS)), rng.choice(KINDS)
    kernel = {
        "1x1": 1,
        "3x3": 3,
        "groups": 3,
        "depthwise": int(rng.choice([3, 3, 5, 7])),
        "large": int(rng.choice([2, 5, 7])),
        "strided": int(rng.choice([1, 3])),
    }[kind]
    stride, groups = 1 + (kind == "strided"), 1
    if kind == "depthwise":
        out = groups = inside
        stride += int(rng.random() < 0.3)
    elif kind == "groups":
        groups = next(each for each in (4, 2, 1) if inside % each == 0)
        out = max(groups, out // groups * groups)
    while groups == 1 and out > 8 and out * kernel**2 * net.pixels(x) > MOST_OF_LAYER:
        out //= 2
    options = {"stride": stride, "pads": [kernel // 2] * 4, "groups": groups}
    y = net.conv(x, name, out, kernel, plain=True, **options)
    activation = rng.choice(ACTIVATIONS)
    if activation == "relu":
        y = net.relu(y)
    elif activation == "clip":
        y = net.clip(y, 0.0, 6.0)
    elif activation == "leaky":
        y = net.op("LeakyRelu", [y], alpha=0.1)
    if net.shape(y) == net.shape(x) and rng.random() < 0.5:
        y = net.add(y, x)
    return y


def maps(net: Net, rng: np.random.Generator) -> None:
    """Pools, resizes, functions and what moves values, on maps of pixels."""
    size = int(rng.choice(SIZES[2:]))
    x = net.input("x", int(rng.choice([8, 16, 24, 40, 64, 96])), size, size)
    channels = net.shape(x)[1]
    x = net.relu(net.conv(x, "stem", channels, 1, plain=True))
    kernel = int(rng.choice([2, 3, 5]))
    pooled = net.max_pool(x, kernel, 1 + int(rng.integers(2)), pads=[kernel // 2] * 4)
    mean = net.average_pool(x, 3, 2)
    large = net.resize(pooled, str(rng.choice(["nearest", "linear"])), "asymmetric")
    local = net.op("LRN", [x], size=5)
    silu = net.silu(net.conv(pooled, "silu", channels, 1, plain=True))
    hard = net.hard_swish(net.conv(mean, "hard", channels, 3, plain=True, pads=[1] * 4))
    one, two = net.split(x, channels // 2, channels - channels // 2)
    joined = net.shuffle(net.concat([two, one]), 2)
    gate = net.hard_sigmoid(
        net.conv(net.global_pool(joined), "gate", channels, 1, plain=True)
    )
    scaled = net.op("Mul", [joined, gate])
    for number, y in enumerate((large, local, silu, hard, scaled)):
        net.output(y, f"y{number}")


def enlarged(net: Net, rng: np.random.Generator) -> None:
    """Maps of pixels, enlarged by convolutions and joined with one of their size."""
    size = int(rng.choice([7, 10, 14, 20, 28, 40]))
    x = net.input("x", int(rng.choice([8, 16, 24, 40, 64])), size, size + 3)
    for number in range(2):
        out = int(rng.choice([8, 12, 16, 32, 48, 64]))
        pixels = net.conv(x, f"apart{number}", 4 * out, 1, plain=True)
        shuffled = net.op(
            "DepthToSpace",
            [pixels],
            blocksize=2,
            mode=str(rng.choice(["DCR", "CRD"])),
        )
        shape = {"stride": 2, "pads": [0] * 4, "transposed": True}
        up = net.conv(x, f"up{number}", out, 2, plain=True, **shape)
        x = net.relu(net.concat([up, shuffled]))
    net.output(net.conv(x, "out", 2, 1, plain=True) if rng.random() < 0.5 else x, "y")


def tokens(net: Net, rng: np.random.Generator) -> None:
    """A block of a transformer."""
    count = int(rng.choice([16, 30, 49, 64, 100, 145, 196, 256]))
    heads, each = int(rng.choice([1, 2, 3, 4])), int(rng.choice([16, 32, 48, 64]))
    width = heads * each
    x = net.input("x", count, width)
    attention = partial(apart, net, heads=heads, shared=False)
    net.output(block(net, x, "block", attention, ratio=2), "y")


def sequence(net: Net, rng: np.random.Generator) -> None:
    steps, features = (
        int(rng.choice([5, 19, 40, 80])),
        int(rng.choice([16, 40, 64, 128])),
    )
    hidden = int(rng.choice([16, 32, 48, 96]))
    x = net.transpose(net.input("x", steps, features), 1, 0, 2)
    gru = rng.random() < 0.5
    y = net.gru(x, "gru", hidden) if gru else net.lstm(x, "lstm", hidden)
    net.output(net.transpose(y, 1, 0, 2), "y")


def heads(net: Net, rng: np.random.Generator) -> None:
    """What a classifier ends with, in float32: a mean of pixels, and a Softmax."""
    size = int(rng.integers(1, 14))
    x = net.input("x", int(rng.choice(CHANNELS)), size, size)
    out = int(rng.choice([10, 100, 320, 1000]))
    x = net.relu(net.conv(x, "classes", out, 1, plain=True))
    y = net.op("Flatten", [net.op("GlobalAveragePool", [x])])
    net.output(net.softmax(y) if rng.random() < 0.5 else y, "y")
