# SPDX-License-Identifier: Apache-2.0
"""Each activation goes into the node before it.

A tensor is quantized only after the activation that follows it, so an activation
belongs to the node that makes its input unless something else reads that, too.
"""

from dataclasses import replace

from neon8.ir.graph import Graph, Node
from neon8.ir.rewrite import count_uses, rebuild


def fuse_activations(graph: Graph) -> Graph:
    """Each activation goes into the node before it if that can take it."""
    uses = count_uses(graph)
    made: dict[str, Node] = {}
    for original in graph.nodes:
        node = original
        before = made.get(next(iter(node.inputs), ""))
        if node.only_activates and before is not None and uses[before.output] == 1:
            fused = before.fused(node.activation)
            if fused is not None:
                del made[before.output]
                # Not renamed(): what an activation is of keeps its name.
                node = replace(fused, output=node.output)
        made[node.output] = node
    return rebuild(graph, made.values())
