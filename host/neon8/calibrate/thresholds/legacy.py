# SPDX-License-Identifier: Apache-2.0
"""TensorRT's legacy calibrator, as far as it was published."""

import numpy as np

from neon8.calibrate.statistics.histogram import BINS, Histogram
from neon8.calibrate.thresholds.minmax import minmax
from neon8.calibrate.thresholds.percentile import edge_above
from neon8.quant.grid import Grid


def legacy(
    histogram: Histogram, grid: Grid, *, percent: float = 99.99, cutoff: float = 1.0
) -> tuple[float, float]:
    """(lo, hi) as TensorRT's IInt8LegacyCalibrator finds them by its quantile.

    That interface has two numbers: a quantile that selects the maximum of the region
    to quantize, and a cutoff, a fraction of the largest value, for a regression that
    may select it instead and that was never published. Here the regression is left
    out: values above cutoff times the largest |x| do not count, and of all others,
    exact zeros included, the quantile of |x| is the threshold. It is rounded up to a
    bin edge and is the same on both sides, whatever the scheme, because that
    calibrator knew symmetric ranges only. percent = 100 with cutoff = 1 is minmax.
    """
    lo, hi = minmax(histogram, grid)
    region = cutoff * max(-lo, hi)
    bins = min(int(np.ceil(region / histogram.width)), BINS)
    both = (histogram.positive + histogram.negative)[:bins]
    others = (1 - percent / 100) * (int(both.sum()) + histogram.zeros) + 1e-6
    t = min(region, edge_above(both, others) * histogram.width)
    return max(lo, -t), min(hi, t)
