# SPDX-License-Identifier: Apache-2.0
"""Scores after a mask in int16, with room for what the mask removes.

Nobody observes masked scores, as -1e4, -1e9 or -infinity would leave no steps for the
others. But a softmax makes 0 of whatever is far below the largest value, however far.
So where the scores reach from -T to T, masked ones may saturate at -(T + FAR)  (30).
"""

from collections.abc import Iterator
from dataclasses import replace

from neon8.ir.graph import Graph, Node
from neon8.ir.rewrite import drop_dead
from neon8.quant.grid import Grid, ends
from neon8.quant.scale_table import ScaleTable, TensorScale

FAR = 23.0
"""exp(-FAR) is 0 in the integers of (30), and exp(-FAR / 2) no step of a result."""

INT16 = Grid("symmetric", 16)


def masked_scores(graph: Graph) -> Iterator[tuple[Node, str, tuple[str, ...]]]:
    """What masks, the scores that it masks, and the tensors up to softmaxes.

    Of masked scores that something else reads, too, nothing is said.
    """
    readers: dict[str, list[Node]] = {name: [] for name in graph.tensors}
    for node in graph.nodes:
        for name in node.inputs:
            readers[name].append(node)

    def reached(name: str) -> tuple[str, ...] | None:
        """`name` and what it is moved to, if only softmaxes read these."""
        found: tuple[str, ...] = (name,)
        for reader in readers[name]:
            if not reader.ignores_low:
                more = reached(reader.output) if reader.permutes else None
                if more is None:
                    return None
                found += more
        return None if name in graph.outputs else found

    for node in graph.nodes:
        if graph.tensors[node.output].hidden and node.with_lowest(0.0) is not None:
            scores = [name for name in node.inputs if graph.tensors[name].observed]
            tensors = reached(node.output)
            if len(scores) == 1 and tensors is not None:
                yield node, scores[0], tensors


def with_masks(graph: Graph, table: ScaleTable) -> tuple[Graph, ScaleTable]:
    """Give scales to masked scores, and to the masks that are added to them.

    A softmax of these has no NaN, so whatever asks for that goes.
    """
    scales, tensors = dict(table.tensors), dict(graph.tensors)
    changed: dict[str, Node | None] = {}
    for node, scores, reached in masked_scores(graph):
        entry = table.tensors.get(scores)
        if entry is None or entry.float32 or entry.factors or entry.offsets:
            continue
        reach = max(abs(end) for end in ends(entry)) + FAR
        changed[node.output] = node.with_lowest(-2 * reach)
        for name in reached:
            tensors[name] = replace(tensors[name], hidden=False)
            scales[name] = up_to(reach)
        for name in node.inputs:
            if graph.tensors[name].hidden:  # which may mask other scores, too
                known = scales[name].threshold[1] if name in scales else 0.0
                scales[name] = up_to(max(2 * reach, known))
    if not changed:
        return graph, table
    finite: set[str] = set()
    never: set[str] = set()
    nodes = []
    for node in graph.nodes:
        first = next(iter(node.inputs), "")
        if node.ignores_low and graph.tensors[first] != tensors[first]:
            finite.add(node.output)
        if node.tests_nan and first in finite:
            never.add(node.output)
        nodes.append(changed.get(node.output) or node.without(never) or node)
    graph = replace(graph, nodes=tuple(nodes), tensors=tensors)
    return drop_dead(graph), replace(table, tensors=scales)


def up_to(reach: float) -> TensorScale:
    """From -reach to reach."""
    scale, zero_point = INT16.cover(-reach, reach)
    return TensorScale(
        scale=float(scale),
        zero_point=zero_point,
        scheme=INT16.scheme,
        bits=INT16.bits,
        threshold=(-reach, reach),
        min=None,
        max=None,
    )
