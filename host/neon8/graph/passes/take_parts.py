# SPDX-License-Identifier: Apache-2.0
"""What takes channels of one part of a Concat reads that part.

A Concat gives its parts one scale; a detector that joins boxes in pixels and scores,
and takes them apart again for NonMaxSuppression, would lose the scores.
"""

from dataclasses import replace

from neon8.ir.graph import Graph, Node
from neon8.ir.rewrite import drop_dead, rebuild


def take_parts(graph: Graph) -> Graph:
    """The Concat goes if nothing else reads it."""
    made: dict[str, Node] = {}
    for original in graph.nodes:
        before = made.get(next(iter(original.inputs), ""))
        joins = before is not None and before.joins_channels
        node = _of_part(graph, before, original) if before and joins else original
        made[node.output] = node
    return drop_dead(rebuild(graph, made.values()))


def _of_part(graph: Graph, joined: Node, node: Node) -> Node:
    """`node` as it reads one of the inputs of `joined`, where it reads one alone."""
    whole = graph.tensors[joined.output].shape
    start = 0
    for name in joined.inputs:
        part = graph.tensors[name].shape
        found = node.within(start, whole, part)
        if found is not None:
            return replace(found, inputs=(name,))
        start += part[1]
    return node
