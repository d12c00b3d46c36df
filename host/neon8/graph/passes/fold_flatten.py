# SPDX-License-Identifier: Apache-2.0
"""A Gemm on a flattened image becomes a convolution with a kernel of image size."""

from dataclasses import replace

from neon8.ir.graph import Graph, Node
from neon8.ir.rewrite import drop_dead, rebuild
from neon8.operators.convolution import Conv2d
from neon8.operators.movement import Reshape


def fold_flatten(graph: Graph) -> Graph:
    """A Gemm on a flattened image becomes a convolution with a kernel of image size.

    So nothing is moved at run time. Only where all readers of the flattened tensor are
    such Gemms.
    """
    flattened = {}
    for node in graph.nodes:
        if isinstance(node, Reshape) and node.output not in graph.outputs:
            shape = graph.tensors[node.output].shape
            batch = graph.tensors[node.inputs[0]].shape[0]
            readers = [n for n in graph.nodes if node.output in n.inputs]
            vectors = shape[0] == batch and shape[2:] == (1, 1)
            if vectors and all(map(_is_gemm, readers)):
                flattened[node.output] = node.inputs[0]
    nodes: list[Node] = []
    for node in graph.nodes:
        source = flattened.get(next(iter(node.inputs), ""))
        if isinstance(node, Conv2d) and source is not None:
            _, c, h, w = graph.tensors[source].shape
            weight = node.weight.reshape(len(node.weight), c, h, w)
            # A kernel of one tap may be dilated, which this one must not be.
            nodes.append(
                replace(node, inputs=(source,), weight=weight, dilations=(1, 1))
            )
        else:
            nodes.append(node)
    return drop_dead(rebuild(graph, nodes))


def _is_gemm(node: Node) -> bool:
    return (
        isinstance(node, Conv2d)
        and node.groups == 1
        and not node.transposed
        and node.weight.shape[2:] == (1, 1)
        and node.pads == (0, 0, 0, 0)
    )
