# SPDX-License-Identifier: Apache-2.0
"""A Gemm on a flattened image becomes a convolution with a kernel of image size."""

from dataclasses import replace

from neon8.ir.graph import Graph, Node
from neon8.ir.rewrite import drop_dead, rebuild


def fold_flatten(graph: Graph) -> Graph:
    """A Gemm on a flattened image becomes a convolution with a kernel of image size.

    So nothing is moved at run time. Only where all readers of the flattened tensor are
    such Gemms.
    """
    flattened = {}
    for node in graph.nodes:
        if node.only_reshapes and node.output not in graph.outputs:
            shape = graph.tensors[node.output].shape
            source = graph.tensors[node.inputs[0]]
            readers = [n for n in graph.nodes if node.output in n.inputs]
            layers = [n.unflattened(source.shape) for n in readers]
            vectors = shape[0] == source.shape[0] and shape[2:] == (1, 1)
            if vectors and None not in layers:
                flattened[node.output] = source
    nodes: list[Node] = []
    for node in graph.nodes:
        image = flattened.get(next(iter(node.inputs), ""))
        layer = None if image is None else node.unflattened(image.shape)
        if image is not None and layer is not None:
            nodes.append(replace(layer, inputs=(image.name,)))
        else:
            nodes.append(node)
    return drop_dead(rebuild(graph, nodes))
