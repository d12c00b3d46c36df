# SPDX-License-Identifier: Apache-2.0
"""Calls of the calibrator's C library, during which cffi releases the GIL."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from neon8.calibrate.channels import LIMBS, ChannelStatistics
from neon8.calibrate.histogram import BINS, MIN_EXPONENT, Histogram
from neon8.calibrate.native_library import FILE_NAME, REMEDY, load
from neon8.errors import CalibrationError, SetupError
from neon8.graph.graph import Activation

Array = npt.NDArray[np.generic]
Float32Array = npt.NDArray[np.float32]
Float64Array = npt.NDArray[np.float64]
Int64Array = npt.NDArray[np.int64]
UInt64Array = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to take of a tensor of so many channels."""

    channels: int
    histogram: bool
    per_channel: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Statistics:
    """Of one tensor, filled in by Plan.observe().

    histogram_arrays: positive, negative.  channel_arrays: count, minima, maxima,
    total, squares, staged.  Either is empty if not taken.  struct: points to all of
    them, in memory of `owner`.
    """

    wanted: Wanted
    histogram_arrays: tuple[Array, ...]
    channel_arrays: tuple[Array, ...]
    struct: Any
    owner: Any

    def histogram(self) -> Histogram:
        """A copy, of all values so far."""
        positive, negative = self.histogram_arrays
        return Histogram(
            exponent=self.struct.exponent,
            positive=positive.astype(np.uint64),
            negative=negative.astype(np.uint64),
            zeros=self.struct.zeros,
            nans=self.struct.nans,
            infs=self.struct.infs,
            minimum=self.struct.minimum,
            maximum=self.struct.maximum,
        )

    def channels(self) -> ChannelStatistics:
        """A copy, of all values so far."""
        _check(load().lib.n8c_settle(self.struct, self.wanted.channels))
        count, minima, maxima, total, squares, _ = self.channel_arrays
        return ChannelStatistics(
            count=count.astype(np.int64),
            minimum=minima.astype(np.float32),
            maximum=maxima.astype(np.float32),
            total=total.astype(np.int64),
            squares=squares.astype(np.int64),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bank:
    """Statistics of many tensors.

    each: of no values yet.  sample_minimum, sample_maximum: (n,) float32, of the last
    sample, inf and -inf if nothing is finite.  least_channel, most_channel: (n,)
    uint64, the first channels that have them.  sample_nans, sample_infs: (n,) uint64.
    """

    each: tuple[Statistics, ...]
    sample_minimum: Float32Array
    sample_maximum: Float32Array
    least_channel: UInt64Array
    most_channel: UInt64Array
    sample_nans: UInt64Array
    sample_infs: UInt64Array


def bank(wanted: Sequence[Wanted]) -> Bank:
    """Of no values yet."""
    ffi = load().ffi
    structs = ffi.new("struct n8c_statistics[]", len(wanted))
    each = tuple(_statistics(structs, i, one) for i, one in enumerate(wanted))

    def field(name: str, dtype: str) -> Any:
        return _field(structs, "struct n8c_statistics", name, dtype)

    return Bank(
        each=each,
        sample_minimum=field("sample_minimum", "f4"),
        sample_maximum=field("sample_maximum", "f4"),
        least_channel=field("least_channel", "u8"),
        most_channel=field("most_channel", "u8"),
        sample_nans=field("sample_nans", "u8"),
        sample_infs=field("sample_infs", "u8"),
    )


def _statistics(owner: Any, index: int, wanted: Wanted) -> Statistics:
    struct = owner + index
    bins: tuple[Array, ...] = ()
    sums: tuple[Array, ...] = ()
    struct.exponent = MIN_EXPONENT
    struct.minimum, struct.maximum = np.inf, -np.inf
    if wanted.histogram:
        bins = (
            np.zeros(BINS, dtype=np.uint64),
            np.zeros(BINS, dtype=np.uint64),
        )
        for name, array in zip(("positive", "negative"), bins, strict=True):
            setattr(struct, name, _pointer(array))
    if wanted.per_channel:
        channels = wanted.channels
        sums = (
            np.zeros(channels, dtype=np.int64),
            np.full(channels, np.inf, dtype=np.float32),
            np.full(channels, -np.inf, dtype=np.float32),
            np.zeros((channels, LIMBS), dtype=np.int64),
            np.zeros((channels, LIMBS), dtype=np.int64),
            np.zeros((load().lib.N8C_STAGED, 2, channels)),
        )
        fields = ("count", "minima", "maxima", "total", "squares", "staged")
        for name, array in zip(fields, sums, strict=True):
            setattr(struct, name, _pointer(array))
    return Statistics(
        wanted=wanted,
        histogram_arrays=bins,
        channel_arrays=sums,
        struct=struct,
        owner=owner,
    )


@dataclass(frozen=True, slots=True)
class Job:
    """What to do with one tensor of `shape`, (1, C, ...).

    raw: takes the values; activated: takes what `activation` makes of them.
    """

    shape: tuple[int, ...]
    raw: Statistics | None
    activated: Statistics | None = None
    activation: Activation = Activation()


class Plan:
    """Jobs, ready to be done for one sample after the other."""

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
        self._values = _field(self._tensors, "struct n8c_tensor", "values", "u8")
        self._known: list[Float32Array | None] = [None] * len(self._jobs)

    def observe(self, values: Sequence[Float32Array], *, isa: int = 0) -> None:
        """One sample more: values[i], contiguous, for job i.

        isa: n8c_isa.  CalibrationError: a value has not the shape of its job.
        """
        for index, (known, array) in enumerate(zip(self._known, values, strict=True)):
            if array is known:  # where the sample before was, too
                continue
            shape = self._jobs[index].shape
            if array.shape != shape:
                text = f"{array.shape} instead of {shape}"
                raise CalibrationError(
                    f"a tensor has another shape than before: {text}"
                )
            self._values[index] = _address(array)
            self._known[index] = array
        _check(load().lib.n8c_observe(self._tensors, len(self._jobs), isa))


def divergence(
    counts: Float64Array, *, first: int, last: int, levels: int
) -> Float64Array:
    """Relative entropy of `counts` cut off after first, first + 1, ... last bins.

    counts: (2048,); levels: a power of two <= first.  See thresholds_kl.py.
    """
    library = load()
    out = np.empty(last - first + 1)
    counts = np.ascontiguousarray(counts, dtype=np.float64)
    status = library.lib.n8c_divergence(
        _pointer(out), _pointer(counts), first, last, levels
    )
    _check(status)
    return out


def squared_error(
    positive: Float64Array,
    negative: Float64Array,
    *,
    steps: Float64Array,
    above: Int64Array,
    below: Int64Array,
) -> Float64Array:
    """Expected squared error of quantizing to grids, (steps, splits), in bins squared.

    positive, negative: (2048,) counts.  steps: (steps,), in bins.  above, below:
    (splits,) how many levels a grid has on each side.  See thresholds_mse.py.
    """
    library = load()
    out = np.zeros((len(steps), len(above)))
    steps = np.ascontiguousarray(steps, dtype=np.float64)
    for counts, levels in ((positive, above), (negative, below)):
        side = np.ascontiguousarray(counts, dtype=np.float64)
        number = np.ascontiguousarray(levels, dtype=np.int64)
        status = library.lib.n8c_squared_error(
            _pointer(out),
            _pointer(side),
            _pointer(steps),
            len(steps),
            _pointer(number),
            len(number),
        )
        _check(status)
    return out


_TYPES = {
    "f4": "float",
    "f8": "double",
    "i8": "int64_t",
    "u8": "uint64_t",
    "u4": "uint32_t",
}


def _pointer(array: Array) -> Any:
    """To the first element; the array must outlive it."""
    return load().ffi.cast(f"{_TYPES[array.dtype.str[1:]]} *", _address(array))


def _address(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def _field(structs: Any, kind: str, name: str, dtype: str) -> Any:
    """One field of all of an array of structs, as an array that shares their memory."""
    ffi = load().ffi
    layout = np.dtype(
        {
            "names": [name],
            "formats": [dtype],
            "offsets": [ffi.offsetof(kind, name)],
            "itemsize": ffi.sizeof(kind),
        }
    )
    return np.frombuffer(ffi.buffer(structs), dtype=layout)[name]


def _check(status: int) -> None:
    # This module makes the arguments, so what remains is a library of another build.
    if status != 0:
        raise SetupError(f"{FILE_NAME}: status {status}; {REMEDY}")
