# SPDX-License-Identifier: Apache-2.0
"""Exact statistics of every channel of a tensor: extremes, sum and sum of squares.

Of one sample, each channel's values are summed in float64 in a fixed order (sums()).
That sum is rounded to a multiple of 2**GRID and added to a 448-bit integer, so the
result depends neither on the order of the samples nor on how they were divided.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

LIMBS = 14
"""Of 32 bits each, the least significant first; the last one has the sign."""
GRID = -128
"""Squares of values near 2**-64 still count; 2**31 samples of 2**31 values of the
largest float32 still fit."""
LANES = 16
_MASK = (1 << 32) - 1

Float32Array = npt.NDArray[np.float32]
Float64Array = npt.NDArray[np.float64]
Int64Array = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChannelStatistics:
    """Of C channels, over the finite values of all samples.

    count: (C,) int64, how many.  minimum, maximum: (C,) float32, inf and -inf where
    there are none.  total, squares: (C, LIMBS) int64, see integers(); canonical, that
    is every limb but the last lies in [0, 2**32).
    """

    count: Int64Array
    minimum: Float32Array
    maximum: Float32Array
    total: Int64Array
    squares: Int64Array

    def mean(self) -> Float64Array:
        """(C,) the mean, correctly rounded; 0 where there are no values."""
        pairs = zip(integers(self.total), self.count.tolist(), strict=True)
        scale = 1 << -GRID
        return np.array([t / (max(n, 1) * scale) for t, n in pairs])

    def variance(self) -> Float64Array:
        """(C,) the mean squared distance from the mean, free of cancellation."""
        result = []
        sums = zip(integers(self.total), integers(self.squares), strict=True)
        for (total, squares), count in zip(sums, self.count.tolist(), strict=True):
            n = max(count, 1)
            over = (squares * n << -GRID) - total * total
            result.append(max(over, 0) / (n * n << -2 * GRID))
        return np.array(result)


def empty(channels: int) -> ChannelStatistics:
    """Of no values."""
    return ChannelStatistics(
        count=np.zeros(channels, dtype=np.int64),
        minimum=np.full(channels, np.inf, dtype=np.float32),
        maximum=np.full(channels, -np.inf, dtype=np.float32),
        total=np.zeros((channels, LIMBS), dtype=np.int64),
        squares=np.zeros((channels, LIMBS), dtype=np.int64),
    )


def merge(first: ChannelStatistics, second: ChannelStatistics) -> ChannelStatistics:
    """Of the values of both, which have the same channels."""
    return ChannelStatistics(
        count=first.count + second.count,
        minimum=np.minimum(first.minimum, second.minimum),
        maximum=np.maximum(first.maximum, second.maximum),
        total=canonical(first.total + second.total),
        squares=canonical(first.squares + second.squares),
    )


def join(parts: Sequence[ChannelStatistics]) -> ChannelStatistics:
    """Of a tensor whose channels are those of the parts, one after another."""
    fields = ("count", "minimum", "maximum", "total", "squares")
    joined = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in fields
    }
    return ChannelStatistics(**joined)


def canonical(limbs: Int64Array) -> Int64Array:
    """The same integers with every limb but the last in [0, 2**32)."""
    result: Int64Array = limbs.copy()
    for limb in range(LIMBS - 1):
        result[:, limb + 1] += result[:, limb] >> 32  # towards minus infinity
        result[:, limb] &= _MASK
    return result


def integers(limbs: Int64Array) -> list[int]:
    """(C, LIMBS) -> of each row, the sum of limb[i] * 2**(32 * i).

    That is how often 2**GRID is in the sum that the row stands for.
    """
    rows = limbs.tolist()
    return [sum(limb << 32 * i for i, limb in enumerate(row)) for row in rows]


def limbs_of(values: Iterable[int]) -> Int64Array:
    """The canonical limbs of integers: integers() backwards."""
    rows = [
        [
            *(value >> 32 * i & _MASK for i in range(LIMBS - 1)),
            value >> 32 * (LIMBS - 1),
        ]
        for value in values
    ]
    return np.array(rows, dtype=np.int64).reshape(-1, LIMBS)
