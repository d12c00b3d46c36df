# SPDX-License-Identifier: Apache-2.0
"""Reshapes that change nothing go, and of two in a row the first."""

from dataclasses import replace

from neon8.ir.graph import Graph, Node
from neon8.ir.rewrite import count_uses, drop_dead, rebuild


def drop_reshapes(graph: Graph) -> Graph:
    """Without the Reshapes that change no dimension; of two in a row, the second stays.

    The output of such a Reshape is read from its input instead. Where it is an output
    of the graph, the tensor before takes its name; it stays only where both names must.
    So it is with what an Opaque node reads, which wants the dimensions of the file;
    layers over sequences and arithmetic that broadcasts want them, too.
    """
    opaque = (node for node in graph.nodes if not node.runs)
    ends = {*graph.outputs, *(name for node in opaque for name in node.inputs)}
    looking = (node for node in graph.nodes if node.reads_dims)
    looked_at = {name for node in looking for name in node.inputs}
    fixed = {*graph.inputs, *ends}
    names: dict[str, str] = {}  # old name -> the one that is read instead
    made: dict[str, Node] = {}
    uses = count_uses(graph)
    for original in graph.nodes:
        inputs = tuple(names.get(name, name) for name in original.inputs)
        node = replace(original, inputs=inputs)
        if node.only_reshapes:
            before = made.get(inputs[0])
            if (
                before is not None
                and before.only_reshapes
                and before.output not in fixed
            ):
                node = replace(node, inputs=before.inputs)
                uses[before.output] -= 1
                if uses[before.output]:  # else this one reads in its place
                    uses[before.inputs[0]] += 1
            source = node.inputs[0]
            if graph.tensors[source].shape == graph.tensors[node.output].shape:
                same = graph.tensors[source].dims == graph.tensors[node.output].dims
                if node.output not in ends and (same or node.output not in looked_at):
                    names[node.output] = source
                    uses[source] += uses[node.output] - 1
                    continue
                maker = made.get(source)
                alone = source not in fixed and uses[source] == 1
                same = graph.tensors[source].dims == graph.tensors[node.output].dims
                if alone and maker is not None and _may_give(maker, same=same):
                    node = made.pop(source).renamed(node.output)
        made[node.output] = node
    return drop_dead(rebuild(graph, made.values()))


def _may_give(maker: Node, *, same: bool) -> bool:
    """True if `maker` may give the tensor after a Reshape.  same: of equal dims."""
    return maker.runs and (same or not maker.reads_dims)
