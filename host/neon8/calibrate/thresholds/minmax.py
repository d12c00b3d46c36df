# SPDX-License-Identifier: Apache-2.0
"""Thresholds that cover everything seen."""

from neon8.calibrate.statistics.histogram import Histogram
from neon8.quant.grid import Grid


def minmax(histogram: Histogram, grid: Grid) -> tuple[float, float]:
    """(lo, hi) that clip nothing; both ends of the same size if symmetric."""
    lo, hi = min(histogram.minimum, 0.0), max(histogram.maximum, 0.0)
    if grid.scheme == "symmetric":
        return -max(-lo, hi), max(-lo, hi)
    return lo, hi
