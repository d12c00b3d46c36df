# SPDX-License-Identifier: Apache-2.0
"""The calibrator's C library, loaded through cffi, which releases the GIL in calls.

There is no substitute for it in the product: twins.py says the same in numpy, but only
tests use that.
"""

import functools
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import neon8
from neon8.calibrate.channels import LIMBS, ChannelStatistics
from neon8.calibrate.histogram import BINS, MIN_EXPONENT, Histogram
from neon8.errors import CalibrationError, SetupError
from neon8.graph.graph import Activation
from neon8.runtime.library import PACKAGE, Library, check_machine, declarations

FILE_NAME = f"libneon8_calibrate.{'dylib' if sys.platform == 'darwin' else 'so'}"
CDEF_NAME = "neon8_calibrate_cdef.h"
REMEDY = "run 'make native' or set N8_CALIBRATE_LIBRARY"

Array = npt.NDArray[np.generic]
Float32Array = npt.NDArray[np.float32]
Float64Array = npt.NDArray[np.float64]
Int64Array = npt.NDArray[np.int64]


def find() -> Path:
    """The library that this process uses, absolute.

    $N8_CALIBRATE_LIBRARY, else the file that a wheel carries, else build/native of the
    checkout.  SetupError: none of them is there.
    """
    override = os.environ.get("N8_CALIBRATE_LIBRARY")
    if override:
        path = Path(override).absolute()
        if not path.is_file():
            text = "no such library; correct N8_CALIBRATE_LIBRARY"
            raise SetupError(f"{override}: {text}")
        return path
    folders = (PACKAGE, PACKAGE.parents[1] / "build" / "native")
    for folder in folders:
        if (folder / FILE_NAME).is_file():
            return folder / FILE_NAME
    text = f"is neither in {folders[0]} nor in {folders[1]}"
    raise SetupError(f"{FILE_NAME} {text}; {REMEDY}")


@functools.cache
def load() -> Library:
    """The library of this process, loaded once.  SetupError: missing, foreign, old."""
    return load_file(find())


@functools.cache
def load_file(path: Path) -> Library:
    """The library at `path`, checked."""
    check_machine(path)
    ffi = declarations(path.parent / CDEF_NAME)
    try:
        lib = ffi.dlopen(str(path))
        version = ffi.string(lib.n8c_version()).decode()
    except (OSError, AttributeError) as error:
        text = f"not a neon8 calibration library: {error}"
        raise SetupError(f"{path}: {text}; {REMEDY}") from error
    if version != neon8.__version__:
        text = f"version {version} does not fit neon8 {neon8.__version__}"
        raise SetupError(f"{path}: {text}; {REMEDY}")
    return Library(path, ffi, lib)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Statistics:
    """Of one tensor, filled in by observe().

    histogram_arrays: positive, negative, tally.  channel_arrays: count, minima, maxima,
    total, squares.  Either is empty if not taken.  struct: points to all of them.
    """

    channels: int
    histogram_arrays: tuple[Array, ...]
    channel_arrays: tuple[Array, ...]
    struct: Any

    def settle(self) -> None:
        """Make all counts complete and all limbs canonical."""
        _check(load().lib.n8c_settle(self.struct, self.channels))

    def histogram(self) -> Histogram:
        """A copy, of all values so far."""
        self.settle()
        positive, negative, _ = self.histogram_arrays
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

    def channel_statistics(self) -> ChannelStatistics:
        """A copy, of all values so far."""
        self.settle()
        count, minima, maxima, total, squares = self.channel_arrays
        return ChannelStatistics(
            count=count.astype(np.int64),
            minimum=minima.astype(np.float32),
            maximum=maxima.astype(np.float32),
            total=total.astype(np.int64),
            squares=squares.astype(np.int64),
        )


def statistics(channels: int, *, histogram: bool, per_channel: bool) -> Statistics:
    """Of no values yet."""
    library = load()
    bins: tuple[Array, ...] = ()
    sums: tuple[Array, ...] = ()
    struct = library.ffi.new("struct n8c_statistics *")
    struct.exponent = MIN_EXPONENT
    struct.minimum, struct.maximum = np.inf, -np.inf
    if histogram:
        bins = (
            np.zeros(BINS, dtype=np.uint64),
            np.zeros(BINS, dtype=np.uint64),
            np.zeros(library.lib.N8C_TALLY, dtype=np.uint32),
        )
        struct.positive, struct.negative, struct.tally = map(_pointer, bins)
    if per_channel:
        sums = (
            np.zeros(channels, dtype=np.int64),
            np.full(channels, np.inf, dtype=np.float32),
            np.full(channels, -np.inf, dtype=np.float32),
            np.zeros((channels, LIMBS), dtype=np.int64),
            np.zeros((channels, LIMBS), dtype=np.int64),
        )
        pointers = map(_pointer, sums)
        struct.count, struct.minima, struct.maxima = (next(pointers) for _ in range(3))
        struct.total, struct.squares = pointers
    return Statistics(
        channels=channels, histogram_arrays=bins, channel_arrays=sums, struct=struct
    )


@dataclass(frozen=True, slots=True)
class Job:
    """What observe() does with one tensor of shape (1, channels, ...).

    raw: takes the values; activated: takes what `activation` makes of them.
    """

    raw: Statistics | None
    activated: Statistics | None = None
    activation: Activation = Activation()

    @property
    def channels(self) -> int:
        """Of the tensor."""
        taken = [one.channels for one in (self.raw, self.activated) if one is not None]
        return taken[0]


def observe(jobs: Sequence[Job], values: Sequence[Float32Array], isa: int = 0) -> None:
    """One sample more: values[i], contiguous and not empty, for jobs[i]."""
    library = load()
    ffi = library.ffi
    tensors = ffi.new("struct n8c_tensor[]", len(jobs))
    for tensor, job, array in zip(tensors, jobs, values, strict=True):
        tensor.values = _pointer(array)
        if array.shape[0] != 1 or array.shape[1] != job.channels or array.size == 0:
            text = f"expected (1, {job.channels}, ...)"
            raise CalibrationError(f"a sample has shape {array.shape}, {text}")
        tensor.channels = array.shape[1]
        tensor.plane = array.size // array.shape[1]
        tensor.slope = job.activation.slope
        tensor.lo, tensor.hi = job.activation.lo, job.activation.hi
        tensor.raw = ffi.NULL if job.raw is None else job.raw.struct
        tensor.activated = ffi.NULL if job.activated is None else job.activated.struct
    _check(library.lib.n8c_observe(tensors, len(jobs), isa))


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


_TYPES = {"f4": "float", "f8": "double", "i8": "int64_t", "u8": "uint64_t", "u4": "uint32_t"}


def _pointer(array: Array) -> Any:
    """To the first element; the array must outlive it."""
    kind = _TYPES[array.dtype.str[1:]]
    return load().ffi.cast(f"{kind} *", array.__array_interface__["data"][0])


def _check(status: int) -> None:
    # This module makes the arguments, so what remains is a library of another build.
    if status != 0:
        raise SetupError(f"{FILE_NAME}: status {status}; {REMEDY}")
