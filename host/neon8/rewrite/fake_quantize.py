# SPDX-License-Identifier: Apache-2.0
"""Q/DQ pairs in a Graph: moved to where a tensor is made, and then merged into it.

As in TensorRT's guide, DequantizeLinear moves forward and QuantizeLinear backward over
what only moves values. Both are exact: rounding to a scale commutes with a move, with
the largest of several values, and with a clamp, since it keeps their order.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from neon8.ir.graph import Graph, Node, Quantization, Tensor
from neon8.ir.names import unused
from neon8.ir.rewrite import count_uses, rebuild
from neon8.operators.movement import Reshape


@dataclass(frozen=True, slots=True)
class Rounded:
    """A Graph and how its tensors are quantized; one that is not here is float."""

    graph: Graph
    tensors: dict[str, Quantization]


def settle(graph: Graph, given: dict[str, Quantization]) -> Graph:
    """Without pairs that round twice to one scale, the others as early as they can be.

    given: the inputs of the graph that are integers in the file.
    """
    while True:
        before = graph.nodes
        graph = _moved_back(_without_repeats(graph, given))
        if graph.nodes == before:
            return graph


def on_scale(
    nodes: Iterable[Node], given: dict[str, Quantization]
) -> dict[str, Quantization]:
    """The tensors whose values all are levels of one quantization: DQ moved forward.

    given: those that are known; what is rounded anew is not on the scale before it.
    """
    found = dict(given)
    for node in nodes:
        if node.output in given:
            continue
        if node.quantization is not None:
            found[node.output] = node.quantization
            continue
        kept = {found.get(name) for name in node.inputs}
        first = kept.pop() if kept else None
        if first is not None and not kept and _keeps(node, first):
            found[node.output] = first
    return found


def merge(
    graph: Graph, given: dict[str, Quantization], made_up: Iterable[str]
) -> Rounded:
    """Each pair goes into the node before it where nothing else reads its output.

    The tensor keeps the name that it has there, unless that one is made_up, or the pair
    gives an output of the graph.
    """
    uses = count_uses(graph)
    made_up = frozenset(made_up)
    names: dict[str, str] = {}
    tensors = dict(given)
    made: dict[str, Node] = {}
    for original in graph.nodes:
        node = _reading(original, names)
        if node.quantization is not None:
            source = node.inputs[0]
            outside = node.output in graph.outputs
            alone = uses[source] == 1 and source not in tensors
            if alone and (source in made or not outside):
                kept = source
                if source in made and (outside or source in made_up):
                    kept = node.output
                    made[kept] = made.pop(source).renamed(kept)
                names[node.output] = kept
                uses[kept] = uses[node.output]
                tensors[kept] = node.quantization
                continue
            tensors[node.output] = node.quantization
        made[node.output] = node
    graph = rebuild(graph, made.values())
    return Rounded(graph, on_scale(graph.nodes, tensors))


def _keeps(node: Node, quantization: Quantization) -> bool:
    """True if the node's output has no other levels than its inputs."""
    activation = node.activation
    if activation.slope != 1 or not (node.only_activates or node.keeps_values):
        return False
    values = [b for b in (activation.lo, activation.hi) if not math.isinf(b)]
    if node.fill is not None:
        values.append(node.fill)
    return all(_is_level(value, quantization) for value in values)


def _is_level(value: float, quantization: Quantization) -> bool:
    level = np.rint(value / quantization.scale)
    inside = -128 <= level + quantization.zero_point <= 127
    return bool(inside and np.float32(level * quantization.scale) == np.float32(value))


def _without_repeats(graph: Graph, given: dict[str, Quantization]) -> Graph:
    """One of two pairs on a tensor, and none on a tensor that has its values."""
    levels = on_scale(graph.nodes, given)
    names: dict[str, str] = {}
    first: dict[tuple[str, Quantization], str] = {}
    nodes: list[Node] = []
    for original in graph.nodes:
        node = _reading(original, names)
        if node.quantization is not None:
            source = node.inputs[0]
            inner = node.output not in graph.outputs
            if levels.get(source) == node.quantization:
                if inner:
                    names[node.output] = source
                else:
                    nodes.append(_identity(node))
                continue
            if not inner:
                nodes.append(node)
                continue
            same = first.setdefault((source, node.quantization), node.output)
            if same != node.output:
                names[node.output] = same
                continue
        nodes.append(node)
    return rebuild(graph, nodes)


def _identity(node: Node) -> Reshape:
    return Reshape(name=node.name, inputs=node.inputs, output=node.output)


def _moved_back(graph: Graph) -> Graph:
    """A pair that alone reads what a node moved stands before that node instead."""
    uses = count_uses(graph)
    made = {node.output: node for node in graph.nodes}
    pairs = {
        node.inputs[0]: node
        for node in graph.nodes
        if node.quantization is not None and uses[node.inputs[0]] == 1
    }
    nodes: list[Node] = []
    tensors = dict(graph.tensors)
    for node in graph.nodes:
        pair = pairs.get(node.output)
        source = made.get(node.inputs[0]) if node.inputs else None
        if pair is not None and _commutes(node) and node.inputs:
            inputs = []
            for number, name in enumerate(node.inputs):
                inputs.append(unused(f"{pair.output}_{number}", tensors))
                tensors[inputs[-1]] = Tensor(inputs[-1], tensors[name].dims)
                nodes.append(
                    replace(
                        pair,
                        name=f"{pair.name}_{number}",
                        inputs=(name,),
                        output=inputs[-1],
                    )
                )
            nodes.append(replace(node, inputs=tuple(inputs)))
        elif (
            node.only_activates
            and source is not None
            and source.quantization is not None
            and source.inputs[0] in made  # an input becomes int8 first
            and uses[source.output] == 1
            and _keeps(node, source.quantization)
        ):
            clamped = unused(f"{node.output}_clamped", tensors)
            tensors[clamped] = Tensor(clamped, tensors[node.output].dims)
            nodes.remove(source)
            nodes.append(replace(node, inputs=source.inputs, output=clamped))
            nodes.append(replace(source, inputs=(clamped,), output=node.output))
        else:
            nodes.append(node)
    return rebuild(replace(graph, tensors=tensors), nodes)


def _commutes(node: Node) -> bool:
    """True if rounding before the node gives what rounding after it does."""
    return node.keeps_values and node.activation.slope == 1


def _reading(node: Node, names: dict[str, str]) -> Node:
    inputs = tuple(names.get(name, name) for name in node.inputs)
    return node if inputs == node.inputs else replace(node, inputs=inputs)
