# SPDX-License-Identifier: Apache-2.0
"""Detectors without anchors: each cell of a grid has a box, relative to the cell.

grid   centre in cells from the cell's corner, logarithm of the size in cells (YOLOX,
       YuNet); levels of strides 8, 16 and 32 follow each other
sides  distances of the four sides from the cell's corner, in cells (SCRFD)
map    a map of scores whose peaks are centres, one of sizes in cells, and perhaps
       one of the centre within the cell (CenterNet)
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from neon8.arrays import Array, DoubleArray

GRID, SIDES, MAP = "grid", "sides", "map"
STRIDES = (8, 16, 32)
MOST_EACH = 2
"""Anchors of a cell."""
LOCAL = 10.0
"""Distances in cells and logarithms of sizes are smaller than that; pixels are not."""
NEARLY_ALL = 0.99
LEAST_MAP = 8

Size = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Level:
    """Outputs of one stride.  scores: one, or two whose geometric mean counts."""

    boxes: str
    scores: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cells:
    """Where boxes lie: (N, 2) corners of cells as x, y, and (N, 1) their strides."""

    corners: DoubleArray
    strides: DoubleArray


def cells(image: Size, strides: tuple[int, ...] = STRIDES, each: int = 1) -> Cells:
    """Cells of an image, those of the first stride first, row by row.

    each: boxes of a cell, which follow each other.
    """
    corners, sizes = [], []
    for stride in strides:
        rows, columns = (-(-side // stride) for side in image)
        y, x = np.divmod(np.arange(rows * columns), columns)
        corners.append(np.repeat(np.stack((x, y), axis=1), each, axis=0))
        sizes.append(np.full((len(corners[-1]), 1), stride))
    return Cells(
        np.concatenate(corners).astype(np.float64),
        np.concatenate(sizes).astype(np.float64),
    )


def corners(boxes: DoubleArray, form: str, where: Cells) -> DoubleArray:
    """x1, y1, x2, y2 in pixels, of boxes that lie in these cells."""
    first, second = boxes[:, :2], boxes[:, 2:]
    if form == SIDES:
        low, high = where.corners - first, where.corners + second
    else:
        centre = where.corners + first
        size = np.exp(np.minimum(second, LOCAL)) if form == GRID else second
        low, high = centre - size / 2, centre + size / 2
    return np.concatenate((low, high), axis=1) * where.strides


def image_of(count: int, image: Size | None) -> Size | None:
    """The image whose cells of all strides are so many; a square one if it is unknown.

    None: there is none.
    """
    if image is None:
        most = STRIDES[-1]
        each = sum((most // stride) ** 2 for stride in STRIDES)
        side = math.isqrt(count // each) * most
        image = (side, side)
    return image if len(cells(image).corners) == count > 0 else None


def is_grid(boxes: DoubleArray) -> bool:
    """True for centres relative to cells, and not shares of the image or pixels."""
    middle = boxes[:, :2]
    beyond = middle.min() < 0 or middle.max() > 1.5
    return bool(beyond and np.abs(boxes).max() <= LOCAL)


def levels_of(
    tables: Mapping[str, DoubleArray], image: Size | None
) -> tuple[tuple[Level, ...], str, int] | None:
    """Outputs of several strides, their form, and boxes of a cell; None for others.

    tables: (boxes, values) of each output.
    """
    if image is None:
        return None
    for each in range(1, MOST_EACH + 1):
        found = []
        for stride in STRIDES:
            count = len(cells(image, (stride,), each).corners)
            own = {n: t for n, t in tables.items() if len(t) == count}
            boxes = [n for n, t in own.items() if t.shape[1] == 4]
            scores = tuple(n for n, t in own.items() if t.shape[1] == 1 and _shares(t))
            if len(boxes) == 1 and 1 <= len(scores) <= 2:
                found.append(Level(boxes[0], scores))
        if len(found) < len(STRIDES):
            continue
        whole = np.concatenate([tables[level.boxes] for level in found])
        if {len(level.scores) for level in found} == {2}:
            return tuple(found), GRID, each
        if (whole >= 0).mean() >= NEARLY_ALL:
            return tuple(found), SIDES, each
    return None


@dataclass(frozen=True, slots=True)
class Maps:
    """Outputs of a CenterNet; centres: "" if there are none."""

    scores: str
    sizes: str
    centres: str


def maps_of(outputs: Mapping[str, Array]) -> Maps | None:
    """A map of scores and one or two of two channels, all of one size; else None."""
    sizes = {array.shape[2:] for array in outputs.values()}
    plain = all(array.ndim == 4 and len(array) == 1 for array in outputs.values())
    if not plain or len(sizes) != 1 or min(next(iter(sizes))) < LEAST_MAP:
        return None
    scores = [n for n, a in outputs.items() if _shares(a)]
    pairs = [n for n, a in outputs.items() if a.shape[1] == 2]
    # Centres lie within a cell, so they may look like scores, too.
    scores = [n for n in scores if n not in pairs] or scores
    pairs = [n for n in pairs if n not in scores[:1]]
    if len(scores) != 1 or not 1 <= len(pairs) <= 2 or len(outputs) != 1 + len(pairs):
        return None
    pairs.sort(key=lambda name: -float(np.abs(outputs[name]).mean()))
    return Maps(scores[0], pairs[0], pairs[1] if len(pairs) > 1 else "")


def peaks(maps: Maps, outputs: Mapping[str, Array]) -> tuple[DoubleArray, DoubleArray]:
    """Boxes (N, 4) and scores (N, C) of all cells, 0 beside a higher neighbour."""
    heat = np.asarray(outputs[maps.scores], np.float64)[0]
    padded = np.pad(heat, ((0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
    near = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    heat = np.where(heat == near.max(axis=(3, 4)), heat, 0.0)
    flat = [
        np.asarray(outputs[name], np.float64).reshape(2, -1).T
        if name
        else np.full((heat[0].size, 2), 0.5)
        for name in (maps.centres, maps.sizes)
    ]
    return np.concatenate(flat, axis=1), heat.reshape(len(heat), -1).T


def _shares(values: Array) -> bool:
    return bool(values.min() >= 0 and values.max() <= 1)
