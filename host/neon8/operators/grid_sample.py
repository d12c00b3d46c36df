# SPDX-License-Identifier: Apache-2.0
"""GridSample: pixels taken where a grid says, between those that there are.

Made of rows that are taken at indices (37), times weights, all in float32.
"""

import numpy as np

from neon8.operators.composition import Part, Parts
from neon8.operators.family import Family

TAPS = {"nearest": 1, "linear": 2, "bilinear": 2, "cubic": 4, "bicubic": 4}
"""How many each mode reads along an axis; opset 16 has other names."""

PADDINGS = ("zeros", "border", "reflection")
FARTHEST = float(1 << 20)
"""Places beyond are here, so that they are whole numbers and fit."""


def grid_sample(p: Parts) -> bool:
    """GridSample of images."""
    p.in_float = True
    source, node = p.source, p.node
    x, grid = node.inputs
    dims, out = (source.shape_of(node, name) for name in (x, node.outputs[0]))
    if len(dims) != 4:
        raise source.failure(node, f"of {len(dims)} dimensions is not supported")
    mode, padding = node.text("mode", "linear"), node.text("padding_mode", "zeros")
    if mode not in TAPS or padding not in PADDINGS:
        raise source.failure(node, f"mode {mode!r} with {padding!r} is unknown")
    batch, channels, height, width = dims
    pixels = out[2] * out[3]
    rows = p.add("Reshape", x, [batch, channels, height * width])
    rows = p.add("Transpose", rows, perm=(0, 2, 1))
    axes = []
    for axis, size in enumerate((width, height)):
        place = p.add("Slice", grid, [axis], [axis + 1], [3])
        place = p.add("Reshape", place, [batch, pixels, 1])
        axes.append(_taps(p, place, size, TAPS[mode], padding))
    total = ""
    for y, vertical in axes[1]:
        first = p.add("Mul", y, float(width))
        line = ""
        for at, weight in axes[0]:
            row = p.add("Cast", p.add("Add", first, at), to=_INT64)
            value = p.add("GatherND", rows, row, batch_dims=1)
            line = _plus(p, line, value if not weight else p.add("Mul", value, weight))
        total = _plus(p, total, line if not vertical else p.add("Mul", line, vertical))
    total = p.add("Transpose", total, perm=(0, 2, 1))
    p.add("Reshape", total, list(out), output=node.outputs[0])
    return True


_INT64 = 7
"""As onnx numbers the types."""


def _plus(p: Parts, a: str, b: str) -> str:
    return p.add("Add", a, b) if a else b


def _taps(
    p: Parts, place: str, size: int, count: int, padding: str
) -> list[tuple[str, str]]:
    """Along one axis the places, from 0 on, and the weights; "" for 1."""
    align = p.node.integer("align_corners", 0)
    factor = (size - 1) / 2 if align else size / 2
    x = p.add("Mul", p.add("Add", place, 1.0), factor)
    if not align:
        x = p.add("Sub", x, 0.5)
    x = _clipped(p, x, -FARTHEST, FARTHEST)
    first = p.add("Round" if count == 1 else "Floor", x)
    weights = _weights(p, p.add("Sub", x, first), count)
    taps = []
    for index, weight in enumerate(weights):
        step = index - (count == TAPS["cubic"])
        at = p.add("Add", first, float(step)) if step else first
        inside = _inside(p, at, size, padding, align)
        if padding == "zeros":
            far = p.add("Abs", p.add("Sub", at, inside))
            counts = _clipped(p, p.add("Sub", 1.0, far), 0.0, 1.0)
            weight = p.add("Mul", weight, counts) if weight else counts  # noqa: PLW2901
        taps.append((inside, weight))
    return taps


def _inside(p: Parts, at: str, size: int, padding: str, align: int) -> str:
    """Whole numbers in 0 .. size - 1."""
    if padding == "reflection":
        last = 2 * size - 1 - align
        period = max(last + 1 - align, 1)
        times = p.add("Floor", p.add("Mul", p.add("Add", at, 0.5), 1 / period))
        turned = p.add("Sub", at, p.add("Mul", times, float(period)))
        at = p.add("Min", turned, p.add("Sub", float(last), turned))
    return _clipped(p, at, 0.0, size - 1.0)


def _clipped(p: Parts, x: str, lo: float, hi: float) -> str:
    return p.add("Clip", x, np.float32(lo), np.float32(hi))


def _weights(p: Parts, d: str, count: int) -> list[str]:
    """The weights of taps, `d` after the first of two or the second of four."""
    if count == 1:
        return [""]
    back = p.add("Sub", 1.0, d)
    if count == TAPS["linear"]:
        return [back, d]
    outer = [-0.75, 3.75, -6.0, 3.0]
    inner = [1.25, -2.25, 0.0, 1.0]
    after, before = p.add("Add", d, 1.0), p.add("Add", back, 1.0)
    return [
        _polynomial(p, x, factors)
        for x, factors in (
            (after, outer),
            (d, inner),
            (back, inner),
            (before, outer),
        )
    ]


def _polynomial(p: Parts, x: str, factors: list[float]) -> str:
    value: Part = factors[0]
    for factor in factors[1:]:
        value = p.add("Mul", x, value)
        value = p.add("Add", value, factor) if factor else value
    return str(value)


FAMILY = Family(compositions={"GridSample": grid_sample})
