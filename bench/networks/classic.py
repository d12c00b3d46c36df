# SPDX-License-Identifier: Apache-2.0
"""Without BatchNormalization: AlexNet, VGG-19, GoogLeNet, SqueezeNet 1.1."""

from bench.networks.builder import Net


def alexnet(net: Net, size: int) -> None:
    """Caffe's bvlc_alexnet: LRN, two groups; as its ONNX conversion, IR version 3.

    Krizhevsky, Sutskever, Hinton, "ImageNet Classification with Deep Convolutional
    Neural Networks", 2012.
    """
    x = net.input("data_0", 3, size, size)
    x = net.relu(net.conv(x, "conv1", net.channels(96), 11, stride=4, pads=[0] * 4))
    x = net.max_pool(lrn(net, x, "norm1"), 3, 2)
    x = net.relu(net.conv(x, "conv2", net.channels(256), 5, groups=2))
    x = net.max_pool(lrn(net, x, "norm2"), 3, 2)
    x = net.relu(net.conv(x, "conv3", net.channels(384), 3))
    x = net.relu(net.conv(x, "conv4", net.channels(384), 3, groups=2))
    x = net.relu(net.conv(x, "conv5", net.channels(256), 3, groups=2))
    x = net.max_pool(x, 3, 2)
    x = net.reshape(x, -1, net.pixels(x))
    for name in ("fc6", "fc7"):
        x = net.relu(net.linear(x, name, net.channels(4096), gain=2))
        x = net.op("Dropout", [x], f"{name}/drop", ratio=0.5)
    net.output(net.op("Softmax", [net.linear(x, "fc8", 1000)], axis=1), "prob_1")


def lrn(net: Net, x: str, name: str) -> str:
    """Local response normalization with the parameters of both papers."""
    return net.op("LRN", [x], name, alpha=1e-4, beta=0.75, bias=1.0, size=5)


VGG19 = (64, 64, "M", 128, 128, "M", *(256,) * 4, "M", *(512,) * 4, "M", *(512,) * 4)


def vgg19(net: Net, size: int) -> None:
    """torchvision's vgg19, the flattening traced.

    Simonyan, Zisserman, "Very Deep Convolutional Networks for Large-Scale Image
    Recognition", 2014, configuration E.
    """
    x = net.input("input", 3, size, size)
    for number, step in enumerate((*VGG19, "M")):
        if step == "M":
            x = net.max_pool(x, 2, 2)
        else:
            x = net.relu(net.conv(x, f"features/{number}", net.channels(step), 3))
    x = net.view(net.average_pool(x, 1, 1, count=False))  # adaptive, to what it is
    for name in ("classifier/0", "classifier/3"):
        x = net.relu(net.linear(x, name, net.channels(4096), gain=2))
    net.output(net.linear(x, "classifier/6", 1000), "output")


INCEPTIONS = {
    "3a": (64, 96, 128, 16, 32, 32),
    "3b": (128, 128, 192, 32, 96, 64),
    "4a": (192, 96, 208, 16, 48, 64),
    "4b": (160, 112, 224, 24, 64, 64),
    "4c": (128, 128, 256, 24, 64, 64),
    "4d": (112, 144, 288, 32, 64, 64),
    "4e": (256, 160, 320, 32, 128, 128),
    "5a": (256, 160, 320, 32, 128, 128),
    "5b": (384, 192, 384, 48, 128, 128),
}
"""Channels: 1x1, before 3x3, 3x3, before 5x5, 5x5, after the pooling."""


def googlenet(net: Net, size: int) -> None:
    """Caffe's bvlc_googlenet without its auxiliary classifiers.

    Szegedy et al., "Going Deeper with Convolutions", 2014.
    """
    x = net.input("data_0", 3, size, size)
    x = net.relu(net.conv(x, "conv1/7x7_s2", net.channels(64), 7, stride=2))
    x = lrn(net, net.max_pool(x, 3, 2, ceil=True), "pool1/norm1")
    x = net.relu(net.conv(x, "conv2/3x3_reduce", net.channels(64)))
    x = net.relu(net.conv(x, "conv2/3x3", net.channels(192), 3))
    x = net.max_pool(lrn(net, x, "conv2/norm2"), 3, 2, ceil=True)
    for name, channels in INCEPTIONS.items():
        if name in ("4a", "5a"):
            x = net.max_pool(x, 3, 2, ceil=True)
        x = inception(net, x, f"inception_{name}", channels)
    x = net.average_pool(x, net.shape(x)[2], 1, count=False)
    x = net.op("Dropout", [x], "pool5/drop")
    x = net.linear(net.reshape(x, -1, net.pixels(x)), "loss3/classifier", 1000)
    net.output(net.op("Softmax", [x], axis=1), "prob_1")


def inception(net: Net, x: str, name: str, channels: tuple[int, ...]) -> str:
    """Four branches side by side."""
    one, before3, three, before5, five, pooled = map(net.channels, channels)
    branches = [net.conv(x, f"{name}/1x1", one)]
    y = net.relu(net.conv(x, f"{name}/3x3_reduce", before3))
    branches.append(net.conv(y, f"{name}/3x3", three, 3))
    y = net.relu(net.conv(x, f"{name}/5x5_reduce", before5))
    branches.append(net.conv(y, f"{name}/5x5", five, 5))
    y = net.max_pool(x, 3, 1, pads=[1] * 4)
    branches.append(net.conv(y, f"{name}/pool_proj", pooled))
    return net.concat([net.relu(branch) for branch in branches])


FIRES = ((16, 64), (16, 64), "M", (32, 128), (32, 128), "M", (48, 192), (48, 192))
FIRES = (*FIRES, (64, 256), (64, 256))
"""Channels of squeeze and of each expansion."""


def squeezenet(net: Net, size: int) -> None:
    """torchvision's squeezenet1_1.

    Iandola et al., "SqueezeNet: AlexNet-level accuracy with 50x fewer parameters",
    2016; version 1.1 of its repository.
    """
    x = net.input("x", 3, size, size)
    x = net.relu(net.conv(x, "features/0", net.channels(64), 3, stride=2, pads=[0] * 4))
    x = net.max_pool(x, 3, 2, ceil=True)
    for number, step in enumerate(FIRES, start=3):
        if step == "M":
            x = net.max_pool(x, 3, 2, ceil=True)
            continue
        squeeze, expand = map(net.channels, step)
        name = f"features/{number}"
        x = net.relu(net.conv(x, f"{name}/squeeze", squeeze))
        x = net.concat([
            net.relu(net.conv(x, f"{name}/expand1x1", expand)),
            net.relu(net.conv(x, f"{name}/expand3x3", expand, 3)),
        ])  # fmt: skip
    x = net.relu(net.conv(x, "classifier/1", 1000))
    net.output(net.flatten(net.global_pool(x)), "y")
