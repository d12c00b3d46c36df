# SPDX-License-Identifier: Apache-2.0
"""Thresholds by relative entropy, on the histogram of |x|.

For a candidate of i bins, P is the first i bins, the last one with all that is above; Q
is the same bins without that, merged into `levels` groups and spread again over those
bins of the group that are not empty. The threshold minimises KL(P || Q).

`kl2017` is the pseudo-code of the 2017 TensorRT slides to the letter: zeros in the
first bin, candidates 128 to 2047 of 2048, the first minimum, always 128 levels. `kl`
drops the zeros, goes on to the largest value seen, takes the last minimum, and 256
levels where the scheme is unsigned. 16 bits have more levels than there are bins: both
then take what was seen.
"""

import numpy as np

from neon8.calibrate.statistics.histogram import BINS, Histogram
from neon8.calibrate.statistics.native import divergence
from neon8.calibrate.thresholds.range import minmax

LEVELS = 128
"""Of kl2017, whatever the scheme."""
TIE = 1e-12
"""Entropies this close are equal: logarithms differ by as much between computers."""


def levels_of(scheme: str, bits: int) -> int:
    """Of |x|: those of one side, or all where there is but one."""
    return int(2 ** (bits - (scheme != "unsigned")))


def too_narrow(histogram: Histogram, scheme: str, bits: int) -> bool:
    """True if no bins lie between the levels and the largest value."""
    counts = histogram.positive + histogram.negative
    return int(np.flatnonzero(counts)[-1]) < levels_of(scheme, bits)


def kl(histogram: Histogram, scheme: str, *, bits: int = 8) -> tuple[float, float]:
    """(lo, hi) by the definition above, without zeros."""
    if too_narrow(histogram, scheme, bits):
        return minmax(histogram, scheme)
    counts = (histogram.positive + histogram.negative).astype(np.float64)
    levels = levels_of(scheme, bits)
    used = int(np.flatnonzero(counts)[-1]) + 1
    entropy = divergence(counts, first=levels, last=used, levels=levels)
    least = np.flatnonzero(entropy <= entropy.min() + TIE)
    return _limits(histogram, scheme, levels + int(least[-1]))


def kl2017(histogram: Histogram, scheme: str, *, bits: int = 8) -> tuple[float, float]:
    """(lo, hi) by the slides."""
    if bits != 8:
        return minmax(histogram, scheme)
    counts = (histogram.positive + histogram.negative).astype(np.float64)
    counts[0] += histogram.zeros
    entropy = divergence(counts, first=LEVELS, last=BINS - 1, levels=LEVELS)
    return _limits(histogram, scheme, LEVELS + int(np.argmin(entropy)))


def _limits(histogram: Histogram, scheme: str, bins: int) -> tuple[float, float]:
    lo, hi = minmax(histogram, scheme)
    threshold = (bins + 0.5) * histogram.width
    return max(lo, -threshold), min(hi, threshold)
