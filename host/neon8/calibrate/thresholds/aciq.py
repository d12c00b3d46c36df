# SPDX-License-Identifier: Apache-2.0
"""Thresholds for a Gauss or Laplace distribution, whichever is likelier.

R. Banner, Y. Nahshan, E. Hoffer, D. Soudry, "ACIQ: Analytical Clipping for Integer
Quantization of neural networks", 2018, arXiv:1810.05723. Clipping at +-a with 2**M
integer values costs a**2 / (3 * 4**M) by rounding and, for values beyond a,

    Laplace(0, b)    2 * b**2 * exp(-a / b)
    Gauss(0, sigma)  (a**2 + sigma**2) * erfc(a / (sigma * sqrt(2)))
                     - sqrt(2 / pi) * a * sigma * exp(-(a / sigma)**2 / 2)

with the least total at a = constant * b or constant * sigma. b and sigma come from the
histogram; some tools estimate them from the number and the largest of the values, which
says more about outliers than about the rest.

A one-sided tensor is the positive half of a symmetric one with all integer values on
one side, so M is one more. Exact zeros have no error on any grid and are left out.
"""

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from neon8.calibrate.statistics.histogram import BINS, Histogram
from neon8.calibrate.thresholds.minmax import minmax
from neon8.quant.grid import Grid


def aciq(histogram: Histogram, grid: Grid) -> tuple[float, float]:
    """(lo, hi) with the least expected error; never beyond what was seen."""
    lo, hi = minmax(histogram, grid)
    centers = np.arange(BINS) + 0.5
    sides = (histogram.positive, centers), (histogram.negative, -centers)
    count = float(histogram.positive.sum()) + float(histogram.negative.sum())
    middle = 0.0
    if grid.scheme == "asymmetric":
        middle = sum(float(counts @ at) for counts, at in sides) / count
    away = sum(float(counts @ np.abs(at - middle)) for counts, at in sides) / count
    square = sum(float(counts @ (at - middle) ** 2) for counts, at in sides) / count
    sigma = math.sqrt(square + 1 / 12)  # values spread evenly within a bin
    bits = grid.bits + (grid.scheme == "unsigned")
    name, size = likelier(away, sigma)
    reach = constant(name, bits) * size
    low, high = ((middle + side * reach) * histogram.width for side in (-1, 1))
    return max(lo, min(low, 0.0)), min(hi, max(high, 0.0))


def likelier(b: float, sigma: float) -> tuple[str, float]:
    """("laplace", b) or ("gauss", sigma), whichever makes the values more likely.

    b: mean distance of the values from the middle; sigma: root mean square distance.
    The mean log density of a value is -log(2 b) - 1 or -log(sigma sqrt(2 pi)) - 1 / 2.
    """
    laplace = -math.log(2 * b) - 1
    gauss = -math.log(sigma * math.sqrt(2 * math.pi)) - 0.5
    return ("laplace", b) if laplace > gauss else ("gauss", sigma)


@cache
def constant(name: str, bits: int) -> float:
    """The best a for b = 1 or sigma = 1, with 2**bits integer values from -a to a."""
    slope = {"laplace": _laplace_slope, "gauss": _gauss_slope}[name]
    return _root(lambda a: slope(a) + 2 * a / (3 * 4.0**bits))


def _laplace_slope(a: float) -> float:
    return -2 * math.exp(-a)


def _gauss_slope(a: float) -> float:
    density = math.sqrt(2 / math.pi) * math.exp(-a * a / 2)
    return 2 * (a * math.erfc(a / math.sqrt(2)) - density)


def _root(slope: Callable[[float], float]) -> float:
    """The point where `slope`, negative at 0, becomes positive."""
    low, high = 0.0, 64.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    return high
