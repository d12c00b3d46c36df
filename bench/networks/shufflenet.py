# SPDX-License-Identifier: Apache-2.0
"""ShuffleNetV2 1.0, torchvision's, as its first exporters wrote it.

Every shape is computed from the input's: the halves of a channel split by Slice, the
channel shuffle by Reshape, Transpose, Reshape.
Ma et al., "ShuffleNet V2", 2018.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise

import numpy as np

from bench.networks.builder import Net


def shufflenet_v2(net: Net, size: int) -> None:
    x = net.input("input", 3, size, size)
    x = net.relu(net.conv_norm(x, "conv1", net.channels(24), 3, stride=2))
    x = net.max_pool(x, 3, 2, pads=[1] * 4)
    names = [f"stage{stage}" for stage in (2, 3, 4)]
    shuffle = partial(net.shuffle, traced=True)
    *_, x = stages(net, x, names, partial(halves, net), shuffle)
    x = net.relu(net.conv_norm(x, "conv5", net.channels(1024)))
    net.output(net.linear(net.mean(x, keep=False), "fc", 1000), "output")


def stages(
    net: Net,
    x: str,
    names: list[str],
    halved: Callable[[str], list[str]],
    shuffle: Callable[[str], str],
) -> Iterator[str]:
    """The results of 4, 8 and 4 units."""
    for stage, out, count in zip(names, (116, 232, 464), (4, 8, 4), strict=True):
        for number in range(count):
            left, right = halved(x) if number else (x, x)
            name = f"{stage}/{number}"
            x = unit(net, left, right, name, net.channels(out), first=not number)
            x = shuffle(x)
        yield x


def unit(net: Net, left: str, right: str, name: str, out: int, *, first: bool) -> str:
    """Two halves of `out` channels, put together; the first unit has stride 2."""
    half, stride = out // 2, 2 if first else 1
    if first:
        left = net.depthwise(left, f"{name}/branch1/0", stride=stride)
        left = net.relu(net.conv_norm(left, f"{name}/branch1/2", half))
    y = net.relu(net.conv_norm(right, f"{name}/branch2/0", half))
    y = net.depthwise(y, f"{name}/branch2/3", stride=stride)
    return net.concat([left, net.relu(net.conv_norm(y, f"{name}/branch2/5", half))])


def halves(net: Net, x: str) -> list[str]:
    """x.chunk(2, dim=1), the bounds computed from the number of channels."""
    batch, channels, height, width = net.shape(x)
    size = net.size(x, 1)
    one, two = (net.constant(np.array([v]), node=True) for v in (1, 2))
    half = net.op("Div", [net.op("Add", [size, one]), two])
    zero = net.constant(np.array([0]), node=True)
    bounds = [zero, half, net.op("Mul", [half, two])]
    return [
        net.op(
            "Slice",
            [x, start, end, one],
            shape=(batch, channels // 2, height, width),
        )
        for start, end in pairwise(bounds)
    ]
