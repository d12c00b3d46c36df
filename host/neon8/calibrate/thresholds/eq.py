# SPDX-License-Identifier: Apache-2.0
"""Thresholds by the least error at the output of the layers that read the tensor."""

from itertools import pairwise

import numpy as np

from neon8.calibrate.statistics.histogram import Histogram
from neon8.calibrate.thresholds.guards import MAX_CLIPPED_ENERGY, clipped_energy
from neon8.calibrate.thresholds.minmax import minmax
from neon8.calibrate.thresholds.mse import mse
from neon8.calibrate.thresholds.output import OutputError, Range, best
from neon8.quant.grid import Grid

FACTORS = np.linspace(2.0, 0.5, 61)


def eq(histogram: Histogram, grid: Grid, error: OutputError) -> Range:
    """(lo, hi) with the least error of those from 0.5 to 2 times the ones of mse.

    Also minmax; none beyond minmax, where there are only levels that nothing uses, and
    none that clips more energy than the guard allows.
    """
    full = minmax(histogram, grid)
    base = mse(histogram, grid)
    candidates = [full]
    for factor in FACTORS.tolist():
        limits = max(full[0], factor * base[0]), min(full[1], factor * base[1])
        if clipped_energy(histogram, *limits) <= MAX_CLIPPED_ENERGY:
            candidates.append(limits)
    ordered = [candidates[0]]
    ordered += [later for former, later in pairwise(candidates) if later != former]
    return best(ordered, [error(grid, limits) for limits in ordered])
