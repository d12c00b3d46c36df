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

SQNR of all outputs together hides what becomes of one of them, and of what it is for.
So each output has a gain of its own, and each task one in its own unit, the mean of the
differences. A setting that is sure to lose in any of them is no contender. A task that
gains is worth more than dB.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from neon8.evaluate.confidence import student
from neon8.evaluate.measure import Figures

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

    @property
    def loses(self) -> bool:
        """True if it is sure to be a loss."""
        return self.db + self.range < 0


@dataclass(frozen=True, slots=True)
class Ranking:
    """gains: of each setting, over the baseline.  best: the highest gain.

    contenders: those that may be the best.  advised: the baseline if it is a contender;
    else that contender of which most is sure.  losses: what each is sure to lose in,
    "output 'y'" or a task; such a setting is neither `best` nor a contender.
    """

    gains: tuple[Gain, ...]
    best: int
    contenders: frozenset[int]
    advised: int
    losses: tuple[tuple[str, ...], ...]


def rank_figures(figures: Sequence[Figures], baseline: int) -> Ranking:
    """Judge settings by what was measured of them on the same samples."""
    first = figures[baseline]
    errors = [each.shares for each in figures]
    tasks = sum(any((each.tasks != first.tasks).any(axis=0)) for each in figures[1:])
    factor = _factor(len(first.squares), len(set(errors)) + tasks)
    wins = [
        math.fsum(max(0.0, gain.least) for gain in _tasks(first, each, factor))
        for each in figures
    ]
    losses = [
        tuple(name for name, gain in changes(first, each).items() if gain.loses)
        for each in figures
    ]
    return rank_settings(errors, baseline, losses=losses, wins=wins)


def changes(before: Figures, after: Figures) -> dict[str, Gain]:
    """The gain of each output in dB and of each task, with its own 95 % range."""
    factor = _factor(len(before.squares), 2)
    found = {}
    for at, name in enumerate(before.outputs):
        theirs, mine = (each.squares[:, at, 1].tolist() for each in (before, after))
        both = math.fsum(mine), math.fsum(theirs)
        found[f"output {name!r}"] = _gain(mine, theirs, *both, factor)
    tasks = zip(before.task_names, _tasks(before, after, factor), strict=True)
    return found | dict(tasks)


def _tasks(before: Figures, after: Figures, factor: float) -> list[Gain]:
    """The mean difference of each task."""
    found, n = [], len(before.tasks)
    for steps in (after.tasks - before.tasks).T.tolist():
        mean = math.fsum(steps) / n
        if not any(steps):
            found.append(Gain(0.0, 0.0))
        elif n < 2:
            found.append(Gain(mean, math.inf))
        else:
            spread = math.fsum((step - mean) ** 2 for step in steps)
            found.append(Gain(mean, factor * math.sqrt(spread / (n - 1) / n)))
    return found


def rank_settings(
    errors: Sequence[Sequence[float]],
    baseline: int,
    *,
    losses: Sequence[tuple[str, ...]] = (),
    wins: Sequence[float] = (),
) -> Ranking:
    """Judge settings by their squared errors on each sample.

    errors: of each setting, the same samples in the same order, at least one.
    baseline: the setting that is taken unless another is better.  losses: see Ranking.
    wins: what is sure of the gains in tasks.
    """
    count = len(errors)
    lost = losses or [()] * count
    won = wins or [0.0] * count
    sums = [math.fsum(each) for each in errors]
    different = len({tuple(each) for each in errors})
    factor = _factor(len(errors[0]), different)

    def gain(a: int, b: int) -> Gain:
        return _gain(errors[a], errors[b], sums[a], sums[b], factor)

    fit = [each for each in range(count) if not lost[each]]  # the baseline is
    order = sorted(fit, key=lambda each: sums[each])

    def beaten(a: int) -> bool:
        better = order[: order.index(a)]  # the best first: it beats most of them
        if a == baseline and any(won[each] > 0 for each in fit):
            return True
        return any(gain(b, a).least > 0 for b in better)

    gains = tuple(gain(each, baseline) for each in range(count))
    most = max(won[each] for each in fit)
    winners = [each for each in fit if won[each] == most > 0]
    contenders = frozenset(each for each in fit if not beaten(each)) | set(winners)
    advised = baseline
    if baseline not in contenders:
        able = winners or sorted(contenders)
        advised = max(able, key=lambda each: gains[each].least)
    return Ranking(
        gains=gains,
        best=order[0],
        contenders=contenders,
        advised=advised,
        losses=tuple(lost),
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
