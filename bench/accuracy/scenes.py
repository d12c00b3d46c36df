# SPDX-License-Identifier: Apache-2.0
"""Digits of several sizes on a canvas, and what a detector shall say of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

SIZES = (0.7, 1.6)
"""The size of a digit on the canvas, in parts of its own."""
MOST, TRIES = 4, 20
NOISE = 12.0
WIDE = 1.0
"""Cells from a centre at which a map of scores has fallen to 0.6."""
LEAST = 0.01
"""Lower hills are none."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A canvas (size, size) in uint8, and its digits: (n, 4) x1, y1, x2, y2."""

    canvas: np.ndarray
    boxes: np.ndarray


def scenes(data: Path, size: int, counts: Sequence[int]) -> list[Scene]:
    """So many of each part of the digits in an .npz file, none of which share any."""
    with np.load(data) as arrays:
        digits = np.array_split(arrays["x"], len(counts))
    rng = np.random.default_rng(0)
    return [
        scene(own, size, rng)
        for own, count in zip(digits, counts, strict=True)
        for _ in range(count)
    ]


def scene(digits: np.ndarray, size: int, rng: np.random.Generator) -> Scene:
    """One to MOST of the digits, which do not touch, on a noisy canvas."""
    canvas = np.abs(rng.normal(0, NOISE, (size, size)))
    boxes: list[tuple[int, ...]] = []
    for _ in range(rng.integers(1, MOST + 1)):
        digit = _resized(digits[rng.integers(len(digits))], rng.uniform(*SIZES))
        for _ in range(TRIES):
            x, y = (int(rng.integers(size - side + 1)) for side in digit.shape[::-1])
            box = (x, y, x + digit.shape[1], y + digit.shape[0])
            if not any(_touch(box, other) for other in boxes):
                place = canvas[box[1] : box[3], box[0] : box[2]]
                np.maximum(place, digit, out=place)
                boxes.append(box)
                break
    return Scene(canvas.clip(0, 255).astype(np.uint8), np.array(boxes))


def _resized(digit: np.ndarray, factor: float) -> np.ndarray:
    sides = [round(side * factor) for side in digit.shape[::-1]]
    image = Image.fromarray(digit)
    return np.asarray(image.resize(sides, Image.Resampling.BILINEAR))


def _touch(box: Sequence[int], other: Sequence[int]) -> bool:
    apart = box[2] <= other[0] or other[2] <= box[0]
    return not (apart or box[3] <= other[1] or other[3] <= box[1])


def maps(
    scenes: Sequence[Scene], cells: int
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """What a CenterNet's outputs shall be, and how much each value counts.

    (n, channels, cells, cells) each.  heat: a hill around each centre, 1 on its top,
    hills and what lies between counting half; sizes, offsets: width and height, and the
    centre in its cell, in cells, which count in the cells of centres alone.
    """
    shape = (len(scenes), cells, cells)
    heat, sizes, offsets = np.zeros(shape), np.zeros((*shape, 2)), np.zeros((*shape, 2))
    centres = np.zeros((*shape, 1))
    row, column = np.mgrid[:cells, :cells]
    for number, each in enumerate(scenes):
        for box in each.boxes * cells / len(each.canvas):
            middle = (box[:2] + box[2:]) / 2
            x, y = (int(value) for value in middle)
            far = (column - x) ** 2 + (row - y) ** 2
            heat[number] = np.maximum(heat[number], np.exp(-far / (2 * WIDE**2)))
            at = number, y, x
            sizes[at], offsets[at], centres[at] = box[2:] - box[:2], middle % 1, 1
    hills = heat > LEAST
    counted = hills / hills.sum() + ~hills / np.count_nonzero(~hills)
    found = {"heat": (heat[:, np.newaxis], counted[:, np.newaxis])}
    for name, wanted in (("sizes", sizes), ("offsets", offsets)):
        shares = np.broadcast_to(centres, wanted.shape)
        found[name] = np.moveaxis(wanted, 3, 1), np.moveaxis(shares, 3, 1)
    return found
