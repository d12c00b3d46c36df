# SPDX-License-Identifier: Apache-2.0
"""What passes share: who reads a tensor, and a Graph with other nodes."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

from neon8.ir.graph import Graph, Node


def count_uses(graph: Graph) -> Counter[str]:
    """How often each tensor is read; being an output of the graph counts."""
    uses = Counter(graph.outputs)
    for node in graph.nodes:
        uses.update(node.inputs)
    return uses


def rebuild(graph: Graph, nodes: Iterable[Node]) -> Graph:
    """`graph` with other nodes, and without the tensors that none of them has."""
    nodes = tuple(nodes)
    names = (*graph.inputs, *(name for node in nodes for name in node.outputs))
    tensors = {name: graph.tensors[name] for name in names}
    return replace(graph, nodes=nodes, tensors=tensors)


def drop_dead(graph: Graph) -> Graph:
    """Without the nodes that no output depends on."""
    live = set(graph.outputs)
    kept = []
    for node in reversed(graph.nodes):
        if not live.isdisjoint(node.outputs):
            live.update(node.inputs)
            kept.append(node)
    return rebuild(graph, reversed(kept))


def joined(graph: Graph, join: Callable[[Node, Node], Node | None]) -> Graph:
    """`graph` in which nodes go into the node before them.

    join: from what makes the first input of a node, and is read by it alone, and the
    node to one that does both, or None.
    """
    uses = count_uses(graph)
    made: dict[str, Node] = {}
    for original in graph.nodes:
        node = original
        before = made.get(next(iter(node.inputs), ""))
        if before is not None and uses[before.output] == 1:
            both = join(before, node)
            if both is not None:
                del made[before.output]
                node = both
        made[node.output] = node
    return rebuild(graph, made.values())
