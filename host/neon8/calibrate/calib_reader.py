# SPDX-License-Identifier: Apache-2.0
"""From the bytes of a .calib file to an Observation; nothing in them is trusted."""

import hashlib
import math
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from neon8.calibrate.calib_header import Header, LayerHeader, read_header
from neon8.calibrate.observation import LayerFacts, Observation, TensorObservation
from neon8.calibrate.statistics.channels import WORDS, ChannelStatistics
from neon8.calibrate.statistics.histogram import BINS, LOG_BINS, Histogram, exponent_of
from neon8.calibrate.statistics.observer import Extreme
from neon8.calibrate.statistics.patches import Patches
from neon8.errors import CalibrationError
from neon8.graph.graph import Activation

Array = npt.NDArray[Any]

MAGIC = b"n8calib\n"
VERSION = 2
NOBODY = 0xFFFFFFFF
"""In place of a sample's index: the tensor has no finite value."""
_DIGEST = 32
_MOST = 1 << 62
"""Values of one tensor, so that no sum of counts overflows."""


def read(data: bytes) -> Observation:
    """The observation.  CalibrationError says what is wrong, not in which file."""
    if data[: len(MAGIC)] != MAGIC:
        raise CalibrationError("is not a .calib file")
    cursor = _Cursor(data, len(MAGIC), len(data) - _DIGEST)
    version, length = (int(number) for number in cursor.take("<u4", 2))
    if version != VERSION:
        text = f"is of format version {version}; this neon8 reads {VERSION}"
        raise CalibrationError(text)
    if hashlib.sha256(data[:-_DIGEST]).digest() != data[-_DIGEST:]:
        raise CalibrationError("is damaged or truncated: its SHA-256 does not match")
    header = read_header(cursor.take("u1", length).tobytes())
    digests = cursor.take("u1", header.samples, _DIGEST)
    samples = tuple(row.tobytes().hex() for row in digests)
    if any(a >= b for a, b in pairwise(samples)):
        raise CalibrationError("samples: are not in order, or one is there twice")
    observation = Observation(
        model_name=header.model_name,
        model_digest=header.model_digest,
        engine=header.engine,
        preprocess_digest=header.preprocess_digest,
        samples=samples,
        tensors={name: _tensor(cursor, name, samples) for name in header.tensors},
        channels={n: _channels(cursor, n, c) for n, c in header.channels.items()},
        layers={n: _layer(cursor, n, head) for n, head in header.layers.items()},
        leaders=header.leaders,
    )
    cursor.finish()
    _check_empty(observation, header)
    return observation


class _Cursor:
    """Takes arrays off bytes, one behind the other."""

    def __init__(self, data: bytes, start: int, stop: int) -> None:
        self._data, self._at, self._stop = data, start, stop

    def take(self, dtype: str, *shape: int) -> Array:
        """The next array, in the byte order of this machine."""
        kind = np.dtype(dtype)
        size = kind.itemsize * math.prod(shape)
        if size > self._stop - self._at:
            raise CalibrationError("is truncated")
        flat = np.frombuffer(self._data, kind, math.prod(shape), self._at)
        self._at += size
        return flat.reshape(shape).astype(kind.newbyteorder("="))

    def finish(self) -> None:
        """CalibrationError unless all was taken."""
        if self._at != self._stop:
            raise CalibrationError(f"has {self._stop - self._at} bytes too many")


def _tensor(cursor: _Cursor, name: str, samples: tuple[str, ...]) -> TensorObservation:
    exponent = int(cursor.take("<i4", 1)[0])
    minimum, maximum = (float(limit) for limit in cursor.take("<f4", 2))
    marks = [int(mark) for mark in cursor.take("<u4", 4)]
    zeros, nans, infs = (int(count) for count in cursor.take("<u8", 3))
    histogram = Histogram(
        exponent=exponent,
        positive=cursor.take("<u8", BINS),
        negative=cursor.take("<u8", BINS),
        zeros=zeros,
        nans=nans,
        infs=infs,
        minimum=minimum,
        maximum=maximum,
    )
    problem = _histogram_problem(histogram)
    if problem is not None:
        raise CalibrationError(f"tensor {name!r}: {problem}")
    extremes: list[Extreme | None] = []
    for value, sample, channel in (
        (minimum, marks[0], marks[1]),
        (maximum, marks[2], marks[3]),
    ):
        if histogram.total == 0 and (sample, channel) == (NOBODY, 0):
            extremes.append(None)
        elif histogram.total > 0 and sample < len(samples):
            found = Extreme(value=value, sample=samples[sample], channel=channel)
            extremes.append(found)
        else:
            text = "an extreme is of no sample in the file"
            raise CalibrationError(f"tensor {name!r}: {text}")
    return TensorObservation(
        histogram=histogram, smallest=extremes[0], largest=extremes[1]
    )


def _histogram_problem(histogram: Histogram) -> str | None:
    """What contradicts itself in it."""
    sides = (histogram.positive, histogram.negative)
    counts = [int(side.max()) for side in sides]
    most = _MOST // (2 * BINS + 3)
    if max(*counts, histogram.zeros, histogram.nans, histogram.infs) > most:
        return "its counts are out of range"
    minimum, maximum = histogram.minimum, histogram.maximum
    if histogram.total == 0:
        empty = (math.inf, -math.inf, exponent_of(0.0))
        if (minimum, maximum, histogram.exponent) != empty:
            return "it has limits but no values"
        return None
    if not -math.inf < minimum <= maximum < math.inf or _negative_zero(
        np.array([minimum, maximum])
    ):
        return "its minimum and maximum are out of order"
    if histogram.exponent != exponent_of(max(-minimum, maximum, 0.0)):
        return "its range does not match minimum and maximum"
    for side, limit in zip(sides, (maximum, -minimum), strict=True):
        used = np.flatnonzero(side)
        last = int(used[-1]) if used.size else -1
        bins = math.ldexp(max(limit, 0.0), LOG_BINS - histogram.exponent)
        if last != (int(bins) if limit > 0 else -1):
            return "its counts do not match minimum and maximum"
    if histogram.zeros == 0 and 0.0 in (minimum, maximum):
        return "its counts do not match minimum and maximum"
    return None


def _channels(cursor: _Cursor, name: str, count: int) -> ChannelStatistics:
    counts = cursor.take("<i8", count)
    minimum, maximum = cursor.take("<f4", count), cursor.take("<f4", count)
    statistics = ChannelStatistics(
        count=counts,
        minimum=minimum,
        maximum=maximum,
        total=cursor.take("<u8", count, WORDS),
        squares=cursor.take("<u8", count, WORDS),
    )
    some = counts > 0
    limits = np.isfinite(minimum) & np.isfinite(maximum) & (minimum <= maximum)
    none = (minimum == np.inf) & (maximum == -np.inf)
    sound = bool(np.where(some, limits, none).all())
    if (
        not sound
        or (counts < 0).any()
        or (counts > _MOST // BINS).any()
        or _negative_zero(minimum)
        or _negative_zero(maximum)
        or (statistics.squares[:, -1] >> np.uint64(63)).any()
        or statistics.total[~some].any()
        or statistics.squares[~some].any()
    ):
        raise CalibrationError(f"channels of {name!r}: contradict themselves")
    return statistics


def _layer(cursor: _Cursor, name: str, header: LayerHeader) -> LayerFacts:
    out, chosen = header.weight_shape[0], header.chosen
    absmax, bias = cursor.take("<f4", out), cursor.take("<f4", out)
    lo, hi, slope = (float(limit) for limit in cursor.take("<f8", 3))
    weights, some_bias = (
        cursor.take("<f4", chosen, header.taps),
        cursor.take("<f4", chosen),
    )
    groups = cursor.take("<u4", chosen).astype(np.int64)
    keys = cursor.take("<u8", header.rows)
    rows = cursor.take("<f4", header.rows, header.row_groups, header.taps)
    if not lo <= hi or not math.isfinite(slope):
        raise CalibrationError(f"layer {name!r}: its activation makes no sense")
    if not all(np.isfinite(a).all() for a in (absmax, bias, weights, some_bias, rows)):
        raise CalibrationError(f"layer {name!r}: has NaN or infinite values")
    if (absmax < 0).any() or (groups >= header.row_groups).any():
        raise CalibrationError(f"layer {name!r}: has values out of range")
    if (keys[1:] < keys[:-1]).any():
        raise CalibrationError(f"layer {name!r}: its rows are not in order")
    return LayerFacts(
        input=header.input,
        output=header.output,
        pre_activation=header.pre_activation,
        weight_shape=header.weight_shape,
        groups=header.groups,
        strides=header.strides,
        weight_absmax=absmax,
        bias=bias,
        patches=Patches(
            keys=keys,
            rows=rows,
            weights=weights,
            bias=some_bias,
            groups=groups,
            activation=Activation(lo=lo, hi=hi, slope=slope),
        ),
    )


def _negative_zero(values: Array) -> bool:
    return bool(((values == 0) & np.signbit(values)).any())


def _check_empty(observation: Observation, header: Header) -> None:
    """Without samples there are no values."""
    if header.samples == 0 and (
        any(t.histogram.total for t in observation.tensors.values())
        or any(c.count.any() for c in observation.channels.values())
        or any(len(f.patches.keys) for f in observation.layers.values())
    ):
        raise CalibrationError("has values but no samples")
