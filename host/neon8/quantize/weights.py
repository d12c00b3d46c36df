# SPDX-License-Identifier: Apache-2.0
"""Weights and bias of a convolution in integers: (1), (3), (5) and bound (12)."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

DoubleArray = npt.NDArray[np.float64]

ACC_LIMIT = 2**31
"""|acc''| stays below this  (12)."""

MULTIPLIER_MIN = np.float32(1e-30)
MULTIPLIER_MAX = np.float32(2.0**64)


def quantize_weights(weight: DoubleArray, scales: DoubleArray) -> DoubleArray:
    """clamp(rne(w / scale), -127, 127), whole numbers.

    weight: (O, ...); scales: (O,), one for each output channel.
    """
    per_channel = scales.reshape(-1, *(1,) * (weight.ndim - 1))
    return np.clip(np.rint(weight / per_channel), -127, 127)


@dataclass(frozen=True, slots=True)
class Sums:
    """A convolution up to its int32 sums; whole numbers, kept in double.

    weights: (O, I / groups, kh, kw); bias: (O,), what is added to the sum; bound: (O,),
    the largest |acc''| that any input can give  (12).
    """

    weights: DoubleArray
    bias: DoubleArray
    bound: DoubleArray


def sums(
    weight: DoubleArray,
    bias: DoubleArray,
    scales: DoubleArray,
    *,
    scale_in: float,
    zero_point_in: int,
) -> Sums:
    """The integers of (5): B = rne(bias / (scale_in * scale_w)) - zp_in * sum(w).

    weight: (O, ...) real values; bias: (O,) real values, zeros where the float bias is
    added later (4); scales: (O,) of the weights.
    """
    weights = quantize_weights(weight, scales)
    axes = tuple(range(1, weights.ndim))
    offset = np.rint(bias / (scale_in * scales)) - zero_point_in * weights.sum(
        axis=axes
    )
    bound = np.abs(weights).sum(axis=axes) * 128 + np.abs(offset)
    return Sums(weights, offset, bound)


def multiplier_ok(
    multiplier: npt.NDArray[np.float32] | np.float32,
) -> npt.NDArray[np.bool_]:
    """Which multipliers every back end takes: 0, or 1e-30 to 2**64."""
    in_range = (multiplier >= MULTIPLIER_MIN) & (multiplier <= MULTIPLIER_MAX)
    return np.asarray((multiplier == 0) | in_range)
