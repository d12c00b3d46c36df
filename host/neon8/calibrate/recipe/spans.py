# SPDX-License-Identifier: Apache-2.0
"""How far the values of each channel reach: as seen, and as must be expected.

Beyond the largest value that was seen, the tail of a channel is taken to fall by a
factor e for each `tail` = (largest - mean) / ln N of N values; below the least one
likewise. Values nearby in an image are alike, and images differ, so that N is the
number of values over ALIKE + UNLIKE / samples. A range that ends x tails beyond the
largest value clips 2 tail^2 e^-x / N, the mean square of what is cut off, and rounds
with steps as large as the range is. A channel reaches to where both together are least,
beyond what was seen by at most HEADROOM / sqrt(samples) of it; with SETTLED values not
beyond it, since room for what is rare makes the steps of all other values larger. Of
MANY values a few far from all others are not worth it either: what is beyond RARE
standard deviations of the mean is clipped, but no more than half of the largest value.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from neon8.arrays import DoubleArray, Int64Array
from neon8.calibrate.observation import Observation
from neon8.ir.graph import Activation, Graph, Node
from neon8.operators.functions import Function, evaluate
from neon8.operators.pointwise import function_of
from neon8.quant import elementary
from neon8.rewrite.equalization import CHANNELS, Link, links

ALIKE = 4
UNLIKE = 128
HEADROOM = 1.5
SETTLED = 10_000
"""Values of a channel; with so many it reaches as far as was seen."""
MANY = 250_000
RARE = 13.0
"""Chance alone takes no exponential tail as far, of so many values."""
MARGINS = np.arange(49) / 4
"""In tails, between the end of what was seen and that of the range."""
STEPS = 255
POINTS = 1025
"""Points of a function, from one end of a channel to the other."""
FLAT = 1 / 2048
"""The share of its range by which a function may change where it counts as flat."""

Ends = tuple[DoubleArray, DoubleArray]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Span:
    """The least and largest value of each channel, (C,): seen, and to be expected."""

    seen: Ends
    reach: Ends


def spans_of(
    graph: Graph, observation: Observation, offsets: Mapping[str, DoubleArray]
) -> dict[str, Span]:
    """The spans of all tensors for which they are known, offsets subtracted.

    What only functions read need not reach where all of them are flat.
    """
    spans: dict[str, Span] = {}
    for node in graph.nodes:
        if node.output in offsets:
            own = offsets[node.output]
            span = observed(Activation(), observation, node.output, own)
        else:
            span = _span(graph, node, observation, spans)
        if span is not None:
            spans[node.output] = span
    return spans | _steep_only(graph, spans)


def _span(
    graph: Graph, node: Node, observation: Observation, spans: Mapping[str, Span]
) -> Span | None:
    if node.weighted:
        return observed(node.activation, observation, node.pre_activation)
    known = [spans[name] for name in node.inputs if name in spans]
    linked = links(graph, node) if node.joins or node.moves else None
    if linked is not None and len(known) == len(node.inputs):
        count = graph.tensors[node.output].shape[CHANNELS]
        return Span(
            seen=_linked(linked, [span.seen for span in known], count),
            reach=_linked(linked, [span.reach for span in known], count),
        )
    if node.output in observation.channels:
        return observed(Activation(), observation, node.output)
    if not (node.by_channel and len(node.inputs) == 1 and known):
        return None
    if node.leaky_slopes is None:
        return known[0]
    slopes = node.leaky_slopes.astype(np.float64)
    return Span(seen=_bent(known[0].seen, slopes), reach=_bent(known[0].reach, slopes))


def _linked(linked: Sequence[Link], ends: Sequence[Ends], count: int) -> Ends:
    """The ends of `count` channels that come from others; 0 where none does."""
    low, high = np.full(count, np.inf), np.full(count, -np.inf)
    for link, (least, most) in zip(linked, ends, strict=True):
        np.minimum.at(low, link.made, least[link.read])
        np.maximum.at(high, link.made, most[link.read])
    filled = low > high
    return np.where(filled, 0.0, low), np.where(filled, 0.0, high)


def _bent(ends: Ends, slopes: DoubleArray) -> Ends:
    """The ends after a PRelu, whose slopes may be negative."""
    made = [np.where(x < 0, x * slopes, x) for x in ends]
    return np.minimum(*made), np.maximum(np.maximum(*made), 0)


def observed(
    activation: Activation,
    observation: Observation,
    name: str,
    offsets: DoubleArray | None = None,
) -> Span | None:
    """The span after an activation, from what was observed of `name` before it.

    offsets: (C,), subtracted from the values, where there is no activation.
    """
    before = observation.channels[name]
    if not before.count.all() or activation.slope < 0:
        return None
    own = 0.0 if offsets is None else offsets
    lo, hi = (x.astype(np.float64) - own for x in (before.minimum, before.maximum))
    mean, samples = before.mean() - own, len(observation.samples)
    number = np.maximum(before.count / (ALIKE + UNLIKE / samples), math.e)
    depth = elementary.log(number)
    seen = _activated(activation, lo), _activated(activation, hi)
    rare = np.where(before.count < MANY, np.inf, RARE * np.sqrt(before.variance()))
    lo = np.maximum(lo, np.minimum(mean - rare, lo / 2))
    hi = np.minimum(hi, np.maximum(mean + rare, hi / 2))
    reach = []
    for sign, end, other in ((-1, lo, seen[1]), (1, hi, seen[0])):
        tail = np.maximum((end - mean) * sign, 0)[:, np.newaxis] / depth[:, np.newaxis]
        # Before a clamp at 0 the end may be near it.
        size = np.maximum(-lo, hi) if activation.lo == 0 else np.abs(end)
        room = (size * HEADROOM / math.sqrt(samples))[:, np.newaxis]
        more = np.minimum(tail * MARGINS, room)
        more = np.where((before.count < SETTLED)[:, np.newaxis], more, 0.0)
        far = _activated(activation, end[:, np.newaxis] + sign * more)
        width = np.maximum(far * sign, 0) + np.maximum(-sign * other, 0)[:, np.newaxis]
        clipped = 2 * np.square(tail) * elementary.exp(-MARGINS) / number[:, np.newaxis]
        best = (np.square(width / STEPS) / 12 + clipped).argmin(axis=1)
        reach.append(far[np.arange(len(best)), best])
    return Span(seen=seen, reach=(reach[0], reach[1]))


def _activated(activation: Activation, x: DoubleArray) -> DoubleArray:
    bent = np.where(x < 0, x * activation.slope, x)
    return np.clip(bent, activation.lo, activation.hi)


def _steep_only(graph: Graph, spans: Mapping[str, Span]) -> dict[str, Span]:
    """The spans of tensors that only functions read, without flat ends."""
    readers: dict[str, list[Function | None]] = {name: [None] for name in graph.outputs}
    for node in graph.nodes:
        bent = None if node.weighted else function_of(node)
        for name in node.inputs:
            readers.setdefault(name, []).append(bent)
    found = {}
    for name, functions in readers.items():
        known = [each for each in functions if each is not None]
        if name in spans and len(known) == len(functions):
            found[name] = _without_flat(known, spans[name])
    return found


def _without_flat(functions: Sequence[Function], span: Span) -> Span:
    """The span without the ends of which no function makes anything."""
    ends = [_steep(function, span.reach) for function in functions]
    lo = np.min([each[0] for each in ends], axis=0)
    hi = np.max([each[1] for each in ends], axis=0)
    return Span(
        seen=(np.maximum(span.seen[0], lo), np.minimum(span.seen[1], hi)),
        reach=(lo, hi),
    )


def _steep(function: Function, reach: Ends) -> Ends:
    """Between them the function is not flat."""
    lo, hi = (end[:, np.newaxis] for end in reach)
    points = lo + (hi - lo) * (np.arange(POINTS) / (POINTS - 1))
    made = np.nan_to_num(evaluate(function, points))
    small = FLAT * (made.max(axis=1) - made.min(axis=1))[:, np.newaxis]
    first, last = (_flat(made[:, ::way], small) - 1 for way in (1, -1))
    last = POINTS - 1 - last
    apart = first < last
    rows = np.arange(len(points))
    return (
        np.where(apart, points[rows, first], reach[0]),
        np.where(apart, points[rows, last], reach[1]),
    )


def _flat(made: DoubleArray, small: DoubleArray) -> Int64Array:
    """How many points from the first on differ little from all before, (C,)."""
    most = np.maximum.accumulate(made, axis=1) - made
    least = made - np.minimum.accumulate(made, axis=1)
    still = np.logical_and.accumulate(np.maximum(most, least) <= small, axis=1)
    result: Int64Array = np.count_nonzero(still, axis=1)
    return result
