# SPDX-License-Identifier: Apache-2.0
"""Which operator computes a tensor of an ONNX file."""

import onnx

from neon8.graph.onnx_file import OnnxFile

MOVING = frozenset({
    *("Cast", "DequantizeLinear", "Dropout", "Flatten", "Identity", "QuantizeLinear"),
    *("Reshape", "Squeeze", "Transpose", "Unsqueeze"),
})  # fmt: skip
"""Operators that leave the values of their first input as they are, or round them."""


def maker(file: OnnxFile, name: str) -> str:
    """The operator that computes the values of tensor `name`; "" if nothing does."""
    nodes = onnx.ModelProto.FromString(file.model).graph.node
    made = {output: node for node in nodes for output in node.output if output}
    for _ in range(len(nodes)):  # a file may have a cycle
        node = made.get(name)
        if node is None:
            return ""
        if node.op_type not in MOVING or not node.input:
            return str(node.op_type)
        name = node.input[0]
    return ""
