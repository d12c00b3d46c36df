# SPDX-License-Identifier: Apache-2.0
"""Guards: checks that keep a method's answer from ruining a network.

A guard that changes something, or finds something that the user should know, leaves a
reason code in the table; neon8.quant.reasons explains the codes.
"""

from bisect import bisect_left

import numpy as np

from neon8.calibrate.statistics.histogram import BINS, Histogram
from neon8.calibrate.thresholds.minmax import minmax
from neon8.quant.grid import Grid

MAX_CLIPPED_ENERGY = 1e-3
"""A share of all energy; in measurements no method that clipped more chose well."""
STEPS = 1024
FEWEST_SAMPLES = 8
FEWEST_VALUES = 1000
FEWEST_BINS = 128
SMALLEST = 1e-26
"""Below this a tensor counts as zero: its scale would be near SMALLEST_SCALE."""

Range = tuple[float, float]


def dead(histogram: Histogram) -> bool:
    """True if all values are practically zero."""
    return max(-histogram.minimum, histogram.maximum) < SMALLEST


def few(histogram: Histogram) -> str | None:
    """The reason code if the values are too few for any method but minmax."""
    if histogram.total < FEWEST_VALUES:
        return "few:values"
    occupied = np.count_nonzero(histogram.positive)
    occupied += np.count_nonzero(histogram.negative)
    return "few:bins" if occupied < FEWEST_BINS else None


def clipped_energy(histogram: Histogram, lo: float, hi: float) -> float:
    """The share of sum(x * x) that values outside [lo, hi] lose by clipping."""
    centers = np.arange(BINS) + 0.5
    lost = total = 0.0
    for counts, limit in ((histogram.positive, hi), (histogram.negative, -lo)):
        over = np.maximum(centers - limit / histogram.width, 0.0)
        lost += float(counts @ (over * over))
        total += float(counts @ (centers * centers))
    return lost / total if total else 0.0


def widen(histogram: Histogram, grid: Grid, limits: Range) -> Range:
    """Widen `limits` until they clip no more than MAX_CLIPPED_ENERGY.

    They move in STEPS equal steps towards limits that clip nothing.
    """
    full = minmax(histogram, grid)

    def moved(step: int) -> Range:
        share = step / STEPS
        return (
            limits[0] + share * (full[0] - limits[0]),
            limits[1] + share * (full[1] - limits[1]),
        )

    def fits(step: int) -> bool:
        return clipped_energy(histogram, *moved(step)) <= MAX_CLIPPED_ENERGY

    return moved(bisect_left(range(STEPS), True, key=fits))
