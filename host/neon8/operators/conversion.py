# SPDX-License-Identifier: Apache-2.0
"""Steps from one type or scale to another, which stand between those of nodes."""

from dataclasses import dataclass

import numpy as np

from neon8.arrays import Array, Int8Array
from neon8.ir.program import Finished, Op, Tensor
from neon8.operators.family import Family
from neon8.operators.qdq import Nodes, finish
from neon8.operators.reference import Operand, leaky, quantize, rounded


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantizeOp(Op):
    """float32 to int8 or int16, with the output's scale, zero point, lo, hi  (2)."""

    converts = True


@dataclass(frozen=True, slots=True, kw_only=True)
class DequantizeOp(Op):
    """int8 or int16 to float32  (1)."""

    converts = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RequantizeOp(Finished):
    """clamp(rne(leaky(fmul(a - zp_a, scale))) + zp): a new scale, a lone activation.

    From and to int8 or int16.
    """

    scale: np.float32


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageOp(Op):
    """table[c, byte]  (8) of an input that is uint8, N H W C.  table: (C, 256)."""

    table: Int8Array


def compute_requantize(op: RequantizeOp, out: Tensor, x: Operand) -> Array:
    """(6) with one operand."""
    return rounded(leaky(x.centred * np.float32(op.scale), op.slope), out, op.lo, op.hi)


def compute_image(op: ImageOp, _out: Tensor, pixels: Operand) -> Array:
    """N H W C to N C H W by a table for each channel."""
    channels = np.arange(len(op.table)).reshape(1, -1, 1, 1)
    result: Array = op.table[channels, pixels.values.transpose(0, 3, 1, 2)]
    return result


def write_quantize(n: Nodes, op: QuantizeOp) -> None:
    """A Q/DQ pair."""
    n.quantize(op.inputs[0], op.output)


def write_dequantize(n: Nodes, op: DequantizeOp) -> None:
    """A second DequantizeLinear."""
    n.dequantize(op.inputs[0], op.output)


def write_requantize(n: Nodes, op: RequantizeOp) -> None:
    """A Q/DQ pair after another, with the activation between them."""
    finish(n, n.real(op.inputs[0]), op)


FAMILY = Family(
    steps={
        DequantizeOp: lambda _op, _out, x: np.multiply(x.centred, x.tensor.scale),
        ImageOp: compute_image,
        QuantizeOp: lambda _op, out, x: quantize(x.values.astype(np.float32), out),
        RequantizeOp: compute_requantize,
    },
    qdq={
        DequantizeOp: write_dequantize,
        QuantizeOp: write_quantize,
        RequantizeOp: write_requantize,
    },
)
