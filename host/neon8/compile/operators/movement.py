# SPDX-License-Identifier: Apache-2.0
"""Concat and Reshape: bytes move, once their scales are the same."""

from neon8.compile import program
from neon8.compile.build import INT8, Build, Lower
from neon8.graph.graph import Concat, Node, Reshape


def lower_concat(b: Build, node: Concat) -> None:
    """Moves bytes, once all inputs have the scale of the output."""
    sources = [b.int8(name) for name in node.inputs]
    out = b.declare(node.output, INT8)
    inputs = tuple(b.rescaled(node.name, source, out).name for source in sources)
    b.ops.append(
        program.Concat(name=node.name, inputs=inputs, output=out.name, axis=node.axis)
    )


def lower_reshape(b: Build, node: Reshape) -> None:
    """Moves bytes, once the input has the scale of the output."""
    source = b.int8(node.inputs[0])
    out = b.declare(node.output, INT8)
    inputs = (b.rescaled(node.name, source, out).name,)
    b.ops.append(program.Reshape(name=node.name, inputs=inputs, output=out.name))


LOWER: dict[type[Node], Lower] = {Concat: lower_concat, Reshape: lower_reshape}
