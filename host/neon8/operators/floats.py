# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of float32 values (22), of which the float forms of nodes are made."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from neon8.arrays import Array, DoubleArray, FloatArray, Int32Array
from neon8.errors import CompileError
from neon8.ir.graph import Activation
from neon8.ir.program import Op, Tensor
from neon8.operators.build import Build
from neon8.operators.family import Family
from neon8.operators.functions import (
    ARGUMENTS,
    COMPUTE,
    FUNCTIONS,
    MOST_FUNCTIONS,
    Function,
    X,
    activation_function,
    call,
    evaluate,
    postfix,
    power,
)
from neon8.operators.movement import ReshapeOp
from neon8.operators.onnx_functions import append_call, append_function
from neon8.operators.qdq import Nodes
from neon8.operators.reference import Operand, one_nan
from neon8.quant import elementary


@dataclass(frozen=True, slots=True, kw_only=True)
class UnaryOp(Op):
    """A function of each float32  (22).

    indices: (64,), numbers in FUNCTIONS in postfix order, then zeros.  values: (64, 2),
    their parameters.
    """

    indices: Int32Array
    values: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class BinaryOp(Op):
    """Arithmetic of two float32 tensors, broadcast as ONNX does  (22).

    function: a name of FUNCTIONS that takes two values.
    """

    function: str


def append_binary(
    b: Build, layer: str, function: str, inputs: tuple[str, str], out: Tensor
) -> None:
    """Appends inputs -> out."""
    first, second = (in_dims_of(b, layer, b.tensors[name], out) for name in inputs)
    b.step(BinaryOp, layer, (first, second), out, function=function)


def in_dims_of(b: Build, layer: str, source: Tensor, out: Tensor) -> Tensor:
    """`source`, with the dimensions of `out` if it has its values in other ones."""
    missing = (1,) * (len(out.dims) - len(source.dims))
    if math.prod(source.dims) != math.prod(out.dims):
        return source
    same = (*missing, *source.dims) == out.dims
    return source if same else reshaped_like(b, layer, source, out)


def append_unary(
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
    b.step(UnaryOp, layer, (source,), out, indices=indices, values=values)


def before(b: Build, activation: Activation, out: Tensor) -> Tensor:
    """Where the values lie that `activation` makes `out` of: `out` if it is none."""
    return out if activation.identity else b.temporary(out, "sum")


def append_activation(
    b: Build, layer: str, activation: Activation, out: Tensor
) -> None:
    """Appends the activation of what the last step has made."""
    if not activation.identity:
        source = b.tensors[b.ops[-1].output]
        append_unary(b, layer, activation_function(activation), source, out)


def reshaped_like(b: Build, layer: str, source: Tensor, out: Tensor) -> Tensor:
    """`source` with the dimensions of `out`: a Reshape between them was dropped."""
    view = b.temporary(out, "aligned")
    b.step(ReshapeOp, layer, (source,), view)
    return view


def clip(x: DoubleArray, lo: float, hi: float) -> DoubleArray:
    """x < lo ? lo : x > hi ? hi : x, which keeps -0 and NaN."""
    return np.where(x < lo, lo, np.where(x > hi, hi, x))


ONE_VALUE: dict[str, Callable[..., DoubleArray]] = {**COMPUTE, "clip": clip}


PARAMETERS = {
    "constant": 1,
    "power": 1,
    "elu": 1,
    "leaky": 1,
    "threshold": 1,
    "clip": 2,
    "narrow": 2,
}


ALONE = {
    call("sigmoid", X): elementary.sigmoid_floats,
    call("tanh", X): elementary.tanh_floats,
}
"""Functions that are computed in float32 where there is no other."""


def compute_unary(op: UnaryOp, _out: Tensor, operand: Operand) -> Array:
    """(22): in double, rounded to float32 once, but for ALONE."""
    tree = _tree(op)
    if tree in ALONE:
        return ALONE[tree](operand.values.astype(np.float32))
    return one_nan(evaluate(tree, operand.values.astype(np.float64), ONE_VALUE))


def smaller(a: FloatArray, b: FloatArray) -> FloatArray:
    """a if it is NaN or below b, else b."""
    return np.where(np.isnan(a) | (a < b), a, b)


def larger(a: FloatArray, b: FloatArray) -> FloatArray:
    """a if it is NaN or above b, else b."""
    return np.where(np.isnan(a) | (a > b), a, b)


def powers(a: FloatArray, b: FloatArray) -> FloatArray:
    """(15), in double."""
    result: FloatArray = power(a.astype(np.float64), b.astype(np.float64)).astype("f4")
    return result


def modulo(a: FloatArray, b: FloatArray) -> FloatArray:
    """The rest of a division towards -infinity."""
    rest = np.fmod(a, b)
    return np.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)


TWO_VALUES: dict[str, Callable[..., Array]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "minimum": smaller,
    "maximum": larger,
    "prelu": lambda a, b: np.where(a < 0, a * b, a),
    "power": powers,
    "remainder": np.fmod,
    "modulo": modulo,
}


def compute_binary(op: BinaryOp, out: Tensor, a: Operand, b: Operand) -> Array:
    """(22) in float32, on the dimensions that ONNX knows."""
    with np.errstate(all="ignore"):
        y = TWO_VALUES[op.function](a.real, b.real)
    return one_nan(np.broadcast_to(y, out.dims).reshape(out.shape))


def write_unary(n: Nodes, op: UnaryOp) -> None:
    """The operators of its functions."""
    value = append_function(n, _tree(op), op.inputs[0], op.name)
    n.named(value, op.output)


def _tree(op: UnaryOp) -> Function:
    stack: list[Function] = []
    for number, row in zip(op.indices.tolist(), op.values.tolist(), strict=True):
        name = FUNCTIONS[number]
        if name == "none":
            break
        count = ARGUMENTS[name]
        arguments = stack[len(stack) - count :]
        del stack[len(stack) - count :]
        parameters = tuple(row[: PARAMETERS.get(name, 0)])
        stack.append(call(name, *arguments, parameters=parameters))
    (tree,) = stack or [X]
    return tree


def write_binary(n: Nodes, op: BinaryOp) -> None:
    """One operator."""
    value = append_call(n, op.function, (), list(op.inputs), op.name)
    n.named(value, op.output)


FAMILY = Family(
    steps={
        BinaryOp: compute_binary,
        UnaryOp: compute_unary,
    },
    qdq={BinaryOp: write_binary, UnaryOp: write_unary},
)
