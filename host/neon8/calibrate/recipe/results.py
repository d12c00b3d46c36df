# SPDX-License-Identifier: Apache-2.0
"""Joined results, which stay float32 where a common scale would lose some of them.

A detector's boxes in pixels and its scores from 0 to 1 are often one tensor: with the
steps of the boxes all scores would be 0. Each part has a scale of its own then, and is
made float32, as the caller gets it, before it is joined rather than after.
"""

from collections.abc import Collection, Mapping

from neon8.calibrate.recipe.branches import Solve, Steps
from neon8.calibrate.statistics.histogram import Histogram
from neon8.ir.graph import Graph
from neon8.ir.groups import Edge, held, scale_groups


def results(
    graph: Graph,
    histograms: Mapping[str, Histogram],
    solve: Solve,
    closed: Collection[str],
) -> frozenset[Edge]:
    """The edges where values become float32; what comes after stays so.

    histograms: of the sources.  closed: scale groups that stay whole.
    """
    given = _given(graph)
    edges = [
        (name, node.output)
        for node in graph.nodes
        for name in node.inputs
        if node.output in given and name not in given
    ]
    whole, apart = scale_groups(graph), scale_groups(graph, edges)
    joined: dict[str, set[Edge]] = {}
    for edge in edges:
        joined.setdefault(apart.get(edge[1], ""), set()).add(edge)
    sources, steps = held(graph), Steps(histograms, solve)
    found: set[Edge] = set()
    for its in joined.values():
        names = {name for edge in its for name in edge}
        if not {"", *closed}.isdisjoint(whole.get(name, "") for name in names):
            continue
        parts = {sources[name] for name, _ in its}
        every = frozenset().union(*parts)
        if any(part and part < every and steps.gain(part, every) for part in parts):
            found |= its
    return frozenset(found)


def _given(graph: Graph) -> frozenset[str]:
    """What only moves values makes, and only results are made of."""
    read: dict[str, list[str]] = {}
    for node in graph.nodes:
        for name in node.inputs:
            read.setdefault(name, []).append(node.output)
    ends, found = frozenset(graph.outputs), set[str]()
    for node in reversed(graph.nodes):
        moves = node.keeps_values and node.follows and not node.puts_values
        end = node.output in ends or node.output in read
        if moves and end and found.issuperset(read.get(node.output, ())):
            found.add(node.output)
    return frozenset(found)
