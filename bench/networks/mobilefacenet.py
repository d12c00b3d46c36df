# SPDX-License-Identifier: Apache-2.0
"""MobileFaceNet: a direction in 128 dimensions for each face.

Chen et al., "MobileFaceNets", 2018.
"""

import numpy as np

from bench.networks.builder import Net, uniform
from bench.networks.mobilenet import inverted

ROWS = ((2, 64, 5, 2), (4, 128, 1, 2), (2, 128, 6, 1), (4, 128, 1, 2), (2, 128, 2, 1))
"""Expansion, channels, blocks, stride of the first."""


def mobilefacenet(net: Net, size: int) -> None:
    """PRelu; a depthwise convolution as large as the last map; F.normalize()."""

    def prelu(x: str) -> str:
        channels = net.shape(x)[1]
        name = f"prelu/{len(net.nodes)}"
        slope = net.weight(f"{name}.weight", (channels, 1, 1), uniform(0.05, 0.4))
        return net.op("PRelu", [x, slope])

    x = net.input("face", 3, size, size)
    x = prelu(net.conv_norm(x, "conv1", net.channels(64), 3, stride=2))
    x = prelu(net.depthwise(x, "conv2_dw"))
    for row, (expansion, out, count, first) in enumerate(ROWS):
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
