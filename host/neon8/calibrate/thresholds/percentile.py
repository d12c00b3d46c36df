# SPDX-License-Identifier: Apache-2.0
"""Thresholds that cover all but a small share of what was seen."""

import numpy as np

from neon8.arrays import UInt64Array
from neon8.calibrate.statistics.histogram import Histogram
from neon8.calibrate.thresholds.minmax import minmax
from neon8.quant.grid import Grid


def percentile(
    histogram: Histogram, grid: Grid, *, percent: float = 99.99, of: str = "nonzero"
) -> tuple[float, float]:
    """(lo, hi) that keep `percent` of the values.

    of: "nonzero", the values that are not 0, or "all".

    Symmetric and unsigned: the smallest bin edge t with P(|x| <= t) >= percent / 100.
    Asymmetric: at most half of the rest is beyond each end.
    """
    lo, hi = minmax(histogram, grid)
    total = int(histogram.positive.sum()) + int(histogram.negative.sum())
    total += histogram.zeros if of == "all" else 0
    others = (1 - percent / 100) * total + 1e-6  # the share is not exact, counts are
    if grid.scheme == "asymmetric":
        return (
            max(lo, -edge_above(histogram.negative, others / 2) * histogram.width),
            min(hi, edge_above(histogram.positive, others / 2) * histogram.width),
        )
    both = histogram.positive + histogram.negative
    t = min(hi, edge_above(both, others) * histogram.width)
    return (-t if grid.scheme == "symmetric" else 0.0), t


def edge_above(counts: UInt64Array, others: float) -> int:
    """The first bin edge that has at most `others` values above it."""
    above = np.concatenate([np.cumsum(counts[::-1])[::-1], [np.uint64(0)]])
    return int(np.argmax(above <= others))
