# SPDX-License-Identifier: Apache-2.0
"""Detectors: MobileNet-SSD, YOLOv5n, and YOLOv5n's neck on ShuffleNetV2's units.

Liu et al., "SSD: Single Shot MultiBox Detector", 2015, on MobileNetV1 as in the
Caffe model MobileNet-SSD for 300 pixels and the 20 classes of VOC; Ultralytics, YOLOv5
release 6, the model n, for the 80 classes of COCO. Boxes come out encoded: the anchors
are the application's.
"""

from functools import partial

from bench.networks.builder import Net
from bench.networks.mobilenet import V1
from bench.networks.shufflenet import stages as shuffle_stages

CLASSES = 21
EXTRAS = ((256, 512), (128, 256), (128, 256), (64, 128))


def ssd_mobilenet(net: Net, size: int) -> None:
    """Boxes (1, 1917, 4) and the softmax of scores (1, 1917, 21) for 300 pixels."""
    x = net.input("data", 3, size, size)
    x = net.relu(net.conv(x, "conv0", net.channels(32), 3, stride=2, pads=[1] * 4))
    maps = []
    for number, (out, stride) in enumerate(V1, start=1):
        inside = net.shape(x)[1]
        options = {"stride": stride, "groups": inside, "pads": [1] * 4}
        x = net.relu(net.conv(x, f"conv{number}/dw", inside, 3, **options))
        x = net.relu(net.conv(x, f"conv{number}", net.channels(out)))
        if number in (11, 13):
            maps.append(x)
    for number, (inside, out) in enumerate(EXTRAS, start=14):
        x = net.relu(net.conv(x, f"conv{number}_1", net.channels(inside)))
        options = {"stride": 2, "pads": [1] * 4}
        x = net.relu(net.conv(x, f"conv{number}_2", net.channels(out), 3, **options))
        maps.append(x)
    boxes, scores = [], []
    for number, x in enumerate(maps):
        anchors = 6 if number else 3
        for kind, size_of_one, found in (("loc", 4, boxes), ("conf", CLASSES, scores)):
            name = f"map{number}_mbox_{kind}"
            y = net.conv(x, name, anchors * size_of_one, plain=True, gain=1)
            y = net.transpose(y, 0, 2, 3, 1)
            found.append(net.reshape(y, net.batch, -1, size_of_one))
    net.output(net.concat(boxes), "boxes")
    net.output(net.op("Softmax", [net.concat(scores)], axis=2), "scores")


ANCHORS = 3
OUTPUTS = 85
"""Values of an anchor: box, objectness and 80 classes."""


def yolov5n(net: Net, size: int) -> None:
    """C3 blocks, SPPF, a neck that goes up and down, sigmoids (1, 25200, 85)."""
    x = net.input("images", 3, size, size)
    x = unit(net, x, "model.0", 16, 6, stride=2, pads=[2] * 4)
    maps = []
    for number, (out, count) in enumerate(((32, 1), (64, 2), (128, 3), (256, 1))):
        x = unit(net, x, f"model.{2 * number + 1}", out, 3, stride=2)
        x = c3(net, x, f"model.{2 * number + 2}", out, count, kernel=1)
        maps.append(x)
    net.output(heads(net, neck(net, *maps[1:3], sppf(net, x))), "output0")


def yolo_shuffle(net: Net, size: int) -> None:
    """The same neck and heads above ShuffleNetV2 1.0; Split, and constant shapes."""
    x = net.input("images", 3, size, size)
    x = net.max_pool(unit(net, x, "model.0", 24, 3, stride=2), 3, 2, pads=[1] * 4)

    def halved(x: str) -> list[str]:
        half = net.shape(x)[1] // 2
        return net.split(x, half, half)

    names = [f"model.{stage}" for stage in (1, 2, 3)]
    x8, x16, x32 = shuffle_stages(net, x, names, halved, net.shuffle)
    net.output(heads(net, neck(net, x8, x16, sppf(net, x32))), "output0")


def unit(net: Net, x: str, name: str, out: int, kernel: int = 1, **options) -> str:
    """Convolution, BatchNormalization, SiLU."""
    return net.silu(net.conv_norm(x, name, net.channels(out), kernel, **options))


def bottleneck(
    net: Net,
    x: str,
    name: str,
    out: int,
    *,
    wide: float = 1.0,
    kernel: int = 3,
    shortcut: bool = True,
) -> str:
    """Two convolutions, the first of this kernel to `wide` times the channels."""
    y = unit(net, x, f"{name}/cv1", int(out * wide), kernel)
    y = unit(net, y, f"{name}/cv2", out, 3)
    return net.add(x, y) if shortcut else y


def c3(net: Net, x: str, name: str, out: int, count: int, **options) -> str:
    """Half of the channels through `count` bottlenecks, half past them."""
    y = unit(net, x, f"{name}/cv1", out // 2)
    for number in range(count):
        y = bottleneck(net, y, f"{name}/m.{number}", out // 2, **options)
    y = net.concat([y, unit(net, x, f"{name}/cv2", out // 2)])
    return unit(net, y, f"{name}/cv3", out)


def sppf(net: Net, x: str) -> str:
    """Max pools of 5x5, three times, and all four side by side."""
    parts = [unit(net, x, "model.9/cv1", 128)]
    for _ in range(3):
        parts.append(net.max_pool(parts[-1], 5, 1, pads=[2] * 4))
    return unit(net, net.concat(parts), "model.9/cv2", 256)


def neck(net: Net, x8: str, x16: str, x32: str) -> list[str]:
    """Maps for objects of three sizes, strides 8, 16 and 32."""
    block = partial(c3, net, count=1, kernel=1, shortcut=False)
    top = unit(net, x32, "model.10", 128)
    y = block(net.concat([net.up(top), x16]), "model.13", 128)
    middle = unit(net, y, "model.14", 64)
    y8 = block(net.concat([net.up(middle), x8]), "model.17", 64)
    y = net.concat([unit(net, y8, "model.18", 64, 3, stride=2), middle])
    y16 = block(y, "model.20", 128)
    y = net.concat([unit(net, y16, "model.21", 128, 3, stride=2), top])
    return [y8, y16, block(y, "model.23", 256)]


def heads(net: Net, maps: list[str]) -> str:
    """Every anchor of every map: (1, anchors, 85)."""
    found = []
    for number, x in enumerate(maps):
        height, width = net.shape(x)[2:]
        y = net.conv(x, f"model.24/m.{number}", ANCHORS * OUTPUTS, plain=True, gain=1)
        y = net.reshape(y, net.batch, ANCHORS, OUTPUTS, height, width)
        y = net.op("Sigmoid", [net.transpose(y, 0, 1, 3, 4, 2)])
        found.append(net.reshape(y, net.batch, -1, OUTPUTS))
    return net.concat(found)
