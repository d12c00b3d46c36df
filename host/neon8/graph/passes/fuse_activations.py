# SPDX-License-Identifier: Apache-2.0
"""Each activation goes into the node before it.

A tensor is quantized only after the activation that follows it, so an activation
belongs to the node that makes its input unless something else reads that, too.
"""

from dataclasses import replace

from neon8.ir.graph import Graph, Node
from neon8.ir.rewrite import joined


def fuse_activations(graph: Graph) -> Graph:
    """Each activation goes into the node before it if that can take it."""
    return joined(graph, _fused)


def _fused(before: Node, node: Node) -> Node | None:
    both = before.fused(node.activation) if node.only_activates else None
    # Not renamed(): what the activation is of keeps its name.
    return None if both is None else replace(both, output=node.output)
