# SPDX-License-Identifier: Apache-2.0
"""How far a figure that was measured on some samples can be trusted.

Pure functions of counts and sums. Shares are 0 to 1.
"""

import math
from dataclasses import dataclass

Z95 = 1.959963984540054
"""Quantile 0.975 of the normal distribution: 95 % lie within so many deviations."""

MOST_FREEDOM = 1000


@dataclass(frozen=True, slots=True)
class Interval:
    """low .. high: 95 of 100 such intervals hold the true value."""

    low: float
    high: float

    def times(self, factor: float) -> "Interval":
        """The interval in another unit."""
        return Interval(self.low * factor, self.high * factor)


def share_error(part: int, whole: int) -> float:
    """The standard error of part / whole, never 0.

    Of two successes and two failures more than there were (Agresti and Coull 1998): the
    plain formula gives 0 for 20 of 20.
    """
    n = whole + 4
    share = (part + 2) / n
    return math.sqrt(share * (1 - share) / n)


def wilson(part: int, whole: int) -> Interval:
    """The 95 % interval of part / whole (Wilson 1927); it stays within 0 .. 1."""
    square = Z95 * Z95
    share = part / whole
    centre = share + square / (2 * whole)
    spread = share * (1 - share) / whole + square / (4 * whole * whole)
    half = Z95 * math.sqrt(spread)
    scale = 1 + square / whole
    low, high = (centre - half) / scale, (centre + half) / scale
    # At the ends the two terms are equal but for rounding.
    return Interval(0.0 if part == 0 else low, 1.0 if part == whole else high)


def mcnemar(gained: int, lost: int) -> float:
    """The exact two-sided p of McNemar's test: the chance of a split as uneven as this.

    gained, lost: the samples that only one of two networks gets right. If both are
    equally good, each such sample is one or the other by the toss of a coin.
    """
    n, few = gained + lost, min(gained, lost)
    logs = math.lgamma(n + 1) - n * math.log(2)
    tail = math.fsum(
        math.exp(logs - math.lgamma(k + 1) - math.lgamma(n - k + 1))
        for k in range(few + 1)
    )
    return min(1.0, 2 * tail)


def paired_change(gained: int, lost: int, whole: int) -> Interval:
    """The 95 % interval of (gained - lost) / whole, of the same samples run twice.

    Half a sample more in each of the four cells, then the normal approximation (Agresti
    and Min 2005); so the interval is no point where no sample changed.
    """
    n = whole + 2
    change = (gained - lost) / n
    error = math.sqrt(max(0.0, gained + lost + 1 - n * change * change)) / n
    return Interval(max(-1.0, change - Z95 * error), min(1.0, change + Z95 * error))


def mean_error(total: float, squares: float, count: int) -> float | None:
    """The standard error of a mean; None for a single value, which has none.

    total, squares: the sum of `count` values and of their squares.
    """
    if count < 2:
        return None
    variance = max(0.0, squares - total * total / count) / (count - 1)
    return math.sqrt(variance / count)


def student(share: float, freedom: int) -> float:
    """The t of Student's distribution that |t| stays below with chance `share`.

    freedom: degrees of it, 1 or more; for more than 1000 that of 1000, a little wide.
    """
    nu = min(freedom, MOST_FREEDOM)
    low, high = 0.0, math.pi / 2
    while True:  # until the doubles between them are used up
        angle = (low + high) / 2
        if angle in (low, high):
            return math.tan(angle) * math.sqrt(nu)
        low, high = (angle, high) if _within(angle, nu) < share else (low, angle)


def _within(angle: float, nu: int) -> float:
    """The chance that |t| < tan(angle) sqrt(nu) (Abramowitz, Stegun 26.7.3, 26.7.4)."""
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = nu % 2
    term = cosine if odd else 1.0
    total = 0.0
    for k in range(1 + odd, nu, 2):
        total += term
        term *= k / (k + 1) * cosine * cosine
    return 2 / math.pi * (angle + sine * total) if odd else sine * total
