# SPDX-License-Identifier: Apache-2.0
"""Boxes and scores that a run is given, whatever they are  (38)."""

import numpy as np
import pytest

from agreement import agreed
from neon8.ir.program import Tensor
from programs import program, real, step

WILD = np.float32([np.nan, np.inf, -np.inf, -0.0, 0, 1e-40, 1e30, -3e38, 1])


def kept(boxes, scores, most, limit, threshold, *, centred=False):
    """The rows that the library and the oracle give."""
    rows = scores.shape[0] * scores.shape[1] * most
    tensors = [
        real("b", boxes.shape),
        real("s", scores.shape),
        Tensor(name="y", dims=(rows, 3), dtype="int32"),
    ]
    op = step(
        "Nms",
        "y",
        "b s",
        scale=np.float32(limit),
        fill=np.float32(threshold),
        function="multiply" if centred else "none",
    )
    net = program(tensors, [op], "b s", "y")
    return agreed(net, {"b": boxes, "s": scores}, isas=[None])["y"].tolist()


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("threshold", [np.nan, 0.25, -np.inf])
def test_wild_values(centred, threshold):
    """Every mix of wild and tame ones, of one image or two, one class or several."""
    rng = np.random.default_rng(11)
    for number in range(40):
        images, classes, size = 1 + number % 2, 1 + number % 3, 1 + number
        boxes = rng.integers(-3, 9, (images, size, 4)).astype(np.float32)
        scores = rng.integers(-4, 5, (images, classes, size)).astype(np.float32) / 4
        for values in (boxes, scores):
            odd = rng.random(values.shape) < rng.choice([0, 0.1, 1])
            values[odd] = rng.choice(WILD, int(odd.sum()))
        limit = rng.choice([0, 0.5, 1, 2])
        most = int(rng.integers(1, size + 1))
        kept(boxes, scores, most, limit, threshold, centred=centred)


def test_what_they_mean():
    """The best first, the first of equal ones, and -1 after the last."""
    boxes = np.float32([[[0, 0, 4, 4], [0, 0, 4, 3], [9, 9, 5, 5], [0, 0, 4, 4]]])
    scores = np.float32([[[1, 2, 0, 2], [np.nan, 3, 3, np.nan]]])
    assert kept(boxes, scores, 3, 0.5, np.nan) == [
        *([0, 0, 1], [0, 0, 2], [0, 1, 1]),
        *([0, 1, 2], [-1, -1, -1], [-1, -1, -1]),
    ]
    assert kept(boxes, scores, 1, 1, 2.5) == [[0, 1, 1], [-1, -1, -1]]
    assert kept(boxes, scores, 2, 0.75, -1) == [  # of which 3/4 is not more
        *([0, 0, 1], [0, 0, 3]),
        *([0, 1, 1], [0, 1, 2]),
    ]
