# SPDX-License-Identifier: Apache-2.0
"""An exact histogram of a tensor: integer counts over a range that is a power of two.

When the range doubles, neighbouring bins fold into one, so the result depends only on
the values and not on their order, on batches or on how the work was divided.
"""

import math
from dataclasses import dataclass

import numpy as np

from neon8.arrays import UInt64Array

BINS = 2048
LOG_BINS = 11
MIN_EXPONENT = -100
"""Values below 2**-100 share the first bin; no scale is as small."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Histogram:
    """Counts of |x| over [0, 2**exponent), (2048,) for each sign.

    Bin i counts i <= |x| * 2048 / 2**exponent < i + 1.  zeros, nans, infs: of both
    signs, in no bin.  minimum, maximum: exact, of the finite values; inf and -inf if
    there are none.
    """

    exponent: int
    positive: UInt64Array
    negative: UInt64Array
    zeros: int
    nans: int
    infs: int
    minimum: float
    maximum: float

    @property
    def width(self) -> float:
        """The width of one bin."""
        return math.ldexp(1.0, self.exponent - LOG_BINS)

    @property
    def total(self) -> int:
        """How many finite values."""
        return self.zeros + int(self.positive.sum()) + int(self.negative.sum())


NOTHING = np.zeros(BINS, dtype=np.uint64)
NOTHING.flags.writeable = False


def empty(*, nans: int = 0, infs: int = 0) -> Histogram:
    """The histogram of no values."""
    return Histogram(
        exponent=MIN_EXPONENT,
        positive=NOTHING,
        negative=NOTHING,
        zeros=0,
        nans=nans,
        infs=infs,
        minimum=math.inf,
        maximum=-math.inf,
    )


def exponent_of(largest: float) -> int:
    """The exponent of the range for values up to `largest` >= 0."""
    return max(math.frexp(largest)[1], MIN_EXPONENT) if largest else MIN_EXPONENT


def merge(first: Histogram, second: Histogram) -> Histogram:
    """Add two histograms; the result may share their arrays."""
    exponent = max(first.exponent, second.exponent)
    return Histogram(
        exponent=exponent,
        positive=_sum(
            _fold(first.positive, exponent - first.exponent),
            _fold(second.positive, exponent - second.exponent),
        ),
        negative=_sum(
            _fold(first.negative, exponent - first.exponent),
            _fold(second.negative, exponent - second.exponent),
        ),
        zeros=first.zeros + second.zeros,
        nans=first.nans + second.nans,
        infs=first.infs + second.infs,
        minimum=min(first.minimum, second.minimum),
        maximum=max(first.maximum, second.maximum),
    )


def _sum(first: UInt64Array, second: UInt64Array) -> UInt64Array:
    """Add counts, without a new array where one is NOTHING, as thousands may be."""
    if first is NOTHING:
        return second
    return first if second is NOTHING else first + second


def _fold(counts: UInt64Array, times: int) -> UInt64Array:
    """Fold the counts onto a range 2**times as large."""
    if times == 0 or counts is NOTHING:
        return counts
    times = min(times, LOG_BINS)
    folded = counts.reshape(-1, 1 << times).sum(axis=1, dtype=np.uint64)
    return np.concatenate([folded, np.zeros(BINS - folded.size, dtype=np.uint64)])
