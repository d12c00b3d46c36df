# SPDX-License-Identifier: Apache-2.0
"""Thresholds with the least error at the output of the layers that read the tensor.

ncnn's EQ runs whole images through each layer for each candidate. Here each layer has
a few rows, which hardly ever hold the rare large values; alone they would always favour
a smaller range. So they only say how much of an error the layer passes on to its
output, separately for rounding and for clipping. How large these errors are comes from
the histogram, which has seen all values:

    error = rounding passed on * rounding + clipping passed on * clipping

Rounding is measured on each candidate's grid. Clipping is measured once, on about the
largest 1 % of the rows' values, since a sensible threshold may clip none of them.
Weights are in float: rounding them costs every candidate the same.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from neon8.arrays import DoubleArray
from neon8.calibrate.statistics.histogram import BINS, Histogram
from neon8.calibrate.statistics.patches import Patches, outputs
from neon8.calibrate.thresholds.guards import (
    MAX_CLIPPED_ENERGY,
    Range,
    clipped_energy,
)
from neon8.calibrate.thresholds.minmax import minmax
from neon8.calibrate.thresholds.mse import expected_error, mse
from neon8.quant.grid import Grid

FACTORS = np.linspace(2.0, 0.5, 61)
"""Shares of the range of `mse` that are tried."""
LARGEST = 0.01
"""The share of the rows' values that is clipped to measure clipping."""
SATURATED = 0.9
"""But no higher than this share of the largest value: images have saturated pixels."""
TIE = 1e-12
"""Relative: errors this close are equal, and the larger range is better."""

Compare = Callable[[DoubleArray, DoubleArray], float]
OutputError = Callable[[Grid, Range], float]
"""The error of a layer's output, from 0, for a tensor's grid and range."""


def eq(histogram: Histogram, grid: Grid, error: OutputError) -> Range:
    """(lo, hi) with the least error, from 0.5 to 2 times the range of mse, or minmax.

    None is beyond minmax, where no value would use the integers, or clips more energy
    than the guard allows.
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


def output_error(
    histogram: Histogram, layers: Sequence[Patches], *, metric: str = "error"
) -> OutputError | None:
    """A function that judges ranges, or None if no layer has an output to look at.

    metric: "error", energy of the error over that of the output; "cosine", 1 - cosine
    of the angle between the outputs. The function gives the mean over the layers.
    """
    compare = {"error": error_share, "cosine": cosine_loss}[metric]
    known = [
        (layer, exact)
        for layer in layers
        for exact in (outputs(layer),)
        if layer.rows.any() and exact.any()
    ]
    if not known:
        return None

    clipping = [_clipping(layer, exact, compare) for layer, exact in known]
    energy = _energy(histogram)

    def error(grid: Grid, limits: Range) -> float:
        scale, zero_point = grid.cover(*limits)
        everything = expected_error(histogram, grid, float(scale), zero_point)
        clipped = min(clipped_energy(histogram, *limits) * energy, everything)
        total = 0.0
        for (layer, exact), share in zip(known, clipping, strict=True):
            rows = np.clip(layer.rows, *limits)
            noise = grid.rounded(rows, float(scale), zero_point) - rows
            there = float(np.square(noise).mean())
            if there > 0:
                lost = compare(exact, outputs(layer, layer.rows + noise))
                total += lost / there * (everything - clipped)
            total += share * clipped
        return total / len(known) / histogram.total

    return error


def _clipping(layer: Patches, exact: DoubleArray, compare: Compare) -> float:
    """The error of the output for each unit of energy clipped from the input."""
    sizes = np.abs(layer.rows)
    limit = min(np.quantile(sizes, 1 - LARGEST), SATURATED * sizes.max())
    rows = np.clip(layer.rows.astype(np.float64), -limit, limit)
    there = float(np.square(rows - layer.rows).mean())
    return compare(exact, outputs(layer, rows)) / there if there > 0 else 0.0


def _energy(histogram: Histogram) -> float:
    """Sum of x * x over all values."""
    centers = (np.arange(BINS) + 0.5) * histogram.width
    both = histogram.positive + histogram.negative
    return float(both @ (centers * centers))


def error_share(exact: DoubleArray, found: DoubleArray) -> float:
    """Energy of the difference divided by the energy of `exact`."""
    return float(np.square(found - exact).sum() / np.square(exact).sum())


def cosine_loss(exact: DoubleArray, found: DoubleArray) -> float:
    """1 - cos of the angle; 1 where `found` is all zeros."""
    size = float(np.sqrt(np.square(exact).sum() * np.square(found).sum()))
    return 1 - float((exact * found).sum()) / size if size else 1.0


def best(candidates: Sequence[Range], errors: Sequence[float]) -> Range:
    """The candidate with the least error; of equal ones the widest, then the first."""
    most = min(errors) * (1 + TIE)
    equal = [c for c, e in zip(candidates, errors, strict=True) if e <= most]
    return max(equal, key=lambda limits: limits[1] - limits[0])
