# SPDX-License-Identifier: Apache-2.0
"""Thresholds by relative entropy, on the histogram of |x|.

For a candidate of i bins, P is the first i bins, with everything above added to the
last one; Q is the same bins without that, merged into `levels` groups and spread again
over the bins of each group that are not empty. The threshold minimises KL(P || Q).

`kl2017` is the pseudo-code of the 2017 TensorRT slides to the letter: zeros in the
first bin, candidates 128 to 2047 of 2048, the first minimum, always 128 levels. `kl`
drops the zeros, goes on to the largest value seen, takes the last minimum, and has 256
levels where the scheme is unsigned. With 16 bits there are more levels than bins.
"""

import numpy as np

from neon8.calibrate.statistics.histogram import BINS, Histogram
from neon8.calibrate.statistics.native import divergence
from neon8.calibrate.thresholds.minmax import minmax
from neon8.quant.grid import Grid

LEVELS = 128
"""The levels of kl2017, whatever the scheme."""
TIE = 1e-12
"""Entropies this close are equal: logarithms differ that much between computers."""


def kl(histogram: Histogram, grid: Grid) -> tuple[float, float] | None:
    """(lo, hi) by the definition above, without zeros; None: see _too_narrow."""
    if _too_narrow(histogram, grid):
        return None
    counts = (histogram.positive + histogram.negative).astype(np.float64)
    levels = _levels(grid)
    used = int(np.flatnonzero(counts)[-1]) + 1
    entropy = divergence(counts, first=levels, last=used, levels=levels)
    least = np.flatnonzero(entropy <= entropy.min() + TIE)
    return _limits(histogram, grid, levels + int(least[-1]))


def kl2017(histogram: Histogram, grid: Grid) -> tuple[float, float] | None:
    """(lo, hi) by the slides; None: see _too_narrow."""
    if _too_narrow(histogram, grid):
        return None
    counts = (histogram.positive + histogram.negative).astype(np.float64)
    counts[0] += histogram.zeros
    entropy = divergence(counts, first=LEVELS, last=BINS - 1, levels=LEVELS)
    return _limits(histogram, grid, LEVELS + int(np.argmin(entropy)))


def _levels(grid: Grid) -> int:
    """Integer values for |x|: half of them, or all if the grid has only one side."""
    return int(2 ** (grid.bits - (grid.scheme != "unsigned")))


def _too_narrow(histogram: Histogram, grid: Grid) -> bool:
    """True if no bins lie between the levels and the largest value."""
    counts = histogram.positive + histogram.negative
    return int(np.flatnonzero(counts)[-1]) < _levels(grid)


def _limits(histogram: Histogram, grid: Grid, bins: int) -> tuple[float, float]:
    lo, hi = minmax(histogram, grid)
    threshold = (bins + 0.5) * histogram.width
    return max(lo, -threshold), min(hi, threshold)
