# SPDX-License-Identifier: Apache-2.0
"""Softmax of long and short rows, of few and many powers: oracle == library."""

import numpy as np
import pytest

from agreement import agreed
from programs import level, program, step

LENGTHS = (1, 15, 16, 17, 48, 100, 196, 256, 300, 1500)
SCALES = (0.001, 0.02, 0.1, 2.0)
"""Nearly all of 256 powers, some or one give more than 0."""
RANGES = {"ends": (-128, -128, 127), "inside": (-80, -90, 20)}
"""Zero point, lo and hi."""


@pytest.mark.parametrize("ends", RANGES)
@pytest.mark.parametrize("count", LENGTHS)
def test_softmax(count, ends):
    rng = np.random.default_rng(count)
    zero_point, lo, hi = RANGES[ends]
    for scale in SCALES:
        x = level("x", (5, count), scale)
        out = level("y", (5, count), 1 / 256, zero_point=zero_point, lo=lo, hi=hi)
        ops = (step("SoftmaxQ", "y", "x", axis=1),)
        softmax = program((x, out), ops, "x", "y")
        q = rng.integers(-128, 128, (5, count)).clip(x.lo, rng.choice([127, 3, -90]))
        agreed(softmax, {"x": q.astype(np.int8)})
