# SPDX-License-Identifier: Apache-2.0
"""YOLOv8n and YOLO11n of Ultralytics, to the last operator before NMS, or with it.

For the 80 classes of COCO: boxes are means of distributions over 16 distances from
their anchors, in pixels; YOLO11 has attention in its smallest map.
"""

from functools import partial

import numpy as np

from bench.networks.builder import Net
from bench.networks.detectors import bottleneck, c3, sppf, unit

BINS, CLASSES = 16, 80
KEPT, OVERLAP, LEAST = 100, 0.7, 0.25
"""Boxes of a class, their overlap, and the score from which they count."""
STRIDES = (8, 16, 32)


def yolov8n(net: Net, size: int) -> None:
    """The scores and boxes of all anchors."""
    net.output(yolov8(net, size), "output0")


def yolov8n_nms(net: Net, size: int) -> None:
    """Those that NonMaxSuppression keeps."""
    boxes, scores = net.split(yolov8(net, size), 4, CLASSES)
    boxes = net.transpose(boxes, 0, 2, 1)
    limits = [net.constant(np.float32([limit])) for limit in (OVERLAP, LEAST)]
    kept = net.op(
        "NonMaxSuppression",
        [boxes, scores, net.constant(np.array([KEPT])), *limits],
        center_point_box=1,
    )
    places = net.take(kept, 2, 1)
    net.output(net.op("Gather", [boxes, places], axis=1), "boxes")
    net.output(net.op("GatherND", [scores, kept]), "scores")
    net.output(net.take(kept, 1, 1), "classes")


def yolov8(net: Net, size: int) -> str:
    """C2f blocks: what each bottleneck makes is kept."""
    split = partial(c2f, net, wide=1.0)
    x = unit(net, net.input("images", 3, size, size), "model.0", 16, 3, stride=2)
    maps = []
    for number, (out, count) in enumerate(((32, 1), (64, 2), (128, 2), (256, 1))):
        x = unit(net, x, f"model.{2 * number + 1}", out, 3, stride=2)
        x = split(x, f"model.{2 * number + 2}", out, count)
        maps.append(x)
    maps = [*maps[1:3], sppf(net, x)]
    outs = ((12, 128), (15, 64), (18, 128), (21, 256))
    blocks = [
        partial(split, name=f"model.{at}", out=out, count=1, shortcut=False)
        for at, out in outs
    ]
    return detect(net, neck(net, maps, blocks), heavy=True)


def yolo11n(net: Net, size: int) -> None:
    """C3k2 blocks, C2PSA, depthwise convolutions before the classes."""
    x = unit(net, net.input("images", 3, size, size), "model.0", 16, 3, stride=2)
    maps = []
    rows = ((32, 64, False), (64, 128, False), (128, 128, True), (256, 256, True))
    for number, (inside, out, deep) in enumerate(rows):
        x = unit(net, x, f"model.{2 * number + 1}", inside, 3, stride=2)
        name, half = f"model.{2 * number + 2}", 0.5 if deep else 0.25
        x = c2f(net, x, name, out, 1, wide=0.5, half=half, deep=deep)
        maps.append(x)
    maps = [*maps[1:3], c2psa(net, sppf(net, x), "model.10", 256)]
    blocks = [
        partial(c2f, net, name=f"model.{at}", out=out, count=1, wide=0.5, deep=at == 22)
        for at, out in ((13, 128), (16, 64), (19, 128), (22, 256))
    ]
    net.output(detect(net, neck(net, maps, blocks), heavy=False), "output0")


def c2f(
    net: Net,
    x: str,
    name: str,
    out: int,
    count: int,
    *,
    wide: float,
    half: float = 0.5,
    shortcut: bool = True,
    deep: bool = False,
) -> str:
    """Half of the channels, the other half, and what `count` bottlenecks make of it.

    wide: channels inside a bottleneck, half: of a half, both in parts of those around.
    deep: each bottleneck is a C3 block of two.
    """
    inside = int(out * half)
    y = unit(net, x, f"{name}/cv1", 2 * inside)
    each = net.shape(y)[1] // 2
    parts = net.split(y, each, each)
    for number in range(count):
        m, y = f"{name}/m.{number}", parts[-1]
        if deep:
            parts.append(c3(net, y, m, inside, 2))
        else:
            options = {"wide": wide, "shortcut": shortcut}
            parts.append(bottleneck(net, y, m, inside, **options))
    return unit(net, net.concat(parts), f"{name}/cv2", out)


def c2psa(net: Net, x: str, name: str, out: int) -> str:
    """Half of the channels through attention, channels first, and two convolutions."""
    y = unit(net, x, f"{name}/cv1", out)
    half = net.shape(y)[1] // 2
    kept, y = net.split(y, half, half)
    y = net.add(y, attention(net, y, f"{name}/m.0/attn"))
    z = unit(net, y, f"{name}/m.0/ffn.0", out)
    y = net.add(y, net.conv_norm(z, f"{name}/m.0/ffn.1", half))
    return unit(net, net.concat([kept, y]), f"{name}/cv2", out)


def attention(net: Net, x: str, name: str, width: int = 64) -> str:
    """Heads of `width` channels with keys of half of them; V gets a sense of place."""
    batch, channels, *sides = net.shape(x)
    heads = max(1, channels // width)
    value, pixels = channels // heads, int(np.prod(sides))
    key = value // 2
    y = net.conv_norm(x, f"{name}/qkv", 2 * channels)
    y = net.reshape(y, batch, heads, 2 * value, pixels)
    q, k, v = net.split(y, key, key, value, axis=2)
    scores = net.times(net.matmul(net.transpose(q, 0, 1, 3, 2), k), key**-0.5)
    y = net.matmul(v, net.transpose(net.softmax(scores), 0, 1, 3, 2))
    y = net.reshape(y, batch, channels, *sides)
    place = net.reshape(v, batch, channels, *sides)
    place = net.depthwise(place, f"{name}/pe")
    return net.conv_norm(net.add(y, place), f"{name}/proj", channels)


def neck(net: Net, maps: list[str], blocks: list) -> list[str]:
    """Up with what was smaller, and down again; blocks: of an input each."""
    x8, x16, x32 = maps
    first, second, third, fourth = blocks
    middle = first(net.concat([net.up(x32), x16]))
    y8 = second(net.concat([net.up(middle), x8]))
    y = unit(net, y8, "neck/down8", 64, 3, stride=2)
    y16 = third(net.concat([y, middle]))
    y = unit(net, y16, "neck/down16", 128, 3, stride=2)
    return [y8, y16, fourth(net.concat([y, x32]))]


def detect(net: Net, maps: list[str], *, heavy: bool) -> str:
    """Boxes in pixels and probabilities of classes: (1, 84, anchors).

    heavy: whole convolutions before the classes, not depthwise ones.
    """
    found = []
    for number, x in enumerate(maps):
        height, width = net.shape(x)[2:]
        name = f"head/cv2.{number}"
        y = unit(net, unit(net, x, f"{name}.0", 64, 3), f"{name}.1", 64, 3)
        boxes = net.conv(y, f"{name}.2", 4 * BINS, plain=True, gain=1)
        name, y = f"head/cv3.{number}", x
        for step in range(2):
            if not heavy:
                y = net.silu(net.depthwise(y, f"{name}.{step}.0"))
            y = unit(net, y, f"{name}.{step}", CLASSES, 3 if heavy else 1)
        scores = net.conv(y, f"{name}.2", CLASSES, plain=True, gain=1)
        y = net.concat([boxes, scores])
        found.append(net.reshape(y, net.batch, 4 * BINS + CLASSES, height * width))
    boxes, scores = net.split(net.concat(found, 2), 4 * BINS, CLASSES)
    count = net.shape(boxes)[2]
    y = net.transpose(net.reshape(boxes, net.batch, 4, BINS, count), 0, 2, 1, 3)
    y = net.softmax(y, 1)
    bins = net.weight("head/dfl/conv.weight", (1, BINS, 1, 1), distances)
    y = net.op("Conv", [y, bins], "head/dfl/conv", kernel_shape=[1, 1])
    near, far = net.split(net.reshape(y, net.batch, 4, count), 2, 2)
    names = ("low", "high", "steps") if net.resizable else ("", "", "")
    at, step = (computed_anchors if net.resizable else anchors)(net, maps)
    low, high = net.op("Sub", [at, near], names[0]), net.op("Add", [at, far], names[1])
    centre = net.op("Div", [net.add(low, high), net.constant(np.float32(2))])
    y = net.concat([centre, net.op("Sub", [high, low])])
    y = net.op("Mul", [y, step], names[2])
    return net.concat([y, net.op("Sigmoid", [scores])])


def anchors(net: Net, maps: list[str]) -> tuple[str, str]:
    """Where the boxes of all maps are, and the strides of their maps, as constants."""
    places, strides = [], []
    for x, stride in zip(maps, STRIDES, strict=True):
        height, width = net.shape(x)[2:]
        rows, columns = np.divmod(np.arange(height * width), width)
        places.append(np.stack([columns, rows]) + 0.5)
        strides.append(np.full(height * width, stride))
    both = np.concatenate(places, 1)[None], np.concatenate(strides)[None]
    at, step = (net.constant(each.astype(np.float32)) for each in both)
    return at, step


def computed_anchors(net: Net, maps: list[str]) -> tuple[str, str]:
    """The same as torch traces it: ranges and a grid of the sizes of the maps."""
    zero, one, line = (net.constant(np.array(v)) for v in (0, 1, [1, -1]))
    places, strides = [], []
    for x, stride in zip(maps, STRIDES, strict=True):
        sizes = [net.size(x, axis) for axis in (2, 3)]
        grid = net.concat(sizes, 0)
        rows = []
        for size, axis in ((sizes[1], 0), (sizes[0], 1)):
            count = net.op("Squeeze", [size])
            y = net.op("Cast", [net.op("Range", [zero, count, one])], to=1)
            y = net.add(y, net.constant(np.float32(0.5)))
            y = net.op("Unsqueeze", [y, net.constant(np.array([axis]))])
            rows.append(net.op("Reshape", [net.op("Expand", [y, grid]), line]))
        places.append(net.concat(rows, 0))
        count = net.op("Mul", sizes)
        strides.append(
            net.op("Expand", [net.constant(np.full(1, stride, np.float32)), count])
        )
    return net.concat(places, 1), net.concat(strides, 0)


def distances(_rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(BINS, dtype=np.float32).reshape(shape)
