# SPDX-License-Identifier: Apache-2.0
"""Which tensors are never negative, whatever the input: the clamps of the nodes say."""

from neon8.graph.graph import (
    Activation,
    Concat,
    Gather,
    Graph,
    Maximum,
    Minimum,
    Node,
    Permute,
    Pool,
    Reshape,
)


def never_negative(graph: Graph) -> frozenset[str]:
    """The tensors that an activation such as ReLU keeps from below 0, by name.

    What only moves such values, or takes the largest, makes such tensors, too.
    """
    found: set[str] = set()
    for node in graph.nodes:
        activation = getattr(node, "activation", Activation())
        clamped = isinstance(activation, Activation) and activation.lo >= 0
        if clamped or _moves(node, found):
            found.add(node.output)
    return frozenset(found)


def _moves(node: Node, known: set[str]) -> bool:
    if isinstance(node, Maximum):
        return not known.isdisjoint(node.inputs)
    if isinstance(node, Pool) and node.kind == "average":
        return False
    kept = isinstance(node, Gather) and node.fill >= 0
    kept |= isinstance(node, Concat | Minimum | Permute | Pool | Reshape)
    return kept and known.issuperset(node.inputs)
