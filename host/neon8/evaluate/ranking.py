# SPDX-License-Identifier: Apache-2.0
"""Which of several settings is the best, and what the samples cannot tell.

All settings ran on the same samples, so differences are taken sample by sample: what
is hard for one is hard for all, and that cancels. Of settings a and b with the squared
errors a_i and b_i and their sums A and B, a is better by 10 log10(B / A) dB; its
standard error is that of the linear terms, 10 / ln 10 (b_i / B - a_i / A), which add up
to 0.

Of k settings the best one has k - 1 differences to the others. Each is given the range
of Student's t that fails with a chance of 5 % / (k - 1) (Bonferroni): so all hold
together in 95 of 100 cases. The true best then is among those that no other beats by
more than the range, and a gain over one that was named before holds whichever setting
has it: to have been the best of many is no merit by itself. Settings that make no
difference to a network count as one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from neon8.evaluate.confidence import student

FAILS = 0.05
DB = 10 / math.log(10)


@dataclass(frozen=True, slots=True)
class Gain:
    """db: how much better.  range: +- so much; infinite for a single sample."""

    db: float
    range: float

    @property
    def least(self) -> float:
        """What is sure of it."""
        return self.db - self.range


@dataclass(frozen=True, slots=True)
class Ranking:
    """gains: of each setting, over the baseline.  best: the highest gain.

    contenders: those that may be the best; `best` is one.  advised: the baseline if it
    is a contender; else that contender of which most is sure.
    """

    gains: tuple[Gain, ...]
    best: int
    contenders: frozenset[int]
    advised: int


def rank_settings(errors: Sequence[Sequence[float]], baseline: int) -> Ranking:
    """Judge settings by their squared errors on each sample.

    errors: of each setting, the same samples in the same order, at least one.
    baseline: the setting that is taken unless another is better.
    """
    count = len(errors)
    sums = [math.fsum(each) for each in errors]
    different = len({tuple(each) for each in errors})
    factor = _factor(len(errors[0]), different)

    def gain(a: int, b: int) -> Gain:
        return _gain(errors[a], errors[b], sums[a], sums[b], factor)

    order = sorted(range(count), key=lambda each: sums[each])

    def beaten(a: int) -> bool:
        better = order[: order.index(a)]  # the best first: it beats most of them
        return any(gain(b, a).least > 0 for b in better)

    gains = tuple(gain(each, baseline) for each in range(count))
    contenders = frozenset(each for each in range(count) if not beaten(each))
    advised = baseline
    if baseline not in contenders:
        advised = max(sorted(contenders), key=lambda each: gains[each].least)
    return Ranking(
        gains=gains,
        best=order[0],
        contenders=contenders,
        advised=advised,
    )


def _factor(samples: int, settings: int) -> float:
    """The range in standard errors; infinite where a single sample has none."""
    if samples < 2:
        return math.inf
    return student(1 - FAILS / max(1, settings - 1), samples - 1)


def _gain(
    mine: Sequence[float],
    theirs: Sequence[float],
    own: float,
    other: float,
    factor: float,
) -> Gain:
    """Gain of a setting with the errors `mine`, own together, over another."""
    if mine == theirs:
        return Gain(0.0, 0.0)
    if own == 0 or other == 0:
        return Gain(math.inf if own == 0 else -math.inf, 0.0)
    n = len(mine)
    if n < 2:
        return Gain(DB * math.log(other / own), math.inf)
    terms = (b / other - a / own for a, b in zip(mine, theirs, strict=True))
    squares = math.fsum(term * term for term in terms)
    error = DB * math.sqrt(squares * n / (n - 1))
    return Gain(DB * math.log(other / own), factor * error)
