# SPDX-License-Identifier: Apache-2.0
"""Random steps that choose values, and take and put them by indices."""

import math

import numpy as np

from neon8.operators.indexed import Places
from random_floats import grow_quantize
from random_integers import EXTREMES, integers, pick_any
from random_net import Net


def grow_top(net: Net) -> None:
    """The largest or smallest of the channels, of which many are equal at times."""
    source = pick_any(net)
    batch, channels, height, width = source.shape
    count = int(net.rng.choice([1, channels, net.rng.integers(1, channels + 1)]))
    net.grow(
        "Top",
        net.tensor((batch, count, height, width), dtype="int32"),
        source,
        function=str(net.rng.choice(["minimum", "maximum"])),
        reverse=bool(net.rng.integers(2)),
    )


def grow_take(net: Net) -> None:
    """Rows or channels that wild indices name."""
    source = pick_any(net)
    places = any_places(net, source)
    shape = (*places.others, 1, 1)
    real = source.dtype == "float32"
    out = net.tensor(shape, **({"dtype": "float32"} if real else {"like": source}))
    indices = constant(net, places.indices, like=None, sizes=places.sizes)
    net.grow("Take", out, source, indices, indices=places.listed())
    if real:
        grow_quantize(net, out)


def grow_put(net: Net) -> None:
    """Rows or channels with others at what wild indices name."""
    source = pick_any(net)
    places = any_places(net, source)
    functions = ["none", "minimum", "maximum"]
    if source.dtype in ("float32", "int32"):
        functions += ["add", "multiply"]
    real = source.dtype == "float32"
    shape = source.shape
    out = net.tensor(shape, **({"dtype": "float32"} if real else {"like": source}))
    net.grow(
        "Put",
        out,
        source,
        constant(net, places.indices, like=None, sizes=places.sizes),
        constant(net, places.others, like=source),
        indices=places.listed(),
        function=str(net.rng.choice(functions)),
    )
    if real:
        grow_quantize(net, out)


def grow_nms(net: Net) -> None:
    """Boxes of which many overlap, and scores of which many are equal."""
    images, boxes, classes = (int(n) for n in net.rng.integers(1, (3, 40, 4)))
    places = net.rng.integers(-4, 9, (images, boxes, 4)).astype(np.float32)
    places = np.where(net.rng.random(places.shape) < 0.02, np.inf, places)
    scores = net.rng.integers(-9, 9, (images, classes, boxes)).astype(np.float32)
    sources = []
    for values in (places, scores):
        dims = (*values.shape, 1)
        sources.append(net.tensor(dims, dtype="float32"))
        net.grow("Constant", sources[-1], values=values.reshape(-1))
    rows = images * classes * int(net.rng.integers(1, boxes + 1))
    net.grow(
        "Nms",
        net.tensor((rows, 3, 1, 1), dtype="int32"),
        *sources,
        scale=net.rng.choice(np.float32([0, 0.3, 0.7])),
        fill=net.rng.choice(np.float32([np.nan, 0, -5])),
        function=str(net.rng.choice(["none", "multiply"])),
    )


def any_places(net: Net, source) -> Places:
    """Places among the channels of each pixel, or among pixels."""
    batch, channels, height, width = source.shape
    pixels = batch * height * width
    if channels == 1 or net.rng.integers(2):
        outer, rows, inner = pixels, channels, 1
    else:
        outer = int(net.rng.choice([n for n in range(1, 9) if pixels % n == 0]))
        rows, inner = pixels // outer, channels
    own = [bool(flag) for flag in net.rng.integers(2, size=2)]
    first = int(net.rng.choice([n for n in range(1, 9) if rows % n == 0]))
    sizes = (rows,) if own[1] or net.rng.integers(2) else (first, rows // first)
    return Places(
        outer=outer,
        count=int(net.rng.integers(1, min(rows, 9) + 3)),
        inner=inner,
        sizes=sizes,
        by_outer=own[0],
        by_inner=own[1],
    )


def constant(net: Net, dims, *, like, sizes=()):
    """A tensor on the grid of `like`, or indices, of which some are outside."""
    if like is None:
        out = net.tensor((*dims, 1, 1), dtype="int32")
        most = max(sizes)
        values = net.rng.integers(-most, most, math.prod(dims))
        odd = net.rng.choice([*EXTREMES, most, -most - 1], math.prod(dims))
        values = np.where(net.rng.random(math.prod(dims)) < 0.2, odd, values)
        net.grow("Constant", out, levels=values.astype(np.int32))
        return out
    if like.dtype == "float32":
        out = net.tensor((*dims, 1, 1), dtype="float32")
        values = net.rng.normal(0, 10, dims).astype(np.float32)
        net.grow("Constant", out, values=values.reshape(-1))
        return out
    out = net.tensor((*dims, 1, 1), like=like)
    levels = integers(net, math.prod(dims))
    if like.dtype != "int32":
        kind = np.dtype(like.dtype)
        levels = net.rng.integers(like.lo, like.hi + 1, math.prod(dims), kind)
    net.grow("Constant", out, levels=levels)
    return out


GROW = {
    "top": grow_top,
    "take": grow_take,
    "put": grow_put,
    "nms": grow_nms,
}
