# SPDX-License-Identifier: Apache-2.0
"""Blocks of attention as exporters write them."""

import math
from functools import partial

import numpy as np

from bench.networks import transformers, weights, yolo
from bench.networks.attention import apart, joined
from bench.networks.builder import Net


def made(draw, *shape, batch=1, seed=0):
    """x (batch, *shape) to y, by what `draw` appends."""
    drawn = Net("attention", 17, batch=batch, seed=seed, fold=True)
    drawn.output(draw(drawn, drawn.input("x", *shape)), "y")
    return weights.model(drawn, weights.draw(drawn))


def vit(tokens=9, heads=3, width=8, batch=1):
    """Q, K and V of one projection, (3, B, h, T, d); the scores are divided."""
    attention = partial(joined, name="attn", heads=heads, shared=False)
    return made(attention, tokens, heads * width, batch=batch)


def sdpa(tokens=9, heads=3, width=8, batch=1):
    """Three projections; Q and K are scaled, and the scores are masked."""

    def attention(drawn, x):
        mask = drawn.constant(np.triu(np.full((tokens, tokens), -10, np.float32), 1))
        return apart(drawn, x, "attn", heads, bias=partial(drawn.add, mask))

    return made(attention, tokens, heads * width, batch=batch)


def multihead(tokens=9, heads=3, width=8):
    """nn.MultiheadAttention: steps of time first, heads and batch are one axis."""

    def attention(drawn, x):
        channels = heads * width
        y = drawn.reshape(drawn.project(x, "qkv", 3 * channels), tokens, 1, 3, channels)
        y = drawn.transpose(y, 2, 0, 1, 3)
        q, k, v = (
            drawn.reshape(drawn.take(y, at, 0), tokens, heads, width) for at in range(3)
        )
        q, k, v = (drawn.transpose(each, 1, 0, 2) for each in (q, k, v))
        q = drawn.op("Div", [q, drawn.constant(np.float32(math.sqrt(width)))])
        scores = drawn.matmul(q, drawn.transpose(k, 0, 2, 1))
        y = drawn.transpose(drawn.matmul(drawn.softmax(scores), v), 1, 0, 2)
        y = drawn.linear(drawn.reshape(y, tokens, channels), "proj", channels)
        return drawn.reshape(y, tokens, 1, channels)

    return made(attention, 1, heads * width, batch=tokens)


def c2psa():
    """Ultralytics' attention: channels first, of pixels."""
    return made(partial(yolo.attention, name="attn", width=8), 16, 3, 4)


def swin(side=3):
    """Windows of an image, with a bias for each pair of places."""
    attention = partial(transformers.windows, name="attn", side=side, moved=0)
    return made(attention, 2 * side, 2 * side, 64)


NETS = {"vit": vit, "sdpa": sdpa, "multihead": multihead, "c2psa": c2psa, "swin": swin}
