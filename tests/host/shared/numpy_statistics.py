# SPDX-License-Identifier: Apache-2.0
"""The calibrator's C functions once more in numpy: slower, the same numbers.

They say what the C code means, and the tests hold the two against each other.
"""

import hashlib
import struct
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from neon8.calibrate.statistics import histogram
from neon8.calibrate.statistics.channels import (
    FRACTION_BITS,
    WORDS,
    ChannelStatistics,
    UInt64Array,
)
from neon8.calibrate.statistics.histogram import BINS, Histogram
from neon8.ir.graph import Activation

Float32Array = npt.NDArray[np.float32]
Float64Array = npt.NDArray[np.float64]

LANES = 16
LIMIT = 2.0**127


def histogram_of(values: Float32Array) -> Histogram:
    """The histogram of float32 values of any shape."""
    everything = np.ascontiguousarray(values, dtype=np.float32).reshape(-1)
    flat = everything[np.isfinite(everything)]
    nans = int(np.count_nonzero(np.isnan(everything)))
    infs = everything.size - flat.size - nans
    if flat.size == 0:
        return histogram.empty(nans=nans, infs=infs)
    minimum, maximum = float(flat.min()) + 0.0, float(flat.max()) + 0.0  # no -0.0
    exponent = histogram.exponent_of(max(-minimum, maximum))
    sizes = np.ldexp(np.abs(flat.astype(np.float64)), histogram.LOG_BINS - exponent)
    positive, negative = (
        np.bincount(sizes[own].astype(np.int64), minlength=BINS).astype(np.uint64)
        for own in (flat > 0, flat < 0)
    )
    return Histogram(
        exponent=exponent,
        positive=positive,
        negative=negative,
        zeros=int(np.count_nonzero(flat == 0)),
        nans=nans,
        infs=infs,
        minimum=minimum,
        maximum=maximum,
    )


def channels_of(values: Float32Array) -> ChannelStatistics:
    """The channels of one sample, shape (1, C, ...)."""
    planes = np.ascontiguousarray(values, dtype=np.float32)
    planes = planes.reshape(values.shape[1], -1)
    finite = np.isfinite(planes)
    with np.errstate(invalid="ignore"):
        least = np.where(finite, planes, np.float32(np.inf)).min(axis=1)
        most = np.where(finite, planes, np.float32(-np.inf)).max(axis=1)
        double = np.where(finite, planes, np.float32(0)).astype(np.float64)
    return ChannelStatistics(
        count=np.count_nonzero(finite, axis=1).astype(np.int64),
        minimum=least + np.float32(0),
        maximum=most + np.float32(0),
        quietest=np.where(
            finite.any(axis=1), np.maximum(-least, most), np.float32(np.inf)
        )
        + np.float32(0),
        total=words_of_sums(sums(double)),
        squares=words_of_sums(sums(double * double)),
    )


def sums(values: Float64Array) -> Float64Array:
    """(C, n) -> (C,), in a fixed order.

    Lane j of 16 adds the values j, j + 16, ..., one after another; then lanes j and
    j + 8 are added, of those j and j + 4, and so on.
    """
    rows, count = values.shape
    steps = -(-count // LANES)
    padded = np.zeros((rows, steps * LANES))
    padded[:, :count] = values
    lanes = np.zeros((rows, LANES))
    for step in padded.reshape(rows, steps, LANES).swapaxes(0, 1):
        lanes = lanes + step
    for half in (8, 4, 2, 1):
        lanes = lanes[:, :half] + lanes[:, half:]
    return lanes[:, 0]


def words_of_sums(values: Float64Array) -> UInt64Array:
    """(C,) finite -> (C, WORDS): clamped, then the nearest multiple of 2**-96."""
    clamped = np.clip(values, -LIMIT, LIMIT)
    return words_of(int(np.rint(np.ldexp(x, FRACTION_BITS))) for x in clamped)


def words_of(values: Iterable[int]) -> UInt64Array:
    """Integers as rows of words: channels.integers() backwards."""
    text = b"".join(
        value.to_bytes(8 * WORDS, "little", signed=True) for value in values
    )
    return np.frombuffer(text, "<u8").astype(np.uint64).reshape(-1, WORDS)


def activated(values: Float32Array, activation: Activation) -> Float32Array:
    """What `activation` makes of them, of the same shape; no -0.0."""
    slope = np.float32(activation.slope)
    lo, hi = np.float32(activation.lo), np.float32(activation.hi)
    with np.errstate(over="ignore", invalid="ignore"):
        leaky = np.where(values < 0, values * slope, values)
        result: Float32Array = np.minimum(np.maximum(leaky, lo), hi) + np.float32(0)
    return result


def draws(digest: str, layer: str, pixels: int) -> list[tuple[int, int]]:
    """(key, output pixel) of each row that a sample offers for a layer, one or two.

    digest: of the sample.  pixels: of the layer's output.  docs/calib-format.md has the
    rule.
    """
    words = (
        struct.unpack("<4Q", hashlib.sha256(text.encode()).digest())
        for text in (digest, layer)
    )
    a, b, *keys = (_mix(one ^ other) for one, other in zip(*words, strict=True))
    first, second = a % pixels, b % pixels
    if second == first:
        second = (second + 1) % pixels
    return list(zip(keys, (first, second), strict=True))[:pixels]


def _mix(x: int) -> int:
    """The finalizer of SplitMix64."""
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ x >> 27) * 0x94D049BB133111EB % 2**64
    return x ^ x >> 31
