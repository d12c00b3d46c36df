# SPDX-License-Identifier: Apache-2.0
"""Add, Sub, Mul, Div, Max, Min, Sum and Mean, of tensors and of constants."""

from functools import partial, reduce

import numpy as np

from neon8.graph.functions import X, call, number
from neon8.graph.graph import (
    Add,
    Binary,
    Divide,
    FloatArray,
    Maximum,
    Minimum,
    Multiply,
    Node,
    Subtract,
    Sum,
    WithConstant,
    aligned,
    nchw,
)
from neon8.graph.operators.activation import bound
from neon8.graph.operators.convolution import make_affine
from neon8.graph.operators.movement import reshape
from neon8.graph.operators.pointwise import make_pointwise
from neon8.graph.source import (
    Convert,
    OnnxNode,
    Source,
    failure,
    fits_channels,
    per_channel,
    required,
    shape_of,
)


def add(source: Source, node: OnnxNode) -> Node:
    """Add of two tensors, or of a tensor and a constant."""
    side = _constant_side(source, node)
    if side is None:
        return _binary(source, node, Add)
    if not fits_channels(source, node, side):
        return with_constant(source, node, "add", side)
    value = per_channel(source, node, side)
    return make_affine(source, node, 1 - side, np.ones_like(value), value)


def subtract(source: Source, node: OnnxNode) -> Node:
    """Sub of two tensors, or of a tensor and a constant."""
    side = _constant_side(source, node)
    if side is None:
        return _binary(source, node, Subtract)
    if not fits_channels(source, node, side):
        return with_constant(source, node, "subtract", side)
    value = per_channel(source, node, side)
    sign = 1.0 if side == 1 else -1.0
    return make_affine(source, node, 1 - side, np.full_like(value, sign), -sign * value)


def multiply(source: Source, node: OnnxNode) -> Node:
    """Mul of two tensors, or of a tensor and a constant."""
    side = _constant_side(source, node)
    if side is None:
        return _binary(source, node, Multiply)
    if not fits_channels(source, node, side):
        return with_constant(source, node, "multiply", side)
    value = per_channel(source, node, side)
    return make_affine(source, node, 1 - side, value, np.zeros_like(value))


def divide(source: Source, node: OnnxNode) -> Node:
    """Div of two tensors, by a constant, or of one constant."""
    side = _constant_side(source, node)
    if side is None:
        return _binary(source, node, Divide)
    if not fits_channels(source, node, side):
        return with_constant(source, node, "divide", side)
    value = per_channel(source, node, side)
    if side == 0:
        if (value != value[0]).any():
            return with_constant(source, node, "divide", side)
        function = call("divide", number(float(value[0])), X)
        return make_pointwise(source, node, function, data=1)
    if not value.all():
        raise failure(source, node, f"divisor {node.inputs[1]!r} contains a zero")
    return make_affine(source, node, 0, 1.0 / value, np.zeros_like(value))


def add_all(source: Source, node: OnnxNode, *, mean: bool) -> Node:
    """Sum and Mean of any number of tensors of one shape; Sum of two as Add."""
    if len(node.inputs) == 1:
        return reshape(source, node)
    if len(node.inputs) == 2 and not mean:
        return add(source, node)
    shapes = {name: shape_of(source, node, name) for name in node.inputs}
    if len(set(shapes.values())) > 1:
        text = f"of tensors of different shapes, {list(map(list, shapes.values()))}, is"
        raise failure(source, node, f"{text} not supported; export it as Adds of two")
    return Sum(name=node.name, inputs=node.inputs, output=node.outputs[0], mean=mean)


def extreme(source: Source, node: OnnxNode, *, upper: bool) -> Node:
    """Max and Min: of tensors; of one and of constants, which bound it.

    upper: the constants are upper bounds, as of Min.
    """
    tensors = [name for name in node.inputs if name not in source.constants]
    constants = [i for i, name in enumerate(node.inputs) if name not in tensors]
    if len(tensors) > 1:
        if constants:
            text = f"of {len(tensors)} tensors and of constants is not supported"
            raise failure(source, node, f"{text}; export two operators")
        check_broadcast(source, node)
        kind = Minimum if upper else Maximum
        return kind(name=node.name, inputs=node.inputs, output=node.outputs[0])
    values = [required(source, node, index) for index in constants]
    if all(value.size == 1 for value in values):
        return bound(source, node, upper=upper)
    function = np.minimum if upper else np.maximum
    constant: FloatArray = reduce(function, values)
    data = node.inputs.index(tensors[0])
    name = "minimum" if upper else "maximum"
    return make_with_constant(source, node, name, constant, data=data)


def _binary(source: Source, node: OnnxNode, kind: type[Binary]) -> Node:
    """A node of two tensors whose shapes are the same but for broadcast ones."""
    check_broadcast(source, node)
    return kind(name=node.name, inputs=node.inputs, output=node.outputs[0])


def check_broadcast(source: Source, node: OnnxNode) -> None:
    """GraphError if an input is broadcast in a way that N C H W does not show."""
    out = shape_of(source, node, node.outputs[0])
    for name in node.inputs:
        shape = aligned(shape_of(source, node, name), len(out))
        if any(a not in (1, b) for a, b in zip(shape, nchw(out), strict=True)):
            text = f"tensor {name!r} is broadcast along some of the axes from the"
            raise failure(source, node, f"{text} fourth on only")


def with_constant(
    source: Source, node: OnnxNode, function: str, side: int
) -> WithConstant:
    """Arithmetic with a constant of any shape, input number `side`."""
    value = required(source, node, side)
    if function == "divide" and side == 1 and not value.all():
        raise failure(source, node, f"divisor {node.inputs[1]!r} contains a zero")
    return make_with_constant(source, node, function, value, data=1 - side)


def make_with_constant(
    source: Source, node: OnnxNode, function: str, value: FloatArray, *, data: int
) -> WithConstant:
    """`function` of input number `data` and of a constant; before it unless it is 0."""
    for name in (node.inputs[data], node.outputs[0]):
        shape_of(source, node, name)
    return WithConstant(
        name=node.name,
        inputs=(node.inputs[data],),
        output=node.outputs[0],
        function=function,
        constant=value,
        first=data > 0,
    )


def _constant_side(source: Source, node: OnnxNode) -> int | None:
    sides = [i for i in (0, 1) if node.inputs[i] in source.constants]
    return sides[0] if sides else None


OPERATORS: dict[str, Convert] = {
    "Add": add,
    "Div": divide,
    "Max": partial(extreme, upper=False),
    "Mean": partial(add_all, mean=True),
    "Min": partial(extreme, upper=True),
    "Mul": multiply,
    "Sub": subtract,
    "Sum": partial(add_all, mean=False),
}
