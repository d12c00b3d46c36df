# SPDX-License-Identifier: Apache-2.0
"""Source -> Graph: one node for each operator that an output depends on."""

from neon8.graph.graph import Graph, Node, Tensor
from neon8.graph.operators import OPERATORS
from neon8.graph.source import Source, failure, nchw, shape_of

REMEDIES = {
    "QuantizeLinear": "is already quantized; give neon8 the float network",
    "DequantizeLinear": "is already quantized; give neon8 the float network",
    "ReduceMean": "export GlobalAveragePool instead",
}


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
        if wanted != [node.outputs[0]]:
            text = f"its output {wanted[-1]!r} is used; only the first one may be"
            raise failure(source, node, text)
        nodes.append(operator(source, node))
        shape = shape_of(source, node, node.outputs[0])
        tensors[node.outputs[0]] = _tensor(node.outputs[0], shape)
    return Graph(
        name=source.name,
        digest=source.digest.result(),
        tensors=tensors,
        nodes=tuple(nodes),
        inputs=source.inputs,
        outputs=source.outputs,
    )


def _tensor(name: str, shape: tuple[int, ...]) -> Tensor:
    return Tensor(name=name, shape=nchw(shape), rank=len(shape))
