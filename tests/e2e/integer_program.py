# SPDX-License-Identifier: Apache-2.0
"""Each kind of step of integers once, after a float tensor "real", to be damaged."""

import numpy as np

from neon8.operators.indexed import Places
from programs import step

INTEGERS = {
    "ids": (6, 1),
    "whole": (1, 4, 6, 6),
    "summed": (1, 4, 6, 6),
    "holds": (1, 4, 6, 6),
    "chosen": (1, 4, 6, 6),
    "best": (1, 2, 6, 6),
    "three": (1, 3),
    "pairs": (1, 12),
    "kept": (4, 3),
}
FLOATS = {
    "ids32": (6, 1),
    "rows32": (6, 4),
    "boxes32": (1, 5, 4),
    "scores32": (1, 2, 5),
    "put32": (1, 4, 6, 6),
}
LEVELS = {
    "rows": (1, 3, 6, 6),
    "placed": (1, 4, 6, 6),
}
SHAPES = INTEGERS | FLOATS | LEVELS
OUTPUTS = ("chosen", "ids32", "best", "kept", "put32", "placed")
CHANNELS = Places(outer=36, count=3, inner=1, sizes=(4,)).listed()
PIXELS = Places(outer=1, count=6, inner=4, sizes=(6, 6)).listed()


def ops():
    """The steps, in order of execution."""
    return (
        step("Constant", "ids", levels=np.arange(6, dtype=np.int32)),
        step("ToInteger", "whole", "real"),
        step("ToFloat", "ids32", "ids"),
        step("Integer", "summed", "whole ids", function="add"),
        step("Compare", "holds", "real ids32", function="less"),
        step("Where", "chosen", "holds whole summed"),
        step("Top", "best", "sum", function="maximum"),
        step("Constant", "boxes32", values=np.arange(20, dtype=np.float32)),
        step("Constant", "scores32", values=np.ones(10, np.float32)),
        step(
            "Nms", "kept", "boxes32 scores32", scale=0.5, fill=np.nan, function="none"
        ),
        step("Constant", "three", levels=np.int32([-1, 4, 0])),
        step("Take", "rows", "sum three", indices=CHANNELS),
        step("Put", "placed", "other three rows", indices=CHANNELS, function="none"),
        step("Constant", "pairs", levels=np.arange(12, dtype=np.int32)),
        step("Constant", "rows32", values=np.ones(24, np.float32)),
        step("Put", "put32", "real pairs rows32", indices=PIXELS, function="add"),
    )
