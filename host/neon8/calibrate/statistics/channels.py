# SPDX-License-Identifier: Apache-2.0
"""Exact statistics of every channel of a tensor: extremes, sum and sum of squares.

A sample's values of a channel are summed in float64 in a fixed order. That sum is
clamped to +-2**127, rounded to a multiple of 2**-96 and added to a 256-bit integer, so
the result depends neither on the order of the samples nor on how they were divided.
Fewer than 2**32 samples cannot overflow it.

For values between 1e-10 and 1e15 both sums are accurate to 1e-9 or better. A sample's
sum of at most 2**-97 counts as 0, and so do squares of values below 2e-15; squares of
values near 1e19 saturate. The extremes are always exact.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from neon8.arrays import DoubleArray, FloatArray, Int64Array, UInt64Array

WORDS = 4
"""64-bit words of a sum, the least significant first: 256 bits in two's complement."""
FRACTION_BITS = 96
FIELDS: dict[str, tuple[str, tuple[int, ...]]] = {
    "count": ("i8", ()),
    "minimum": ("f4", ()),
    "maximum": ("f4", ()),
    "quietest": ("f4", ()),
    "total": ("u8", (WORDS,)),
    "squares": ("u8", (WORDS,)),
}
"""The arrays of ChannelStatistics: type, and axes beside that of the channels."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChannelStatistics:
    """Statistics of C channels over the finite values of all samples.

    count: (C,) int64, how many.  minimum, maximum: (C,) float32, inf and -inf where
    there are none.  quietest: (C,) float32, the largest magnitude in the sample where
    that is least, inf where there are none.  total, squares: (C, WORDS) uint64, see
    integers().
    """

    count: Int64Array
    minimum: FloatArray
    maximum: FloatArray
    quietest: FloatArray
    total: UInt64Array
    squares: UInt64Array

    def part(self, own: slice) -> "ChannelStatistics":
        """The statistics of some of the channels."""
        return ChannelStatistics(**{name: getattr(self, name)[own] for name in FIELDS})

    def mean(self) -> DoubleArray:
        """The mean of each channel, (C,), correctly rounded; 0 without values."""
        pairs = zip(integers(self.total), self.count.tolist(), strict=True)
        scale = 1 << FRACTION_BITS
        return np.array([t / (max(n, 1) * scale) for t, n in pairs])

    def variance(self) -> DoubleArray:
        """The variance of each channel, (C,), free of cancellation."""
        result = []
        sums = zip(integers(self.total), integers(self.squares), strict=True)
        for (total, squares), count in zip(sums, self.count.tolist(), strict=True):
            n = max(count, 1)
            over = (squares * n << FRACTION_BITS) - total * total
            result.append(max(over, 0) / (n * n << 2 * FRACTION_BITS))
        return np.array(result)


def empty(channels: int) -> ChannelStatistics:
    """Statistics of no values."""
    return ChannelStatistics(
        count=np.zeros(channels, dtype=np.int64),
        minimum=np.full(channels, np.inf, dtype=np.float32),
        maximum=np.full(channels, -np.inf, dtype=np.float32),
        quietest=np.full(channels, np.inf, dtype=np.float32),
        total=np.zeros((channels, WORDS), dtype=np.uint64),
        squares=np.zeros((channels, WORDS), dtype=np.uint64),
    )


def merge(first: ChannelStatistics, second: ChannelStatistics) -> ChannelStatistics:
    """Add the values of another set of samples of the same channels."""
    return ChannelStatistics(
        count=first.count + second.count,
        minimum=np.minimum(first.minimum, second.minimum),
        maximum=np.maximum(first.maximum, second.maximum),
        quietest=np.minimum(first.quietest, second.quietest),
        total=_add(first.total, second.total),
        squares=_add(first.squares, second.squares),
    )


def join(parts: Sequence[ChannelStatistics]) -> ChannelStatistics:
    """Concatenate the channels of the parts, one or more, which are copied."""
    joined = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in FIELDS
    }
    return ChannelStatistics(**joined)


def _add(first: UInt64Array, second: UInt64Array) -> UInt64Array:
    """Add integers of WORDS words, (C, WORDS), with carries."""
    result = np.empty_like(first)
    carry = np.zeros(len(first), dtype=np.bool_)
    for word in range(WORDS):
        part = first[:, word] + carry
        result[:, word] = part + second[:, word]
        carry = (part < carry) | (result[:, word] < part)
    return result


def integers(words: UInt64Array) -> list[int]:
    """The integer in each row of (C, WORDS), a sum in multiples of 2**-96."""
    rows = words.astype("<u8")
    return [int.from_bytes(row.tobytes(), "little", signed=True) for row in rows]
