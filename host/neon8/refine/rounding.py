# SPDX-License-Identifier: Apache-2.0
"""Rounding by coordinate descent: weights whose errors cancel on what a layer reads.

In an output channel with weights w and inputs x, quantization adds an error e . x,
where e = w / scale - q, to the error d that earlier layers have left: what w . x lacks
of the float network. The bias corrects the mean; the rest has a mean square of
e' H e + 2 e' c and more that q does not change, with H the covariance of x and c that
of x and d. Rounding to nearest makes each e small. Here q may also be the neighbour on
the other side: the flip that reduces the figure most is made, and so on until none
does. AdaRound (Nagel et al., 2020, arXiv:2004.10568) minimizes e' H e through a
relaxation.

H and e are integers held in double, so that sums are exact in any order.
"""

import numpy as np

from neon8.arrays import DoubleArray, FloatArray, Int32Array
from neon8.quant.weights import neighbours
from neon8.rewrite.rounding import BoolArray

COVARIANCE_BITS = 20
ERROR_BITS = 16
ONE = 2.0**ERROR_BITS
"""Bits of H, and of e's fraction; with K inputs e' H stays below K * 2**36."""
MISSING_BITS = 16
"""Bits of d, of the row that lacks most."""
CHUNK = 2304
"""Inputs that share a matrix, as many as 256 channels under 3x3 taps."""
PART = 1 << 22
"""Weights that are held in double at once."""


def descend(
    weights: FloatArray,
    scales: DoubleArray,
    rows: Int32Array,
    wanted: DoubleArray,
    *,
    samples: int,
) -> BoolArray:
    """Mark the weights that should not be rounded to nearest, (G, O / G, K).

    scales: of the weights, (G, O / G).  rows: (n, G, K), integer values less the zero
    point.  wanted: their sums in the float network, in units of the accumulator, (n, G,
    O / G).  samples: which the rows are of, equally many of each, one after another.

    Each CHUNK of inputs is chosen by itself; the errors of the others, chosen or still
    nearest, are part of d. So H takes 42 MB a group at most, and 1024 x 9216 weights on
    2500 rows 250 MB beyond what is given.
    """
    inputs = weights.shape[2]
    share = len(rows) / (len(rows) + inputs)
    chosen = np.zeros(weights.shape, bool)
    chunks = [slice(at, at + CHUNK) for at in range(0, inputs, CHUNK)]
    lost = np.array(wanted.transpose(1, 2, 0), order="C")  # d, (G, O / G, n)
    for chunk in chunks:
        x = _columns(rows[..., chunk])
        for part in parts(weights.shape):
            real, nearest, _ = _levels(weights[:, part, chunk], scales[:, part])
            lost[:, part] -= (real if chunk is chunks[0] else nearest) @ x / ONE
    for chunk in chunks:
        x = _columns(rows[..., chunk])
        matrix, unit = covariance(x, share)
        for part in parts(weights.shape):
            real, nearest, other = _levels(weights[:, part, chunk], scales[:, part])
            errors, d, flips = real - nearest, lost[:, part], chosen[:, part, chunk]
            if chunk is not chunks[0]:
                d -= errors @ x / ONE
            steps = nearest - other  # by which a flip changes an error
            pulls = errors @ matrix
            pulls += np.rint(crossed(x, d, samples) * (share * unit * ONE))
            for at in np.ndindex(flips.shape[:2]):
                _descend(matrix[at[0]], pulls[at], steps[at], flips[at])
            if chunk is not chunks[-1]:
                d += np.where(flips, real - other, errors) @ x / ONE
    return chosen


def parts(shape: tuple[int, ...]) -> list[slice]:
    """Channels of each group, to be taken together.  shape: G, O / G, K."""
    groups, channels, inputs = shape
    count = max(1, PART // (groups * inputs))
    return [slice(at, at + count) for at in range(0, channels, count)]


def _levels(
    weights: FloatArray, scales: DoubleArray
) -> tuple[DoubleArray, DoubleArray, DoubleArray]:
    """Weights in steps, the nearest integers and the other neighbours, times ONE."""
    rows = weights.reshape(-1, weights.shape[2])
    nearest, other, real = neighbours(rows, scales.reshape(-1))
    first, second = (
        each.reshape(weights.shape).astype(np.float64) * ONE
        for each in (nearest, other)
    )
    return np.rint(real.reshape(weights.shape) * ONE), first, second


def _columns(rows: Int32Array) -> DoubleArray:
    """(n, G, K) as (G, K, n), less whole numbers near the means."""
    x = np.ascontiguousarray(rows.transpose(1, 2, 0), np.float64)
    x -= np.rint(x.sum(axis=2, keepdims=True) / x.shape[2])
    return x


def covariance(x: DoubleArray, share: float) -> tuple[DoubleArray, DoubleArray]:
    """H of each group, (G, K, K), in integers, and its unit, (G, 1, 1).

    x: (G, K, n), of integers.  share: of covariances; few rows show some even of
    independent inputs. Variances count whole, and the largest is 2**COVARIANCE_BITS.
    """
    total = x.sum(axis=2)
    result = x.shape[2] * (x @ x.transpose(0, 2, 1))
    result -= total[:, :, None] * total[:, None]
    inputs = np.arange(x.shape[1])
    own = result[:, inputs, inputs]
    result *= share
    result[:, inputs, inputs] = own
    unit = 2.0**COVARIANCE_BITS / np.maximum(own.max(axis=1), 1)[:, None, None]
    result *= unit
    return np.rint(result, out=result), unit


def crossed(x: DoubleArray, d: DoubleArray, samples: int) -> DoubleArray:
    """c of each channel, (G, O / G, K), times n squared, as far as it is not chance.

    d: (G, O / G, n).  What independent errors seem to have in common with x differs
    from sample to sample. By the estimator of James and Stein c shrinks by the share
    that this has in its square.
    """
    bits = MISSING_BITS - np.frexp(np.abs(d).max())[1]
    whole = np.rint(np.ldexp(d, bits))
    whole -= np.rint(whole.sum(axis=2, keepdims=True) / whole.shape[2])
    each = whole.shape[2] // samples
    total, squares = np.zeros((*d.shape[:2], x.shape[1])), np.zeros(d.shape[:2])
    for first in range(0, whole.shape[2], each):
        at = np.s_[..., first : first + each]
        part = whole[at] @ x[at].transpose(0, 2, 1)  # exact
        total += part
        squares += _squares(part)
    square = np.maximum(_squares(total), np.finfo(np.float64).tiny)
    chance = (squares - square / samples) * samples / max(samples - 1, 1)
    result = whole.shape[2] * total
    result -= whole.sum(axis=2)[:, :, None] * x.sum(axis=2)[:, None]
    result *= np.clip(1 - chance / square, 0, 1)[:, :, None]
    c: DoubleArray = np.ldexp(result, -bits)
    return c


def _squares(values: DoubleArray) -> DoubleArray:
    """Sums of squares along the last axis, in order."""
    result: DoubleArray = np.add.accumulate(np.square(values), axis=-1)[..., -1]
    return result


def _descend(
    matrix: DoubleArray, pull: DoubleArray, step: DoubleArray, chosen: BoolArray
) -> None:
    """Flip in place the weight that helps most, as long as one does.

    pull: H e + c.  All but the matrix (K,).
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
