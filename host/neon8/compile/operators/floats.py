# SPDX-License-Identifier: Apache-2.0
"""Nodes in float32: those that have no int8 form, and the float form of the others."""

import math
from dataclasses import replace

import numpy as np

from neon8.compile import program
from neon8.compile.build import FLOAT, Build, Lower
from neon8.compile.operators.convolution import (
    finish_transposed,
    transposed_tensors,
)
from neon8.compile.program import FUNCTIONS, MOST_FUNCTIONS, Tensor
from neon8.compile.scales import checked_slopes
from neon8.errors import CompileError
from neon8.graph.functions import Function, X, affine, call, number
from neon8.graph.graph import (
    Activate,
    Activation,
    Add,
    Binary,
    Conv2d,
    Divide,
    FloatArray,
    Maximum,
    Minimum,
    Multiply,
    Node,
    Pointwise,
    Pool,
    Prelu,
    Softmax,
    Subtract,
    Sum,
    WithConstant,
)
from neon8.graph.subpixel import subpixel

BINARY: dict[type[Node], str] = {
    Add: "add",
    Divide: "divide",
    Multiply: "multiply",
    Subtract: "subtract",
}


def lower_conv(b: Build, node: Conv2d) -> None:
    """(20); of a transposed one the plain convolution that subpixel() makes."""
    source = b.float32(node.inputs[0])
    out = b.declare(node.output, FLOAT)
    result = before(b, node.activation, out)
    if node.transposed:
        parts = subpixel(node)
        inner, wide = transposed_tensors(b, parts, source, result)
        b.ops.append(convolution(node.name, parts.conv, source, inner))
        finish_transposed(b, node, parts, inner, wide, result)
    else:
        b.ops.append(convolution(node.name, node, source, result))
    activate(b, node.name, node.activation, out)


def convolution(
    layer: str, node: Conv2d, source: Tensor, out: Tensor
) -> program.Conv2dF32:
    """The step source -> out without an activation."""
    return program.Conv2dF32(
        name=layer,
        inputs=(source.name,),
        output=out.name,
        bias_f32=node.bias.astype(np.float32),
        values=np.ascontiguousarray(node.weight.transpose(0, 2, 3, 1), np.float32),
        kernel=(node.weight.shape[2], node.weight.shape[3]),
        strides=node.strides,
        pads=node.pads,
        dilations=node.dilations,
        groups=node.groups,
    )


def lower_pool(b: Build, node: Pool) -> None:
    """(20); the least is minus the largest of -x."""
    source = b.float32(node.inputs[0])
    out = b.declare(node.output, FLOAT)
    result = pooled = before(b, node.activation, out)
    if node.kind == "min":
        source = negative(b, node.name, source, b.temporary(source, "negative"))
        pooled = b.temporary(result, "largest")
    b.ops.append(
        program.PoolF32(
            name=node.name,
            inputs=(source.name,),
            output=pooled.name,
            kind="max" if node.kind == "min" else node.kind,
            kernel=node.kernel,
            strides=node.strides,
            dilations=node.dilations,
            pads=node.pads,
            count_pad=node.count_pad,
        )
    )
    if node.kind == "min":
        negative(b, node.name, pooled, result)
    activate(b, node.name, node.activation, out)


def negative(b: Build, layer: str, source: Tensor, out: Tensor) -> Tensor:
    """Appends -x; `out`."""
    unary(b, layer, affine(-1.0, 0.0), source, out)
    return out


def lower_binary(b: Build, node: Binary) -> None:
    """(22)."""
    first, second = (b.float32(name).name for name in node.inputs)
    out = b.declare(node.output, FLOAT)
    result = before(b, node.activation, out)
    binary(b, node.name, BINARY[type(node)], (first, second), result)
    activate(b, node.name, node.activation, out)


def lower_extreme(b: Build, node: Maximum | Minimum) -> None:
    """(22), two at a time."""
    function = "maximum" if isinstance(node, Maximum) else "minimum"
    fold(b, node, function, b.declare(node.output, FLOAT))


def lower_sum(b: Build, node: Sum) -> None:
    """(22), two at a time, and the mean by a division."""
    out = b.declare(node.output, FLOAT)
    result = before(b, node.activation, out)
    total = b.temporary(result, "total") if node.mean else result
    fold(b, node, "add", total)
    if node.mean:
        count = call("divide", X, number(float(len(node.inputs))))
        unary(b, node.name, count, total, result)
    activate(b, node.name, node.activation, out)


def fold(b: Build, node: Node, function: str, out: Tensor) -> None:
    """Appends the `function` of all inputs, from the first to the last."""
    first, *others = (b.float32(name) for name in node.inputs)
    for i, other in enumerate(others):
        result = out
        if i < len(others) - 1:
            dims = np.broadcast_shapes(first.dims, other.dims)
            result = b.temporary(replace(out, dims=dims), "part")
        binary(b, node.name, function, (first.name, other.name), result)
        first = result


def lower_with_constant(b: Build, node: WithConstant) -> None:
    """(22), with a step that gives the constant."""
    source = b.float32(node.inputs[0])
    value = constant(b, node.name, node.constant, source)
    out = b.declare(node.output, FLOAT)
    names = (value.name, source.name) if node.first else (source.name, value.name)
    binary(b, node.name, node.function, names, before(b, node.activation, out))
    activate(b, node.name, node.activation, out)


def lower_prelu(b: Build, node: Prelu) -> None:
    """(22): the slopes are a constant along C."""
    source = b.float32(node.inputs[0])
    out = b.declare(node.output, FLOAT)
    if source.dims != out.dims:
        source = aligned(b, node.name, source, out)
    slopes = checked_slopes(node)
    shape = (len(slopes), *(1,) * max(out.rank - 2, 0))
    value = constant(b, node.name, slopes.reshape(shape), source)
    binary(b, node.name, "prelu", (source.name, value.name), out)


def lower_pointwise(b: Build, node: Pointwise) -> None:
    """(22)."""
    source = b.float32(node.inputs[0])
    unary(b, node.name, node.function, source, b.declare(node.output, FLOAT))


def lower_activate(b: Build, node: Activate) -> None:
    """(22)."""
    source = b.float32(node.inputs[0])
    out = b.declare(node.output, FLOAT)
    unary(b, node.name, function_of(node.activation), source, out)


def lower_softmax(b: Build, node: Softmax) -> None:
    """(14), in float.  Several axes become one that a Reshape makes.

    So it is with the dimensions of an input whose own Reshape is gone.
    """
    source = b.float32(node.inputs[0])
    out = b.declare(node.output, FLOAT)
    if source.dims != out.dims:
        source = aligned(b, node.name, source, out)
    rest = math.prod(out.dims[node.axis :])
    if node.flattens and rest != out.dims[node.axis]:
        dims = (math.prod(out.dims[: node.axis]), rest)
        view = Tensor(name=source.name, dims=dims, dtype=FLOAT)
        flat, result = (b.temporary(view, label) for label in ("flat", "softmax"))
        b.ops.append(
            program.Reshape(name=node.name, inputs=(source.name,), output=flat.name)
        )
        softmax(b, node, flat, result, axis=1)
        b.ops.append(
            program.Reshape(name=node.name, inputs=(result.name,), output=out.name)
        )
    else:
        softmax(b, node, source, out, axis=node.axis)


def aligned(b: Build, layer: str, source: Tensor, out: Tensor) -> Tensor:
    """`source` with the dimensions of `out`: a Reshape between them was dropped."""
    view = b.temporary(out, "aligned")
    b.ops.append(program.Reshape(name=layer, inputs=(source.name,), output=view.name))
    return view


def softmax(b: Build, node: Softmax, source: Tensor, out: Tensor, *, axis: int) -> None:
    """Appends source -> out along one axis, and the logarithm of it."""
    b.ops.append(
        program.Softmax(
            name=node.name,
            inputs=(source.name,),
            output=out.name,
            axis=axis,
            function="log" if node.log else "none",
        )
    )


def binary(
    b: Build, layer: str, function: str, inputs: tuple[str, str], out: Tensor
) -> None:
    """Appends inputs -> out."""
    b.ops.append(
        program.Binary(name=layer, inputs=inputs, output=out.name, function=function)
    )


def unary(
    b: Build, layer: str, function: Function, source: Tensor, out: Tensor
) -> None:
    """Appends source -> out, by `function`, whose parameters become float32."""
    indices = np.zeros(MOST_FUNCTIONS, np.int32)
    values = np.zeros((MOST_FUNCTIONS, 2), np.float32)
    for at, (name, parameters) in enumerate(postfix(function)):
        indices[at] = FUNCTIONS.index(name)
        with np.errstate(over="ignore"):
            values[at, : len(parameters)] = parameters
        if name != "clip" and not np.isfinite(values[at]).all():
            text = f"parameter {parameters[0]:.4g} of {name} is too large for float32"
            raise CompileError(f"layer {layer!r}: {text}")
    b.ops.append(
        program.Unary(
            name=layer,
            inputs=(source.name,),
            output=out.name,
            indices=indices,
            values=values,
        )
    )


def postfix(function: Function) -> list[tuple[str, tuple[float, ...]]]:
    """The names of the tree, arguments first, with their parameters."""
    inner = [each for argument in function.arguments for each in postfix(argument)]
    return [*inner, (function.name, function.parameters)]


def constant(b: Build, layer: str, values: FloatArray, like: Tensor) -> Tensor:
    """A tensor with these values, of the dimensions that they have."""
    view = Tensor(name=like.name, dims=values.shape, dtype=FLOAT)
    out = b.temporary(view, "constant")
    b.ops.append(
        program.Constant(name=layer, inputs=(), output=out.name, values=values)
    )
    return out


def before(b: Build, activation: Activation, out: Tensor) -> Tensor:
    """Where the values lie that `activation` makes `out` of: `out` if it is none."""
    return out if activation.identity else b.temporary(out, "sum")


def activate(b: Build, layer: str, activation: Activation, out: Tensor) -> None:
    """Appends the activation of what the last step has made."""
    if not activation.identity:
        source = b.tensors[b.ops[-1].output]
        unary(b, layer, function_of(activation), source, out)


def function_of(activation: Activation) -> Function:
    """The activation as a function of one value."""
    form = X
    if activation.slope != 1:
        form = call("leaky", form, parameters=(activation.slope,))
    if (activation.lo, activation.hi) != (-np.inf, np.inf):
        form = call("clip", form, parameters=(activation.lo, activation.hi))
    return form


MAPS: dict[type[Node], Lower] = {
    Activate: lower_activate,
    **dict.fromkeys(BINARY, lower_binary),
    Conv2d: lower_conv,
    Maximum: lower_extreme,
    Minimum: lower_extreme,
    Pointwise: lower_pointwise,
    Prelu: lower_prelu,
    Sum: lower_sum,
    WithConstant: lower_with_constant,
}
"""What maps values: of the convolutions those that only scale and shift channels."""

LOWER: dict[type[Node], Lower] = {
    **MAPS,
    Pool: lower_pool,
    Softmax: lower_softmax,
}
