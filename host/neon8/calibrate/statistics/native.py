# SPDX-License-Identifier: Apache-2.0
"""Calls into the calibrator's C library; cffi releases the GIL during each."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from neon8.arrays import DoubleArray, FloatArray, Int64Array, UInt64Array
from neon8.calibrate.statistics.channels import FIELDS, ChannelStatistics, empty, join
from neon8.calibrate.statistics.histogram import BINS, MIN_EXPONENT, Histogram
from neon8.calibrate.statistics.native_library import (
    address,
    check,
    field,
    load,
    pointer,
)
from neon8.errors import CalibrationError
from neon8.ir.graph import Activation

SUMS = ("count", "minima", "maxima", "peaks", "total", "squares")
"""What C calls the arrays of ChannelStatistics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which statistics to take of a tensor, and how many channels it has."""

    channels: int
    histogram: bool
    per_channel: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Statistics:
    """One tensor, filled in by Plan.observe().

    bins: (2, 2048), positive and negative.  sums: of the channels.  Either is empty if
    not wanted.  struct: points to both, in memory of `owner`.
    """

    bins: UInt64Array
    sums: ChannelStatistics
    struct: Any
    owner: Any

    def histogram(self) -> Histogram:
        """The histogram of all values so far; further values change its arrays."""
        positive, negative = self.bins
        return Histogram(
            exponent=self.struct.exponent,
            positive=positive,
            negative=negative,
            zeros=self.struct.zeros,
            nans=self.struct.nans,
            infs=self.struct.infs,
            minimum=self.struct.minimum,
            maximum=self.struct.maximum,
        )

    def channels(self) -> ChannelStatistics:
        """A copy of the channel statistics of all values so far."""
        return join([self.sums])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bank:
    """Statistics of many tensors.

    The others describe the last sample, (n,).  sample_minimum, sample_maximum: float32,
    inf and -inf if nothing is finite.  sample_argmin, sample_argmax: uint64, the first
    channels that have them.  sample_nans, sample_infs: uint64, how many.
    """

    each: tuple[Statistics, ...]
    sample_minimum: FloatArray
    sample_maximum: FloatArray
    sample_argmin: UInt64Array
    sample_argmax: UInt64Array
    sample_nans: UInt64Array
    sample_infs: UInt64Array


def bank(wanted: Sequence[Wanted]) -> Bank:
    """Allocate statistics of no values."""
    ffi = load().ffi
    structs = ffi.new("struct n8c_statistics[]", len(wanted))
    each = tuple(_statistics(structs, i, one) for i, one in enumerate(wanted))

    def each_of(name: str, dtype: str) -> Any:
        return field(structs, "struct n8c_statistics", name, dtype)

    return Bank(
        each=each,
        sample_minimum=each_of("sample_minimum", "f4"),
        sample_maximum=each_of("sample_maximum", "f4"),
        sample_argmin=each_of("sample_argmin", "u8"),
        sample_argmax=each_of("sample_argmax", "u8"),
        sample_nans=each_of("sample_nans", "u8"),
        sample_infs=each_of("sample_infs", "u8"),
    )


def _statistics(owner: Any, index: int, wanted: Wanted) -> Statistics:
    struct = owner + index
    struct.exponent = MIN_EXPONENT
    struct.minimum, struct.maximum = np.inf, -np.inf
    bins = np.zeros((2, BINS if wanted.histogram else 0), np.uint64)
    sums = empty(wanted.channels if wanted.per_channel else 0)
    if wanted.histogram:
        struct.positive, struct.negative = map(pointer, bins)
    if wanted.per_channel:
        for name, ours in zip(SUMS, FIELDS, strict=True):
            setattr(struct, name, pointer(getattr(sums, ours)))
    return Statistics(bins=bins, sums=sums, struct=struct, owner=owner)


@dataclass(frozen=True, slots=True)
class Job:
    """What to collect from one tensor of `shape`, (1, C, ...).

    raw: takes the values; activated: takes them after `activation`.
    """

    shape: tuple[int, ...]
    raw: Statistics | None
    activated: Statistics | None = None
    activation: Activation = Activation()


class Plan:
    """Jobs prepared to run on one sample after another."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self._jobs = tuple(jobs)
        ffi = load().ffi
        self._tensors = ffi.new("struct n8c_tensor[]", len(self._jobs))
        for tensor, job in zip(self._tensors, self._jobs, strict=True):
            tensor.channels = job.shape[1]
            tensor.plane = math.prod(job.shape[2:])
            tensor.slope = job.activation.slope
            tensor.lo, tensor.hi = job.activation.lo, job.activation.hi
            for name in ("raw", "activated"):
                taken = getattr(job, name)
                setattr(tensor, name, ffi.NULL if taken is None else taken.struct)
        self._values = field(self._tensors, "struct n8c_tensor", "values", "u8")
        self._known: list[FloatArray | None] = [None] * len(self._jobs)

    def observe(self, values: Sequence[FloatArray], *, isa: int = 0) -> None:
        """Add a sample: values[i], contiguous, goes to job i.

        isa: n8c_isa.  CalibrationError: an array differs in shape from its job.
        """
        for index, (known, array) in enumerate(zip(self._known, values, strict=True)):
            if array is known:  # the address of the previous sample
                continue
            shape = self._jobs[index].shape
            if array.shape != shape:
                text = f"{array.shape} instead of {shape}"
                raise CalibrationError(
                    f"a tensor has another shape than before: {text}"
                )
            self._values[index] = address(array)
            self._known[index] = array
        check(load().lib.n8c_observe(self._tensors, len(self._jobs), isa))


def divergence(
    counts: DoubleArray, *, first: int, last: int, levels: int
) -> DoubleArray:
    """Relative entropy of `counts` cut off after first, first + 1, ... last bins.

    counts: (2048,).  levels: a power of two <= first.  See thresholds/kl.py.
    """
    library = load()
    out = np.empty(last - first + 1)
    counts = np.ascontiguousarray(counts, dtype=np.float64)
    status = library.lib.n8c_divergence(
        pointer(out), pointer(counts), first, last, levels
    )
    check(status)
    return out


def squared_error(
    positive: DoubleArray,
    negative: DoubleArray,
    *,
    steps: DoubleArray,
    above: Int64Array,
    below: Int64Array,
) -> DoubleArray:
    """Expected squared error of quantizing to grids, (steps, splits), in bins squared.

    positive, negative: (2048,) counts.  steps: (steps,), in bins.  above, below:
    (splits,), integer values of a grid on each side.  See thresholds/mse.py.
    """
    library = load()
    out = np.zeros((len(steps), len(above)))
    steps = np.ascontiguousarray(steps, dtype=np.float64)
    for counts, levels in ((positive, above), (negative, below)):
        side = np.ascontiguousarray(counts, dtype=np.float64)
        number = np.ascontiguousarray(levels, dtype=np.int64)
        status = library.lib.n8c_squared_error(
            pointer(out),
            pointer(side),
            pointer(steps),
            len(steps),
            pointer(number),
            len(number),
        )
        check(status)
    return out
