# SPDX-License-Identifier: Apache-2.0
"""Which tensors share scale and zero point because no value leaves their range."""

from neon8.ir.graph import Graph


def scale_groups(graph: Graph) -> dict[str, str]:
    """Each tensor -> the one that names its group.

    Input and output of a max pool, of a linear resize and of what only moves values are
    one group, and all inputs and the output of a Concat, a Maximum or a Minimum.
    Tensors that nobody observes have none.
    """
    parent = {name: name for name, tensor in graph.tensors.items() if tensor.real}

    def find(name: str) -> str:
        while parent[name] != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    for node in graph.nodes:
        if node.shares_scale:
            for name in node.inputs:
                parent[find(name)] = find(node.output)
    return {name: find(name) for name in parent if graph.tensors[name].observed}


def sources(graph: Graph) -> tuple[str, ...]:
    """The tensors with values of their own: not those of a node that shares_scale."""
    made = (n for node in graph.nodes if not node.shares_scale for n in node.outputs)
    return tuple(n for n in (*graph.inputs, *made) if graph.tensors[n].observed)


def never_negative(graph: Graph) -> frozenset[str]:
    """The tensors that an activation such as ReLU keeps from below 0, by name.

    What only moves such values makes such tensors, too.
    """
    found: set[str] = set()
    for node in graph.nodes:
        kept = node.keeps_sign and found.issuperset(node.inputs)
        if node.activation.lo >= 0 or kept:
            found.add(node.output)
    return frozenset(found)
