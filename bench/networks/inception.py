# SPDX-License-Identifier: Apache-2.0
"""Inception v3, torchvision's without the auxiliary classifier.

Szegedy et al., "Rethinking the Inception Architecture for Computer Vision", 2015.
"""

from bench.networks.builder import Net

NONE = [0] * 4
HALVED = {"stride": 2, "pads": NONE}
ROW, COLUMN = (1, 7), (7, 1)

MIXED_5 = {
    "1x1": ((64, 1),),
    "5x5": ((48, 1), (64, 5)),
    "3x3dbl": ((64, 1), (96, 3), (96, 3)),
}
MIXED_6A = {
    "3x3": ((384, 3, HALVED),),
    "3x3dbl": ((64, 1), (96, 3), (96, 3, HALVED)),
}
MIXED_7A = {
    "3x3": ((192, 1), (320, 3, HALVED)),
    "7x7x3": ((192, 1), (192, ROW), (192, COLUMN), (192, 3, HALVED)),
}
"""Branches side by side, each of units: channels, kernel, and perhaps options."""


def mixed_6(c: int) -> dict[str, tuple]:
    """Windows of 7x7 in two parts."""
    twice = ((c, 1), (c, COLUMN), (c, ROW), (c, COLUMN), (192, ROW))
    once = ((c, 1), (c, ROW), (192, COLUMN))
    return {"1x1": ((192, 1),), "7x7": once, "7x7dbl": twice}


def inception_v3(net: Net, size: int) -> None:
    """299 pixels, windows of 1x7, 7x1, 1x3 and 3x1 among them."""
    x = net.input("input", 3, size, size)
    x = unit(net, x, "Conv2d_1a", 32, 3, stride=2, pads=NONE)
    x = unit(net, x, "Conv2d_2a", 32, 3, pads=NONE)
    x = net.max_pool(unit(net, x, "Conv2d_2b", 64, 3), 3, 2)
    x = unit(net, x, "Conv2d_3b", 80)
    x = net.max_pool(unit(net, x, "Conv2d_4a", 192, 3, pads=NONE), 3, 2)
    for name, pooled in (("5b", 32), ("5c", 64), ("5d", 64)):
        x = mixed(net, x, f"Mixed_{name}", MIXED_5, pooled)
    x = mixed(net, x, "Mixed_6a", MIXED_6A)
    for name, inside in (("6b", 128), ("6c", 160), ("6d", 160), ("6e", 192)):
        x = mixed(net, x, f"Mixed_{name}", mixed_6(inside), 192)
    x = mixed(net, x, "Mixed_7a", MIXED_7A)
    for name in ("7b", "7c"):
        x = mixed_7(net, x, f"Mixed_{name}")
    x = net.flatten(net.global_pool(x))
    net.output(net.linear(x, "fc", 1000), "output")


def unit(net: Net, x: str, name: str, out: int, kernel=1, **options) -> str:
    """Convolution, BatchNormalization, Relu."""
    return net.relu(net.conv_norm(x, name, net.channels(out), kernel, **options))


def chain(net: Net, x: str, name: str, steps: tuple) -> str:
    """Units one after the other, which have numbers if there are several."""
    for number, (out, kernel, *options) in enumerate(steps):
        each = f"{name}_{number}" if len(steps) > 1 else name
        x = unit(net, x, each, out, kernel, **dict(*options))
    return x


def mixed(net: Net, x: str, name: str, rows: dict[str, tuple], pooled: int = 0) -> str:
    """Branches, and a pool: of averages with a unit after it, or of half the size."""
    parts = [chain(net, x, f"{name}/{each}", steps) for each, steps in rows.items()]
    if pooled:
        last = unit(net, net.average_pool(x, 3, 1, pad=1), f"{name}/pool", pooled)
    else:
        last = net.max_pool(x, 3, 2)
    return net.concat([*parts, last])


def mixed_7(net: Net, x: str, name: str) -> str:
    """Branches that part again."""
    three = unit(net, x, f"{name}/3x3_0", 384)
    double = chain(net, x, f"{name}/3x3dbl", ((448, 1), (384, 3)))
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
