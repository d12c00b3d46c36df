# SPDX-License-Identifier: Apache-2.0
"""Weights of a convolution: their scales, their integers (1), (3), (5), bound (12)."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from neon8.arrays import DoubleArray, FloatArray, Int8Array, Int16Array
from neon8.errors import CalibrationError, CompileError
from neon8.quant.limits import SMALLEST_SCALE
from neon8.quant.scale_table import NARROW, LayerScale

Integers = Int8Array | Int16Array
"""Weights, which have 8 bits or 16."""

ACC_LIMIT = 2**31
"""|acc''| stays below this  (12)."""

MULTIPLIER_MIN = np.float32(SMALLEST_SCALE)
MULTIPLIER_MAX = np.float32(2.0**64)

NARROW_REACH = 128
"""The largest |q| of int8."""

BIAS_BITS = 29
"""|bias| / (scale_in * scale_w) stays below 2**29, so that B of numerics (5) fits int32
with room for the products."""
WIDE_BIAS_BITS = 30
"""The same of an int16 input, of which steps are finer and that is less: there the room
is made by choosing its bits."""


def weight_scales(
    layer: str,
    *,
    source: str,
    absmax: FloatArray,
    bias: FloatArray,
    input_scale: float,
    input_bits: int = NARROW,
    groups: int = 1,
    steps: DoubleArray | None = None,
) -> LayerScale:
    """absmax / 127 of each channel, enlarged where the bias would not fit int32.

    layer: its name; source: the tensor that it reads; absmax: (O,) the largest |weight|
    of each output channel; bias: (O,); groups: for the table only; steps: (O,), instead
    of absmax / 127 where they are not NaN. A channel without weights, or with too small
    ones, takes the largest scale of the others.
    CalibrationError if a scale would not fit float32.
    """
    wanted = absmax.astype(np.float64) / 127
    if steps is not None:
        wanted = np.where(np.isnan(steps), wanted, steps)
    # Below this, scale_in * scale_w would be no normal float32.
    floor = max(SMALLEST_SCALE, SMALLEST_SCALE / input_scale)
    small = wanted < floor
    usual = float(wanted.max()) if not small.all() else max(1 / 127, floor)
    chosen = np.where(small, usual, wanted)
    for_bias = bias_floor(bias, input_scale, input_bits)
    scales = np.maximum(chosen, for_bias)
    if scales.max() > np.finfo(np.float32).max:
        text = "the bias is too large for the scale of the input"
        raise CalibrationError(f"layer {layer!r}: {text}")
    reasons = [
        f"{'dead' if wanted[channel] < SMALLEST_SCALE else 'floor'}:{channel}"
        for channel in np.flatnonzero(small)
    ]
    reasons += [f"bias:{channel}" for channel in np.flatnonzero(for_bias > chosen)]
    return LayerScale(
        input=source,
        weight_scales=tuple(float(np.float32(scale)) for scale in scales),
        groups=groups,
        reasons=tuple(reasons),
    )


def channel_scales(layer: str, entry: LayerScale, channels: int) -> DoubleArray:
    """The scales of a table for all channels, (O,); one serves all.

    CompileError: they are neither one nor as many.
    """
    count = len(entry.weight_scales)
    if count not in (1, channels):
        text = f"has {count} weight scales, expected 1 or {channels}"
        raise CompileError(f"layer {layer!r} {text}")
    return np.array(entry.weight_scales * (channels // count), np.float64)


def bias_floor(bias: FloatArray, input_scale: float, input_bits: int) -> DoubleArray:
    """The weight scales, (O,), below which the bias would not fit int32."""
    limit = 2.0 ** (BIAS_BITS if input_bits <= NARROW else WIDE_BIAS_BITS)
    result: DoubleArray = np.abs(bias.astype(np.float64)) / (input_scale * limit)
    return result


MAX_ENLARGEMENT = 2.0**64
BISECTIONS = 24
"""How far, and how finely, least_factor() looks for a larger scale."""


def enlarged(scale: float, factor: float) -> DoubleArray:
    """scale * factor, a float32 value again, as an array (1,)."""
    with np.errstate(over="ignore"):  # infinity is refused with the multiplier
        return np.array([scale * factor]).astype(np.float32).astype(np.float64)


def least_factor(fits: Callable[[float], bool]) -> float | None:
    """The least factor > 1 that fits, to one part in 2**24; None if there is none.

    A larger factor shrinks every weight and the bias, so there is one turning point.
    """
    high = 2.0
    while not fits(high):
        high *= 2
        if high > MAX_ENLARGEMENT:
            return None
    low = high / 2
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if fits(middle):
            high = middle
        else:
            low = middle
    return high


HIGHEST = 127
LOWEST = -128
"""The ends of int8 weights; -128 only in files of other tools, once a channel (11)."""
HIGHEST_WIDE = 2**15 - 1
"""The end of int16 weights, on both sides."""

WIDEST = 255
"""The largest |q| of a weight of 8 bits, uint8 less its zero point."""


def weight_levels(weight: FloatArray, scales: DoubleArray) -> Int16Array:
    """rne(w / scale) of weights that come as integers; none is beyond int16.

    weight: (O, ...); scales: (O,). One channel at a time, see quantize_weights().
    """
    result = np.empty(weight.shape, np.int16)
    for channel, scale in enumerate(scales):
        levels = np.rint(weight[channel].astype(np.float64) / scale)
        result[channel] = np.clip(levels, -(2**15), 2**15 - 1)
    return result


def quantize_weights(
    weight: FloatArray, scales: DoubleArray, *, lowest: int = -HIGHEST
) -> Int8Array:
    """clamp(rne(w / scale), lowest, 127).

    weight: (O, ...), finite; scales: (O,), one for each output channel. The division is
    in double, one channel at a time: a large layer does not fit in memory eight times.
    lowest: -127, or -128 for weights that come as integers: a channel keeps its first
    -128 then, as two would overflow int16 (11), and the others become -127.
    """
    result = np.empty(weight.shape, np.int8)
    for channel, scale in enumerate(scales):
        levels = np.rint(weight[channel].astype(np.float64) / scale)
        result[channel] = np.clip(levels, lowest, HIGHEST)
        least = np.flatnonzero(result[channel] == LOWEST)
        result[channel].reshape(-1)[least[1:]] = -HIGHEST
    return result


def neighbours(
    weight: FloatArray | DoubleArray, scales: DoubleArray
) -> tuple[Int8Array, Int8Array, DoubleArray]:
    """The nearest levels, the other neighbours, and w / scale, of one channel or more.

    weight: (O, ...), finite; scales: (O,). All levels are within -127 .. 127: there a
    weight has no other neighbour, and the two are equal. The other neighbour of a
    weight without error is the one that is nearer to zero.
    """
    real = weight.astype(np.float64) / scales.reshape(-1, *(1,) * (weight.ndim - 1))
    nearest = np.clip(np.rint(real), -HIGHEST, HIGHEST)
    towards = np.where(real == nearest, -nearest, real - nearest)
    other = np.clip(nearest + np.sign(towards), -HIGHEST, HIGHEST)
    return nearest.astype(np.int8), other.astype(np.int8), real


def quantize_wide(weight: FloatArray, scales: DoubleArray) -> Int16Array:
    """clamp(rne(w / scale), -32767, 32767), of layers whose weights are int16."""
    result: Int16Array = weight_levels(weight, scales).clip(-HIGHEST_WIDE, None)
    return result


Quantize = Callable[[FloatArray, DoubleArray], Integers]
"""Weights (O, ...) and their scales (O,) to integers, as quantize_weights()."""


@dataclass(frozen=True, slots=True)
class Sums:
    """A convolution up to its accumulators.

    weights: (O, I / groups, kh, kw); bias: (O,), what they begin with; bound: (O,),
    the largest |acc''| that any input can give (12). The last two are whole numbers in
    double, since they may be beyond int32 before the proof.
    """

    weights: Integers
    bias: DoubleArray
    bound: DoubleArray


def sums(
    weight: FloatArray,
    bias: DoubleArray,
    scales: DoubleArray,
    *,
    scale_in: float,
    zero_point_in: int,
    reach: int = NARROW_REACH,
    quantize: Quantize = quantize_weights,
) -> Sums:
    """The integers of (5): B = rne(bias / (scale_in * scale_w)) - zp_in * sum(w).

    weight: (O, ...) real values; bias: (O,) real values, zeros where the float bias is
    added later (4); scales: (O,) of the weights; reach: the largest |q| of the input;
    quantize: what rounds the weights.
    """
    weights = quantize(weight, scales)
    axes = tuple(range(1, weights.ndim))
    total = weights.sum(axis=axes, dtype=np.int64)
    offset = np.rint(bias / (scale_in * scales)) - zero_point_in * total
    magnitude = np.abs(weights.astype(np.int32)).sum(axis=axes, dtype=np.int64)
    bound = magnitude * reach + np.abs(offset)
    return Sums(weights, offset, bound)


def multiplier_ok(
    multiplier: npt.NDArray[np.float32] | np.float32,
) -> npt.NDArray[np.bool_]:
    """Which multipliers every back end takes: 0, or 1e-30 to 2**64."""
    in_range = (multiplier >= MULTIPLIER_MIN) & (multiplier <= MULTIPLIER_MAX)
    return np.asarray((multiplier == 0) | in_range)
