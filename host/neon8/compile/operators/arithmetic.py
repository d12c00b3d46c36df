# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of two tensors, and activations that no node took in."""

from dataclasses import replace

import numpy as np

from neon8.compile import program
from neon8.compile.build import INT8, Build, Lower, ratio
from neon8.compile.scales import clamp_of, slope_of
from neon8.errors import CompileError
from neon8.graph.graph import (
    Activate,
    Add,
    Binary,
    Divide,
    Multiply,
    Node,
    Pool,
    Subtract,
    aligned,
)
from neon8.quant.weights import multiplier_ok


def lower_add(b: Build, node: Add | Subtract) -> None:
    """A sum that no convolution took in, or a difference  (6)."""
    first, second = (operand(b, node, name) for name in node.inputs)
    out = b.declare(node.output, INT8)
    sign = np.float32(-1 if isinstance(node, Subtract) else 1)
    lo, hi = clamp_of(node.activation, out)
    b.ops.append(
        program.Add(
            name=node.name,
            inputs=(first.name, second.name),
            output=out.name,
            scale=ratio(node.name, first, out),
            residual_scale=sign * ratio(node.name, second, out),
            slope=slope_of(node.name, node.activation),
            lo=lo,
            hi=hi,
        )
    )


def lower_product(b: Build, node: Multiply | Divide) -> None:
    """(16)."""
    first, second = (operand(b, node, name) for name in node.inputs)
    out = b.declare(node.output, INT8)
    divides = isinstance(node, Divide)
    a, c = np.float64(first.scale), np.float64(second.scale)
    scale = a / c if divides else a * c
    with np.errstate(over="ignore", under="ignore"):
        multiplier = np.float32(scale / np.float64(out.scale))
    if multiplier == 0 or not multiplier_ok(multiplier):
        raise CompileError(
            f"layer {node.name!r}: scales {first.scale:.4g} and {second.scale:.4g} of "
            f"its inputs are too far from {out.scale:.4g} of {out.name!r}; correct the "
            "table"
        )
    lo, hi = clamp_of(node.activation, out)
    kind = program.Divide if divides else program.Multiply
    b.ops.append(
        kind(
            name=node.name,
            inputs=(first.name, second.name),
            output=out.name,
            scale=multiplier,
            slope=slope_of(node.name, node.activation),
            lo=lo,
            hi=hi,
        )
    )


def operand(b: Build, node: Binary, name: str) -> program.Tensor:
    """An input of `node`, with the ones in front of its dimensions that ONNX adds."""
    source = b.int8(name)
    rank = len(b.graph.tensors[node.output].dims)
    if aligned(source.dims, rank) == source.shape:
        return source
    dims = (1,) * (rank - len(source.dims)) + source.dims
    view = b.temporary(replace(source, dims=dims), "aligned")
    b.ops.append(
        program.Reshape(name=node.name, inputs=(source.name,), output=view.name)
    )
    return view


def lower_activate(b: Build, node: Activate) -> None:
    """A requantization with the activation in its clamp and slope."""
    source = b.int8(node.inputs[0])
    activate(b, node, source, b.declare(node.output, INT8))


def activate(
    b: Build,
    node: Activate | Pool,
    source: program.Tensor,
    out: program.Tensor,
) -> None:
    """source -> out with the activation of `node` and the scale of `out`."""
    b.requantize(
        node.name,
        source,
        out,
        clamp=clamp_of(node.activation, out),
        slope=float(slope_of(node.name, node.activation)),
    )


LOWER: dict[type[Node], Lower] = {
    Activate: lower_activate,
    Add: lower_add,
    Divide: lower_product,
    Multiply: lower_product,
    Subtract: lower_add,
}
