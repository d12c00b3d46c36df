# SPDX-License-Identifier: Apache-2.0
"""Concat and Reshape: values move, those of int8 once their scales are the same."""

from neon8.compile import program
from neon8.compile.build import INT8, Build, Lower
from neon8.graph.graph import Concat, Node, Reshape


def lower_concat(b: Build, node: Concat) -> None:
    """Moves values, those of int8 once all inputs have the scale of the output."""
    inputs, out = moved(b, node)
    b.ops.append(
        program.Concat(name=node.name, inputs=inputs, output=out, axis=node.axis)
    )


def lower_reshape(b: Build, node: Reshape) -> None:
    """Moves values, those of int8 once the input has the scale of the output."""
    inputs, out = moved(b, node)
    b.ops.append(program.Reshape(name=node.name, inputs=inputs, output=out))


def moved(b: Build, node: Node) -> tuple[tuple[str, ...], str]:
    """Inputs and output of a step that moves values of the type in which `node` runs.

    int8 inputs get the scale of the output.
    """
    dtype = b.type_of(node)
    sources = [b.take(name, dtype) for name in node.inputs]
    out = b.declare(node.output, dtype)
    if dtype == INT8:
        sources = [b.rescaled(node.name, source, out) for source in sources]
    return tuple(source.name for source in sources), out.name


LOWER: dict[type[Node], Lower] = {Concat: lower_concat, Reshape: lower_reshape}
"""Each serves both types."""
