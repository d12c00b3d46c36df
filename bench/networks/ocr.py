# SPDX-License-Identifier: Apache-2.0
"""A text detector and a recogniser like PP-OCRv4's mobile ones.

PP-LCNetV3 as it is deployed, its branches merged; RSEFPN and the DB head above it, or
two blocks of SVTR and a softmax of 6625 signs.  Cui et al., "PP-LCNet", 2021; Du et
al., "SVTR", 2022; PaddleOCR 2.7.
"""

from functools import partial

import numpy as np

from bench.networks.attention import block, joined, pixels, tokens
from bench.networks.builder import Net, uniform

Row = tuple[int, int, int | tuple[int, int], bool]

LATER = [(5, 256, 1, False)] * 4
DETECTOR: list[list[Row]] = [
    [(3, 32, 1, False)],
    [(3, 64, 2, False), (3, 64, 1, False)],
    [(3, 128, 2, False), (3, 128, 1, False)],
    [(3, 256, 2, False), *LATER],
    [(5, 512, 2, True), (5, 512, 1, True), *[(5, 512, 1, False)] * 2],
]
RECOGNISER: list[list[Row]] = [
    [(3, 32, 1, False)],
    [(3, 64, 1, False), (3, 64, 1, False)],
    [(3, 128, (2, 1), False), (3, 128, 1, False)],
    [(3, 256, (1, 2), False), *LATER],
    [
        (5, 512, (2, 1), True),
        (5, 512, 1, True),
        (5, 512, (2, 1), False),
        (5, 512, 1, False),
    ],
]
"""Stages of blocks: kernel, channels, stride, squeeze and excite."""


def lcnet(net: Net, x: str, stages: list[list[Row]], scale: float) -> list[str]:
    """The result of every stage."""
    x = net.conv(x, "conv1", net.channels(16 * scale), 3, stride=2, pads=[1] * 4)
    found = []
    for stage, rows in enumerate(stages, start=2):
        for number, (kernel, out, stride, excited) in enumerate(rows):
            name, inside = f"blocks{stage}/{number}", net.shape(x)[1]
            shape = {"stride": stride, "groups": inside, "pads": [kernel // 2] * 4}
            x = net.conv(x, f"{name}/dw", inside, kernel, **shape)
            x = affine(net, x, f"{name}/dw/lab")
            if stride != 2:
                x = activated(net, x, f"{name}/dw/act")
            if excited:
                x = excite(net, x, f"{name}/se")
            x = net.conv(x, f"{name}/pw", net.channels(out * scale))
            x = activated(net, affine(net, x, f"{name}/pw/lab"), f"{name}/pw/act")
        found.append(x)
    return found


def affine(net: Net, x: str, name: str) -> str:
    """One learned factor and one learned addend for all values."""
    factor = net.weight(f"{name}.scale", (1,), uniform(0.8, 1.2))
    addend = net.weight(f"{name}.bias", (1,), uniform(-0.1, 0.1))
    return net.add(net.op("Mul", [factor, x]), addend)


def activated(net: Net, x: str, name: str) -> str:
    """HardSwish and another learned factor and addend."""
    return affine(net, net.hard_swish(x), name)


def excite(net: Net, x: str, name: str) -> str:
    """Squeeze and excite, its hard sigmoid of slope 1/5 or 1/6."""
    channels = net.shape(x)[1]
    gate = net.conv(
        net.global_pool(x), f"{name}/conv1", max(4, channels // 4), plain=True
    )
    gate = net.conv(net.relu(gate), f"{name}/conv2", channels, plain=True)
    return net.op("Mul", [x, net.op("HardSigmoid", [gate], alpha=0.2, beta=0.5)])


def ppocr_detector(net: Net, size: int) -> None:
    """The probability that a pixel is of text."""
    x = net.input("x", 3, size, size)
    maps = lcnet(net, x, DETECTOR, 0.75)[1:]
    parts = [
        net.conv(each, f"out{index}", net.channels(out), plain=True, gain=1)
        for index, (each, out) in enumerate(zip(maps, (12, 18, 42, 360), strict=True))
    ]
    lateral = [
        residual_excite(net, each, f"neck/in{index}", 96, 1)
        for index, each in enumerate(parts)
    ]
    for index in (2, 1, 0):
        lateral[index] = net.add(lateral[index], net.up(lateral[index + 1]))
    parts = []
    for index, each in enumerate(lateral):
        y = residual_excite(net, each, f"neck/p{index}", 24, 3)
        parts.append(net.up(y, 2**index) if index else y)
    x = net.relu(
        net.conv_norm(net.concat(parts[::-1]), "head/conv1", net.channels(24), 3)
    )
    up = {"stride": 2, "pads": [0] * 4, "transposed": True}
    x = net.conv(x, "head/conv2", net.channels(24), 2, plain=True, **up)
    x = net.relu(net.norm(x, "head/norm2"))
    x = net.conv(x, "head/conv3", 1, 2, plain=True, gain=1, **up)
    net.output(net.op("Sigmoid", [x]), "probability")


def residual_excite(net: Net, x: str, name: str, out: int, kernel: int) -> str:
    """A convolution, and squeeze and excite added to it."""
    y = net.conv(x, f"{name}/conv", net.channels(out), kernel, bias=False, gain=1)
    return net.add(y, excite(net, y, f"{name}/se"))


SIGNS = 6625


def ppocr_recogniser(net: Net, size: int) -> None:
    """Probabilities of signs in steps of 8 pixels; images are 48 pixels high."""
    x = lcnet(net, net.input("x", 3, 48, size), RECOGNISER, 0.95)[-1]
    shape = {"kernel_shape": [3, 2], "strides": [3, 2]}
    x = net.op("AveragePool", [x], **shape)
    channels, wide = net.shape(x)[1], net.channels(120, 8)
    silu = partial(unit, net)
    y = silu(x, "neck/conv1", channels // 8, (1, 3))
    y = silu(y, "neck/conv2", wide)
    _, _, height, width = net.shape(y)
    y = tokens(net, y)
    attention = partial(joined, net, heads=8, shared=False)
    for number in range(2):
        name = f"neck/block/{number}"
        y = block(net, y, name, attention, ratio=2, activation=net.silu, epsilon=1e-5)
    y = pixels(net, net.layer_norm(y, "neck/norm", 1e-6), height, width)
    y = silu(y, "neck/conv3", channels)
    y = silu(net.concat([x, y]), "neck/conv4", channels // 8, (1, 3))
    y = silu(y, "neck/conv1x1", wide)
    y = net.transpose(net.op("Squeeze", [y, net.constant(np.array([2]))]), 0, 2, 1)
    net.output(net.softmax(net.project(y, "head/fc", SIGNS), 2), "signs")


def unit(net: Net, x: str, name: str, out: int, kernel=1) -> str:
    """Convolution, BatchNormalization, SiLU."""
    return net.silu(net.conv_norm(x, name, out, kernel))
