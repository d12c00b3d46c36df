# SPDX-License-Identifier: Apache-2.0
"""MobileViT-S and EfficientFormer-L1: convolutions first, attention in small maps.

Mehta, Rastegari, "MobileViT", 2021; Li et al., "EfficientFormer", 2022; both as timm
has them.
"""

from functools import partial

import numpy as np

from bench.networks.attention import attend, block, joined, tokens
from bench.networks.builder import Net, normal
from bench.networks.mobilenet import BRANCH, inverted

VIT = (
    (32, 1, 1, 0, 0),
    (64, 2, 3, 0, 0),
    (96, 2, 1, 144, 2),
    (128, 2, 1, 192, 4),
    (160, 2, 1, 240, 3),
)
"""Channels, stride, inverted residuals, and channels and blocks of the transformer."""


def mobilevit_s(net: Net, size: int) -> None:
    """SiLU everywhere; tokens are what lies in the same place of patches of 2x2."""
    x = net.input("image", 3, size, size)
    x = net.silu(net.conv_norm(x, "stem", net.channels(16), 3, stride=2))
    for stage, (out, stride, count, width, depth) in enumerate(VIT):
        for number in range(count):
            name, wide = f"stages/{stage}/{number}", 4 * net.shape(x)[1]
            step = 1 if number else stride
            x = inverted(net, x, name, wide, net.channels(out), 3, step, net.silu)
        if depth:
            x = mobilevit_block(
                net, x, f"stages/{stage}/vit", net.channels(width), net.blocks(depth)
            )
    x = net.silu(net.conv_norm(x, "final_conv", net.channels(640)))
    x = net.flatten(net.global_pool(x))
    net.output(net.linear(x, "head/fc", 1000), "logits")


def mobilevit_block(net: Net, x: str, name: str, width: int, depth: int) -> str:
    """Convolutions, transformer blocks on patches, and what came in beside it."""
    batch, channels, height, width_ = net.shape(x)
    rows, columns = height // 2, width_ // 2
    y = net.silu(net.conv_norm(x, f"{name}/conv_kxk", channels, 3))
    y = net.conv(y, f"{name}/conv_1x1", width, bias=False, gain=1)
    y = net.reshape(y, batch * width * rows, 2, columns, 2)
    y = net.transpose(y, 0, 2, 1, 3)
    y = net.reshape(y, batch, width, rows * columns, 4)
    y = net.reshape(net.transpose(y, 0, 3, 2, 1), batch * 4, rows * columns, width)
    attention = partial(joined, net, heads=4)
    for number in range(depth):
        y = block(
            net,
            y,
            f"{name}/transformer/{number}",
            attention,
            ratio=2,
            activation=net.silu,
        )
    y = net.layer_norm(y, f"{name}/norm")
    y = net.reshape(y, batch, 4, rows * columns, width)
    y = net.reshape(net.transpose(y, 0, 3, 2, 1), batch * width * rows, columns, 2, 2)
    y = net.reshape(net.transpose(y, 0, 2, 1, 3), batch, width, height, width_)
    y = net.silu(net.conv_norm(y, f"{name}/conv_proj", channels))
    y = net.concat([x, y])
    return net.silu(net.conv_norm(y, f"{name}/conv_fusion", channels, 3))


DEPTHS, WIDTHS = (3, 2, 6, 4), (48, 96, 224, 448)


def efficientformer_l1(net: Net, size: int) -> None:
    """Pools mix pixels; the last block is attention; two heads, for distillation."""
    x = net.input("image", 3, size, size)
    for number, out in enumerate((24, 48), start=1):
        x = net.relu(embedded(net, x, f"stem/conv{number}", out))
    for stage, (depth, out) in enumerate(zip(DEPTHS, WIDTHS, strict=True)):
        name = f"stages/{stage}"
        if stage:
            x = embedded(net, x, f"{name}/downsample", out)
        for number in range(depth - (stage == 3)):
            x = pooled_block(net, x, f"{name}/blocks/{number}")
    x = tokens(net, x)
    attention = partial(biased, net)
    x = block(net, x, "stages/3/last", attention, epsilon=1e-5, scale=(0.2, 1))
    x = net.op("ReduceMean", [net.layer_norm(x, "norm")], axes=[1], keepdims=0)
    heads = [net.linear(x, name, 1000) for name in ("head", "head_dist")]
    net.output(net.op("Div", [net.add(*heads), net.constant(np.float32(2))]), "logits")


def embedded(net: Net, x: str, name: str, out: int) -> str:
    """A convolution of stride 2 with a bias, and BatchNormalization."""
    shape = {"stride": 2, "pads": [1] * 4, "plain": True}
    y = net.conv(x, f"{name}/conv", net.channels(out, 8), 3, **shape)
    return net.norm(y, f"{name}/norm")


def pooled_block(net: Net, x: str, name: str) -> str:
    """x + pool(x) - x, then two 1x1 convolutions, both branches scaled."""
    channels = net.shape(x)[1]
    pool = net.average_pool(x, 3, 1, pad=1, count=False)
    y = net.op("Sub", [pool, x])
    x = net.add(x, net.gain(y, f"{name}/ls1", 0.2, 1))
    y = net.conv(x, f"{name}/fc1", 4 * channels, plain=True)
    y = net.gelu(net.norm(y, f"{name}/norm1"))
    y = net.norm(
        net.conv(y, f"{name}/fc2", channels, plain=True), f"{name}/norm2", gain=BRANCH
    )
    return net.add(x, net.gain(y, f"{name}/ls2", 0.2, 1))


def biased(net: Net, x: str, name: str) -> str:
    """Attention with a bias for each distance; values have 4 times more channels."""
    _, count, channels = net.shape(x)
    heads, key, value = 8, net.channels(32), net.channels(128)
    y = net.project(x, f"{name}/qkv", heads * (2 * key + value))
    y = net.transpose(net.reshape(y, -1, count, heads, 2 * key + value), 0, 2, 1, 3)
    q, k, v = net.split(y, key, key, value, axis=3)
    side = int(count**0.5)
    at = np.stack(np.divmod(np.arange(count), side))
    rows, columns = np.abs(at[:, :, None] - at[:, None, :])
    table = net.weight(f"{name}/attention_biases", (heads, count), normal(0.5))
    bias = net.op("Gather", [table, net.constant(rows * side + columns)], axis=1)
    y = attend(net, q, k, v, bias=lambda scores: net.add(scores, bias), shared=False)
    return net.project(y, f"{name}/proj", channels)
