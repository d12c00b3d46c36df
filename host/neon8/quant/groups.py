# SPDX-License-Identifier: Apache-2.0
"""Which tensors share scale and zero point because only bytes move between them."""

from neon8.graph.graph import Concat, Graph, Node, Pool, Reshape


def scale_groups(graph: Graph) -> dict[str, str]:
    """Each tensor -> the one that stands for its group.

    Input and output of a max pool and of a Reshape are one group, and all inputs and
    the output of a Concat.
    """
    leader = {name: name for name in graph.tensors}

    def find(name: str) -> str:
        while leader[name] != name:
            leader[name] = leader[leader[name]]
            name = leader[name]
        return name

    for node in graph.nodes:
        if moves(node):
            for name in node.inputs:
                leader[find(name)] = find(node.output)
    return {name: find(name) for name in graph.tensors}


def sources(graph: Graph) -> tuple[str, ...]:
    """The tensors whose values are new: graph inputs, outputs of all but moves."""
    made = (node.output for node in graph.nodes if not moves(node))
    return (*graph.inputs, *made)


def moves(node: Node) -> bool:
    """True if the node's output holds values of its inputs and no others."""
    if isinstance(node, Pool):
        return node.kind == "max"
    return isinstance(node, Concat | Reshape)
