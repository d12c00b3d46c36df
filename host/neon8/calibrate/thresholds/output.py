# SPDX-License-Identifier: Apache-2.0
"""Thresholds judged by what they do to the layers that read the tensor.

ncnn's EQ runs whole images through each layer for each candidate. Here there are a few
rows of each layer, which hardly ever hold the rare large values, so taken alone they
would vote for a smaller range each time. Therefore they only say how much of an error
the layer passes on to its output, of rounding and of clipping apart. How much error
there is to pass on is the histogram's to say, which has seen all values:

    error = passed on of rounding * rounding + passed on of clipping * clipping

Rounding is measured on each candidate's grid, clipping once, of about the largest 1 %
of the rows' values, since beyond a sensible threshold there may be none.

The weights are those of the network: what rounding them does is the same for all.
"""

from collections.abc import Callable, Sequence

import numpy as np

from neon8.arrays import DoubleArray
from neon8.calibrate.statistics.histogram import BINS, Histogram
from neon8.calibrate.statistics.patches import Patches, outputs
from neon8.calibrate.thresholds.guards import clipped_energy
from neon8.calibrate.thresholds.mse import expected_error
from neon8.quant.grid import Grid

LARGEST = 0.01
SATURATED = 0.9
"""A share of the largest value: many pixels of an image are as bright as can be."""
TIE = 1e-12
"""Relative: errors this close are equal, and the larger range is better."""

Range = tuple[float, float]
Compare = Callable[[DoubleArray, DoubleArray], float]
OutputError = Callable[[Grid, Range], float]
"""The error of a layer's output, from 0, for a tensor's grid and range."""


def output_error(
    histogram: Histogram, layers: Sequence[Patches], *, metric: str = "error"
) -> OutputError | None:
    """How to tell ranges apart, or None if no layer has an output to look at.

    metric: "error", the energy of the error as a share of the output's; "cosine", one
    less the cosine of the angle between the two outputs. The mean over the layers.
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
    """How much of a clipping error the layer passes on: of the output, per energy."""
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
    """Energy of the difference over that of `exact`."""
    return float(np.square(found - exact).sum() / np.square(exact).sum())


def cosine_loss(exact: DoubleArray, found: DoubleArray) -> float:
    """1 - cos of the angle; 1 where `found` is all zeros."""
    size = float(np.sqrt(np.square(exact).sum() * np.square(found).sum()))
    return 1 - float((exact * found).sum()) / size if size else 1.0


def best(candidates: Sequence[Range], errors: Sequence[float]) -> Range:
    """The one with the least error; of equal ones the widest, then the first."""
    most = min(errors) * (1 + TIE)
    equal = [c for c, e in zip(candidates, errors, strict=True) if e <= most]
    return max(equal, key=lambda limits: limits[1] - limits[0])
