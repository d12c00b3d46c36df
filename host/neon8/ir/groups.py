# SPDX-License-Identifier: Apache-2.0
"""Which tensors share scale and zero point because no value leaves their range."""

from collections.abc import Collection, Mapping

from neon8.ir.graph import Graph, Node
from neon8.quant.scale_table import TensorScale

Edge = tuple[str, str]
"""An input of a node, and its output."""


def scale_groups(graph: Graph, apart: Collection[Edge] = ()) -> dict[str, str]:
    """Each tensor -> the one that names its group.

    Input and output of a max pool, of a linear resize and of what only moves values are
    one group, and all inputs and the output of a Concat, a Maximum or a Minimum, but
    for edges that are `apart`, where values are requantized. Tensors that nobody
    observes have none.
    """
    parent = {name: name for name, tensor in graph.tensors.items() if tensor.real}

    def find(name: str) -> str:
        while parent[name] != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    for node in graph.nodes:
        if _shares(graph, node) and node.output in parent:
            for name in node.inputs:
                if name in parent and (name, node.output) not in apart:
                    parent[find(name)] = find(node.output)
    return {name: find(name) for name in parent if graph.tensors[name].observed}


def _shares(graph: Graph, node: Node) -> bool:
    """True if the node shares a scale, which nothing does with a hidden tensor."""
    names = (*node.inputs, *node.outputs)
    return node.shares_scale and not any(graph.tensors[name].hidden for name in names)


def groups_of(graph: Graph, tensors: Mapping[str, TensorScale]) -> dict[str, str]:
    """As scale_groups(), where the entries of a table do share a scale."""
    grids = {name: (each.scale, each.zero_point) for name, each in tensors.items()}
    apart = {
        (name, node.output)
        for node in graph.nodes
        for name in node.inputs
        if grids.get(name) != grids.get(node.output, grids.get(name))
    }
    return scale_groups(graph, apart)


def held(graph: Graph) -> dict[str, frozenset[str]]:
    """Each tensor -> the sources() whose values it holds."""
    own = frozenset(sources(graph))
    found = {name: own & {name} for name in graph.inputs}
    for node in graph.nodes:
        if _shares(graph, node):
            mine = own & {node.output}
            found[node.output] = mine.union(*(found[n] for n in node.inputs))
        else:
            found |= {name: own & {name} for name in node.outputs}
    return found


def sources(graph: Graph) -> tuple[str, ...]:
    """The tensors with values of their own; of a node that shares_scale constants."""
    own = (e for e in graph.nodes if e.puts_values or not _shares(graph, e))
    made = (name for node in own for name in node.outputs)
    return tuple(n for n in (*graph.inputs, *made) if graph.tensors[n].observed)


def symmetric(graph: Graph) -> frozenset[str]:
    """The tensors of which a node wants zero point 0, by name."""
    return frozenset(name for node in graph.nodes for name in node.symmetric)


def never_negative(graph: Graph) -> frozenset[str]:
    """The tensors that an activation such as ReLU keeps from below 0, by name.

    What only moves such values makes such tensors, too.
    """
    found: set[str] = set()
    for node in graph.nodes:
        read = {name for name in node.inputs if graph.tensors[name].real}
        kept = node.keeps_sign and read and found.issuperset(read)
        if node.activation.lo >= 0 or kept:
            found.add(node.output)
    return frozenset(found)
