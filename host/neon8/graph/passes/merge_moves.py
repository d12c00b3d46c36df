# SPDX-License-Identifier: Apache-2.0
"""Of two moves of values in a row, one is left; one that moves nothing is a Reshape."""

from dataclasses import replace

import numpy as np

from neon8.ir.graph import MAX_RANK, Graph, IndexArray, Node
from neon8.ir.rewrite import count_uses, drop_dead, rebuild
from neon8.ir.views import then
from neon8.operators.movement import Permute, Reshape
from neon8.operators.selection import Gather


def merge_moves(graph: Graph) -> Graph:
    """Each Permute, Gather and Reshape takes in the one before it where it can.

    A move reads from where the one before it did, which goes if nothing else reads it.
    A Reshape costs nothing, so it is not made a move of its own beside another one.
    """
    uses = count_uses(graph)
    made: dict[str, Node] = {}
    for original in graph.nodes:
        node = original
        before = made.get(node.inputs[0]) if node.inputs else None
        if before is not None and isinstance(node, Gather | Permute | Reshape):
            alone = uses[before.output] == 1
            node = _merged(before, node, alone=alone) or node
        made[node.output] = node
    return drop_dead(rebuild(graph, made.values()))


def _merged(
    before: Node, node: Gather | Permute | Reshape, *, alone: bool
) -> Node | None:
    """One node that does both, None if there is none."""
    if isinstance(before, Reshape):
        return replace(node, inputs=before.inputs)
    if isinstance(before, Gather | Permute) and isinstance(node, Reshape):
        return replace(before, name=node.name, output=node.output) if alone else None
    if isinstance(before, Permute) and isinstance(node, Permute):
        both = then((before.view, before.order), (node.view, node.order))
        if both is None or len(both[0]) > MAX_RANK:
            return None
        view, order = both
        if order == tuple(range(len(order))):
            return Reshape(
                name=node.name,
                inputs=before.inputs,
                output=node.output,
                operator=node.operator,
            )
        return replace(node, inputs=before.inputs, view=view, order=order)
    if isinstance(before, Gather) and isinstance(node, Gather):
        return _composed(before, node)
    return None


def _composed(before: Gather, node: Gather) -> Node | None:
    """Indices of indices, if both have the same axes and one constant at most."""
    filled = [(each.indices, each.fill) for each in (before, node)]
    fills = {fill for indices, fill in filled if any((i < 0).any() for i in indices)}
    if tuple(map(len, before.indices)) != node.view or len(fills) > 1:
        return None
    n, c, h, w = map(_through, before.indices, node.indices)
    whole = (np.arange(size) for size in before.view)
    if all(map(np.array_equal, (n, c, h, w), whole)):
        return Reshape(name=node.name, inputs=before.inputs, output=node.output)
    return replace(
        node,
        inputs=before.inputs,
        view=before.view,
        indices=(n, c, h, w),
        fill=next(iter(fills), 0.0),
    )


def _through(first: IndexArray, second: IndexArray) -> IndexArray:
    taken: IndexArray = np.where(second < 0, np.int32(-1), first[second])
    return taken
