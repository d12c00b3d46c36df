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
    common = _step(weight)
    for channel, row in enumerate(weight):
        step = _step(row) if common is None else common
        if step is not None and _better(row[np.newaxis], step):
            result[channel] = step
    return result


def _step(weights: FloatArray) -> float | None:
    """The step that all weights are multiples of, or None."""
    sizes = np.unique(np.abs(weights))
    values = sizes[sizes > 0].astype(np.float64)
    if not 1 < len(values) <= MOST_VALUES:
        return None
    least = values[-1] / MOST_STEPS * (1 - TOLERANCE)
    gaps = np.diff(values, prepend=0.0)
    distance = float(gaps[gaps >= least].min())
    for parts in PARTS:
        step = _fitted(values, distance / parts)
        if step is not None and step >= least:
            return step if _chance(values, step) <= CHANCE else None
    return None


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


def _fitted(values: DoubleArray, step: float) -> float | None:
    """The step near `step` that fits all values best; None if one is not near it.

    Fitted to small values first: at large ones even a small error of the step adds up
    to several steps.
    """
    for most in (4, 16, 64, MOST_STEPS + 1):
        counts = np.rint(values / step)
        near = (counts > 0) & (counts <= most)
        if near.any():
            products = math.fsum((values[near] * counts[near]).tolist())
            step = products / math.fsum(np.square(counts[near]).tolist())
    step = float(np.float32(step))
    counts = np.rint(values / step)
    away = np.abs(values - counts * step)
    return step if (away <= TOLERANCE * step).all() and counts.min() > 0 else None


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
