# SPDX-License-Identifier: Apache-2.0
"""Weights whose rounding errors cancel over the taps of an input channel.

The values under the taps of a kernel are neighbours in an image and nearly alike, so
what the errors of these weights add up to counts for more than any of them. Rounded to
the nearest they add up to sqrt(taps / 12) steps; with those nearest to a tie rounded
the other way, to half a step at most.
"""

import numpy as np

from neon8.arrays import DoubleArray, FloatArray, Int8Array
from neon8.quant.weights import HIGHEST, quantize_weights

ERROR_BITS = 40
"""Fraction bits of an error, so that sums are exact in any order."""


def on_balance(weight: FloatArray, scales: DoubleArray) -> Int8Array:
    """Round to the nearest, but for as few weights as keep the errors' sums small.

    weight: (O, I / groups, taps ...), finite; scales: (O,). Of equal errors the first
    tap has its weight moved. One channel at a time, as quantize_weights().
    """
    result = quantize_weights(weight, scales)
    for channel, scale in enumerate(scales):
        levels = result[channel].reshape(len(result[channel]), -1)
        real = weight[channel].reshape(levels.shape).astype(np.float64) / scale
        errors = np.clip(real - levels, -0.5, 0.5)  # a clipped weight stays one
        errors = np.rint(errors * 2.0**ERROR_BITS)
        missing = np.rint(errors.sum(axis=1, keepdims=True) / 2.0**ERROR_BITS)
        towards = np.sign(missing)
        free = (errors * towards > 0) & (np.abs(levels + towards) <= HIGHEST)
        order = np.argsort(np.where(free, -np.abs(errors), 1), axis=1, kind="stable")
        places = np.argsort(order, axis=1, kind="stable")
        moved = free & (places < np.abs(missing))
        levels += (moved * towards).astype(np.int8)
        result[channel] = levels.reshape(result[channel].shape)
    return result
