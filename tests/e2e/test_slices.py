# SPDX-License-Identifier: Apache-2.0
"""Steps that read and write the pieces of a concatenation: oracle == library."""

import numpy as np
import pytest

from agreement import agreed
from programs import level, program, step
from random_program import random_inputs


@pytest.mark.parametrize("channels", [3, 8, 16, 21, 40, 64])
def test_pieces(channels):
    rng = np.random.default_rng(channels)
    piece = (2, channels, 17, 19)
    half = {"scale": np.float32(0.5), "slope": np.float32(0.25)}
    each = {
        "indices": np.arange(channels, dtype=np.int32) // 3,
        "table": rng.integers(-128, 128, (-(-channels // 3), 256), np.int8),
    }
    ops = [
        step("Table", "a", "x", table=rng.integers(-128, 128, 256, np.int8)),
        step("Add", "b", "a x", residual_scale=np.float32(0.7), **half),
        step("Multiply", "c", "x b", **half),
        step("Requantize", "d", "c", **half),
    ]
    if channels > 3:
        ops.append(step("Table", "e", "d", **each))
    pieces = [op.output for op in ops]
    whole = (2, channels * len(pieces), 17, 19)
    ops.append(step("Concat", "y", " ".join(pieces), axis=1))
    tensors = [level(name, piece, zero_point=-3) for name in ["x", *pieces]]
    net = program([*tensors, level("y", whole, zero_point=-3)], ops, "x", "y")
    agreed(net, random_inputs(net, channels), threads=[1, 2])
