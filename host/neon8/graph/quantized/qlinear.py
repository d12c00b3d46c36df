# SPDX-License-Identifier: Apache-2.0
"""Operators that take and give integers: which float operator each of them means.

    QLinearConv(x, x_scale, x_zero_point, w, ..., y_scale, y_zero_point, bias)
is DequantizeLinear of x and w, Conv, and QuantizeLinear of the result; the bias is
int32 with scale x_scale * w_scale. All but the first two are of onnxruntime, which
writes them with QuantFormat.QOperator.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import onnx

Triple = tuple[int, int, int]
"""Where the integers of an operand stand among the inputs, its scale and zero point."""

WINDOW = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
POOL = ("auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides")


def _rows_of_b(node: onnx.NodeProto) -> int:
    """QGemm: the axis of B that has a scale for each column of the result."""
    return 0 if any(a.name == "transB" and a.i for a in node.attribute) else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """float: the operator on real numbers.  operands: its inputs, without the bias.

    rest: further operands, three inputs each, from this one on.  output: its scale and
    zero point.  bias: an input of int32.  attributes: those that the float operator
    has as well.  axis: of a constant operand that has several scales.
    """

    float: str
    operands: tuple[Triple, ...]
    output: tuple[int, int]
    rest: int | None = None
    bias: int | None = None
    attributes: tuple[str, ...] = ()
    axis: Callable[[onnx.NodeProto], int] = lambda _node: -1


def _unary(operator: str, *attributes: str) -> Row:
    return Row(
        float=operator, operands=((0, 1, 2),), output=(3, 4), attributes=attributes
    )


def _binary(operator: str) -> Row:
    return Row(float=operator, operands=((0, 1, 2), (3, 4, 5)), output=(6, 7))


ROWS = {
    "QLinearConv": Row(
        float="Conv",
        operands=((0, 1, 2), (3, 4, 5)),
        output=(6, 7),
        bias=8,
        attributes=WINDOW,
        axis=lambda _node: 0,
    ),
    "QLinearMatMul": _binary("MatMul"),
    "QGemm": Row(
        float="Gemm",
        operands=((0, 1, 2), (3, 4, 5)),
        output=(7, 8),
        bias=6,
        attributes=("alpha", "transA", "transB"),
        axis=_rows_of_b,
    ),
    "QLinearAdd": _binary("Add"),
    "QLinearMul": _binary("Mul"),
    "QLinearAveragePool": _unary("AveragePool", *POOL),
    "QLinearGlobalAveragePool": _unary("GlobalAveragePool"),
    "QLinearLeakyRelu": _unary("LeakyRelu", "alpha"),
    "QLinearSigmoid": _unary("Sigmoid"),
    "QLinearSoftmax": _unary("Softmax", "axis"),
    "QLinearConcat": Row(
        float="Concat", operands=(), rest=2, output=(0, 1), attributes=("axis",)
    ),
}
"""By the operator on integers."""


def operands(node: onnx.NodeProto) -> Iterator[Triple]:
    """The operands of DequantizeLinear, or of an operator in ROWS; the bias is none."""
    if node.op_type == "DequantizeLinear":
        yield 0, 1, 2
    row = ROWS.get(node.op_type)
    if row is not None:
        yield from row.operands
        if row.rest is not None:
            for at in range(row.rest, len(node.input) - 1, 3):
                yield at, at + 1, at + 2
