# SPDX-License-Identifier: Apache-2.0
"""ResNet-18, -50, -101 and -152, and DenseNet-121.

torchvision's, that is with the stride in the 3x3 convolution of a bottleneck.
He et al., "Deep Residual Learning for Image Recognition", 2015; Huang et al.,
"Densely Connected Convolutional Networks", 2016.
"""

from bench.networks.builder import Net

BLOCKS = {18: (2, 2, 2, 2), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}
BRANCH = 0.35
"""gamma where a residual branch ends: small as in trained networks, where with 1 the
variance would grow by 1 a block."""


def resnet(net: Net, size: int, depth: int) -> None:
    """The network of this depth; the flattening is traced in ResNet-18."""
    x = stem(net, net.input("input", 3, size, size), "conv1")
    for stage, count in enumerate(BLOCKS[depth]):
        width = 64 << stage
        for number in range(count):
            stride = 2 if stage and not number else 1
            name = f"layer{stage + 1}/layer{stage + 1}.{number}"
            block = basic if depth < 50 else bottleneck
            x = block(net, x, name, width, stride)
    x = net.global_pool(x)
    x = net.view(x) if depth == 18 else net.flatten(x)
    net.output(net.linear(x, "fc", 1000), "output")


def stem(net: Net, x: str, name: str) -> str:
    """7x7 and pooling: a quarter of the size."""
    x = net.relu(net.conv_norm(x, name, net.channels(64), 7, stride=2))
    return net.max_pool(x, 3, 2, pads=[1] * 4)


def basic(net: Net, x: str, name: str, width: int, stride: int) -> str:
    """Two 3x3 convolutions."""
    out = net.channels(width)
    y = net.relu(net.conv_norm(x, f"{name}/conv1", out, 3, stride=stride))
    y = net.conv_norm(y, f"{name}/conv2", out, 3, gamma=BRANCH)
    return net.relu(net.add(y, shortcut(net, x, name, out, stride)))


def bottleneck(net: Net, x: str, name: str, width: int, stride: int) -> str:
    """1x1, 3x3, 1x1."""
    inside, out = net.channels(width), net.channels(4 * width)
    y = net.relu(net.conv_norm(x, f"{name}/conv1", inside))
    y = net.relu(net.conv_norm(y, f"{name}/conv2", inside, 3, stride=stride))
    y = net.conv_norm(y, f"{name}/conv3", out, gamma=BRANCH)
    return net.relu(net.add(y, shortcut(net, x, name, out, stride)))


def shortcut(net: Net, x: str, name: str, out: int, stride: int) -> str:
    """x itself where the shape stays."""
    if stride == 1 and net.shape(x)[1] == out:
        return x
    return net.conv_norm(x, f"{name}/downsample", out, stride=stride, pads=[0] * 4)


def densenet121(net: Net, size: int) -> None:
    """BatchNormalization and Relu come before each convolution."""
    growth = net.channels(32)
    x = stem(net, net.input("input", 3, size, size), "features/conv0")
    for block, count in enumerate((6, 12, 24, 16), start=1):
        parts = [x]
        for layer in range(1, count + 1):
            name = f"features/denseblock{block}/denselayer{layer}"
            y = net.concat(parts) if len(parts) > 1 else x
            y = net.relu(net.norm(y, f"{name}/norm1"))
            y = net.relu(net.conv_norm(y, f"{name}/conv1", 4 * growth))
            parts.append(net.conv(y, f"{name}/conv2", growth, 3, bias=False))
        x = net.relu(net.norm(net.concat(parts), f"features/norm{block}"))
        if block < 4:
            half = net.shape(x)[1] // 2
            x = net.conv(x, f"features/transition{block}", half, bias=False)
            x = net.average_pool(x, 2, 2)
    x = net.flatten(net.global_pool(x))
    net.output(net.linear(x, "classifier", 1000), "output")
