# SPDX-License-Identifier: Apache-2.0
"""Detectors: which boxes of the FP32 network the int8 network finds, too.

An output of N anchors has a box and scores for each. What they mean is not in the file:
it is told by the user, or by what the FP32 network gives for the first sample. Boxes
are corners (x1, y1, x2, y2, or y first), a centre and a size, or offsets from the
anchors of an SSD. The anchors of offsets are not in the file either, but two boxes of
one anchor overlap by the same share wherever it is, so these are matched anchor by
anchor.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from neon8.errors import DataError
from neon8.evaluate.scores import SUM_TOLERANCE

Array = npt.NDArray[np.generic]
Float64Array = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.intp]

CORNERS, CENTRE, OFFSETS = "corners", "centre", "offsets"
FIRST, LAST, NONE = "first", "last", "none"
CHOICES = {
    "form": (CORNERS, CENTRE, OFFSETS),
    "background": (FIRST, LAST, NONE),
    "objectness": ("yes", "no"),
}
"""What the keys of an option can be, where they are words."""

SCORE = 0.5
OVERLAP = 0.5
"""The least IoU of boxes that are one object, in suppression and in matching."""
MOST = 1000
"""Boxes of a sample that are looked at, the best: a network can claim an object at each
of its anchors, and suppression compares each with each."""

NEARLY_ALL = 0.99
CENTRE_VARIANCE, SIZE_VARIANCE = 0.1, 0.2
"""Of offsets, as in SSD and nearly all that came after it."""
MOST_GROWTH = 4.0
"""Logarithm of a size over the anchor's; e^4 is as good as infinite."""
BOX = 4
ANCHORS = 8
"""An output of fewer rows is not taken for a detector's unless the user says so."""
PIXELS = 2.0
"""Boxes of an only output reach beyond this, or it may well be a map of shares."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Detections:
    """What the FP32 network finds and what this one does.  found, kept: percentages.

    reference_boxes, boxes, matched: how many.  found: of the boxes of the reference
    those that this network has, of the same class and with an IoU of OVERLAP or more;
    confirmed: of its own boxes those that the reference has.  iou: mean of the matched.
    None: there are no such boxes.  threshold: of the scores.  how: what was compared.
    """

    reference_boxes: int
    boxes: int
    matched: int
    found: float | None
    confirmed: float | None
    iou: float | None
    threshold: float
    how: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """What the user says; "" is for what the first sample shall tell.

    boxes, scores: names of outputs; output: of the one that has both.
    """

    boxes: str = ""
    scores: str = ""
    output: str = ""
    form: str = ""
    background: str = ""
    objectness: str = ""
    threshold: float = SCORE
    off: bool = False


def parse(text: str) -> Option:
    """'none', or 'boxes=b,scores=s,threshold=0.3'.  DataError."""
    if text == NONE:
        return Option(off=True)
    words: dict[str, str] = {}
    threshold = SCORE
    for part in text.split(","):
        key, equals, value = part.partition("=")
        if not equals or not value or key not in Option.__slots__ or key == "off":
            keys = ", ".join(name for name in Option.__slots__ if name != "off")
            raise DataError(
                f"detection: {part!r} is not KEY=VALUE; the keys are {keys}, "
                "and 'none' alone matches no boxes"
            )
        if key == "threshold":
            threshold = _share(value)
            continue
        if value not in CHOICES.get(key, (value,)):
            wanted = ", ".join(CHOICES[key])
            raise DataError(f"detection: {key} {value!r} is not one of {wanted}")
        words[key] = value
    option = replace(_of_words(words), threshold=threshold)
    if option.output and (option.boxes or option.scores):
        text = "output is for boxes and scores in one; give either it, or those two"
        raise DataError(f"detection: {text}")
    if bool(option.boxes) != bool(option.scores):
        raise DataError("detection: boxes and scores are given together")
    return option


def _of_words(words: Mapping[str, str]) -> Option:
    return Option(
        boxes=words.get("boxes", ""),
        scores=words.get("scores", ""),
        output=words.get("output", ""),
        form=words.get("form", ""),
        background=words.get("background", ""),
        objectness=words.get("objectness", ""),
    )


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 1:
        text = f"threshold {text!r} is not a number between 0 and 1"
        raise DataError(f"detection: {text}")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Heads:
    """How the outputs of a detector are read.

    boxes, scores: names of outputs, the same where one has both.  turned: its anchors
    are its last axis.  objectness: the value after the box multiplies the scores.
    """

    boxes: str
    scores: str
    form: str
    background: str
    objectness: bool = False
    turned: bool = False
    threshold: float = SCORE

    @property
    def how(self) -> str:
        """For people."""
        names = repr(self.boxes)
        if self.scores != self.boxes:
            names += f" and {self.scores!r}"
        ground = "no class" if self.background == NONE else f"the {self.background}"
        said = f"{names}: boxes are {self.form}, {ground} is background"
        if self.form == OFFSETS:
            return f"{said}; compared anchor by anchor"
        return f"{said}; after suppression at IoU {OVERLAP}"


def recognise(outputs: Mapping[str, Array], option: Option) -> Heads | None:
    """How to read outputs like these, of the FP32 network and of one sample.

    None: they are not those of a detector, and the user does not say that they are.
    DataError: they are not what the user says.
    """
    if option.off:
        return None
    asked = bool(option.output or option.boxes)
    for name in filter(None, (option.output, option.boxes, option.scores)):
        if name not in outputs:
            names = ", ".join(map(repr, outputs))
            raise DataError(f"detection: no output {name!r}; there are {names}")
    if option.boxes:
        pair: tuple[str, str] | None = (option.boxes, option.scores)
    elif option.output or len(outputs) == 1:
        name = option.output or next(iter(outputs))
        return _single(name, outputs[name], option, asked=asked)
    else:
        pair = _pair(outputs)
    if pair is None:
        return None
    boxes, scores = (_table(outputs[name]) for name in pair)
    shapes = " and ".join(str(list(outputs[name].shape)) for name in pair)
    if boxes.shape[1:] != (BOX,) or len(boxes) != len(scores):
        raise DataError(f"detection: {shapes} are no boxes [N, 4] and scores [N, C]")
    return _heads(pair, boxes, scores, option, asked=asked)


def _table(array: Array) -> Float64Array:
    """(anchors, values) of one sample, without axes of 1 around and between."""
    values = np.asarray(array, np.float64)
    dims = [size for size in values.shape if size != 1]
    if len(dims) == 1:  # one class
        return values.reshape(-1, 1)
    return values.reshape(dims if len(dims) == 2 else (1, -1))


def _pair(outputs: Mapping[str, Array]) -> tuple[str, str] | None:
    """The only output of boxes, and the only one with as many scores.

    Where the scores are four, too, they are those that are shares.
    """
    tables = {name: _table(array) for name, array in outputs.items()}
    boxes = [n for n, t in tables.items() if t.shape[1] == BOX and len(t) >= ANCHORS]
    if len(boxes) == 2:
        boxes = [n for n in boxes if not _distributions(tables[n])]
    if len(boxes) != 1:
        return None
    scores = [
        name
        for name, table in tables.items()
        if name != boxes[0] and len(table) == len(tables[boxes[0]])
    ]
    return (boxes[0], scores[0]) if len(scores) == 1 else None


def _distributions(table: Float64Array) -> bool:
    """True for rows of a Softmax."""
    return bool(table.min() >= 0 and abs(table.sum(axis=1) - 1).max() <= SUM_TOLERANCE)


def _single(name: str, array: Array, option: Option, *, asked: bool) -> Heads | None:
    """Of an output with both: [N, 5 + C] with objectness, or [4 + C, N] without.

    The former is that of YOLOv3 to v5 and v7, the latter that of v8 and later.
    """
    table = _table(array)
    turned = table.shape[0] < table.shape[1]
    table = table.T if turned else table
    objectness = (option.objectness or ("no" if turned else "yes")) == "yes"
    if table.shape[1] < BOX + 1 + objectness or len(table) < ANCHORS:
        if asked:
            text = f"{name!r} {list(array.shape)} has no boxes and scores"
            raise DataError(f"detection: {text}")
        return None
    if not asked and (array.ndim != 3 or table[:, :BOX].max() <= PIXELS):
        return None
    heads = _heads(
        (name, name), table[:, :BOX], table[:, BOX:], option, asked=asked, single=True
    )
    if heads is None:
        return None
    return replace(heads, objectness=objectness, turned=turned)


def _heads(
    names: tuple[str, str],
    boxes: Float64Array,
    scores: Float64Array,
    option: Option,
    *,
    asked: bool,
    single: bool = False,
) -> Heads | None:
    """What the values tell where the user does not."""
    if scores.min(initial=0) < 0 or scores.max(initial=1) > 1:
        if asked:
            text = f"{names[1]!r} holds values outside 0 .. 1, which are no scores yet"
            text += "; cut the network behind its Sigmoid or Softmax"
            raise DataError(f"detection: {text}")
        return None
    form = option.form or _form(boxes)
    if single and form == OFFSETS and not asked:
        return None
    return Heads(
        boxes=names[0],
        scores=names[1],
        form=form,
        background=option.background or (NONE if single else _background(scores)),
        threshold=option.threshold,
    )


def _form(boxes: Float64Array) -> str:
    """Sizes are positive, and so are differences of corners."""
    first, second = boxes[:, :2], boxes[:, 2:]
    if (second >= first).all(axis=1).mean() >= NEARLY_ALL:
        return CORNERS
    return CENTRE if (second >= 0).all(axis=1).mean() >= NEARLY_ALL else OFFSETS


def _background(scores: Float64Array) -> str:
    """Scores of a Softmax have a background: what most anchors see."""
    if scores.shape[1] < 2 or not _distributions(scores):
        return NONE
    best = scores.argmax(axis=1)
    first, last = (np.count_nonzero(best == c) for c in (0, scores.shape[1] - 1))
    return FIRST if first >= last else LAST


@dataclass(frozen=True, slots=True)
class Found:
    """Boxes of one sample, the best first.  boxes: (n, 4) corners; anchors, classes."""

    boxes: Float64Array
    classes: IndexArray
    anchors: IndexArray


def find(heads: Heads, outputs: Mapping[str, Array]) -> Found:
    """The objects in the outputs for one sample."""
    boxes, scores = _table(outputs[heads.boxes]), _table(outputs[heads.scores])
    if heads.boxes == heads.scores:
        table = boxes.T if heads.turned else boxes
        boxes, scores = table[:, :BOX], table[:, BOX:]
    if heads.objectness:
        scores = scores[:, :1] * scores[:, 1:]
    first = 1 if heads.background == FIRST else 0
    scores = scores[:, first : scores.shape[1] - (heads.background == LAST)]
    if scores.shape[1] == 0:
        raise DataError(f"detection: {heads.scores!r} has no class but background")
    classes, best = scores.argmax(axis=1), scores.max(axis=1)
    anchors = np.flatnonzero(best >= heads.threshold)
    anchors = anchors[np.argsort(-best[anchors], kind="stable")][:MOST]
    corners = _corners(boxes[anchors], heads.form)
    found = Found(corners, classes[anchors], anchors)
    return found if heads.form == OFFSETS else _suppressed(found)


def _corners(boxes: Float64Array, form: str) -> Float64Array:
    """Of offsets: in the anchor's own units, its centre being 0 and its size 1."""
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


def iou(ours: Float64Array, theirs: Float64Array) -> Float64Array:
    """(n, m): area shared by boxes (n, 4) and (m, 4) over the area of both."""
    low = np.maximum(ours[:, None, :2], theirs[None, :, :2])
    high = np.minimum(ours[:, None, 2:], theirs[None, :, 2:])
    shared = np.prod(np.maximum(high - low, 0), axis=2)
    area, other = (
        np.prod(np.maximum(each[:, 2:] - each[:, :2], 0), axis=1)
        for each in (ours, theirs)
    )
    covered = area[:, None] + other[None, :] - shared
    result: Float64Array = np.zeros_like(shared)
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
    """Sums over samples.  heads: None until the first, and if it shows no detector."""

    option: Option
    heads: Heads | None = None
    started: bool = False
    reference_boxes: int = 0
    boxes: int = 0
    overlaps: list[float] = field(default_factory=list)

    def add(
        self, reference: Mapping[str, Array], outputs: Sequence[Array], rows: int = 1
    ) -> None:
        """One run.  outputs: in the order of `reference`.  DataError: see recognise."""
        got = dict(zip(reference, outputs, strict=True))
        if not self.started:
            first = {n: _row(array, 0, rows) for n, array in reference.items()}
            self.heads, self.started = recognise(first, self.option), True
        if self.heads is None:
            return
        for row in range(rows):
            ours, theirs = (
                find(self.heads, {n: _row(a, row, rows) for n, a in each.items()})
                for each in (got, reference)
            )
            self.boxes += len(ours.classes)
            self.reference_boxes += len(theirs.classes)
            self.overlaps += matched(self.heads, theirs, ours)

    def result(self) -> Detections | None:
        """The figures; None if it is no detector."""
        if self.heads is None:
            return None
        count = len(self.overlaps)

        def percent(whole: int) -> float | None:
            return 100.0 * count / whole if whole else None

        return Detections(
            reference_boxes=self.reference_boxes,
            boxes=self.boxes,
            matched=count,
            found=percent(self.reference_boxes),
            confirmed=percent(self.boxes),
            iou=sum(self.overlaps) / count if count else None,
            threshold=self.heads.threshold,
            how=self.heads.how,
        )


def _row(array: Array, row: int, rows: int) -> Array:
    """One sample of a batch."""
    return array[row : row + 1] if rows > 1 and array.shape[:1] == (rows,) else array
