# SPDX-License-Identifier: Apache-2.0
"""An exact histogram of a tensor: integer counts over a range that is a power of two.

When the range doubles, neighbouring bins fold into one, so the result depends only on
the values and not on their order, on batches or on how the work was divided.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

BINS = 2048
_LOG_BINS = 11
MIN_EXPONENT = -100
"""Values below 2**-100 share the first bin; no scale is as small."""
_CHUNK = 1 << 15

Counts = npt.NDArray[np.uint64]
FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Histogram:
    """positive, negative: (2048,) counts of |x| over [0, 2**exponent).

    Bin i counts i <= |x| * 2048 / 2**exponent < i + 1.  Zeros of both signs are counted
    apart.  minimum, maximum: exact; inf and -inf while it is empty.
    """

    exponent: int
    positive: Counts
    negative: Counts
    zeros: int
    minimum: float
    maximum: float

    @property
    def width(self) -> float:
        """Of one bin."""
        return math.ldexp(1.0, self.exponent - _LOG_BINS)

    @property
    def total(self) -> int:
        """How many values."""
        return self.zeros + int(self.positive.sum()) + int(self.negative.sum())


def empty() -> Histogram:
    """Of no values."""
    nothing = np.zeros(BINS, dtype=np.uint64)
    return Histogram(
        exponent=MIN_EXPONENT,
        positive=nothing,
        negative=nothing,
        zeros=0,
        minimum=math.inf,
        maximum=-math.inf,
    )


def of(values: FloatArray) -> Histogram:
    """Of finite float32 values of any shape, at least one."""
    flat = np.ascontiguousarray(values, dtype=np.float32).reshape(-1)
    minimum, maximum = float(flat.min()) + 0.0, float(flat.max()) + 0.0  # no -0.0
    largest = max(-minimum, maximum)
    exponent = max(math.frexp(largest)[1], MIN_EXPONENT) if largest else MIN_EXPONENT
    factor = np.float32(math.ldexp(1.0, _LOG_BINS - exponent))
    counts = np.zeros(2 * BINS - 1, dtype=np.int64)
    zeros = below = 0
    for start in range(0, flat.size, _CHUNK):
        chunk = flat[start : start + _CHUNK]
        index = (chunk * factor).astype(np.int32)  # exact, then towards zero
        index += BINS - 1
        counts += np.bincount(index, minlength=2 * BINS - 1)
        zeros += chunk.size - int(np.count_nonzero(chunk))
        below += int(np.count_nonzero(chunk < 0))
    # Index 0 holds the first bin of both sides and the zeros.
    positive = counts[BINS - 1 :].astype(np.uint64)
    negative = counts[BINS - 1 :: -1].astype(np.uint64)
    negative[0] = below - int(counts[: BINS - 1].sum())
    positive[0] = int(counts[BINS - 1]) - zeros - int(negative[0])
    return Histogram(
        exponent=exponent,
        positive=positive,
        negative=negative,
        zeros=zeros,
        minimum=minimum,
        maximum=maximum,
    )


def merge(first: Histogram, second: Histogram) -> Histogram:
    """Of the values of both."""
    exponent = max(first.exponent, second.exponent)
    return Histogram(
        exponent=exponent,
        positive=_fold(first.positive, exponent - first.exponent)
        + _fold(second.positive, exponent - second.exponent),
        negative=_fold(first.negative, exponent - first.exponent)
        + _fold(second.negative, exponent - second.exponent),
        zeros=first.zeros + second.zeros,
        minimum=min(first.minimum, second.minimum),
        maximum=max(first.maximum, second.maximum),
    )


def _fold(counts: Counts, times: int) -> Counts:
    """The counts over a range that is 2**times as large."""
    times = min(times, _LOG_BINS)
    folded = counts.reshape(-1, 1 << times).sum(axis=1, dtype=np.uint64)
    return np.concatenate([folded, np.zeros(BINS - folded.size, dtype=np.uint64)])
