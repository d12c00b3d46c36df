# SPDX-License-Identifier: Apache-2.0
"""Indices that a run is given, whatever they are: never a wild read or write  (37)."""

import numpy as np

from agreement import agreed
from neon8.ir.program import Tensor
from neon8.operators.indexed import Places
from programs import program, step

ROWS = 5
WILD = (-(2**31), 2**31 - 1, -1, 0, ROWS, ROWS - 1, -ROWS, -ROWS - 1, 2**16, -(2**16))
TYPES = {
    "int8": {"scale": np.float32(0.1)},
    "int16": {"scale": np.float32(0.1), "lo": -32768, "hi": 32767},
    "float32": {},
    "int32": {},
}


def tensor(name, dims, dtype):
    return Tensor(name=name, dims=dims, dtype=dtype, **TYPES.get(dtype, {}))


def test_what_they_mean():
    """-1 is the last row; what is outside is the nearest row."""
    places = Places(outer=1, count=10, inner=1, sizes=(ROWS,))
    op = step("Take", "y", "x i", indices=places.listed())
    ends = [tensor("x", (1, ROWS), "int32"), tensor("i", (1, 10), "int32")]
    net = program([*ends, tensor("y", (1, 10), "int32")], [op], "x i", "y")
    x = np.arange(ROWS, dtype=np.int32)[None] * 10
    found = agreed(net, {"x": x, "i": np.int32([WILD])})["y"]
    assert found.tolist() == [[0, 40, 40, 0, 40, 40, 0, 0, 40, 0]]
