# SPDX-License-Identifier: Apache-2.0
"""Nodes that stay in float: what only they read is never rounded to int8."""

from neon8.compile import program
from neon8.compile.build import FLOAT, Build, Lower
from neon8.errors import CompileError
from neon8.graph.graph import Node, Softmax


def lower_softmax(b: Build, node: Softmax) -> None:
    """(14), in float; its input is the result of a step, not the caller's buffer."""
    if node.inputs[0] in b.graph.inputs:
        raise CompileError(
            f"layer {node.name!r}: softmax of network input {node.inputs[0]!r} is not "
            "supported"
        )
    inputs = (b.float32(node.inputs[0]).name,)
    out = b.declare(node.output, FLOAT)
    b.ops.append(program.Softmax(name=node.name, inputs=inputs, output=out.name))


LOWER: dict[type[Node], Lower] = {Softmax: lower_softmax}
