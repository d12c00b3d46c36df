# SPDX-License-Identifier: Apache-2.0
"""Thresholds judged by what they do to the layers that read the tensor.

A layer's rows are rounded on the candidate's grid, its weights on theirs, and its
output is compared with the one in float. This is what ncnn's EQ does with whole images.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from neon8.calibrate.grids import Float64Array, Grid
from neon8.calibrate.guards import MAX_CLIPPED_ENERGY, clipped_energy
from neon8.calibrate.histogram import Histogram
from neon8.calibrate.patches import Patches, outputs
from neon8.calibrate.thresholds_mse import mse
from neon8.calibrate.thresholds_range import minmax
from neon8.quantize.weights import quantize_weights

FACTORS = np.linspace(2.0, 0.5, 61)
TIE = 1e-12
"""Relative: errors this close are equal, and the larger range is better."""

Range = tuple[float, float]
Judge = Callable[[Grid, Range], float]
"""The error of a layer's output, from 0, for a tensor's grid and range."""


def judge(layers: Sequence[Patches], *, metric: str = "error") -> Judge | None:
    """How to tell ranges apart, or None if no layer has an output to look at.

    metric: "error", the energy of the error as a share of the output's; "cosine", one
    less the cosine of the angle between the two outputs. The mean over the layers.
    """
    compare = {"error": error_share, "cosine": cosine_loss}[metric]
    known = []
    for layer in layers:
        exact = outputs(layer)
        if exact.any():
            known.append((layer, _rounded_weights(layer), exact))
    if not known:
        return None

    def error(grid: Grid, limits: Range) -> float:
        scale, zero_point = grid.cover(*limits)
        total = 0.0
        for layer, weights, exact in known:
            rows = grid.rounded(layer.rows, float(scale), zero_point)
            total += compare(exact, outputs(layer, rows, weights))
        return total / len(known)

    return error


def error_share(exact: Float64Array, found: Float64Array) -> float:
    """Energy of the difference over that of `exact`."""
    return float(np.square(found - exact).sum() / np.square(exact).sum())


def cosine_loss(exact: Float64Array, found: Float64Array) -> float:
    """1 - cos of the angle; 1 where `found` is all zeros."""
    size = float(np.sqrt(np.square(exact).sum() * np.square(found).sum()))
    return 1 - float((exact * found).sum()) / size if size else 1.0


def eq(histogram: Histogram, grid: Grid, error: Judge) -> Range:
    """(lo, hi) with the least error of those from 0.5 to 2 times the ones of mse.

    Also minmax; none beyond minmax, where there are only levels that nothing uses, and
    none that clips more energy than the guard allows.
    """
    full = minmax(histogram, grid.scheme)
    base = mse(histogram, grid.scheme, bits=grid.bits)
    candidates = [full]
    for factor in FACTORS.tolist():
        limits = max(full[0], factor * base[0]), min(full[1], factor * base[1])
        if clipped_energy(histogram, *limits) <= MAX_CLIPPED_ENERGY:
            candidates.append(limits)
    ordered = [candidates[0]]
    ordered += [later for former, later in pairwise(candidates) if later != former]
    return best(ordered, [error(grid, limits) for limits in ordered])


def best(candidates: Sequence[Range], errors: Sequence[float]) -> Range:
    """The one with the least error; of equal ones the widest, then the first."""
    most = min(errors) * (1 + TIE)
    equal = [c for c, e in zip(candidates, errors, strict=True) if e <= most]
    return max(equal, key=lambda limits: limits[1] - limits[0])


def _rounded_weights(layer: Patches) -> Float64Array:
    """(C, K): the weights as they come back from int8, absmax per channel."""
    absmax = np.abs(layer.weights).max(axis=1).astype(np.float64)
    scales = np.where(absmax > 0, absmax, 1.0) / 127
    levels = quantize_weights(layer.weights, scales)
    return levels.astype(np.float64) * scales[:, np.newaxis]
