# SPDX-License-Identifier: Apache-2.0
"""Inception v3, torchvision's without the auxiliary classifier.

Szegedy et al., "Rethinking the Inception Architecture for Computer Vision", 2015.
"""

from bench.networks.builder import Net

NONE = [0] * 4


def inception_v3(net: Net, size: int) -> None:
    """299 pixels, windows of 1x7, 7x1, 1x3 and 3x1 among them."""
    x = net.input("input", 3, size, size)
    x = unit(net, x, "Conv2d_1a", 32, 3, stride=2, pads=NONE)
    x = unit(net, x, "Conv2d_2a", 32, 3, pads=NONE)
    x = net.max_pool(unit(net, x, "Conv2d_2b", 64, 3), 3, 2)
    x = unit(net, x, "Conv2d_3b", 80)
    x = net.max_pool(unit(net, x, "Conv2d_4a", 192, 3, pads=NONE), 3, 2)
    for name, pooled in (("5b", 32), ("5c", 64), ("5d", 64)):
        x = mixed_5(net, x, f"Mixed_{name}", pooled)
    x = reduce_6(net, x, "Mixed_6a")
    for name, inside in (("6b", 128), ("6c", 160), ("6d", 160), ("6e", 192)):
        x = mixed_6(net, x, f"Mixed_{name}", inside)
    x = reduce_7(net, x, "Mixed_7a")
    for name in ("7b", "7c"):
        x = mixed_7(net, x, f"Mixed_{name}")
    x = net.flatten(net.global_pool(x))
    net.output(net.linear(x, "fc", 1000), "output")


def unit(net: Net, x: str, name: str, out: int, kernel=1, **options) -> str:
    """Convolution, BatchNormalization, Relu."""
    return net.relu(net.conv_norm(x, name, net.channels(out), kernel, **options))


def chain(net: Net, x: str, name: str, *steps: tuple) -> str:
    """Units one after the other: (channels, kernel) or (channels, kernel, options)."""
    for number, (out, kernel, *options) in enumerate(steps):
        x = unit(net, x, f"{name}_{number}", out, kernel, **dict(*options))
    return x


HALVED = {"stride": 2, "pads": NONE}


def mixed_5(net: Net, x: str, name: str, pooled: int) -> str:
    """1x1, 5x5, two 3x3, pooling."""
    return net.concat([
        unit(net, x, f"{name}/1x1", 64),
        chain(net, x, f"{name}/5x5", (48, 1), (64, 5)),
        chain(net, x, f"{name}/3x3dbl", (64, 1), (96, 3), (96, 3)),
        unit(net, net.average_pool(x, 3, 1, pad=1), f"{name}/pool", pooled),
    ])  # fmt: skip


def reduce_6(net: Net, x: str, name: str) -> str:
    """Half the size."""
    return net.concat([
        unit(net, x, f"{name}/3x3", 384, 3, **HALVED),
        chain(net, x, f"{name}/3x3dbl", (64, 1), (96, 3), (96, 3, HALVED)),
        net.max_pool(x, 3, 2),
    ])  # fmt: skip


def mixed_6(net: Net, x: str, name: str, c: int) -> str:
    """Windows of 7x7 in two parts."""
    row, column = (1, 7), (7, 1)
    twice = ((c, 1), (c, column), (c, row), (c, column), (192, row))
    return net.concat([
        unit(net, x, f"{name}/1x1", 192),
        chain(net, x, f"{name}/7x7", (c, 1), (c, row), (192, column)),
        chain(net, x, f"{name}/7x7dbl", *twice),
        unit(net, net.average_pool(x, 3, 1, pad=1), f"{name}/pool", 192),
    ])  # fmt: skip


def reduce_7(net: Net, x: str, name: str) -> str:
    """Half the size."""
    rows = ((192, 1), (192, (1, 7)), (192, (7, 1)), (192, 3, HALVED))
    return net.concat([
        chain(net, x, f"{name}/3x3", (192, 1), (320, 3, HALVED)),
        chain(net, x, f"{name}/7x7x3", *rows),
        net.max_pool(x, 3, 2),
    ])  # fmt: skip


def mixed_7(net: Net, x: str, name: str) -> str:
    """Branches that part again."""
    three = unit(net, x, f"{name}/3x3_0", 384)
    double = chain(net, x, f"{name}/3x3dbl", (448, 1), (384, 3))
    return net.concat([
        unit(net, x, f"{name}/1x1", 320),
        net.concat([
            unit(net, three, f"{name}/3x3_1", 384, (1, 3)),
            unit(net, three, f"{name}/3x3_2", 384, (3, 1)),
        ]),
        net.concat([
            unit(net, double, f"{name}/3x3dbl_2", 384, (1, 3)),
            unit(net, double, f"{name}/3x3dbl_3", 384, (3, 1)),
        ]),
        unit(net, net.average_pool(x, 3, 1, pad=1), f"{name}/pool", 192),
    ])  # fmt: skip
