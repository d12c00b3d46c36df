# SPDX-License-Identifier: Apache-2.0
"""Factors of channels (5c): products with them, in float32 and in int16."""

from dataclasses import dataclass, replace

import numpy as np

from neon8.arrays import FloatArray
from neon8.ir.graph import Factors
from neon8.ir.program import Finished, Op, Tensor
from neon8.operators.build import INT16, Build, in_range
from neon8.operators.constants import ConstantOp, append_constant
from neon8.operators.floats import append_binary
from neon8.operators.qdq import Nodes

FINER = 1 << 8
"""Steps of int16 in one of int8."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiplyOp(Finished):
    """clamp(rne(leaky(fmul(fmul(a - zp_a, b - zp_b), scale))) + zp)  (16).

    multiplier: (C,), of each channel what it has in place of `scale`, which is 0 then.
    """

    scale: np.float32
    multiplier: FloatArray | None = None


def multiplier(
    layer: str,
    function: str,
    operands: tuple[Tensor, Tensor],
    out: Tensor,
    factor: float = 1.0,
) -> np.float32:
    """M of (16), or CompileError.  factor: of the channel, see Multiply.factors."""
    a, c = (np.float64(operand.scale) for operand in operands)
    scale = a / c if function == "divide" else a * c
    text = f"scales {a:.4g} and {c:.4g} of its inputs are too far from"
    exact = scale / np.float64(out.scale) * factor
    return in_range(layer, exact, f"{text} {out.scale:.4g} of {out.name!r}")


def inverse(factors: Factors) -> Factors:
    """What divides by them, in double."""
    return tuple(1 / factor for factor in factors)


def append_factors(
    b: Build,
    layer: str,
    factors: Factors,
    source: Tensor,
    out: Tensor | None = None,
) -> Tensor:
    """Appends the product of float32 channels with `factors`; where it is."""
    made = out or b.temporary(source, "factors")
    constant = append_constant(b, layer, _column(factors, source.rank), source)
    append_binary(b, layer, "multiply", (source.name, constant.name), made)
    return made


WIDEST = 1 << 8
"""The largest factor of channels that int16 without factors serves, in the least: a
step of their int8 is one of it, or more."""


def narrow(factors: Factors) -> bool:
    """True if int16 without them serves all channels."""
    return not factors or max(factors) <= WIDEST * min(factors)


def plain(tensor: Tensor, factors: Factors) -> Tensor:
    """int16 over the values of all channels of `tensor`, which has `factors`."""
    if not factors:
        return tensor
    finer = 1 if tensor.dtype == INT16 else FINER
    return replace(
        tensor,
        dtype=INT16,
        scale=np.float32(np.float64(tensor.scale) * max(factors) / finer),
        zero_point=tensor.zero_point * finer,
        lo=tensor.lo * finer,
        hi=tensor.hi * finer + finer - 1,
    )


def append_product(
    b: Build, layer: str, factors: Factors, source: Tensor, out: Tensor
) -> None:
    """Appends source -> out, of which one is int16, with channels times `factors`."""
    like = replace(
        out,
        name=source.name,
        dims=(1,) * out.rank,
        dtype=INT16,
        scale=np.float32(1),
        zero_point=0,
        lo=-(2**15),
        hi=2**15 - 1,
    )
    one = b.temporary(like, "one")
    b.step(ConstantOp, layer, (), one, levels=np.ones(1, np.int16))
    operands = source, one
    each = [multiplier(layer, "multiply", operands, out, f) for f in factors]
    scales = {"scale": np.float32(0), "multiplier": np.array(each)}
    b.step(MultiplyOp, layer, operands, out, **scales, lo=out.lo, hi=out.hi)


def write_factors(n: Nodes, value: str, factors: Factors, op: Op) -> str:
    """Float `value` with its channels multiplied."""
    if not factors:
        return value
    column = _column(factors, n.tensors[op.output].rank)
    return n.node("Mul", [value, n.array(f"{op.name}_factors", column)])


def _column(factors: Factors, rank: int) -> FloatArray:
    """As ONNX broadcasts them along the channels of a tensor of `rank` dimensions."""
    return np.array(factors, np.float32).reshape(-1, *(1,) * (rank - 2))
