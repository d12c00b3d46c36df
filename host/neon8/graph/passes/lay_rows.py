# SPDX-License-Identifier: Apache-2.0
"""Outputs whose last axis was channels are computed in rows of them.

Heads of detectors end so: Transpose, Sigmoid, Reshape and Concat to (1, boxes, values).
As N C H W the boxes would be channels, and the values of a box far apart. In rows,
which are (boxes, values), the values are the channels that they were before: whole runs
are copied, at last to where the caller has them.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from neon8.ir.graph import Graph, Node
from neon8.ir.names import unused
from neon8.ir.rewrite import count_uses, rebuild
from neon8.operators import rearranged


def lay_rows(graph: Graph) -> Graph:
    """What leads from moved channels to an output, and to nothing else, in rows."""
    makers = {node.output: node for node in graph.nodes}
    uses = count_uses(graph)
    tensors = dict(graph.tensors)
    nodes = list(graph.nodes)
    for output in graph.outputs:
        found = _in_rows(graph, makers, uses, output)
        moves = {n for n, x in found.items() if x.permutes and not x.only_reshapes}
        if not moves or output in moves:  # which writes to the caller itself
            continue
        for name in found:
            rows = rearranged.rows(name, tensors[name].dims)
            tensors[name] = replace(rows, hidden=tensors[name].hidden)
        inner = replace(tensors[output], name=unused(f"{output}_rows", tensors))
        tensors |= {inner.name: inner, output: graph.tensors[output]}
        nodes = [found.get(node.output, node) for node in nodes]
        last = found[output]
        at = nodes.index(last)
        nodes[at : at + 1] = [
            last.renamed(inner.name),
            rearranged.back(last.name, inner),
        ]
    origins = {name: t for name, t in tensors.items() if t.origin is not None}
    graph = replace(graph, tensors=tensors, rearranged=graph.rearranged | origins)
    return rebuild(graph, nodes)


def _in_rows(
    graph: Graph, makers: Mapping[str, Node], uses: Counter[str], output: str
) -> dict[str, Node]:
    """The nodes that make `output` of moved channels, by tensor, in rows.

    None where there are others, or what they make is read elsewhere.
    """
    found: dict[str, Node] = {}
    names = [output]
    while names:
        name = names.pop()
        node, tensor = makers.get(name), graph.tensors[name]
        if node is None or uses[name] > 1 or not (tensor.real and tensor.dims):
            return {}
        sources = [graph.tensors[each] for each in node.inputs]
        if sources and node.makes_rows(sources[0].shape, tensor.dims[-1]):
            found[name] = node
            continue
        laid = node.in_rows(tensor)
        if laid is None or any(x.dims[-1:] != tensor.dims[-1:] for x in sources):
            return {}
        found[name] = laid
        names += node.inputs
    return found
