# SPDX-License-Identifier: Apache-2.0
"""Which initializer of an ONNX file holds the weights of a layer, as they are."""

import numpy as np

from neon8.graph.graph import Conv2d, Graph
from neon8.graph.onnx_file import ModelLike, open_onnx
from neon8.graph.reader import read
from neon8.graph.source import Array, OnnxNode, integer


def weight_names(model: ModelLike, graph: Graph) -> dict[str, tuple[str, int]]:
    """Layer -> name of its weights, axis of the output channels.

    graph: what was imported from `model`. A layer whose weights were changed by folding
    (BatchNormalization ...) has no such initializer and is left out.
    """
    source = read(open_onnx(model))
    nodes = {node.name: node for node in source.nodes}
    found = {}
    for layer in graph.nodes:
        node = nodes.get(layer.name)
        if not isinstance(layer, Conv2d) or node is None or len(node.inputs) < 2:
            continue
        values = source.constants.get(node.inputs[1])
        axis = _axis(node)
        if values is None or axis is None or values.ndim <= axis:
            continue
        if _same(layer, np.moveaxis(values, axis, 0)):
            found[layer.name] = (node.inputs[1], axis)
    return found


def _axis(node: OnnxNode) -> int | None:
    if node.operator == "Conv":
        return 0
    if node.operator == "Gemm":
        return 0 if integer(node, "transB", 0) else 1
    return 1 if node.operator == "MatMul" else None


def _same(layer: Conv2d, values: Array) -> bool:
    own = layer.weight.reshape(len(layer.weight), -1)
    return own.size == values.size and np.array_equal(
        own, values.reshape(len(values), -1)
    )
