# SPDX-License-Identifier: Apache-2.0
"""Branches that keep their own steps although they are joined with larger values.

All parts of a Concat have its scale. A part of small values is rounded as coarsely as
the largest one then, for all that read it: a skip connection, a block of a shuffle
chain without factors. It can have a scale of its own, and the Concat a requantized
copy. That costs a pass over bytes, and rounds the values in the Concat twice, which
adds 1 dB to their noise there at most if their steps are GAIN_DB finer. Values whose
noise is below LEAST_NOISE already stay as they are: blocks in a row add up theirs, so
this is less than for single layers.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from functools import reduce

import numpy as np

from neon8.calibrate.statistics.histogram import Histogram, merge
from neon8.ir.graph import Graph, Node
from neon8.ir.groups import Edge, held, scale_groups
from neon8.ir.rewrite import count_uses
from neon8.quant.scale_table import TensorScale

OWN = "own"
"""Reason code of a tensor that is requantized where it is joined with others."""

GAIN_DB = 6.0
LEAST_NOISE = 3e-4
"""step^2 / 12 over the mean square of the values."""
DECIMALS = 2
"""Decimals of predicted dB."""

Solve = Callable[[Histogram], TensorScale]


def branches(
    graph: Graph,
    histograms: Mapping[str, Histogram],
    solve: Solve,
    closed: Collection[str],
    given: Collection[Edge],
) -> frozenset[Edge]:
    """Choose the edges on which values are requantized.

    histograms: of the sources.  closed: scale groups that stay whole.  given: edges of
    results(), where scales part already.
    """
    whole, sources = scale_groups(graph, given), held(graph)
    uses, made = count_uses(graph), {node.output: node for node in graph.nodes}
    read = _read_otherwise(graph)
    gain = Steps(histograms, solve).gain
    apart = set(given)
    for node in graph.nodes:
        if not node.shares_scale or whole.get(node.output, "") in {"", *closed}:
            continue
        if len(set(node.inputs)) < 2:
            continue
        near = {_edge(graph, name, node, uses, made) for name in node.inputs}
        for edges, inside, rest in _parts(graph, node, near, apart):
            mine = frozenset().union(*(sources[name] for name in inside))
            others = frozenset().union(*(sources[name] for name in rest))
            every = mine | others
            if not mine or not others:
                continue
            # Nothing is gained where only the joined values are read.
            finer = not read.isdisjoint(inside) and gain(mine, every)
            if finer or (others < every and gain(others, every)):
                apart |= edges
    return frozenset(apart.difference(given))


class Steps:
    """What a method chooses for sources together, by `solve`."""

    def __init__(self, histograms: Mapping[str, Histogram], solve: Solve) -> None:
        self._histograms = histograms
        self._solve = solve
        self._known: dict[frozenset[str], float] = {}

    def gain(self, part: frozenset[str], every: frozenset[str]) -> bool:
        """True if a part is to have steps of its own, not those of all together."""
        step, power = self._step(every), mean_square(merged(self._histograms, part))
        if not power or step * step / 12 <= LEAST_NOISE * power:
            return False
        return round(20 * math.log10(step / self._step(part)), DECIMALS) >= GAIN_DB

    def _step(self, names: frozenset[str]) -> float:
        if names not in self._known:
            self._known[names] = self._solve(merged(self._histograms, names)).scale
        return self._known[names]


def merged(histograms: Mapping[str, Histogram], names: Collection[str]) -> Histogram:
    """The histogram of all values of some tensors."""
    return reduce(merge, (histograms[name] for name in sorted(names)))


def with_own(
    tensors: Mapping[str, TensorScale], apart: Collection[Edge]
) -> dict[str, TensorScale]:
    """With the reason code of those that are requantized."""
    named = {name for name, _ in apart}
    return {
        name: replace(each, reasons=(OWN, *each.reasons)) if name in named else each
        for name, each in tensors.items()
    }


def _parts(
    graph: Graph, node: Node, edges: Collection[Edge], apart: Collection[Edge]
) -> Iterator[tuple[set[Edge], list[str], list[str]]]:
    """What could come apart from a node that joins tensors at `edges`.

    The edges, the tensors that they leave on one side, and those on the other. Tensors
    that stay connected elsewhere are no parts.
    """
    groups = scale_groups(graph, {*apart, *edges})
    members: dict[str, list[str]] = {}
    for name, group in groups.items():
        members.setdefault(group, []).append(name)
    parts: dict[str, set[Edge]] = {}
    for edge in sorted(edges):
        parts.setdefault(groups.get(edge[0], ""), set()).add(edge)
    joined = groups[node.output]
    near = {joined, *parts} - {""}
    for group, its in parts.items():
        if group not in ("", joined):
            rest = [name for other in near - {group} for name in members[other]]
            yield its, members[group], rest


def _edge(
    graph: Graph,
    name: str,
    node: Node,
    uses: Mapping[str, int],
    made: Mapping[str, Node],
) -> Edge:
    """Where a part is requantized: before what makes more values of it."""
    edge = name, node.output
    while uses[edge[0]] == 1 and edge[0] in made:
        maker = made[edge[0]]
        if not maker.shares_scale or len(maker.inputs) > 1:
            break
        sizes = [math.prod(graph.tensors[n].dims) for n in (*maker.inputs, edge[0])]
        if sizes[0] >= sizes[1]:
            break
        edge = maker.inputs[0], maker.output
    return edge


def _read_otherwise(graph: Graph) -> frozenset[str]:
    """The tensors that more than what shares their scale reads."""
    readers = (node for node in graph.nodes if not node.shares_scale)
    return frozenset((*graph.outputs, *(n for node in readers for n in node.inputs)))


def mean_square(histogram: Histogram) -> float:
    """The mean square of all finite values, taken as the middles of their bins."""
    squares = np.square(np.arange(len(histogram.positive)) + 0.5)
    counts = (histogram.positive + histogram.negative).astype(np.float64)
    total = float(np.add.accumulate(counts * squares)[-1])
    return total * histogram.width**2 / max(histogram.total, 1)
