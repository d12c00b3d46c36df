# SPDX-License-Identifier: Apache-2.0
"""Thresholds by relative entropy, on the histogram of |x|.

For a candidate of i bins, P is the first i bins, the last one with all that is above; Q
is the same bins without that, merged into `levels` groups and spread again over those
bins of the group that are not empty. The threshold minimises KL(P || Q).

`kl2017` is the pseudo-code of the 2017 TensorRT slides to the letter: zeros in the
first bin, candidates 128 to 2047 of 2048, the first minimum, always 128 levels. `kl`
drops the zeros, goes on to the largest value seen, takes the last minimum, and 256
levels where the scheme is unsigned.
"""

import numpy as np
import numpy.typing as npt

from neon8.calibrate.histogram import BINS, Histogram
from neon8.calibrate.thresholds_range import minmax

Float64Array = npt.NDArray[np.float64]

LEVELS = 128
TIE = 1e-12
"""Entropies this close are equal: logarithms differ by as much between computers."""


def kl(histogram: Histogram, scheme: str) -> tuple[float, float]:
    """(lo, hi) by the definition above, without zeros."""
    counts = (histogram.positive + histogram.negative).astype(np.float64)
    levels = 2 * LEVELS if scheme == "unsigned" else LEVELS
    used = int(np.flatnonzero(counts)[-1]) + 1
    if used <= levels:
        return minmax(histogram, scheme)
    candidates = np.arange(levels, used + 1)
    entropy = divergence(counts, candidates, levels)
    last = np.flatnonzero(entropy <= entropy.min() + TIE)[-1]
    return _limits(histogram, scheme, int(candidates[last]))


def kl2017(histogram: Histogram, scheme: str) -> tuple[float, float]:
    """(lo, hi) by the slides."""
    counts = (histogram.positive + histogram.negative).astype(np.float64)
    counts[0] += histogram.zeros
    candidates = np.arange(LEVELS, BINS)
    entropy = divergence(counts, candidates, LEVELS)
    return _limits(histogram, scheme, int(candidates[np.argmin(entropy)]))


def _limits(histogram: Histogram, scheme: str, bins: int) -> tuple[float, float]:
    lo, hi = minmax(histogram, scheme)
    threshold = (bins + 0.5) * histogram.width
    return max(lo, -threshold), min(hi, threshold)


def divergence(
    counts: Float64Array, candidates: npt.NDArray[np.int64], levels: int
) -> Float64Array:
    """KL(P || Q) for each number of bins in `candidates`, infinite where Q = 0 < P.

    counts: (bins,).  Sums over bins come from running totals, so a candidate costs
    `levels` operations: with c the counts, o those above, q a group's count per filled
    bin, KL = (sum of P log P - sum of P log q) / total - log(total) + log(total of Q).
    """
    running = np.concatenate([[0.0], np.cumsum(counts)])
    filled = np.concatenate([[0], np.cumsum(counts > 0)])
    own = np.concatenate([[0.0], np.cumsum(_xlogx(counts))])
    total = running[-1]

    last = counts[candidates - 1]
    inside = running[candidates]
    above = total - inside
    p_log_p = own[candidates] - _xlogx(last) + _xlogx(last + above)

    # Bin j of i belongs to group j * levels // i; these are the groups' first bins.
    splits = -(-np.arange(levels + 1) * candidates[:, np.newaxis] // levels)
    mass = np.diff(running[splits], axis=1)
    bins = np.diff(filled[splits], axis=1)
    per_bin = mass / np.maximum(bins, 1)
    with np.errstate(divide="ignore"):
        logs = np.log(per_bin)
        tail = np.where(last > 0, logs[:, -1], -np.inf)
    groups = np.where(mass > 0, mass * np.where(mass > 0, logs, 0.0), 0.0).sum(axis=1)
    above_log_q = np.where(above > 0, above * np.where(above > 0, tail, 0.0), 0.0)
    log_inside = np.log(np.where(inside > 0, inside, 1.0))
    entropy = (p_log_p - groups - above_log_q) / total - np.log(total) + log_inside
    result: Float64Array = np.where(inside > 0, entropy, np.inf)
    return result


def _xlogx(values: Float64Array) -> Float64Array:
    return values * np.log(np.where(values > 0, values, 1.0))
