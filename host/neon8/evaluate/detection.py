# SPDX-License-Identifier: Apache-2.0
"""Detectors: which boxes of the FP32 network the int8 network finds, too.

The anchors of offsets are not in the file, but two boxes of one anchor overlap by the
same share wherever it is, so these are matched anchor by anchor.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from neon8.arrays import Array, DoubleArray
from neon8.errors import DataError
from neon8.evaluate.grids import Cells, peaks
from neon8.evaluate.grids import corners as in_pixels
from neon8.evaluate.heads import (
    BOX,
    CORNERS,
    FIRST,
    LAST,
    OFFSETS,
    Heads,
    Option,
    recognise,
    table_of,
)

IndexArray = npt.NDArray[np.intp]

OVERLAP = 0.5
"""The least IoU of boxes that are one object, in suppression and in matching."""
MOST = 1000
"""Boxes of a sample that are looked at, the best: a network can claim an object at each
of its anchors, and suppression compares each with each."""

CENTRE_VARIANCE, SIZE_VARIANCE = 0.1, 0.2
"""Variances of offsets, as in SSD and nearly all that came after it."""
MOST_GROWTH = 4.0
"""Logarithm of a size over the anchor's; e^4 is as good as infinite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Detections:
    """What the FP32 network finds and what this one does; shares are percentages.

    reference_boxes, boxes, matched: how many.  found: of the boxes of the reference
    those that this network has, of the same class and with an IoU of OVERLAP or more;
    confirmed: of its own boxes those that the reference has.  f1: twice the matched
    over both.  iou: mean of the matched.  None: there are no such boxes.  threshold: of
    the scores.  how: what was compared.
    """

    reference_boxes: int
    boxes: int
    matched: int
    found: float | None
    confirmed: float | None
    f1: float | None
    iou: float | None
    threshold: float
    how: str


@dataclass(frozen=True, slots=True)
class Found:
    """Boxes of one sample, the best first.  boxes: (n, 4) corners; anchors, classes."""

    boxes: DoubleArray
    classes: IndexArray
    anchors: IndexArray


def find(heads: Heads, outputs: Mapping[str, Array]) -> Found:
    """The objects in the outputs for one sample."""
    boxes, scores = _tables(heads, outputs)
    if heads.objectness:
        scores = scores[:, :1] * scores[:, 1:]
    first = 1 if heads.background == FIRST else 0
    scores = scores[:, first : scores.shape[1] - (heads.background == LAST)]
    if scores.shape[1] == 0:
        raise DataError(f"detection: {heads.scores!r} has no class but background")
    classes, best = scores.argmax(axis=1), scores.max(axis=1)
    anchors = np.flatnonzero(best >= heads.threshold)
    anchors = anchors[np.argsort(-best[anchors], kind="stable")][:MOST]
    if heads.cells is None:
        corners = _corners(boxes[anchors], heads.form)
    else:
        own = Cells(heads.cells.corners[anchors], heads.cells.strides[anchors])
        corners = in_pixels(boxes[anchors], heads.form, own)
    found = Found(corners, classes[anchors], anchors)
    return found if heads.form == OFFSETS else _suppressed(found)


def _tables(
    heads: Heads, outputs: Mapping[str, Array]
) -> tuple[DoubleArray, DoubleArray]:
    """Boxes and scores of one sample, as they are."""
    if heads.maps is not None:
        return peaks(heads.maps, outputs)
    if heads.levels:
        boxes = [table_of(outputs[level.boxes]) for level in heads.levels]
        scores = [
            np.prod([table_of(outputs[name]) for name in level.scores], axis=0)
            ** (1 / len(level.scores))
            for level in heads.levels
        ]
        return np.concatenate(boxes), np.concatenate(scores)
    table, scored = table_of(outputs[heads.boxes]), table_of(outputs[heads.scores])
    if heads.boxes != heads.scores:
        return table, scored
    table = table.T if heads.transposed else table
    return table[:, :BOX], table[:, BOX:]


def _corners(boxes: DoubleArray, form: str) -> DoubleArray:
    """Boxes from offsets, in the anchor's own units: its centre is 0, its size 1."""
    if form == CORNERS:
        return boxes
    centre, size = boxes[:, :2], boxes[:, 2:]
    if form == OFFSETS:
        centre = centre * CENTRE_VARIANCE
        size = np.exp(np.clip(size * SIZE_VARIANCE, -MOST_GROWTH, MOST_GROWTH))
    return np.concatenate((centre - size / 2, centre + size / 2), axis=1)


def _suppressed(found: Found) -> Found:
    """Without boxes that overlap a better one of their class."""
    left = np.arange(len(found.classes))
    kept = []
    while left.size:
        best, left = left[0], left[1:]
        kept.append(best)
        same = found.classes[left] == found.classes[best]
        overlap = iou(found.boxes[[best]], found.boxes[left])[0]
        left = left[~(same & (overlap >= OVERLAP))]
    order = np.array(kept, np.intp)
    return Found(found.boxes[order], found.classes[order], found.anchors[order])


def iou(ours: DoubleArray, theirs: DoubleArray) -> DoubleArray:
    """(n, m): area shared by boxes (n, 4) and (m, 4) over the area of both."""
    low = np.maximum(ours[:, None, :2], theirs[None, :, :2])
    high = np.minimum(ours[:, None, 2:], theirs[None, :, 2:])
    shared = np.prod(np.maximum(high - low, 0), axis=2)
    area, other = (
        np.prod(np.maximum(each[:, 2:] - each[:, :2], 0), axis=1)
        for each in (ours, theirs)
    )
    covered = area[:, None] + other[None, :] - shared
    result: DoubleArray = np.zeros_like(shared)
    np.divide(shared, covered, out=result, where=covered > 0)
    return result


def matched(heads: Heads, reference: Found, found: Found) -> list[float]:
    """The IoU of each pair of boxes that are one object; no box is in two of them.

    Pairs are made from the best overlap down, of those of the same class.
    """
    overlap = iou(reference.boxes, found.boxes)
    allowed = reference.classes[:, None] == found.classes[None, :]
    if heads.form == OFFSETS:
        allowed &= reference.anchors[:, None] == found.anchors[None, :]
    overlap = np.where(allowed & (overlap >= OVERLAP), overlap, 0.0)
    pairs = np.argwhere(overlap > 0)
    order = np.argsort(-overlap[tuple(pairs.T)], kind="stable")
    ours: set[int] = set()
    theirs: set[int] = set()
    values = []
    for row, column in pairs[order].tolist():
        if row not in ours and column not in theirs:
            ours.add(row)
            theirs.add(column)
            values.append(float(overlap[row, column]))
    return values


@dataclass(slots=True)
class Matching:
    """Sums over samples.  heads: None until the first, and if it shows no detector.

    at_sizes: of each size of images, those of the first sample that has it.
    """

    option: Option
    heads: Heads | None = None
    at_sizes: dict[tuple[int, int] | None, Heads | None] = field(default_factory=dict)
    reference_boxes: int = 0
    boxes: int = 0
    overlaps: list[float] = field(default_factory=list)

    def add(
        self,
        reference: Mapping[str, Array],
        outputs: Sequence[Array],
        rows: int = 1,
        image: tuple[int, int] | None = None,
    ) -> None:
        """One run.  outputs: in the order of `reference`.  DataError: see recognise.

        image: rows and columns of the image that the network takes.
        """
        got = dict(zip(reference, outputs, strict=True))
        if image not in self.at_sizes:
            heads = recognise(one_row(reference, 0, rows), self.option, image)
            self.heads = self.heads if self.at_sizes else heads
            self.at_sizes[image] = heads
        heads = self.at_sizes[image]
        if self.heads is None:
            return
        if heads is None:
            text = "detection: the outputs are boxes for the first sample, but not for"
            raise DataError(f"{text} an image of {image}; say how they are read")
        for row in range(rows):
            ours, theirs = (
                find(heads, one_row(each, row, rows)) for each in (got, reference)
            )
            self.boxes += len(ours.classes)
            self.reference_boxes += len(theirs.classes)
            self.overlaps += matched(heads, theirs, ours)

    def result(self) -> Detections | None:
        """The figures; None if it is no detector."""
        if self.heads is None:
            return None
        count = len(self.overlaps)

        def percent(whole: float) -> float | None:
            return 100.0 * count / whole if whole else None

        return Detections(
            reference_boxes=self.reference_boxes,
            boxes=self.boxes,
            matched=count,
            found=percent(self.reference_boxes),
            confirmed=percent(self.boxes),
            f1=percent((self.reference_boxes + self.boxes) / 2),
            iou=sum(self.overlaps) / count if count else None,
            threshold=self.heads.threshold,
            how=self.heads.how,
        )


def one_row(outputs: Mapping[str, Array], row: int, rows: int) -> dict[str, Array]:
    """One sample of a batch."""
    return {
        name: array[row : row + 1] if rows > 1 and array.shape[:1] == (rows,) else array
        for name, array in outputs.items()
    }
