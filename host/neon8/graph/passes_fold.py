# SPDX-License-Identifier: Apache-2.0
"""Folding passes, Graph -> Graph: what needs no arithmetic or no node of its own."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from neon8.graph.graph import Conv2d, Graph, Node, Reshape
from neon8.graph.source import float32


def count_uses(graph: Graph) -> Counter[str]:
    """How often each tensor is read; being an output of the graph counts."""
    uses = Counter(graph.outputs)
    for node in graph.nodes:
        uses.update(node.inputs)
    return uses


def rebuild(graph: Graph, nodes: Iterable[Node]) -> Graph:
    """`graph` with other nodes, and without the tensors that none of them has."""
    nodes = tuple(nodes)
    names = (*graph.inputs, *(node.output for node in nodes))
    tensors = {name: graph.tensors[name] for name in names}
    return replace(graph, nodes=nodes, tensors=tensors)


def drop_dead(graph: Graph) -> Graph:
    """Without the nodes that no output depends on."""
    live = set(graph.outputs)
    kept = []
    for node in reversed(graph.nodes):
        if node.output in live:
            live.update(node.inputs)
            kept.append(node)
    return rebuild(graph, reversed(kept))


def drop_moves(graph: Graph) -> Graph:
    """Without the Reshapes that change no dimension; of two in a row, the second stays.

    The output of such a Reshape is read from its input instead. Where it is an output
    of the graph, the tensor before takes its name; it stays only where both names must.
    """
    fixed = {*graph.inputs, *graph.outputs}
    names: dict[str, str] = {}  # old name -> the one that is read instead
    made: dict[str, Node] = {}
    uses = count_uses(graph)
    for original in graph.nodes:
        inputs = tuple(names.get(name, name) for name in original.inputs)
        node = replace(original, inputs=inputs)
        if isinstance(node, Reshape):
            before = made.get(inputs[0])
            if isinstance(before, Reshape) and before.output not in fixed:
                node = replace(node, inputs=before.inputs)
                uses[before.output] -= 1
                if uses[before.output]:  # else this one reads in its place
                    uses[before.inputs[0]] += 1
            source = node.inputs[0]
            if graph.tensors[source].shape == graph.tensors[node.output].shape:
                if node.output not in graph.outputs:
                    names[node.output] = source
                    uses[source] += uses[node.output] - 1
                    continue
                if source not in fixed and uses[source] == 1:
                    node = _renamed(made.pop(source), node.output)
        made[node.output] = node
    return drop_dead(rebuild(graph, made.values()))


def _renamed(node: Node, name: str) -> Node:
    if isinstance(node, Conv2d):
        return replace(node, output=name, pre_activation=name)
    return replace(node, output=name)


def fold_flatten(graph: Graph) -> Graph:
    """A Gemm on a flattened image becomes a convolution with a kernel of image size.

    So nothing is moved at run time. Only where all readers of the flattened tensor are
    such Gemms.
    """
    flattened = {}
    for node in graph.nodes:
        if isinstance(node, Reshape) and node.output not in graph.outputs:
            shape = graph.tensors[node.output].shape
            readers = [n for n in graph.nodes if node.output in n.inputs]
            if shape[2:] == (1, 1) and all(map(_is_gemm, readers)):
                flattened[node.output] = node.inputs[0]
    nodes: list[Node] = []
    for node in graph.nodes:
        source = flattened.get(node.inputs[0])
        if isinstance(node, Conv2d) and source is not None:
            _, c, h, w = graph.tensors[source].shape
            weight = node.weight.reshape(len(node.weight), c, h, w)
            nodes.append(replace(node, inputs=(source,), weight=weight))
        else:
            nodes.append(node)
    return drop_dead(rebuild(graph, nodes))


def _is_gemm(node: Node) -> bool:
    return (
        isinstance(node, Conv2d)
        and node.groups == 1
        and node.weight.shape[2:] == (1, 1)
        and node.pads == (0, 0, 0, 0)
    )


def fold_affine(graph: Graph) -> Graph:
    """A depthwise 1x1 convolution goes into the weights of the convolution before it.

    This folds BatchNormalization, added biases and multiplications by constants.
    """
    uses = count_uses(graph)
    made: dict[str, Node] = {}
    for original in graph.nodes:
        node = original
        before = made.get(node.inputs[0])
        if (
            isinstance(before, Conv2d)
            and isinstance(node, Conv2d)
            and _is_affine(node)
            and before.activation.identity
            and uses[before.output] == 1
        ):
            del made[before.output]
            factor = node.weight[:, 0, 0, 0].astype(np.float64)
            node = replace(
                before,
                output=node.output,
                pre_activation=node.output,
                weight=float32(before.weight * factor.reshape(-1, 1, 1, 1)),
                bias=float32(before.bias * factor + node.bias),
            )
        made[node.output] = node
    return rebuild(graph, made.values())


def _is_affine(node: Conv2d) -> bool:
    return (
        node.groups == len(node.weight)
        and node.weight.shape[1:] == (1, 1, 1)
        and node.strides == (1, 1)
        and node.pads == (0, 0, 0, 0)
    )
