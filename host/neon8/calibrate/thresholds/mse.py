# SPDX-License-Identifier: Apache-2.0
"""Thresholds by mean squared error: rounding inside against clipping outside.

A grid that contains 0 has a step s and n integer values below zero. For many steps and
every n the expected error is computed from running sums, with values spread evenly
within a bin; then once more between the neighbours of the best step. Exact zeros have
no error on any grid. Lengths are in bins, so nothing over- or underflows.
"""

import numpy as np

from neon8.arrays import DoubleArray, Int64Array
from neon8.calibrate.statistics.histogram import Histogram
from neon8.calibrate.statistics.native import squared_error
from neon8.calibrate.thresholds.minmax import minmax
from neon8.quant.grid import Grid

COARSE = 128
FINE = 33
SPLITS = 256
"""All of 8 bits."""


def mse(histogram: Histogram, grid: Grid) -> tuple[float, float]:
    """(lo, hi) of the grid with the least expected squared error."""
    lo, hi = (limit / histogram.width for limit in minmax(histogram, grid))
    levels = grid.steps
    if grid.scheme == "symmetric":
        below = np.array([levels // 2])
    elif grid.scheme == "unsigned":
        below = np.array([0])
    else:
        below = np.rint(np.linspace(0, levels, SPLITS)).astype(np.int64)
    # Rounding the zero point may cost one step of the widest grid that is needed.
    largest = (hi - lo) / (levels - (grid.scheme == "asymmetric"))
    steps = np.linspace(largest, largest / COARSE, COARSE)
    best, _ = _least(histogram, steps, below, levels)
    around = (steps[max(best - 1, 0)], steps[min(best + 1, COARSE - 1)])
    steps = np.linspace(*around, FINE)
    best, split = _least(histogram, steps, below, levels)
    step = float(steps[best]) * histogram.width
    negative = int(below[split])
    return -negative * step, (levels - negative) * step


def expected_error(
    histogram: Histogram, grid: Grid, scale: float, zero_point: int
) -> float:
    """The total squared error of quantizing all values."""
    steps = np.array([scale / histogram.width])
    below = np.array([zero_point - grid.lowest])
    errors = _errors(histogram, steps, below, grid.steps)
    return float(errors[0, 0]) * histogram.width**2


def _least(
    histogram: Histogram,
    steps: DoubleArray,
    below: Int64Array,
    levels: int,
) -> tuple[int, int]:
    """Indices of the least error in steps and below; on a tie the largest step."""
    errors = _errors(histogram, steps, below, levels)
    step, split = np.unravel_index(int(np.argmin(errors)), errors.shape)
    return int(step), int(split)


def _errors(
    histogram: Histogram,
    steps: DoubleArray,
    below: Int64Array,
    levels: int,
) -> DoubleArray:
    """Expected errors, (steps, splits), in bins squared."""
    return squared_error(
        histogram.positive.astype(np.float64),
        histogram.negative.astype(np.float64),
        steps=steps,
        above=levels - below,
        below=below,
    )
