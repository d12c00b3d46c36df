# SPDX-License-Identifier: Apache-2.0
"""What the oracle has in every step: integers, rounding, one NaN."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from neon8.arrays import Array, FloatArray, Int64Array
from neon8.ir.program import Tensor

Levels = npt.NDArray[np.signedinteger[Any]]
"""int8, or int16  (24)."""


def centred(q: Array, tensor: Tensor) -> FloatArray:
    """(float)(q - zp), exact."""
    return (q.astype(np.int32) - tensor.zero_point).astype(np.float32)


@dataclass(frozen=True, slots=True)
class Operand:
    """What a step reads.  values: N C H W, of the type of `tensor`."""

    tensor: Tensor
    values: Array

    @property
    def moved(self) -> Int64Array:
        """q - zp."""
        return self.values.astype(np.int64) - self.tensor.zero_point

    @property
    def centred(self) -> FloatArray:
        """(float)(q - zp), exact."""
        return centred(self.values, self.tensor)

    @property
    def real(self) -> FloatArray:
        """float32, of the dimensions that ONNX knows."""
        return self.values.reshape(self.tensor.dims).astype(np.float32)


def leaky(v: FloatArray, slope: FloatArray | np.float32) -> FloatArray:
    """(5b): v < 0 ? fmul(v, slope) : v."""
    return np.where(v < 0, v * np.asarray(slope, np.float32), v).astype(np.float32)


def rounded(v: npt.NDArray[Any], out: Tensor, lo: int, hi: int) -> Levels:
    """clamp(rne(v) + zp, lo, hi) as int8 or int16, NaN as 0.

    rne of a float32 is a float32; the addition is in double, where it is exact for
    every value that the clamp does not cut.
    """
    v = np.where(np.isnan(v), 0, v)
    q = np.clip(np.rint(v).astype(np.float64) + out.zero_point, lo, hi)
    result: Levels = q.astype(np.dtype(out.dtype))
    return result


def quantize(x: FloatArray, out: Tensor) -> Levels:
    """(2), NaN becoming the zero point."""
    inverse = np.float32(1) / np.float32(out.scale)
    with np.errstate(over="ignore", invalid="ignore"):
        v = x * inverse
    return rounded(v, out, out.lo, out.hi)


def as_float(acc: Int64Array) -> FloatArray:
    """(7): int32 to float32, rounded to even; the sums are exact and fit  (3)(12)."""
    if np.abs(acc).max(initial=0) >= 2**31:
        raise AssertionError("an accumulator left int32")
    return acc.astype(np.int32).astype(np.float32)


def one_nan(y: Array) -> FloatArray:
    """float32 with one NaN."""
    with np.errstate(over="ignore", invalid="ignore"):
        y32 = y.astype(np.float32)
    return np.where(np.isnan(y32), np.float32(np.nan), y32)
