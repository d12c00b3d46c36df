# SPDX-License-Identifier: Apache-2.0
"""Rounding by coordinate descent: weights whose errors cancel on what a layer reads.

In an output channel with weights w and inputs x, quantization adds an error e . x,
where e = w / scale - q. The bias corrects its mean; the rest has a mean square of
e' H e, with H the covariance of x. Rounding to nearest makes each e small. Here q may
also be the neighbour on the other side: the flip that reduces e' H e most is made, and
so on until none does. AdaRound (Nagel et al., 2020, arXiv:2004.10568) minimizes the
same figure through a relaxation.

H and e are integers held in double, so that sums are exact in any order.
"""

import numpy as np

from neon8.arrays import DoubleArray, Int64Array
from neon8.rewrite.rounding import BoolArray

COVARIANCE_BITS = 20
ERROR_BITS = 16
"""Bits of H, and of e's fraction; with K inputs e' H stays below K * 2**36."""
MOST_INPUTS = 4608
"""K of 512 channels under 3x3 taps; a larger H takes too much memory."""


def covariance(rows: Int64Array) -> DoubleArray:
    """H of each group, in integers, (G, K, K).

    rows: (n, G, K), integer values less the zero point. Few rows show covariances even
    of independent inputs, so all but the variances are multiplied by n / (n + K).
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
    """Mark the weights that should not be rounded to nearest, (G, O / G, K).

    real: w / scale; nearest, other: the integers to choose from; all (G, O / G, K).
    matrix: (G, K, K), of covariance().
    """
    one = 2.0**ERROR_BITS
    errors = np.rint((real - nearest) * one)
    steps = (nearest - other) * one  # by which a flip changes an error
    pulls = errors @ matrix
    chosen = np.zeros(real.shape, bool)
    for group, channel in np.ndindex(real.shape[:2]):
        at = group, channel
        _descend(matrix[group], pulls[at], steps[at], chosen[at])
    return chosen


def _descend(
    matrix: DoubleArray, pull: DoubleArray, step: DoubleArray, chosen: BoolArray
) -> None:
    """Flip in place the weight that helps most, as long as one does.

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
