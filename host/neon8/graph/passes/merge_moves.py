# SPDX-License-Identifier: Apache-2.0
"""Two moves of values in a row become one; one that moves nothing is a Reshape."""

from dataclasses import replace

from neon8.ir.graph import Graph, Node
from neon8.ir.rewrite import count_uses, drop_dead, rebuild


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
        if before is not None and before.moves and node.moves:
            if before.only_reshapes:
                node = replace(node, inputs=before.inputs)
            elif not node.only_reshapes:
                node = before.followed_by(node) or node
            elif uses[before.output] == 1:
                node = replace(before, name=node.name, output=node.output)
        made[node.output] = node
    return drop_dead(rebuild(graph, made.values()))
