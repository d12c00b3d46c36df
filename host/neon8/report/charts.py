# SPDX-License-Identifier: Apache-2.0
"""The shapes of small charts: strings of numbers for the `d` of SVG paths."""

import math
from collections.abc import Sequence

from neon8.report.facts import Point as Dot
from neon8.report.facts import Values

WIDTH, HEIGHT = 320, 80
"""The size of a chart, in its own units."""
MOST_BARS = 512
"""Channels that are drawn one by one; of more, each bar is several of them."""

Point = tuple[float, float]


def histogram(values: Values, threshold: tuple[float, float]) -> tuple[str, list[str]]:
    """The bars, their heights logarithms of counts, and the x of both thresholds."""
    low, high = min(values.low, threshold[0]), max(values.high, threshold[1])
    span = (high - low) or 1.0
    most = math.log1p(max(values.counts, default=0)) or 1.0
    width = (values.high - values.low) / len(values.counts) / span * WIDTH
    first = (values.low - low) / span * WIDTH
    bars = []
    for at, count in enumerate(values.counts):
        if count:
            up = max(1.0, math.log1p(count) / most * HEIGHT)
            x, wide = first + at * width, max(width, 0.5)
            bars.append(f"M{x:.1f} {HEIGHT}v{-up:.1f}h{wide:.1f}v{up:.1f}z")
    return "".join(bars), [f"{(end - low) / span * WIDTH:.1f}" for end in threshold]


def spans(low: Sequence[float], high: Sequence[float]) -> str:
    """A bar from low to high for each channel, around a line at 0 in the middle."""
    each = math.ceil(len(low) / MOST_BARS)
    pairs = [
        (min(low[at : at + each]), max(high[at : at + each]))
        for at in range(0, len(low), each)
    ]
    most = max((max(abs(a), abs(b)) for a, b in pairs), default=0.0) or 1.0
    wide = WIDTH / max(len(pairs), 1)
    half = HEIGHT / 2
    bars = []
    for at, (bottom, top) in enumerate(pairs):
        y, deep = half - top / most * half, (top - bottom) / most * half
        deep = max(deep, 0.5)
        bars.append(f"M{at * wide:.1f} {y:.1f}h{wide:.1f}v{deep:.1f}h{-wide:.1f}z")
    return "".join(bars)


def line(points: Sequence[Point]) -> str:
    """A line through points whose x and y are shares of the chart, y upwards."""
    return "L".join(f"{x * WIDTH:.1f} {(1 - y) * HEIGHT:.1f}" for x, y in points)


def edge(points: Sequence[Point], half: float) -> str:
    """A smooth line from the lower side of a node to the upper side of a later one.

    half: of the height of nodes, whose middles are the ends of the line.
    """
    (x, y), *middle, (u, v) = points
    y, v = y + half, v - half
    said = [f"M{x:.0f} {y:.0f}"]
    for a, b in [*middle, (u, v)]:
        bend = (b - y) / 2
        said.append(f"C{x:.0f} {y + bend:.0f} {a:.0f} {b - bend:.0f} {a:.0f} {b:.0f}")
        x, y = a, b
    return "".join(said)


def sticks(values: Sequence[float]) -> str:
    """A bar from 0 to each value."""
    return spans(
        [min(each, 0.0) for each in values], [max(each, 0.0) for each in values]
    )


def dots(curve: Sequence[Dot], across: str) -> list[Point]:
    """The steps with a finite SQNR, as shares of the ranges of `across` and of SQNR."""
    known = [
        (float(getattr(each, across)), each.sqnr_db)
        for each in curve
        if each.sqnr_db is not None and getattr(each, across) is not None
    ]
    if not known:
        return []
    (left, low), (right, high) = (
        tuple(f(each) for each in zip(*known, strict=True)) for f in (min, max)
    )
    return [
        ((x - left) / ((right - left) or 1.0), (y - low) / ((high - low) or 1.0))
        for x, y in known
    ]
