# SPDX-License-Identifier: Apache-2.0
"""Which tensors of a network that was quantized elsewhere never exist: sums."""

from neon8.ir.graph import Graph, Node
from neon8.operators.convolution import convolutions, takes_in
from neon8.quant.scale_table import ScaleTable


def taken_in(
    graph: Graph, table: ScaleTable, consumers: dict[str, list[Node]]
) -> frozenset[str]:
    """The sums of a quantized network that a convolution gives to what it takes in.

    They have no scale, as nothing ever rounds them: what follows, an Add or a PRelu, is
    computed along with the convolution and has one.
    """
    found: set[str] = set()
    at = dict.fromkeys(graph.inputs, -1)
    at |= {node.output: number for number, node in enumerate(graph.nodes)}

    def reader(name: str) -> Node | None:
        """What alone reads a tensor that is not rounded."""
        free = name not in table.tensors and name not in graph.outputs
        return consumers[name][0] if free and len(consumers[name]) == 1 else None

    for node in convolutions(graph):
        if not node.activation.identity:
            continue
        if node.name not in table.layers or node.inputs[0] not in table.tensors:
            continue
        sums, last = [node.output], reader(node.output)
        if last is not None and last.sign:
            rest = [name for name in last.inputs if name != node.output]
            known = all(name in table.tensors for name in rest)
            ready = known and all(at[name] < at[node.output] for name in rest)
            if len(rest) != 1 or not ready or not takes_in(graph, node, last):
                continue
            if last.output not in table.tensors and last.activation.identity:
                sums.append(last.output)
                last = reader(last.output)
                last = None if last is None or last.leaky_slopes is None else last
        elif last is None or last.leaky_slopes is None:
            continue
        if last is not None and last.output in table.tensors:
            found.update(sums)
    return frozenset(found)
