# SPDX-License-Identifier: Apache-2.0
"""RT-DETR of the smallest published backbone, ResNet-18vd.

Zhao et al., "DETRs Beat YOLOs on Real-time Object Detection", 2023, as Hugging Face has
it, for the 80 classes of COCO: the best 300 places of three maps become queries, which
three decoder layers make boxes of by deformable attention. Nothing is suppressed.
"""

import numpy as np

from bench.networks.attention import attend, heads_of, mlp, pixels, tokens
from bench.networks.builder import Net
from bench.networks.resnet import BRANCH

STAGES = (64, 128, 256, 512)
WIDTH, CLASSES, QUERIES = 256, 80, 300
HEADS, POINTS, LAYERS = 8, 4, 3
EDGE = 0.01
SMALLEST = 0.05
"""Side of the anchors in the largest map, in parts of the image."""


def rtdetr_r18(net: Net, size: int) -> None:
    """Scores and boxes of the queries; centre and size, in parts of the image."""
    maps = encoder(net, backbone(net, net.input("pixel_values", 3, size, size)))
    sizes = [net.shape(x)[2:] for x in maps]
    width = net.channels(WIDTH)
    parts = [
        tokens(net, net.conv_norm(x, f"decoder_input_proj.{level}", width))
        for level, x in enumerate(maps)
    ]
    memory = net.concat(parts)
    y = net.project(memory, "enc_output.0", width)
    y = net.layer_norm(y, "enc_output.1")
    scores = net.project(y, "enc_score_head", CLASSES)
    boxes = net.add(perceptron(net, y, "enc_bbox_head", 4, 3), anchors(net, sizes))
    best = net.op("ReduceMax", [scores], axes=[-1], keepdims=0)
    count = net.constant(np.array([min(QUERIES, net.shape(best)[1])]))
    places = net.split_outputs(net.op("TopK", [best, count], axis=1, outputs=2))[1]
    x, boxes = (gathered(net, each, places) for each in (y, boxes))
    boxes = net.op("Sigmoid", [boxes])
    for number in range(LAYERS):
        name = f"decoder/layers.{number}"
        place = perceptron(net, boxes, f"{name}/query_pos_head", width, 2)
        y = net.add(x, attention(net, x, place, f"{name}/self_attn"))
        x = net.layer_norm(y, f"{name}/self_attn_layer_norm")
        y = deformable(net, net.add(x, place), boxes, memory, sizes, name)
        x = net.layer_norm(net.add(x, y), f"{name}/encoder_attn_layer_norm")
        y = mlp(net, x, name, 4 * width, net.relu)
        x = net.layer_norm(net.add(x, y), f"{name}/final_layer_norm")
        y = perceptron(net, x, f"{name}/bbox_embed", 4, 3)
        boxes = net.op("Sigmoid", [net.add(y, inverse(net, boxes))])
    net.output(net.project(x, "class_embed", CLASSES), "logits")
    net.output(boxes, "pred_boxes")


def backbone(net: Net, x: str) -> list[str]:
    """The last three of four maps."""
    for number, (width, stride) in enumerate(((32, 2), (32, 1), (64, 1))):
        out, name = net.channels(width), f"embedder.{number}"
        x = net.relu(net.conv_norm(x, name, out, 3, stride=stride))
    x = net.max_pool(x, 3, 2, pads=[1] * 4)
    maps = []
    for stage, width in enumerate(STAGES):
        for number in range(2):
            shrinks = stage > 0 and number == 0
            x = basic(net, x, f"stages.{stage}/layers.{number}", width, shrinks=shrinks)
        maps.append(x)
    return maps[1:]


def basic(net: Net, x: str, name: str, width: int, *, shrinks: bool) -> str:
    """Two 3x3 convolutions; beside them an average, where the size is halved."""
    out, stride = net.channels(width), 2 if shrinks else 1
    y = net.relu(net.conv_norm(x, f"{name}/layer.0", out, 3, stride=stride))
    y = net.conv_norm(y, f"{name}/layer.1", out, 3, gamma=BRANCH)
    if shrinks:
        x = net.conv_norm(net.average_pool(x, 2, 2), f"{name}/shortcut", out)
    return net.relu(net.add(y, x))


def encoder(net: Net, maps: list[str]) -> list[str]:
    """Attention in the smallest map, then up with it and down again."""
    width = net.channels(WIDTH)
    low, middle, x = (
        net.conv_norm(each, f"encoder_input_proj.{level}", width)
        for level, each in enumerate(maps)
    )
    _, _, height, across = net.shape(x)
    y = tokens(net, x)
    place = net.constant(waves(height, across, width))
    y = net.layer_norm(
        net.add(y, attention(net, y, place, "encoder/self_attn")), "encoder/norm1"
    )
    y = net.layer_norm(net.add(y, mlp(net, y, "encoder", 4 * width)), "encoder/norm2")
    x = pixels(net, y, height, across)
    kept = []
    for number, other in enumerate((middle, low)):
        x = net.silu(net.conv_norm(x, f"lateral_convs.{number}", width))
        kept.append(x)
        x = csp(net, net.concat([net.up(x), other]), f"fpn_blocks.{number}", width)
    made = [x]
    for number, other in enumerate(reversed(kept)):
        name = f"downsample_convs.{number}"
        y = net.silu(net.conv_norm(x, name, width, 3, stride=2))
        x = csp(net, net.concat([y, other]), f"pan_blocks.{number}", width)
        made.append(x)
    return made


def csp(net: Net, x: str, name: str, out: int) -> str:
    """Half of the channels through three blocks of 3x3 and 1x1, half past them."""
    y, past = (
        net.silu(net.conv_norm(x, f"{name}/conv{part}", out // 2)) for part in (1, 2)
    )
    for number in range(3):
        each = f"{name}/bottlenecks.{number}"
        both = [
            net.conv_norm(y, f"{each}/conv{kernel}", out // 2, kernel)
            for kernel in (3, 1)
        ]
        y = net.silu(net.add(*both))
    return net.silu(net.conv_norm(net.add(y, past), f"{name}/conv3", out))


def attention(net: Net, x: str, place: str, name: str) -> str:
    """Queries and keys have a sense of place."""
    where, width = net.add(x, place), net.shape(x)[-1]
    q, k, v = (
        heads_of(net, net.project(of, f"{name}/{part}_proj", width), HEADS)
        for part, of in (("q", where), ("k", where), ("v", x))
    )
    y = attend(net, q, k, v, shared=False)
    return net.project(y, f"{name}/out_proj", width)


def deformable(
    net: Net,
    x: str,
    boxes: str,
    memory: str,
    sizes: list[tuple[int, ...]],
    name: str,
) -> str:
    """Each head looks at some points of each map, around the box of the query."""
    name = f"{name}/encoder_attn"
    batch, count, width = net.shape(x)
    depth, all_points = width // HEADS, len(sizes) * POINTS
    heads = batch * HEADS
    value = net.project(memory, f"{name}/value_proj", width)
    parts = net.split(value, *(int(np.prod(size)) for size in sizes), axis=1)
    offsets = net.project(x, f"{name}/sampling_offsets", 2 * HEADS * all_points)
    offsets = net.reshape(offsets, batch, count, HEADS, all_points, 2)
    share = net.project(x, f"{name}/attention_weights", HEADS * all_points)
    share = net.softmax(net.reshape(share, batch, count, HEADS, all_points))
    boxes = net.reshape(boxes, batch, count, 1, 1, 4)
    centre, side = net.split(boxes, 2, 2, axis=4)
    moved = net.times(net.op("Mul", [net.times(offsets, 1 / POINTS), side]), 0.5)
    at = net.times(net.add(moved, centre), 2)
    at = net.op("Sub", [at, net.constant(np.float32(1), node=True)])
    at = net.reshape(net.transpose(at, 0, 2, 1, 3, 4), heads, count, all_points, 2)
    grids = net.split(at, *(POINTS for _ in sizes), axis=2)
    seen = []
    for part, grid, size in zip(parts, grids, sizes, strict=True):
        image = net.reshape(net.transpose(part, 0, 2, 1), heads, depth, *size)
        options = {"mode": "bilinear", "padding_mode": "zeros", "align_corners": 0}
        seen.append(net.op("GridSample", [image, grid], **options))
    share = net.reshape(net.transpose(share, 0, 2, 1, 3), heads, 1, count, all_points)
    y = net.op("Mul", [net.concat(seen, 3), share])
    y = net.op("ReduceSum", [y, net.constant(np.array([-1]))], keepdims=0)
    y = net.transpose(net.reshape(y, batch, width, count), 0, 2, 1)
    return net.project(y, f"{name}/output_proj", width)


def perceptron(net: Net, x: str, name: str, out: int, layers: int) -> str:
    """Projections with Relu between them."""
    hidden = net.channels(WIDTH) * (2 if layers == 2 else 1)
    for number in range(layers - 1):
        x = net.relu(net.project(x, f"{name}/layers.{number}", hidden, gain=2))
    return net.project(x, f"{name}/layers.{layers - 1}", out)


def gathered(net: Net, x: str, places: str) -> str:
    """The rows of x (B, S, C) at places (B, Q)."""
    column = net.op("Unsqueeze", [places, net.constant(np.array([-1]))])
    repeats = net.constant(np.array([1, 1, net.shape(x)[-1]]))
    every = net.op("Tile", [column, repeats])
    return net.op("GatherElements", [x, every], axis=1)


def inverse(net: Net, x: str) -> str:
    """The logarithm of x / (1 - x)."""
    one = net.constant(np.float32(1), node=True)
    rest = net.op("Sub", [one, x])
    x, rest = (net.clip(each, 1e-5, 1) for each in (x, rest))
    return net.op("Log", [net.op("Div", [x, rest])])


def anchors(net: Net, sizes: list[tuple[int, ...]]) -> str:
    """A box at each place, as its inverse sigmoid."""
    found = []
    for level, (height, width) in enumerate(sizes):
        y, x = np.divmod(np.arange(height * width), width)
        side = np.full(height * width, SMALLEST * 2.0**level)
        found.append(np.stack([(x + 0.5) / width, (y + 0.5) / height, side, side], 1))
    inside = np.clip(np.concatenate(found), EDGE, 1 - EDGE)
    values = np.log(inside / (1 - inside)).astype(np.float32)
    return net.constant(values[np.newaxis])


def waves(height: int, width: int, channels: int) -> np.ndarray:
    """Sines and cosines of the places, (1, height * width, channels)."""
    y, x = np.divmod(np.arange(height * width), width)
    pitch = 10000.0 ** -(np.arange(channels // 4) / (channels // 4))
    across, down = np.outer(x, pitch), np.outer(y, pitch)
    every = [np.sin(across), np.cos(across), np.sin(down), np.cos(down)]
    return np.concatenate(every, 1)[np.newaxis].astype(np.float32)
