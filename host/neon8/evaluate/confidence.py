# SPDX-License-Identifier: Apache-2.0
"""How far a figure that was measured on some samples can be trusted.

Pure functions of counts and sums. Shares are 0 to 1.
"""

import math
from dataclasses import dataclass

Z95 = 1.959963984540054
"""Quantile 0.975 of the normal distribution: 95 % lie within so many deviations."""

ONE_SIDE = 0.025
NOTHING = 1e-18
"""A smaller share of a sum does not change it."""
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
    return min(1.0, 2 * _at_most(min(gained, lost), gained + lost, 0.5))


def _at_most(part: int, whole: int, share: float) -> float:
    """The chance of `part` successes or fewer; for part <= whole * share."""
    term = math.exp(
        math.lgamma(whole + 1)
        - math.lgamma(part + 1)
        - math.lgamma(whole - part + 1)
        + part * math.log(share)
        + (whole - part) * math.log1p(-share)
    )
    terms = [term]
    for k in range(part, 0, -1):
        term *= k / (whole - k + 1) * (1 - share) / share
        terms.append(term)
        if term <= NOTHING * terms[0]:
            break
    return math.fsum(terms)


def _highest(part: int, whole: int) -> float:
    """The share of which `part` of `whole` or fewer come up in 2.5 of 100 cases."""
    low, high = part / whole, 1.0
    while low < (middle := (low + high) / 2) < high:
        few = _at_most(part, whole, middle) < ONE_SIDE
        low, high = (low, middle) if few else (middle, high)
    return high


def paired_change(gained: int, lost: int, whole: int) -> Interval:
    """The 95 % interval of (gained - lost) / whole, of the same samples run twice.

    It excludes 0 where mcnemar() is below 0.05, and nowhere else: the interval of
    gained / (gained + lost) is that of the same test (Clopper and Pearson 1934). That
    of (gained + lost) / whole is Wilson's, and the distances of both from their
    estimates are combined by squares (Zou and Donner 2008), of logarithms at the end
    beside 0, which it cannot pass.
    """
    if lost > gained:
        mirrored = paired_change(lost, gained, whole)
        return Interval(-mirrored.high, -mirrored.low)
    changed = gained + lost
    rates = wilson(changed, whole)
    if not changed:
        return Interval(-rates.high, rates.high)
    rate, lead = changed / whole, (gained - lost) / changed
    most = 2 * _highest(gained, changed) - 1
    least = 1 - 2 * _highest(lost, changed)
    high = math.hypot(rate * (most - lead), lead * (rates.high - rate))
    if least > 0:
        near = math.hypot(math.log(lead / least), math.log(rate / rates.low))
        low = rate * lead * math.exp(-near)
    else:
        low = rate * lead - math.hypot(rate * (lead - least), lead * (rate - rates.low))
    return Interval(max(-1.0, low), min(1.0, rate * lead + high))


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
