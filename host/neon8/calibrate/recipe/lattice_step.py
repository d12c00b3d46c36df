# SPDX-License-Identifier: Apache-2.0
"""Weights that are multiples of one step, as quantization-aware training leaves them.

Dequantized weights of such a network are w = k * step with integers k. With exactly
that step as scale they are quantized without error, while absmax / 127, some other
number, rounds nearly all of them. The step is that of a whole tensor, or of each
output channel where batch normalization was folded or training had one for each.

A few weights of any network lie near multiples of some step by chance. The less a
weight may miss a multiple, and the more different weights there are, the less likely
that is; steps are taken only where it is as good as impossible.
"""

import math

import numpy as np

from neon8.arrays import DoubleArray, FloatArray
from neon8.operators.convolution import Conv2d
from neon8.quant.weights import HIGHEST, quantize_weights

MOST_VALUES = 300
"""Distinct weights of a tensor, or of a channel; 8 bits have 256 values."""
MOST_STEPS = 255
"""|k| of weights with 8 bits and any zero point."""
TOLERANCE = 0.02
"""How far a weight may be from a multiple of the step, as a share of it."""
GAIN = 4
"""How many times smaller the squared error must be than with absmax / 127."""
PARTS = (1, 2, 3)
"""How many steps the least distance of two weights may be."""
CHANCE = 1e-6
"""The chance of random weights to lie as near to multiples of some step."""
FORMATS = ((0xFFFF, 8, 0.0), (0x1FFF, 11, 2.0**-24), (0, 24, 0.0))
"""bfloat16, float16 and float32: bits of a float32 that are 0 in it, bits of its
significand, and the distance of its smallest values."""


def steps_of(node: Conv2d) -> DoubleArray:
    """The step of each output channel, (O,), a float32 value; NaN for none.

    A channel has one only if its multiples fit int8 and if that rounds it much better
    than absmax / 127 does.
    """
    weight = node.weight
    result = np.full(len(weight), np.nan)
    if not np.isfinite(weight).all():
        return result
    rows = weight.reshape(len(weight), -1)
    common = _steps(rows.reshape(1, -1))
    found = _steps(rows) if np.isnan(common).all() else np.repeat(common, len(rows))
    for channel in np.flatnonzero(~np.isnan(found)):
        if _better(weight[channel][np.newaxis], float(found[channel])):
            result[channel] = found[channel]
    return result


def _steps(weights: FloatArray) -> DoubleArray:
    """The step that all weights of each row are multiples of, (rows,); NaN for none."""
    result = np.full(len(weights), np.nan)
    sizes = np.sort(np.abs(weights), axis=1).astype(np.float64)
    gaps = np.diff(sizes, axis=1, prepend=0.0)
    numbers = np.count_nonzero(gaps, axis=1)
    least = sizes[:, -1] / MOST_STEPS * (1 - TOLERANCE)
    wide = np.where((gaps > 0) & (gaps >= least[:, np.newaxis]), gaps, np.inf)
    distance = wide.min(axis=1)
    left = np.flatnonzero(
        (numbers > 1) & (numbers <= MOST_VALUES) & np.isfinite(distance)
    )
    values = np.zeros((len(weights), numbers[left].max(initial=0)))
    for row in left:
        values[row, : numbers[row]] = sizes[row, gaps[row] > 0]
    for parts in PARTS:
        steps = _fitted(values[left], distance[left] / parts)
        fits = steps >= least[left]
        for row, step in zip(left[fits], steps[fits].tolist(), strict=True):
            if _chance(values[row, : numbers[row]], step) <= CHANCE:
                result[row] = step
        left = left[~fits]
    return result


def _chance(values: DoubleArray, step: float) -> float:
    """A bound of the chance that random values lie so near to multiples of some step.

    values: distinct, in ascending order.  The largest one is near one of MOST_STEPS
    multiples. With each, the step is free within the least distance that holds them
    all, so a value can be off by twice that, to either side; of a short format, which
    has few values at all, one more may come to lie in there.
    """
    counts = np.rint(values / step)
    away = float((np.abs(values - counts * step) / step).max())
    bits = np.float32(values).view(np.uint32)
    apart = [
        np.maximum(counts[:-1] * 2.0 ** (1 - size), smallest / step)
        for mask, size, smallest in FORMATS
        if not (bits & mask).any()
    ]
    return MOST_STEPS * float(np.minimum(4 * away + np.max(apart, axis=0), 1).prod())


def _fitted(values: DoubleArray, steps: DoubleArray) -> DoubleArray:
    """The step near each of `steps` that fits a row best; NaN if one is not near it.

    values: (rows, n), 0 where a row has fewer.  Fitted to small values first: at large
    ones even a small error of the step adds up to several steps.
    """
    for most in (4, 16, 64, MOST_STEPS + 1):
        counts = np.rint(values / steps[:, np.newaxis])
        near = (counts > 0) & (counts <= most)
        products = np.where(near, values * counts, 0.0).tolist()
        squares = np.square(np.where(near, counts, 0.0)).sum(axis=1)  # exact
        some = squares > 0
        totals = np.array([math.fsum(row) for row in products])
        steps = np.where(some, totals / np.where(some, squares, 1.0), steps)
    steps = steps.astype(np.float32).astype(np.float64)
    counts = np.rint(values / steps[:, np.newaxis])
    away = np.abs(values - counts * steps[:, np.newaxis])
    near = (away <= TOLERANCE * steps[:, np.newaxis]) & (counts > 0)
    return np.where((near | (values == 0)).all(axis=1), steps, np.nan)


def _better(row: FloatArray, step: float) -> bool:
    """True if this scale rounds a channel, (1, ...), better than absmax / 127."""
    absmax = float(np.abs(row).max())
    if absmax > (HIGHEST + TOLERANCE) * step:
        return False
    usual = float(np.float32(absmax / HIGHEST))
    if usual == 0:
        return False
    lost = _error(row, usual)
    noise = row.size * (TOLERANCE * usual) ** 2  # smaller errors do not matter
    return lost > noise and GAIN * _error(row, step) < lost


def _error(row: FloatArray, scale: float) -> float:
    """Sum of the squared errors of rounding."""
    scales = np.array([scale])
    lost = row - quantize_weights(row, scales) * scale
    return math.fsum(np.square(lost).ravel().tolist())
