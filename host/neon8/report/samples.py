# SPDX-License-Identifier: Apache-2.0
"""What single samples say: those that lose most, and classes that int8 changes."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from neon8.arrays import Array, DoubleArray
from neon8.evaluate.detection import Found, find, one_row
from neon8.evaluate.evaluate import Seen
from neon8.evaluate.heads import OFFSETS
from neon8.evaluate.measure import Figures, sqnr_of, squares_of
from neon8.evaluate.metrics import by_row, top1
from neon8.evaluate.scores import PROBABILITIES, is_vector, log_scores
from neon8.report.facts import Box, Confusion, SampleFacts, Score

TOP = 3
"""How many classes are named of a sample."""
MOST_BOXES = 50
"""How many boxes are drawn of a sample."""
UNIT = 2.0
"""Corners up to this are shares of the image's sides, and larger ones are pixels."""


@dataclass(slots=True, eq=False)
class Kept:
    """A sample that loses much, its image to be made a picture of; see SampleFacts."""

    facts: SampleFacts
    image: Array | None


@dataclass(slots=True, eq=False)
class Book:
    """Collects what is seen, run by run.

    most: how many samples are kept.  worst: these, in no order.
    """

    most: int
    worst: list[tuple[tuple[float, float], int, Kept]] = field(default_factory=list)
    changed: Counter[tuple[int, int]] = field(default_factory=Counter)
    lost: Counter[tuple[int, int]] = field(default_factory=Counter)
    gained: Counter[tuple[int, int]] = field(default_factory=Counter)
    squares: list[DoubleArray] = field(default_factory=list)
    values: list[list[float]] = field(default_factory=list)
    outputs: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    count: int = 0

    def add(self, seen: Seen) -> None:
        """Take in a run."""
        self.outputs, self.tasks = tuple(seen.wanted), seen.tasks
        self.squares.append(_squares(seen, seen.wanted, seen.got))
        self.values.append([float(np.mean(each)) for each in seen.values])
        for row in range(seen.rows):
            self._add(seen, row)

    def _add(self, seen: Seen, row: int) -> None:
        wanted, got = (one_row(e, row, seen.rows) for e in (seen.wanted, seen.got))
        label = next(iter(seen.sample.labels[row:]), None)
        first = self.outputs[0]
        moved = False
        if is_vector(wanted[first]):
            both = top1(wanted[first]), top1(got[first])
            moved = both[0] != both[1]
            if moved:
                self.changed[both] += 1
                self.lost[both] += label == both[0]
                self.gained[both] += label == both[1]
        sqnr = sqnr_of(_squares(seen, wanted, got))
        tasks = {n: v[row] for n, v in zip(seen.tasks, seen.values, strict=True)}
        missed = max((1.0 - v for n, v in tasks.items() if n == "boxes"), default=0.0)
        # The first to lose what the network is for, then the one with most noise.
        order = (-max(missed, float(moved)), sqnr)
        self.count += 1
        full = len(self.worst) >= self.most
        last = max(self.worst, key=lambda each: each[:2], default=None)
        if full and (last is None or last[0] <= order):
            return
        if full and last is not None:
            self.worst.remove(last)
        facts = self._facts(seen, row, wanted, got, sqnr, tasks)
        image = _image(seen, row)
        kept = Kept(facts, None if image is None else image.copy())
        self.worst.append((order, self.count, kept))

    def _facts(
        self,
        seen: Seen,
        row: int,
        wanted: Mapping[str, Array],
        got: Mapping[str, Array],
        sqnr: float,
        tasks: dict[str, float],
    ) -> SampleFacts:
        scores, boxes = [], []
        for each in (wanted, got):
            array = each[self.outputs[0]]
            scores.append(_best(array) if is_vector(array) else ())
            boxes.append(_boxes(seen, each))
        name = seen.sample.name
        return SampleFacts(
            name=f"{name}, row {row}" if seen.rows > 1 else name,
            sqnr_db=sqnr,
            tasks=tasks,
            label=next(iter(seen.sample.labels[row:]), None),
            wanted=scores[0],
            got=scores[1],
            wanted_boxes=boxes[0],
            got_boxes=boxes[1],
        )

    def kept(self) -> list[Kept]:
        """The samples that lose most, the worst first."""
        return [kept for *_, kept in sorted(self.worst, key=lambda each: each[:2])]

    def confusions(self) -> tuple[Confusion, ...]:
        """The changes of class, the most frequent first."""
        return tuple(
            Confusion(
                wanted=both[0],
                got=both[1],
                samples=count,
                lost=self.lost[both],
                gained=self.gained[both],
            )
            for both, count in sorted(
                self.changed.items(), key=lambda each: (-each[1], each[0])
            )
        )

    def figures(self) -> Figures:
        """What was seen, to be ranked beside that of other tables."""
        return Figures(
            squares=np.array(self.squares),
            outputs=self.outputs,
            tasks=np.array(self.values),
            task_names=self.tasks,
        )


def _squares(
    seen: Seen, wanted: Mapping[str, Array], got: Mapping[str, Array]
) -> DoubleArray:
    """As squares_of(); probabilities count by their logarithms."""
    if seen.reading.kind != PROBABILITIES:
        return squares_of(dict(wanted), dict(got))
    first = next(iter(wanted))
    theirs, mine = (
        {**each, first: log_scores(each[first], PROBABILITIES, seen.floor)}
        for each in (wanted, got)
    )
    return squares_of(theirs, mine)


def _best(scores: Array) -> tuple[Score, ...]:
    """The highest scores; of equal ones the lower index comes first."""
    values = np.asarray(scores, np.float64).reshape(-1)
    order = np.argsort(-values, kind="stable")[:TOP].tolist()
    return tuple(Score(index=index, score=float(values[index])) for index in order)


def _boxes(seen: Seen, outputs: Mapping[str, Array]) -> tuple[Box, ...]:
    """The objects that are found, unless nobody knows where they are."""
    if seen.heads is None or seen.heads.form == OFFSETS:
        return ()
    size = _size(seen.sample.inputs)
    if size is None:
        return ()
    found: Found = find(seen.heads, outputs)
    boxes, classes = found.boxes[:MOST_BOXES], found.classes[:MOST_BOXES].tolist()
    if np.abs(boxes).max(initial=0.0) > UNIT:
        height, width = size
        boxes = boxes / np.array([width, height, width, height], np.float64)
    shares = np.clip(boxes, 0, 1).tolist()
    return tuple(
        Box(index=index, left=left, top=top, right=right, bottom=bottom)
        for index, (left, top, right, bottom) in zip(classes, shares, strict=True)
    )


def _pictured(inputs: Mapping[str, Array]) -> list[str]:
    """The inputs that may be images."""
    return [
        name
        for name, array in inputs.items()
        if array.ndim == 4 and (array.shape[1] in (1, 3) or array.shape[3] in (1, 3))
    ]


def _size(inputs: Mapping[str, Array]) -> tuple[int, int] | None:
    """Height and width of the only image."""
    names = _pictured(inputs)
    if len(names) != 1:
        return None
    shape: Sequence[int] = inputs[names[0]].shape
    return (shape[2], shape[3]) if shape[1] in (1, 3) else (shape[1], shape[2])


def _image(seen: Seen, row: int) -> Array | None:
    """The only image of a sample, H W C: uint8 pixels, or what the network takes."""
    names = _pictured(seen.sample.inputs)
    if len(names) != 1:
        return None
    pixels = seen.sample.pixels.get(names[0])
    if pixels is not None:
        return by_row(pixels, seen.rows)[row]
    array = by_row(seen.sample.inputs[names[0]], seen.rows)[row]
    first, height, width = array.shape[-3:]
    planes = array.reshape(first, height, width)
    return planes.transpose(1, 2, 0) if first in (1, 3) else planes
