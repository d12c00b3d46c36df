# SPDX-License-Identifier: Apache-2.0
"""From an ONNX file to the normalised Graph."""

from dataclasses import replace

import numpy as np

from neon8.errors import GraphError
from neon8.graph.graph import Conv2d, Graph, Node, Tensor
from neon8.graph.onnx_file import ModelLike, open_onnx
from neon8.graph.operators import OPERATORS
from neon8.graph.passes import PASSES
from neon8.graph.reader import read
from neon8.graph.source import Source, failure, shape_of

REMEDIES = {
    "QuantizeLinear": "is already quantized; give neon8 the float network",
    "DequantizeLinear": "is already quantized; give neon8 the float network",
}


def load(model: ModelLike) -> Graph:
    """The network in `model`, batch 1, ready to be calibrated and compiled.

    GraphError, one line: not an ONNX file, or something in it that neon8 cannot run.
    """
    file = open_onnx(model)
    graph = convert(read(file))
    for apply in PASSES:
        graph = apply(graph)
    for node in graph.nodes:
        if isinstance(node, Conv2d) and not (
            np.isfinite(node.weight).all() and np.isfinite(node.bias).all()
        ):
            text = f"node {node.name!r}: folded weights are too large for float32"
            raise GraphError(f"{file.path}: {text}")
    return graph


def convert(source: Source) -> Graph:
    """The network node by node, nothing folded or fused.

    GraphError names the first node that neon8 cannot run.
    """
    live = set(source.outputs)
    for node in reversed(source.nodes):
        if not live.isdisjoint(node.outputs):
            live.update(node.inputs)
    nodes: list[Node] = []
    tensors = {}
    for name in source.inputs:
        tensors[name] = _tensor(name, source.shapes[name])
    for node in source.nodes:
        wanted = [output for output in node.outputs if output and output in live]
        if not wanted:
            continue
        operator = OPERATORS.get(node.operator)
        if operator is None:
            remedy = REMEDIES.get(node.operator, "is not supported")
            raise failure(source, node, remedy)
        made = operator(source, node)
        made = made if isinstance(made, tuple) else (made,)
        made = tuple(replace(one, operator=node.operator) for one in made)
        for one in made:
            tensors[one.output] = _tensor(
                one.output, shape_of(source, node, one.output)
            )
        for name in wanted:
            if name not in tensors:
                text = f"its output {name!r} is used, which neon8 does not compute"
                raise failure(source, node, text)
        nodes += made
    return Graph(
        name=source.name,
        digest=source.digest.result(),
        tensors=tensors,
        nodes=tuple(nodes),
        inputs=source.inputs,
        outputs=source.outputs,
    )


def _tensor(name: str, shape: tuple[int, ...]) -> Tensor:
    return Tensor(name=name, dims=shape)
