# SPDX-License-Identifier: Apache-2.0
"""Inputs like photographs: smooth, with edges and some noise."""

from collections.abc import Mapping

import numpy as np
from PIL import Image

MEAN, DEVIATION = 0.45, 0.225
"""Statistics of ImageNet's pixels, the same for all colours."""


def images(
    shapes: Mapping[str, tuple[int, ...]], count: int, *, seed: int
) -> list[dict[str, np.ndarray]]:
    """Samples of batch 1.  shapes: input name to C H W."""
    rng = np.random.default_rng(seed)
    return [
        {name: image(rng, shape)[None] for name, shape in shapes.items()}
        for _ in range(count)
    ]


def image(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """One image C H W, float32: coarse and fine blobs, a few rectangles."""
    channels, height, width = shape
    planes = []
    for _ in range(channels):
        plane = np.zeros((height, width), np.float32)
        for cells, strength in ((4, 0.35), (16, 0.2)):
            grid = rng.standard_normal((cells, cells)).astype(np.float32)
            big = Image.fromarray(grid).resize(
                (width, height), Image.Resampling.BICUBIC
            )
            plane += np.float32(strength) * np.asarray(big)
        planes.append(plane)
    picture = np.stack(planes) + MEAN
    for _ in range(3):
        top, left = rng.integers(0, (max(1, height // 2), max(1, width // 2)))
        rows = slice(top, top + rng.integers(1, height // 2 + 1))
        columns = slice(left, left + rng.integers(1, width // 2 + 1))
        picture[:, rows, columns] = rng.uniform(0, 1, (channels, 1, 1))
    picture += rng.normal(0, 0.02, shape)
    return ((np.clip(picture, 0, 1) - MEAN) / DEVIATION).astype(np.float32)
