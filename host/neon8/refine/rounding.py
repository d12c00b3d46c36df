# SPDX-License-Identifier: Apache-2.0
"""Rounding by coordinate descent: weights whose errors cancel on what a layer reads.

Of an output channel with weights w and inputs x, quantization errs by e . x, where
e = w / scale - level. Its mean is what the bias is corrected by; of the rest the square
is, on average, e' H e with H the covariance of x. Rounding to the nearest makes every
e small; here each level may also be the neighbour on the other side, and those are
flipped, that first by which the product falls most, until none is left. It is what
AdaRound (Nagel et al., 2020, arXiv:2004.10568) minimizes, without a relaxation.

H and e are whole numbers in double, so that sums are exact and in no order.
"""

import numpy as np

from neon8.arrays import DoubleArray, Int64Array
from neon8.rewrite.rounding import BoolArray

COVARIANCE_BITS = 20
ERROR_BITS = 16
"""Bits of H, and of e's fraction: with K inputs no sum of e' H reaches K * 2**36."""
MOST_INPUTS = 4608
"""K of 512 channels under 3x3 taps; H of more takes too much memory."""


def covariance(rows: Int64Array) -> DoubleArray:
    """H of each group, whole numbers, (G, K, K).

    rows: (n, G, K) levels less the zero point, of which all sums are exact. Few rows
    show covariances of inputs that have nothing to do with each other, so these are
    taken n / (n + K) of what they seem.
    """
    x = np.ascontiguousarray(rows.transpose(1, 2, 0), np.float64)
    total = x.sum(axis=2)
    result = x.shape[2] * (x @ x.transpose(0, 2, 1))
    result -= total[:, :, None] * total[:, None]
    inputs = np.arange(rows.shape[2])
    own = result[:, inputs, inputs]
    result *= len(rows) / (len(rows) + rows.shape[2])
    result[:, inputs, inputs] = own
    largest = np.maximum(own.max(axis=1), 1)
    scaled: DoubleArray = np.rint(
        result * (2.0**COVARIANCE_BITS / largest[:, None, None])
    )
    return scaled


def descend(
    real: DoubleArray, nearest: DoubleArray, other: DoubleArray, matrix: DoubleArray
) -> BoolArray:
    """Which levels are better not the nearest, (G, O / G, K).

    real: w / scale; nearest, other: the levels to choose from; all (G, O / G, K).
    matrix: (G, K, K), of covariance().
    """
    unit = 2.0**ERROR_BITS
    errors = np.rint((real - nearest) * unit)
    steps = (nearest - other) * unit  # of an error, by its flip
    pulls = errors @ matrix
    chosen = np.zeros(real.shape, bool)
    for group, channel in np.ndindex(real.shape[:2]):
        at = group, channel
        _descend(matrix[group], pulls[at], steps[at], chosen[at])
    return chosen


def _descend(
    matrix: DoubleArray, pull: DoubleArray, step: DoubleArray, chosen: BoolArray
) -> None:
    """Flip, in place, what helps most, as long as anything does.

    pull: H e.  All but the matrix (K,).
    """
    own = 0.5 * np.diagonal(matrix)
    while True:
        gain = step * (pull + step * own)
        k = int(gain.argmin())
        if gain[k] >= 0:
            return
        pull += step[k] * matrix[k]
        step[k] = -step[k]
        chosen[k] = not chosen[k]
