# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of tensors and constants, and activations that no node took in."""

import math
from dataclasses import replace

import numpy as np

from neon8.compile import program
from neon8.compile.build import INT8, Build, Lower, ratio
from neon8.compile.scales import SCALE_MAX, clamp_of, slope_of
from neon8.errors import CompileError
from neon8.graph.graph import (
    Activate,
    Activation,
    Add,
    Binary,
    Divide,
    Maximum,
    Minimum,
    Multiply,
    Node,
    Pool,
    Subtract,
    Sum,
    WithConstant,
    aligned,
)
from neon8.quant.limits import SMALLEST_SCALE
from neon8.quant.weights import DoubleArray, multiplier_ok

FUNCTIONS: dict[type[Binary], str] = {
    Add: "add",
    Divide: "divide",
    Multiply: "multiply",
    Subtract: "subtract",
}
EXTREMES = {"maximum": program.Maximum, "minimum": program.Minimum}
SUMS = ("add", "subtract")
"""They take and give int8 and int16, the other functions int8 only."""
PRODUCTS = {"divide": program.Divide, "multiply": program.Multiply}

MAX_SPREAD = 1 << 28
"""Values of a constant that is written out."""


def lower_binary(b: Build, node: Binary) -> None:
    """(6) of a sum that no convolution took in, or a difference; (16)."""
    function = FUNCTIONS[type(node)]
    wide = function in SUMS
    first, second = (operand(b, node, name, wide=wide) for name in node.inputs)
    out = b.result(node.output) if wide else b.declare(node.output, INT8)
    combine(b, node, function, (first, second), out, node.activation)


def combine(
    b: Build,
    node: Node,
    function: str,
    operands: tuple[program.Tensor, program.Tensor],
    out: program.Tensor,
    activation: Activation = Activation(),
) -> None:
    """Appends the step that gives the `function` of two tensors."""
    first, second = operands
    inputs = first.name, second.name
    lo, hi = clamp_of(activation, out)
    slope = slope_of(node.name, activation)
    if function in EXTREMES:
        kind = EXTREMES[function]
        b.ops.append(kind(name=node.name, inputs=inputs, output=out.name))
    elif function in SUMS:
        sign = np.float32(-1 if function == "subtract" else 1)
        b.ops.append(
            program.Add(
                name=node.name,
                inputs=inputs,
                output=out.name,
                scale=ratio(node.name, first, out),
                residual_scale=sign * ratio(node.name, second, out),
                slope=slope,
                lo=lo,
                hi=hi,
            )
        )
    else:
        product = PRODUCTS[function]
        b.ops.append(
            product(
                name=node.name,
                inputs=inputs,
                output=out.name,
                scale=multiplier(node.name, function, operands, out),
                slope=slope,
                lo=lo,
                hi=hi,
            )
        )


def multiplier(
    layer: str,
    function: str,
    operands: tuple[program.Tensor, program.Tensor],
    out: program.Tensor,
) -> np.float32:
    """M of (16), or CompileError."""
    a, c = (np.float64(operand.scale) for operand in operands)
    scale = a / c if function == "divide" else a * c
    with np.errstate(over="ignore", under="ignore"):
        value: np.float32 = np.float32(scale / np.float64(out.scale))
    if value == 0 or not multiplier_ok(value):
        raise CompileError(
            f"layer {layer!r}: scales {a:.4g} and {c:.4g} of its inputs are too far "
            f"from {out.scale:.4g} of {out.name!r}; correct the table"
        )
    return value


def lower_with_constant(b: Build, node: WithConstant) -> None:
    """As of two tensors, of which one is an int8 constant with a scale of its own."""
    function, value = node.function, node.constant.astype(np.float64)
    wide = function in SUMS
    source = operand(b, node, node.inputs[0], wide=wide)
    out = b.result(node.output) if wide else b.declare(node.output, INT8)
    if function == "divide" and not node.first:  # a level 0 would be a divisor
        function, value = "multiply", 1.0 / value
    if function in EXTREMES:
        source = b.rescaled(node.name, source, out)
    constant = constant_of(b, node, value, source, out, shared=function in EXTREMES)
    operands = (constant, source) if node.first else (source, constant)
    combine(b, node, function, operands, out, node.activation)


def constant_of(
    b: Build,
    node: WithConstant,
    value: DoubleArray,
    source: program.Tensor,
    out: program.Tensor,
    *,
    shared: bool,
) -> program.Tensor:
    """The constant as int8, unsigned where it has no value below 0.

    shared: with scale and zero point of `out`.
    """
    value = value.reshape((1,) * (out.rank - value.ndim) + value.shape)
    if aligned(value.shape, out.rank)[3] not in (1, out.shape[3]):
        # Along some of the axes from the fourth on only.
        if math.prod(value.shape[:3]) * out.shape[3] > MAX_SPREAD:
            text = f"its constant {list(value.shape)} is broadcast to too many values"
            raise CompileError(f"layer {node.name!r}: {text}")
        value = np.broadcast_to(value, (*value.shape[:3], *out.dims[3:]))
    like = replace(out, name=source.name, dims=value.shape, dtype=INT8)
    if not shared:
        least, most = float(min(value.min(), 0)), float(max(value.max(), 0))
        unsigned = least == 0
        scale = most / 255 if unsigned else max(most, -least) / 127
        like = replace(
            like,
            scale=np.float32(min(max(scale, SMALLEST_SCALE), SCALE_MAX)),
            zero_point=-128 if unsigned else 0,
            lo=-128 if unsigned else -127,
            hi=127,
        )
    tensor = b.temporary(like, "constant")
    q = np.rint(value / np.float64(tensor.scale))
    levels = np.clip(q + tensor.zero_point, tensor.lo, tensor.hi).astype(np.int8)
    b.ops.append(
        program.Constant(
            name=node.name, inputs=(), output=tensor.name, levels=levels.reshape(-1)
        )
    )
    return tensor


def lower_extreme(b: Build, node: Maximum | Minimum) -> None:
    """Of bytes on the grid of the result, to which all are taken first  (9)."""
    sources = [operand(b, node, name) for name in node.inputs]
    out = b.declare(node.output, INT8)
    first, *others = (b.rescaled(node.name, source, out) for source in sources)
    function = "maximum" if isinstance(node, Maximum) else "minimum"
    for i, other in enumerate(others):
        last = i == len(others) - 1
        dims = np.broadcast_shapes(first.shape, other.shape)
        result = out if last else b.temporary(replace(out, dims=dims), "extreme")
        combine(b, node, function, (first, other), result)
        first = result


def lower_sum(b: Build, node: Sum) -> None:
    """(6) of all inputs at once, so that it is rounded once."""
    sources = [b.int8(name) for name in node.inputs]
    out = b.declare(node.output, INT8)
    count = len(sources) if node.mean else 1
    lo, hi = clamp_of(node.activation, out)
    scales = [ratio(node.name, source, out, count=count) for source in sources]
    b.ops.append(
        program.Sum(
            name=node.name,
            inputs=tuple(source.name for source in sources),
            output=out.name,
            values=np.array(scales, np.float32),
            slope=slope_of(node.name, node.activation),
            lo=lo,
            hi=hi,
        )
    )


def operand(b: Build, node: Node, name: str, *, wide: bool = False) -> program.Tensor:
    """An input of `node`, with the ones in front of its dimensions that ONNX adds.

    wide: as the table has it, int16 or int8; else int8.
    """
    source = b.own(name) if wide else b.int8(name)
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
    source = b.own(node.inputs[0])
    activate(b, node, source, b.result(node.output))


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
    **dict.fromkeys(FUNCTIONS, lower_binary),
    Maximum: lower_extreme,
    Minimum: lower_extreme,
    Sum: lower_sum,
    WithConstant: lower_with_constant,
}
