# SPDX-License-Identifier: Apache-2.0
"""DeiT-tiny, Swin-tiny, SegFormer-B0, Depth-Anything-small and TinyBERT.

Touvron et al., "Training data-efficient image transformers", 2021; Liu et al., "Swin
Transformer", 2021, both as timm has them; Xie et al., "SegFormer", 2021, for the 150
classes of ADE20K, as the package transformers has it; Yang et al., "Depth Anything",
2024, DINOv2 under a DPT head; Jiao et al., "TinyBERT", 2020, the general one of 4
layers.
"""

from functools import partial

import numpy as np

from bench.networks.attention import (
    apart,
    attend,
    block,
    joined,
    joined_heads,
    mlp,
    pixels,
    tokens,
)
from bench.networks.builder import Net, normal

HEAD = 64
"""Channels of a head."""


def patches(net: Net, x: str, size: int, width: int) -> str:
    """Tokens of patches of size x size, after one for the class, with positions."""
    x = tokens(net, net.patch(x, "patch_embed/proj", width, size))
    first = net.weight("cls_token", (1, 1, width), normal(0.5))
    dims = net.constant(np.array([net.batch, 1, width]))
    x = net.concat([net.op("Expand", [first, dims]), x])
    where = net.weight("pos_embed", (1, net.shape(x)[1], width), normal(0.5))
    return net.add(x, where)


def deit_tiny(net: Net, size: int) -> None:
    """12 blocks of 192 channels, 3 heads; logits of the first token."""
    width = net.channels(192, HEAD)
    x = patches(net, net.input("image", 3, size, size), 16, width)
    attention = partial(joined, net, heads=width // HEAD)
    for number in range(net.blocks(12)):
        x = block(net, x, f"blocks/{number}", attention)
    x = net.take(net.layer_norm(x, "norm", 1e-6), 0, 1)
    net.output(net.linear(x, "head", 1000), "logits")


def swin_tiny(net: Net, size: int) -> None:
    """Windows of 7x7, every second time moved by 3 and masked.

    In smaller images windows are smaller: all of the last stage is one.
    """
    width, side = net.channels(96, 32), size // 32
    x = net.patch(net.input("image", 3, size, size), "patch_embed/proj", width, 4)
    x = net.layer_norm(net.transpose(x, 0, 2, 3, 1), "patch_embed/norm")
    for stage, depth in enumerate((2, 2, 6, 2)):
        name = f"layers/{stage}"
        if stage:
            x = merged(net, x, f"{name}/downsample")
        for number in range(net.blocks(depth)):
            moved = side // 2 if number % 2 and stage < 3 else 0
            y = net.layer_norm(x, f"{name}/blocks/{number}/norm1")
            y = windows(net, y, f"{name}/blocks/{number}/attn", side, moved)
            x = net.add(x, y)
            y = net.layer_norm(x, f"{name}/blocks/{number}/norm2")
            hidden = 4 * net.shape(x)[-1]
            x = net.add(x, mlp(net, y, f"{name}/blocks/{number}/mlp", hidden))
    x = net.layer_norm(x, "norm")
    x = net.op("ReduceMean", [x], axes=[1, 2], keepdims=0)
    net.output(net.linear(x, "head", 1000), "logits")


def merged(net: Net, x: str, name: str) -> str:
    """2x2 pixels as one, and half of its channels."""
    batch, height, width, channels = net.shape(x)
    y = net.reshape(x, batch, height // 2, 2, width // 2, 2, channels)
    y = net.transpose(y, 0, 1, 3, 4, 2, 5)
    y = net.reshape(y, batch, height // 2, width // 2, 4 * channels)
    y = net.layer_norm(y, f"{name}/norm")
    return net.project(y, f"{name}/reduction", 2 * channels, bias=False)


def windows(net: Net, x: str, name: str, side: int, moved: int) -> str:
    """Attention in windows of an image (B, H, W, C), with a bias for two places."""
    batch, height, width, channels = net.shape(x)
    rows, columns, area = height // side, width // side, side**2
    heads = channels // 32
    y = rolled(net, x, moved)
    y = net.reshape(y, batch, rows, side, columns, side, channels)
    y = net.transpose(y, 0, 1, 3, 2, 4, 5)
    y = net.reshape(y, -1, area, channels)
    q, k, v = joined_heads(net, y, name, heads)
    table = net.weight(
        f"{name}.relative_position_bias_table",
        ((2 * side - 1) ** 2, heads),
        normal(0.5),
    )
    index = net.constant(places(side).reshape(-1))
    bias = net.reshape(net.op("Gather", [table, index]), area, area, heads)
    bias = net.op(
        "Unsqueeze", [net.transpose(bias, 2, 0, 1), net.constant(np.array([0]))]
    )
    if moved:
        mask = net.constant(masks(height, width, side, moved)[:, None])
        bias = net.add(
            bias, net.op("Tile", [mask, net.constant(np.array([batch, 1, 1, 1]))])
        )
    y = attend(net, q, k, v, bias=lambda scores: net.add(scores, bias))
    y = net.project(y, f"{name}/proj", channels)
    y = net.reshape(y, -1, rows, columns, side, side, channels)
    y = net.reshape(net.transpose(y, 0, 1, 3, 2, 4, 5), -1, height, width, channels)
    return rolled(net, y, -moved)


def rolled(net: Net, x: str, by: int) -> str:
    """Height and width moved towards 0, as torch.roll() is exported."""
    for axis in (1, 2) if by else ():
        length = net.shape(x)[axis]
        at = by % length
        parts = [net.slice(x, at, length, axis), net.slice(x, 0, at, axis)]
        x = net.concat(parts, axis)
    return x


def places(side: int) -> np.ndarray:
    """(area, area): the row of the table for the places of two pixels of a window."""
    at = np.stack(np.divmod(np.arange(side**2), side))
    rows, columns = at[:, :, None] - at[:, None, :] + side - 1
    return rows * (2 * side - 1) + columns


def masks(height: int, width: int, side: int, moved: int) -> np.ndarray:
    """(windows, area, area): -100 for pixels that were not neighbours."""
    lines = [
        np.digitize(np.arange(length), (length - side, length - moved))
        for length in (height, width)
    ]
    regions = 3 * lines[0][:, None] + lines[1]
    parts = regions.reshape(height // side, side, width // side, side)
    parts = parts.transpose(0, 2, 1, 3).reshape(-1, side**2)
    different = parts[:, :, None] != parts[:, None, :]
    return np.where(different, np.float32(-100), np.float32(0))


STAGES = ((32, 7, 4, 8), (64, 3, 2, 4), (160, 3, 2, 2), (256, 3, 2, 1))
"""Channels, kernel and stride of the patches, by how much K and V are smaller."""


def segformer_b0(net: Net, size: int) -> None:
    """Four stages of two blocks; all of them make a map of a quarter of the size."""
    x = net.input("pixel_values", 3, size, size)
    maps = []
    for stage, (out, kernel, stride, reduction) in enumerate(STAGES):
        name = f"encoder/{stage}"
        shape = {"stride": stride, "pads": [kernel // 2] * 4, "plain": True, "gain": 1}
        x = net.conv(x, f"{name}/patch", net.channels(out, 32), kernel, **shape)
        _, channels, height, width = net.shape(x)
        y = net.layer_norm(tokens(net, x), f"{name}/patch/norm")
        for number in range(2):
            each = f"{name}/block/{number}"
            normal = net.layer_norm(y, f"{each}/norm1")
            source = ""
            if reduction > 1:
                z = pixels(net, normal, height, width)
                z = net.patch(z, f"{each}/sr", channels, reduction)
                source = net.layer_norm(tokens(net, z), f"{each}/sr/norm")
            heads = channels // 32
            options = {"source": source, "shared": False}
            y = net.add(apart(net, normal, f"{each}/attn", heads, **options), y)
            z = net.layer_norm(y, f"{each}/norm2")
            z = net.project(z, f"{each}/fc1", 4 * channels)
            z = pixels(net, z, height, width)
            shape = {"groups": 4 * channels, "plain": True, "gain": 1}
            z = net.conv(z, f"{each}/dw", 4 * channels, 3, **shape)
            z = net.project(net.gelu(tokens(net, z)), f"{each}/fc2", channels)
            y = net.add(z, y)
        x = pixels(net, net.layer_norm(y, f"{name}/norm"), height, width)
        maps.append(x)
    _, _, height, width = net.shape(maps[0])
    wide, parts = net.channels(256, 32), []
    for number, x in enumerate(maps):
        y = net.project(tokens(net, x), f"head/linear_c.{number}", wide)
        y = pixels(net, y, *net.shape(x)[2:])
        parts.append(net.resize(y, "linear", "pytorch_half_pixel", to=(height, width)))
    y = net.relu(net.conv_norm(net.concat(parts[::-1]), "head/fuse", wide))
    net.output(net.conv(y, "head/classifier", 150, plain=True, gain=1), "logits")


NECK = (48, 96, 192, 384)


def depth_anything(net: Net, size: int) -> None:
    """DINOv2's small transformer with layer scale, four of its states, convolutions."""
    width, side = net.channels(384, HEAD), size // 14
    x = patches(net, net.input("pixel_values", 3, size, size), 14, width)
    attention = partial(apart, net, heads=width // HEAD)
    depth, maps = max(4, net.blocks(12)), []
    for number in range(depth):
        x = block(net, x, f"layer/{number}", attention, scale=(0.2, 1))
        if (number + 1) % (depth // 4) == 0 and len(maps) < 4:
            y = net.layer_norm(x, "layernorm", 1e-6, again=bool(maps))
            maps.append(pixels(net, net.slice(y, 1, side**2 + 1), side, side))
    for index, published in enumerate(NECK):
        name, out = f"neck/{index}", net.channels(published)
        y = net.conv(maps[index], f"{name}/project", out, plain=True)
        if index < 2:
            kernel = 4 - 2 * index
            shape = {"stride": kernel, "pads": [0] * 4, "transposed": True}
            y = net.conv(y, f"{name}/resize", out, kernel, plain=True, **shape)
        elif index == 3:
            shape = {"stride": 2, "pads": [1] * 4}
            y = net.conv(y, f"{name}/resize", out, 3, plain=True, **shape)
        fused = net.channels(64)
        maps[index] = net.conv(y, f"{name}/conv", fused, 3, bias=False)
    x = ""
    for index in (3, 2, 1, 0):
        name, y = f"fusion/{index}", maps[index]
        x = net.add(x, residual(net, y, f"{name}/1")) if x else y
        x = residual(net, x, f"{name}/2")
        to = [2 * n for n in net.shape(y)[2:]]
        to = net.shape(maps[index - 1])[2:] if index else to
        x = net.resize(x, "linear", "align_corners", to=to)
        x = net.conv(x, f"{name}/project", net.channels(64), plain=True, gain=1)
    x = net.conv(x, "head/conv1", net.channels(32), 3, plain=True, gain=1)
    x = net.resize(x, "linear", "align_corners", to=(size, size))
    x = net.relu(net.conv(x, "head/conv2", net.channels(32), 3, plain=True))
    x = net.relu(net.conv(x, "head/conv3", 1, plain=True, gain=1))
    net.output(net.op("Squeeze", [x, net.constant(np.array([1]))]), "predicted_depth")


def residual(net: Net, x: str, name: str) -> str:
    """Twice Relu and a convolution, added to what came in."""
    y = x
    for number in (1, 2):
        y = net.conv(
            net.relu(y), f"{name}/conv{number}", net.shape(x)[1], 3, plain=True, gain=1
        )
    return net.add(y, x)


WORDS = 30522


def tinybert(net: Net, size: int) -> None:
    """size: tokens, given as numbers of words.  Norms come after the sums."""
    width = net.channels(312, 26)
    ids = net.input("input_ids", size, words=WORDS)
    table = net.weight("embeddings/word.weight", (WORDS, width), normal(1))
    positions = net.weight("embeddings/position.weight", (512, width), normal(0.5))
    kinds = net.weight("embeddings/token_type.weight", (2, width), normal(0.5))
    where = net.op("Gather", [positions, net.constant(np.arange(size)[None])])
    kind = net.op("Gather", [kinds, net.constant(np.zeros((1, size), np.int64))])
    x = net.add(net.add(net.op("Gather", [table, ids]), kind), where)
    x = net.layer_norm(x, "embeddings/norm", 1e-12)
    for number in range(4):
        name = f"layer/{number}"
        y = apart(net, x, f"{name}/attn", width // 26, shared=False)
        x = net.layer_norm(net.add(y, x), f"{name}/norm1", 1e-12)
        y = mlp(net, x, f"{name}/mlp", net.channels(1200))
        x = net.layer_norm(net.add(y, x), f"{name}/norm2", 1e-12)
    pooled = net.op("Tanh", [net.linear(net.take(x, 0, 1), "pooler", width)])
    net.output(pooled, "pooler_output")
