# SPDX-License-Identifier: Apache-2.0
"""Weights that are multiples of one step, as quantization-aware training leaves them.

Dequantized weights of such a network are w = k * step with whole k. With that very step
as their scale they are quantized without an error, while absmax / 127, which is some
other number, rounds nearly all of them. The step is that of a whole tensor, or of each
output channel where batch normalization was folded or training had one for each.
"""

import math

import numpy as np

from neon8.arrays import DoubleArray, FloatArray
from neon8.operators.convolution import Conv2d
from neon8.quant.weights import HIGHEST, quantize_weights

MOST_VALUES = 300
"""Different weights of a tensor, or of a channel: 8 bits have 256 levels."""
MOST_LEVELS = 255
"""|k| of weights with 8 bits and any zero point."""
TOLERANCE = 0.02
"""How far a weight may be from a multiple of the step, as a share of it."""
GAIN = 4
"""How many times smaller the squared error must be than with absmax / 127."""
PARTS = (1, 2, 3)
"""The least distance of two weights may be so many steps."""


def steps_of(node: Conv2d) -> DoubleArray:
    """(O,) the step of each output channel as a float32 value; NaN for none.

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
    """The step of which all weights are multiples, or None."""
    sizes = np.unique(np.abs(weights))
    values = sizes[sizes > 0].astype(np.float64)
    if not 1 < len(values) <= MOST_VALUES:
        return None
    least = values[-1] / MOST_LEVELS * (1 - TOLERANCE)
    gaps = np.diff(values, prepend=0.0)
    distance = float(gaps[gaps >= least].min())
    for parts in PARTS:
        step = _fitted(values, distance / parts)
        if step is not None and step >= least:
            return step
    return None


def _fitted(values: DoubleArray, step: float) -> float | None:
    """The step near `step` that fits all values best; None if one is not near it.

    It is measured from the small values to the large ones, of which a small error of
    the step is many steps.
    """
    for most in (4, 16, 64, MOST_LEVELS + 1):
        levels = np.rint(values / step)
        near = (levels > 0) & (levels <= most)
        if near.any():
            products = math.fsum((values[near] * levels[near]).tolist())
            step = products / math.fsum(np.square(levels[near]).tolist())
    step = float(np.float32(step))
    levels = np.rint(values / step)
    away = np.abs(values - levels * step)
    return step if (away <= TOLERANCE * step).all() and levels.min() > 0 else None


def _better(row: FloatArray, step: float) -> bool:
    """Whether int8 with this scale is nearer to a channel, (1, ...), than usual."""
    absmax = float(np.abs(row).max())
    if absmax > (HIGHEST + TOLERANCE) * step:
        return False
    usual = float(np.float32(absmax / HIGHEST))
    if usual == 0:
        return False
    lost = _error(row, usual)
    noise = row.size * (TOLERANCE * usual) ** 2  # nothing worth a word
    return lost > noise and GAIN * _error(row, step) < lost


def _error(row: FloatArray, scale: float) -> float:
    """Sum of the squared errors of rounding."""
    scales = np.array([scale])
    lost = row - quantize_weights(row, scales) * scale
    return math.fsum(np.square(lost).ravel().tolist())
