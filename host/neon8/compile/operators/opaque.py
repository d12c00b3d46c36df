# SPDX-License-Identifier: Apache-2.0
"""ONNX nodes that stay as they are, in files that can hold them."""

from neon8.compile import program
from neon8.compile.build import FLOAT, Build, Lower
from neon8.graph.graph import Node, Opaque


def lower_opaque(b: Build, node: Opaque) -> None:
    """Takes and gives float32, and tensors of other types as they are."""
    inputs = tuple(b.float32(name).name for name in node.inputs)
    outputs = tuple(b.declare(name, FLOAT).name for name in node.outputs)
    b.ops.append(
        program.Opaque(
            name=node.name,
            inputs=inputs,
            output=outputs[0],
            more=outputs[1:],
            reads=node.inputs,
            makes=node.outputs,
        )
    )


LOWER: dict[type[Node], Lower] = {Opaque: lower_opaque}
