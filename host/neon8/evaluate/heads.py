# SPDX-License-Identifier: Apache-2.0
"""Which outputs of a detector are boxes and scores, and how they are read.

An output of N anchors has a box and scores for each. What they mean is not in the file:
it is told by the user, or by what the FP32 network gives for the first sample. Boxes
are corners (x1, y1, x2, y2, or y first), a centre and a size, offsets from the
anchors of an SSD, or relative to the cells of a grid (grids.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from neon8.arrays import Array, DoubleArray
from neon8.errors import DataError
from neon8.evaluate.grids import (
    GRID,
    MAP,
    NEARLY_ALL,
    STRIDES,
    Cells,
    Level,
    Maps,
    Size,
    cells,
    image_of,
    is_grid,
    levels_of,
    maps_of,
)
from neon8.evaluate.scores import SUM_TOLERANCE

CORNERS, CENTRE, OFFSETS = "corners", "centre", "offsets"
FIRST, LAST, NONE = "first", "last", "none"
CHOICES = {
    "form": (CORNERS, CENTRE, OFFSETS, GRID),
    "background": (FIRST, LAST, NONE),
    "objectness": ("yes", "no"),
}
"""What the keys of an option can be, where they are words."""

SCORE = 0.5
BOX = 4
ANCHORS = 8
"""An output of fewer rows is not taken for a detector's unless the user says so."""
PIXELS = 2.0
"""Boxes of an only output reach beyond this, or it may well be a map of shares."""


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
    given: dict[str, Any] = {}
    for part in text.split(","):
        key, equals, value = part.partition("=")
        if not equals or not value or key not in Option.__slots__ or key == "off":
            keys = ", ".join(name for name in Option.__slots__ if name != "off")
            raise DataError(
                f"detection: {part!r} is not KEY=VALUE; the keys are {keys}, "
                "and 'none' alone matches no boxes"
            )
        if value not in CHOICES.get(key, (value,)):
            wanted = ", ".join(CHOICES[key])
            raise DataError(f"detection: {key} {value!r} is not one of {wanted}")
        given[key] = _share(value) if key == "threshold" else value
    option = Option(**given)
    if option.output and (option.boxes or option.scores):
        text = "output is for boxes and scores in one; give either it, or those two"
        raise DataError(f"detection: {text}")
    if bool(option.boxes) != bool(option.scores):
        raise DataError("detection: boxes and scores are given together")
    return option


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

    boxes, scores: names of outputs, the same where one has both.  transposed: its last
    axis is the anchors.  objectness: the value after the box multiplies the scores.
    levels, maps: instead of them, of a detector of several grids or maps.  cells: where
    boxes of a grid lie.
    """

    boxes: str
    scores: str
    form: str
    background: str
    objectness: bool = False
    transposed: bool = False
    threshold: float = SCORE
    levels: tuple[Level, ...] = ()
    maps: Maps | None = None
    cells: Cells | None = None

    @property
    def how(self) -> str:
        """For people."""
        names = repr(self.boxes)
        if self.levels:
            names = f"outputs of strides {', '.join(map(str, STRIDES))}"
        elif self.scores != self.boxes:
            names += f" and {self.scores!r}"
        ground = "no class" if self.background == NONE else f"the {self.background}"
        said = f"{names}: boxes are {self.form}, {ground} is background"
        by = "anchor by anchor" if self.form == OFFSETS else "after suppression"
        return f"{said}; compared {by}"


def recognise(
    outputs: Mapping[str, Array], option: Option, image: Size | None = None
) -> Heads | None:
    """How to read outputs like these, of the FP32 network and of one sample.

    image: rows and columns of the image that the network takes, if it takes one.
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
        return _single(name, outputs[name], option, image, asked=asked)
    else:
        pair = _pair(outputs)
    if pair is None:
        return _cells(outputs, option, image)
    boxes, scores = (table_of(outputs[name]) for name in pair)
    shapes = " and ".join(str(list(outputs[name].shape)) for name in pair)
    if boxes.shape[1:] != (BOX,) or len(boxes) != len(scores):
        raise DataError(f"detection: {shapes} are no boxes [N, 4] and scores [N, C]")
    heads = _heads(pair, boxes, scores, option, asked=asked)
    return None if heads is None else _in_cells(heads, len(boxes), image)


def _cells(
    outputs: Mapping[str, Array], option: Option, image: Size | None
) -> Heads | None:
    """Several outputs of a detector without anchors; None if they are others."""
    tables = {name: table_of(array) for name, array in outputs.items()}
    found = levels_of(tables, image)
    if found is not None and image is not None:
        levels, form, each = found
        return Heads(
            boxes=levels[0].boxes,
            scores=levels[0].scores[0],
            form=form,
            background=NONE,
            threshold=option.threshold,
            levels=levels,
            cells=cells(image, each=each),
        )
    maps = maps_of(outputs)
    if maps is None:
        return None
    return Heads(
        boxes=maps.sizes,
        scores=maps.scores,
        form=MAP,
        background=NONE,
        threshold=option.threshold,
        maps=maps,
        cells=cells(outputs[maps.scores].shape[2:], (1,)),
    )


def table_of(array: Array) -> DoubleArray:
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
    tables = {name: table_of(array) for name, array in outputs.items()}
    boxes = [n for n, t in tables.items() if t.shape[1] == BOX and len(t) >= ANCHORS]
    if len(boxes) == 2:
        boxes = [n for n in boxes if not are_distributions(tables[n])]
    if len(boxes) != 1:
        return None
    scores = [
        name
        for name, table in tables.items()
        if name != boxes[0] and len(table) == len(tables[boxes[0]])
    ]
    return (boxes[0], scores[0]) if len(scores) == 1 else None


def are_distributions(table: DoubleArray) -> bool:
    """True for shares that add up to 1 along the last axis, as those of a Softmax."""
    sums = table.sum(axis=-1)
    return bool(table.min() >= 0 and abs(sums - 1).max() <= SUM_TOLERANCE)


def _single(
    name: str, array: Array, option: Option, image: Size | None, *, asked: bool
) -> Heads | None:
    """Read an output with both: [N, 5 + C] with objectness, or [4 + C, N] without.

    The former is that of YOLOv3 to v5, v7 and YOLOX, the latter of v8 and later.
    """
    table = table_of(array)
    transposed = table.shape[0] < table.shape[1]
    table = table.T if transposed else table
    objectness = (option.objectness or ("no" if transposed else "yes")) == "yes"
    if table.shape[1] < BOX + 1 + objectness or len(table) < ANCHORS:
        if asked:
            text = f"{name!r} {list(array.shape)} has no boxes and scores"
            raise DataError(f"detection: {text}")
        return None
    whole = image_of(len(table), image) is not None
    if whole and not option.form and is_grid(table[:, :BOX]):
        option = replace(option, form=GRID)
    pixels = option.form == GRID or table[:, :BOX].max() > PIXELS
    if not asked and (array.ndim != 3 or not pixels):
        return None
    heads = _heads(
        (name, name), table[:, :BOX], table[:, BOX:], option, asked=asked, single=True
    )
    if heads is None:
        return None
    heads = _in_cells(heads, len(table), image)
    return replace(heads, objectness=objectness, transposed=transposed)


def _in_cells(heads: Heads, count: int, image: Size | None) -> Heads:
    """With the cells of a grid, if that is its form.  DataError."""
    if heads.form != GRID:
        return heads
    size = image_of(count, image)
    if size is None:
        text = f"{count} boxes are not one for each cell of strides 8, 16 and 32"
        raise DataError(f"detection: {heads.boxes!r}: {text}")
    return replace(heads, cells=cells(size))


def _heads(
    names: tuple[str, str],
    boxes: DoubleArray,
    scores: DoubleArray,
    option: Option,
    *,
    asked: bool,
    single: bool = False,
) -> Heads | None:
    """What the values tell where the user does not."""
    if scores.min(initial=0) < 0 or scores.max(initial=1) > 1:
        if asked:
            text = f"{names[1]!r} holds values outside 0 .. 1, which are no scores yet"
            text += "; cut the network after its Sigmoid or Softmax"
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


def _form(boxes: DoubleArray) -> str:
    """Sizes are positive, and so are differences of corners."""
    first, second = boxes[:, :2], boxes[:, 2:]
    if (second >= first).all(axis=1).mean() >= NEARLY_ALL:
        return CORNERS
    return CENTRE if (second >= 0).all(axis=1).mean() >= NEARLY_ALL else OFFSETS


def _background(scores: DoubleArray) -> str:
    """Scores of a Softmax have a background: what most anchors see."""
    if scores.shape[1] < 2 or not are_distributions(scores):
        return NONE
    best = scores.argmax(axis=1)
    first, last = (np.count_nonzero(best == c) for c in (0, scores.shape[1] - 1))
    return FIRST if first >= last else LAST
