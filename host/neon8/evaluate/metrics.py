# SPDX-License-Identifier: Apache-2.0
"""What int8 costs, one run at a time: docs/evaluation.md says what each figure is.

The metrics are pure functions. Only sums are kept, so memory does not depend on the
number of samples.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from neon8.arrays import Array
from neon8.evaluate import confidence
from neon8.evaluate.confidence import Interval
from neon8.evaluate.detection import Detections
from neon8.evaluate.scores import (
    LEAST,
    Reading,
    is_vector,
    log_scores,
    negative_log_likelihood,
    tied,
)
from neon8.text import UNKNOWN, Fields, Part, Showing, Table, decimals

if TYPE_CHECKING:
    from neon8.evaluate.tasks import TaskFigures

TOP = 5
OUTPUTS = ("output", "SQNR dB", "centred dB", "agreement %")
"""The columns of a table of outputs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFigures:
    """One output.  agreement: None unless it is a vector, a value for each class."""

    name: str
    sqnr_db: float
    sqnr_centred_db: float
    agreement: float | None

    @property
    def judged_db(self) -> float:
        """That of a vector of scores is the centred one."""
        return self.sqnr_db if self.agreement is None else self.sqnr_centred_db


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Evaluation(Showing):
    """n: samples seen; shares are percentages, 0 to 100, and changes are in points.

    None: no labels, or no reference; of agreement also: the first output is no vector,
    a value for each class, but a map or boxes.  *_error: standard errors; *_range: 95 %
    intervals.  sqnr_db, of all outputs together, is infinite where they are equal;
    sqnr_centred_db is of the scores.  gained, lost: samples that this network
    alone gets right, and the reference alone; p: of McNemar's test.  dnll: the mean
    rise of the label's negative log likelihood.  scores: how they were read, and why.
    ties: samples of which several classes share the largest score.  hint: what may be
    wrong with the labels.  outputs: each by itself, empty without a reference.  worst:
    that of which the judged SQNR is the lowest.  tasks: see tasks.py.
    """

    n: int
    top1: float | None
    top5: float | None
    agreement: float | None
    sqnr_db: float | None
    top1_error: float | None = None
    reference_top1: float | None = None
    change: float | None = None
    change_range: Interval | None = None
    gained: int | None = None
    lost: int | None = None
    p: float | None = None
    agreement_range: Interval | None = None
    sqnr_centred_db: float | None = None
    dnll: float | None = None
    dnll_error: float | None = None
    scores: Reading | None = None
    ties: int = 0
    reference_ties: int | None = None
    hint: str | None = None
    outputs: tuple[OutputFigures, ...] = ()
    worst: str | None = None
    detection: Detections | None = None
    tasks: "tuple[TaskFigures, ...]" = ()

    def parts(self) -> list[Part]:
        """The main figures, as far as they are known, then what each output is like."""
        main = ("top1", "top5", "agreement", "sqnr_db")
        more = ("reference_top1", "change", "sqnr_centred_db", "dnll")
        first, second = (
            [(name, decimals(getattr(self, name))) for name in names]
            for names in (main, more)
        )
        tasks = [(each.name, f"{each.mean:.4f}") for each in self.tasks]
        known = [pair for pair in first if pair[1] != UNKNOWN]
        others = [*(pair for pair in second if pair[1] != UNKNOWN), *tasks]
        return [
            Fields([("n", self.n), *known]),
            *([Fields(others)] if others else []),
            *([self.by_output()] if self.outputs else []),
        ]

    def by_output(self) -> Table:
        """What each output is like, the worst first."""
        rows = [
            (
                each.name,
                decimals(each.sqnr_db),
                decimals(each.sqnr_centred_db),
                decimals(each.agreement),
            )
            for each in sorted(self.outputs, key=lambda each: each.judged_db)
        ]
        return Table("outputs", rows, OUTPUTS)


def _added(one: "Sums", other: "Sums") -> dict[str, Any]:
    """The sum of each field."""
    names = [field.name for field in fields(one)]
    return {name: getattr(one, name) + getattr(other, name) for name in names}


@dataclass(frozen=True, slots=True)
class Squares:
    """Sums of squares: of what is wanted, and of what it is missed by."""

    signal: float = 0.0
    noise: float = 0.0

    def __add__(self, other: "Squares") -> "Squares":
        """Add up the samples of both."""
        return Squares(**_added(self, other))

    @property
    def db(self) -> float:
        """The signal to noise ratio."""
        return sqnr_db(self.signal, self.noise)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputSums:
    """Sums of one output.

    centred: without each sample's mean.  compared, agreed: vectors alone.
    """

    whole: Squares = Squares()
    centred: Squares = Squares()
    compared: int = 0
    agreed: int = 0

    def __add__(self, other: "OutputSums") -> "OutputSums":
        """Add up the samples of both."""
        return OutputSums(**_added(self, other))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Sums over the samples seen so far.

    above, below: samples whose top-1 is one more than the label, and one less.
    compared: with a reference; ranked: those that are a vector of scores.  judged,
    rise, rise_squares: of the rise of the label's negative log likelihood.
    """

    n: int = 0
    ties: int = 0
    labelled: int = 0
    top1: int = 0
    top5: int = 0
    above: int = 0
    below: int = 0
    compared: int = 0
    ranked: int = 0
    agreed: int = 0
    reference_ties: int = 0
    reference_top1: int = 0
    gained: int = 0
    lost: int = 0
    judged: int = 0
    rise: float = 0.0
    rise_squares: float = 0.0
    scores: Squares = Squares()
    outputs: tuple[OutputSums, ...] = ()

    def __add__(self, other: "Tally") -> "Tally":
        """Add up the samples of both."""
        if not self.outputs or not other.outputs:
            outputs = self.outputs or other.outputs
        else:
            pairs = zip(self.outputs, other.outputs, strict=True)
            outputs = tuple(mine + theirs for mine, theirs in pairs)
        return Tally(**(_added(self, other) | {"outputs": outputs}))

    @property
    def whole(self) -> Squares:
        """Squares of all outputs together."""
        return sum((each.whole for each in self.outputs), Squares())


Sums = Squares | OutputSums | Tally


def rank(scores: Array, index: int) -> int:
    """The number of entries before `index`: larger, or equal with a lower index.

    scores: any shape, read flat.  NaN is smaller than everything.
    """
    values = _comparable(scores)
    own = values[index]
    return int(np.count_nonzero(values > own)) + int(
        np.count_nonzero(values[:index] == own)
    )


def top1(scores: Array) -> int:
    """Index of the largest entry, the lowest where several are equal."""
    return int(np.argmax(_comparable(scores)))


def _comparable(scores: Array) -> npt.NDArray[np.float64]:
    values = np.asarray(scores, np.float64).reshape(-1)
    return np.where(np.isnan(values), -np.inf, values)


def sqnr_db(signal: float, noise: float) -> float:
    """10 log10(signal / noise); infinite without noise, else -inf without signal."""
    if noise == 0:
        return math.inf
    if signal == 0:
        return -math.inf
    return 10 * (math.log10(signal) - math.log10(noise))


def squares(wanted: Array, got: Array, *, centred: bool = False) -> Squares:
    """Square one sample.  centred: values and errors without their means.

    An error that is not finite is an infinite one.
    """
    want = np.asarray(wanted, np.float64).reshape(-1)
    error = want - np.asarray(got, np.float64).reshape(-1)
    if centred and want.size:
        want, error = want - want.mean(), error - error.mean()
    noise = float(error @ error)
    return Squares(float(want @ want), math.inf if math.isnan(noise) else noise)


def tally_of(
    outputs: Sequence[Array],
    *,
    rows: int = 1,
    labels: Sequence[int] = (),
    reference: Sequence[Array] | None = None,
    reading: Reading | None = None,
    floor: float = LEAST,
) -> Tally:
    """The sums of one run.

    outputs, reference: real values, the first being the one that is classified.  rows:
    how many samples the network takes at once.  labels: the class of each, or none.
    reading: of the scores, for what compares them as logits.  floor: no probability is
    taken for less.
    """
    scores = by_row(outputs[0], rows)
    best = [top1(each) for each in scores]
    places = [rank(each, label) for each, label in zip(scores, labels, strict=False)]
    moved = [mine - label for mine, label in zip(best, labels, strict=False)]
    total = Tally(
        n=rows,
        ties=sum(is_vector(each) and tied(each) for each in scores),
        labelled=len(places),
        top1=sum(place == 0 for place in places),
        top5=sum(place < TOP for place in places),
        above=moved.count(1),
        below=moved.count(-1),
    )
    if reference is None:
        return total
    wanted = by_row(reference[0], rows)
    theirs = [top1(each) for each in wanted]
    hits = [
        (mine == label, other == label)
        for mine, other, label in zip(best, theirs, labels, strict=False)
    ]
    total += Tally(
        compared=len(scores),
        ranked=sum(map(is_vector, wanted)),
        agreed=sum(
            is_vector(each) and mine == other
            for each, mine, other in zip(wanted, best, theirs, strict=True)
        ),
        reference_ties=sum(is_vector(each) and tied(each) for each in wanted),
        reference_top1=sum(other for _, other in hits),
        gained=hits.count((True, False)),
        lost=hits.count((False, True)),
        outputs=tuple(
            _output_sums(want, got, rows)
            for want, got in zip(reference, outputs, strict=True)
        ),
    )
    if reading is None or reading.kind is None:
        return total
    for number, (want, got) in enumerate(zip(wanted, scores, strict=True)):
        mine, other = (log_scores(each, reading.kind, floor) for each in (got, want))
        total += Tally(scores=squares(other, mine, centred=True))
        if number < len(labels):
            label = labels[number]
            rise = negative_log_likelihood(mine, label)
            rise -= negative_log_likelihood(other, label)
            total += Tally(judged=1, rise=rise, rise_squares=rise * rise)
    return total


def _output_sums(wanted: Array, got: Array, rows: int) -> OutputSums:
    pairs = list(zip(by_row(wanted, rows), by_row(got, rows), strict=True))
    total = OutputSums(whole=squares(wanted, got))
    for want, mine in pairs:
        total += OutputSums(centred=squares(want, mine, centred=True))
        if is_vector(want):
            total += OutputSums(compared=1, agreed=int(top1(mine) == top1(want)))
    return total


def by_row(scores: Array, rows: int) -> list[Array]:
    """The scores of each sample; all as one if their first axis is not the samples."""
    return list(scores) if rows > 1 and scores.shape[:1] == (rows,) else [scores]


def summary(
    tally: Tally,
    *,
    names: Sequence[str] = (),
    reading: Reading | None = None,
    hint: str | None = None,
    detection: Detections | None = None,
    tasks: "tuple[TaskFigures, ...]" = (),
) -> Evaluation:
    """The figures that follow from the sums.  names: of the outputs."""
    both = tally.compared > 0 and tally.labelled > 0
    known = tally.compared > 0 and reading is not None and reading.kind is not None
    judged = tally.judged > 0
    change, interval, p = None, None, None
    if both:
        change = 100.0 * (tally.gained - tally.lost) / tally.labelled
        paired = confidence.paired_change(tally.gained, tally.lost, tally.labelled)
        interval, p = paired.times(100), confidence.mcnemar(tally.gained, tally.lost)
    outputs = tuple(
        OutputFigures(
            name=name,
            sqnr_db=each.whole.db,
            sqnr_centred_db=each.centred.db,
            agreement=_percent(each.agreed, each.compared),
        )
        for name, each in zip(names, tally.outputs, strict=False)
    )
    return Evaluation(
        n=tally.n,
        top1=_percent(tally.top1, tally.labelled),
        top5=_percent(tally.top5, tally.labelled),
        agreement=_percent(tally.agreed, tally.ranked),
        sqnr_db=tally.whole.db if tally.compared else None,
        top1_error=100 * confidence.share_error(tally.top1, tally.labelled)
        if tally.labelled
        else None,
        reference_top1=_percent(tally.reference_top1, tally.labelled) if both else None,
        change=change,
        change_range=interval,
        gained=tally.gained if both else None,
        lost=tally.lost if both else None,
        p=p,
        agreement_range=confidence.wilson(tally.agreed, tally.ranked).times(100)
        if tally.ranked
        else None,
        sqnr_centred_db=tally.scores.db if known else None,
        dnll=tally.rise / tally.judged if judged else None,
        dnll_error=confidence.mean_error(tally.rise, tally.rise_squares, tally.judged),
        scores=reading if tally.compared else None,
        ties=tally.ties,
        reference_ties=tally.reference_ties if tally.compared else None,
        hint=hint,
        outputs=outputs,
        worst=min(outputs, key=lambda each: each.judged_db).name if outputs else None,
        detection=detection,
        tasks=tasks,
    )


def _percent(part: int, whole: int) -> float | None:
    return 100.0 * part / whole if whole else None
