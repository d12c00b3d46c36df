# SPDX-License-Identifier: Apache-2.0
"""Integers that are no quantized values, and their conversion from and to float  (27).

Tensors of every integer type of ONNX, and of bool, are int32 in a Program.
"""

from dataclasses import dataclass

import numpy as np

from neon8.arrays import Array
from neon8.ir.graph import FLOATS, Node
from neon8.ir.program import Op, Tensor
from neon8.operators.build import FLOAT, INT32, Build
from neon8.operators.family import Family
from neon8.operators.layout import by_value
from neon8.operators.movement import import_reshape
from neon8.operators.reference import Operand
from neon8.operators.source import OnnxNode, Source, dims_of, failure, made

WIDEST = ("int32", "int64", "uint32", "uint64")
"""The types whose values are taken for int32 as they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToInteger(Node):
    """A float tensor cut off towards 0, as int32."""

    by_value = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ToFloat(Node):
    """An integer tensor as real numbers."""

    by_value = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ToIntegerOp(Op):
    """float32 to int32, towards 0; NaN gives 0, what does not fit saturates  (27)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToFloatOp(Op):
    """int32 to float32, rounded half to even  (27)."""


def cast(source: Source, node: OnnxNode) -> Node:
    """Cast and CastLike.  Types of real numbers are all computed alike."""
    for name in (node.inputs[0], node.outputs[0]):
        dims_of(source, node, name)
    given, wanted = (source.types[n] for n in (node.inputs[0], node.outputs[0]))
    if given not in FLOATS and wanted in FLOATS:
        return made(node, ToFloat)
    if given in FLOATS and wanted in WIDEST:
        return made(node, ToInteger)
    if (given in FLOATS) == (wanted in FLOATS) and (
        wanted in (given, *FLOATS, *WIDEST)
    ):
        return import_reshape(source, node)
    raise failure(source, node, f"from {given} to {wanted} is not supported")


def lower_to_integer(b: Build, node: ToInteger) -> None:
    """Of float32."""
    source, out = b.float32(node.inputs[0]), b.declare(node.output, INT32)
    b.step(ToIntegerOp, node.name, (source,), out)


def lower_to_float(b: Build, node: ToFloat) -> None:
    """To float32."""
    source, out = b.take(node.inputs[0], INT32), b.declare(node.output, FLOAT)
    b.step(ToFloatOp, node.name, (source,), out)


def compute_to_integer(_op: ToIntegerOp, _out: Tensor, x: Operand) -> Array:
    """(27): in double, which has all int32."""
    whole = np.trunc(np.where(np.isnan(x.values), 0, x.values.astype(np.float64)))
    result: Array = np.clip(whole, -(2**31), 2**31 - 1).astype(np.int32)
    return result


FAMILY = Family(
    imports={"Cast": cast, "CastLike": cast},
    lower_float={ToFloat: lower_to_float, ToInteger: lower_to_integer},
    steps={
        ToFloatOp: lambda _op, _out, x: x.values.astype(np.float32),
        ToIntegerOp: compute_to_integer,
    },
    layouts={"Cast": by_value},
)
