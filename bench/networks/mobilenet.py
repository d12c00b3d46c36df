# SPDX-License-Identifier: Apache-2.0
"""MobileNetV1, V2, V3 large and small, EfficientNet-B0 and MobileFaceNet.

Howard et al., "MobileNets", 2017; Sandler et al., "MobileNetV2", 2018; Howard et al.,
"Searching for MobileNetV3", 2019; Tan, Le, "EfficientNet", 2019; Chen et al.,
"MobileFaceNets", 2018. From V2 to EfficientNet as torchvision has them.
"""

from collections.abc import Callable

import numpy as np

from bench.networks.builder import Net, uniform

BRANCH = 0.5
"""gamma where a residual branch ends."""

V1 = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5)
V1 = (*V1, (1024, 2), (1024, 1))
"""Channels and stride of each separable convolution."""


def mobilenet_v1(net: Net, size: int) -> None:
    """BatchNormalization as it stands, Relu6."""
    x = net.input("input", 3, size, size)
    x = net.conv_norm(x, "conv0", net.channels(32), 3, stride=2)
    x = net.clip(x, 0, 6)
    for number, (out, stride) in enumerate(V1, start=1):
        x = net.clip(net.depthwise(x, f"conv{number}/dw", stride=stride), 0, 6)
        x = net.clip(net.conv_norm(x, f"conv{number}/pw", net.channels(out)), 0, 6)
    x = net.flatten(net.global_pool(x))
    net.output(net.linear(x, "fc", 1000), "logits")


V2 = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1))
V2 = (*V2, (6, 160, 3, 2), (6, 320, 1, 1))
"""Expansion, channels, blocks, stride of the first."""


def mobilenet_v2(net: Net, size: int) -> None:
    """Inverted residuals that end without an activation."""

    def relu6(x: str) -> str:
        return net.clip(x, 0, 6, node=True)

    x = net.input("input.1", 3, size, size)
    x = relu6(net.conv_norm(x, "features/0", net.channels(32), 3, stride=2))
    number = 0
    for expansion, out, blocks, first in V2:
        for block in range(blocks):
            number += 1
            wide = net.shape(x)[1] * expansion
            stride = 1 if block else first
            x = inverted(
                net, x, f"features/{number}", wide, net.channels(out), 3, stride, relu6
            )
    x = relu6(net.conv_norm(x, "features/18", net.channels(1280)))
    net.output(net.linear(net.mean(x, keep=False), "classifier", 1000), "output")


def inverted(
    net: Net,
    x: str,
    name: str,
    wide: int,
    out: int,
    kernel: int,
    stride: int,
    activation: Callable[[str], str],
    squeeze: Callable[[str, str], str] | None = None,
) -> str:
    """Expand to `wide`, depthwise, squeeze and excite, project to `out`."""
    y = x
    if wide != net.shape(x)[1]:
        y = activation(net.conv_norm(y, f"{name}/expand", wide))
    y = activation(net.depthwise(y, f"{name}/dw", kernel, stride=stride))
    if squeeze:
        y = squeeze(y, f"{name}/se")
    residual = stride == 1 and net.shape(x)[1] == out
    y = net.conv_norm(y, f"{name}/project", out, gamma=BRANCH if residual else 1.0)
    return net.add(x, y) if residual else y


def excite(
    net: Net,
    x: str,
    mean: str,
    name: str,
    few: int,
    activation: Callable[[str], str],
) -> str:
    """What a gate makes factors of, from the means of the channels of x."""
    gate = activation(net.conv(mean, f"{name}/fc1", few, plain=True))
    return net.conv(gate, f"{name}/fc2", net.shape(x)[1], plain=True)


V3_LARGE = (
    (3, (16,), 16, False, "RE", 1),
    (3, (64, 72), 24, False, "RE", 2),
    (5, (72, 120, 120), 40, True, "RE", 2),
    (3, (240, 200, 184, 184), 80, False, "HS", 2),
    (3, (480, 672), 112, True, "HS", 1),
    (5, (672, 960, 960), 160, True, "HS", 2),
)
V3_SMALL = (
    (3, (16,), 16, True, "RE", 2),
    (3, (72, 88), 24, False, "RE", 2),
    (5, (96, 240, 240), 40, True, "HS", 2),
    (5, (120, 144), 48, True, "HS", 1),
    (5, (288, 576, 576), 96, True, "HS", 2),
)
"""Kernel, expanded channels of each block, channels, squeeze and excite, activation,
stride of the first."""


def mobilenet_v3(net: Net, size: int, *, large: bool) -> None:
    """Hard-swish; squeeze and excite with a hard sigmoid."""

    def squeeze(x: str, name: str) -> str:
        few = eighths(net.shape(x)[1] / 4)
        gate = excite(net, x, net.global_pool(x), name, few, net.relu)
        return net.op("Mul", [net.hard_sigmoid(gate), x])

    x = net.input("input", 3, size, size)
    x = net.hard_swish(net.conv_norm(x, "features/0", net.channels(16), 3, stride=2))
    rows = V3_LARGE if large else V3_SMALL
    number = 0
    for kernel, expanded, published, excited, activation, first in rows:
        given = net.relu if activation == "RE" else net.hard_swish
        gate, out = squeeze if excited else None, net.channels(published)
        for block, each in enumerate(expanded):
            number += 1
            name, wide = f"features/{number}", net.channels(each)
            stride = 1 if block else first
            x = inverted(net, x, name, wide, out, kernel, stride, given, gate)
    x = net.hard_swish(net.conv_norm(x, f"features/{number + 1}", wide))
    x = net.flatten(net.global_pool(x))
    x = net.linear(x, "classifier/0", net.channels(1280 if large else 1024), gain=2)
    net.output(net.linear(net.hard_swish(x), "classifier/3", 1000), "output")


def eighths(channels: float) -> int:
    """The multiple of 8 next to it, at least 8 and not below 90 % of it."""
    rounded = max(8, int(channels + 4) // 8 * 8)
    return rounded if rounded >= 0.9 * channels else rounded + 8


B0 = ((1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3))
B0 = (*B0, (6, 5, 1, 112, 3), (6, 5, 2, 192, 4), (6, 3, 1, 320, 1))
"""Expansion, kernel, stride of the first block, channels, blocks."""


def efficientnet_b0(net: Net, size: int) -> None:
    """SiLU everywhere; the means of squeeze and excite by ReduceMean."""
    x = net.input("input", 3, size, size)
    x = net.silu(net.conv_norm(x, "features/0", net.channels(32), 3, stride=2))
    for stage, (expansion, kernel, first, out, blocks) in enumerate(B0, start=1):
        for block in range(blocks):
            inside = net.shape(x)[1]

            def squeeze(x: str, name: str, inside: int = inside) -> str:
                mean, few = net.mean(x, keep=True), max(1, inside // 4)
                gate = excite(net, x, mean, name, few, net.silu)
                return net.op("Mul", [net.op("Sigmoid", [gate]), x])

            x = inverted(
                net,
                x,
                f"features/{stage}/{block}",
                inside * expansion,
                net.channels(out),
                kernel,
                1 if block else first,
                net.silu,
                squeeze,
            )
    x = net.silu(net.conv_norm(x, "features/8", net.channels(1280)))
    x = net.flatten(net.global_pool(x))
    net.output(net.linear(x, "classifier", 1000), "output")


FACE = ((2, 64, 5, 2), (4, 128, 1, 2), (2, 128, 6, 1), (4, 128, 1, 2), (2, 128, 2, 1))
"""Expansion, channels, blocks, stride of the first."""


def mobilefacenet(net: Net, size: int) -> None:
    """A direction in 128 dimensions for each face.

    PRelu; a depthwise convolution as large as the last map; F.normalize().
    """

    def prelu(x: str) -> str:
        channels = net.shape(x)[1]
        name = f"prelu/{len(net.nodes)}"
        slope = net.weight(f"{name}.weight", (channels, 1, 1), uniform(0.05, 0.4))
        return net.op("PRelu", [x, slope])

    x = net.input("face", 3, size, size)
    x = prelu(net.conv_norm(x, "conv1", net.channels(64), 3, stride=2))
    x = prelu(net.depthwise(x, "conv2_dw"))
    for row, (expansion, out, count, first) in enumerate(FACE):
        for number in range(count):
            wide, stride = expansion * net.shape(x)[1], 1 if number else first
            name = f"layers/{row}/{number}"
            x = inverted(net, x, name, wide, net.channels(out), 3, stride, prelu)
    x = prelu(net.conv_norm(x, "conv_6_sep", net.channels(512)))
    x = net.depthwise(x, "conv_6_dw", net.shape(x)[2:], pads=[0] * 4)
    x = net.flatten(net.conv_norm(x, "conv_6_1x1", 128))
    length = net.op("ReduceL2", [x], axes=[1], keepdims=1)
    shape = net.constant(np.array([net.batch, 128]))
    length = net.op("Expand", [net.clip(length, 1e-12, 3e38), shape])
    net.output(net.op("Div", [x, length]), "embedding")
