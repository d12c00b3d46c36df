# SPDX-License-Identifier: Apache-2.0
"""Nodes that stay in float: what only they read is never rounded to int8."""

import math
from dataclasses import replace

from neon8.compile import program
from neon8.compile.build import FLOAT, Build, Lower
from neon8.graph.graph import Node, Softmax


def lower_softmax(b: Build, node: Softmax) -> None:
    """(14), in float.  Several axes become one that a Reshape makes.

    So it is with the dimensions of an input whose own Reshape is gone.
    """
    source = b.float32(node.inputs[0])
    out = b.declare(node.output, FLOAT)
    if source.dims != out.dims:
        view = b.temporary(replace(source, dims=out.dims), "reshaped")
        b.ops.append(
            program.Reshape(name=node.name, inputs=(source.name,), output=view.name)
        )
        source = view
    rest = math.prod(source.dims[node.axis :])
    if node.flattens and rest != source.dims[node.axis]:
        view = program.Tensor(
            name=source.name,
            dims=(math.prod(source.dims[: node.axis]), rest),
            dtype=FLOAT,
        )
        flat, result = (b.temporary(view, label) for label in ("flat", "softmax"))
        b.ops += (
            program.Reshape(name=node.name, inputs=(source.name,), output=flat.name),
            softmax(node, flat.name, result.name, axis=1),
            program.Reshape(name=node.name, inputs=(result.name,), output=out.name),
        )
    else:
        b.ops.append(softmax(node, source.name, out.name, axis=node.axis))


def softmax(node: Softmax, source: str, out: str, *, axis: int) -> program.Softmax:
    """The step along one axis of the tensor that ONNX knows."""
    return program.Softmax(name=node.name, inputs=(source,), output=out, axis=axis)


LOWER: dict[type[Node], Lower] = {Softmax: lower_softmax}
