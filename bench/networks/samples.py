# SPDX-License-Identifier: Apache-2.0
"""Inputs like photographs: smooth, with edges and some noise; waves; and words."""

from collections.abc import Mapping

import numpy as np
from PIL import Image

from bench.networks.builder import Net

MEAN, DEVIATION = 0.45, 0.225
"""Statistics of ImageNet's pixels, the same for all colours."""


def images(
    shapes: Mapping[str, tuple[int, ...]],
    count: int,
    *,
    seed: int,
    words: Mapping[str, int] | None = None,
) -> list[dict[str, np.ndarray]]:
    """Samples of batch 1.

    shapes: input name to C H W, to bands and frames of a spectrogram, or to the length
    of a wave.  words: inputs of integers, and below what they are.
    """
    rng = np.random.default_rng(seed)
    known = words or {}

    def one(name: str, shape: tuple[int, ...]) -> np.ndarray:
        if name in known:
            return rng.integers(0, known[name], shape)
        if len(shape) == 1:
            return wave(rng, *shape)
        return image(rng, (1, *shape))[0] if len(shape) == 2 else image(rng, shape)

    return [
        {name: one(name, shape)[None] for name, shape in shapes.items()}
        for _ in range(count)
    ]


def inputs(net: Net, count: int, *, seed: int) -> list[dict[str, np.ndarray]]:
    """Samples of batch 1 for all inputs of a network."""
    shapes = {name: net.shape(name)[1:] for name in net.inputs}
    return images(shapes, count, seed=seed, words=net.words)


def wave(rng: np.random.Generator, length: int) -> np.ndarray:
    """Five tones that come and go, and some noise; float32, within +-1."""
    at = np.arange(length)
    total = rng.normal(0, 0.01, length)
    for _ in range(5):
        tone = np.sin(at * rng.uniform(0.01, 1) + rng.uniform(0, 6))
        total += 0.15 * tone * np.sin(at * rng.uniform(1, 6) / length) ** 2
    return np.clip(total, -1, 1).astype(np.float32)


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
