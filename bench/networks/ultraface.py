# SPDX-License-Identifier: Apache-2.0
"""Faces from the outputs of UltraFace, the face detector for 320 x 240 pixels.

Its boxes are offsets from anchors, as those of SSD: anchors, variances, thresholds and
non-maximum suppression are those of its own repository.
"""

import numpy as np

WIDTH, HEIGHT = 320, 240
ANCHORS = {8: (10, 16, 24), 16: (32, 48), 32: (64, 96), 64: (128, 192, 256)}
"""Stride of a map: pixels of its anchors, all square."""
CENTER_VARIANCE, SIZE_VARIANCE = 0.1, 0.2
LEAST_SCORE, MOST_OVERLAP = 0.7, 0.3
SHAPES = {"scores": (1, 4420, 2), "boxes": (1, 4420, 4)}


def anchors() -> np.ndarray:
    """Centre and size of each: (4420, 4), x y w h, as parts of the image."""
    found = []
    for stride, sizes in ANCHORS.items():
        for row in range(-(-HEIGHT // stride)):
            for column in range(-(-WIDTH // stride)):
                x, y = (column + 0.5) * stride / WIDTH, (row + 0.5) * stride / HEIGHT
                found += [(x, y, size / WIDTH, size / HEIGHT) for size in sizes]
    return np.clip(np.array(found), 0, 1)


def faces(outputs: dict[str, np.ndarray]) -> np.ndarray:
    """The boxes (n, 4), left top right bottom in parts of the image, surest first."""
    scores, offsets = outputs["scores"][0, :, 1], outputs["boxes"][0].astype(np.float64)
    known = anchors()
    centers = known[:, :2] + offsets[:, :2] * CENTER_VARIANCE * known[:, 2:]
    sizes = known[:, 2:] * np.exp(offsets[:, 2:] * SIZE_VARIANCE)
    boxes = np.concatenate([centers - sizes / 2, centers + sizes / 2], axis=1)
    order = [i for i in np.argsort(-scores, kind="stable") if scores[i] > LEAST_SCORE]
    kept: list[int] = []
    for i in order:
        if all(overlap(boxes[i], boxes[j]) <= MOST_OVERLAP for j in kept):
            kept.append(i)
    return boxes[kept]


def overlap(a: np.ndarray, b: np.ndarray) -> float:
    """Intersection over union."""
    sides = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])
    inside = float(np.prod(np.maximum(sides, 0)))
    both = sum(float(np.prod(box[2:] - box[:2])) for box in (a, b))
    return inside / (both - inside)


def match(wanted: np.ndarray, found: np.ndarray) -> list[float]:
    """Overlaps of the pairs that overlap by more than half, each box used once."""
    left = list(found)
    overlaps = []
    for box in wanted:
        values = [overlap(box, other) for other in left]
        if values and max(values) > 0.5:
            overlaps.append(max(values))
            left.pop(int(np.argmax(values)))
    return overlaps
