# SPDX-License-Identifier: Apache-2.0
"""Each kind of step of integers once, after a float tensor "real", to be damaged."""

import numpy as np

from programs import step

INTEGERS = {
    "ids": (6, 1),
    "whole": (1, 4, 6, 6),
    "summed": (1, 4, 6, 6),
    "holds": (1, 4, 6, 6),
    "chosen": (1, 4, 6, 6),
}
FLOATS = {
    "ids32": (6, 1),
}
SHAPES = INTEGERS | FLOATS
OUTPUTS = ("ids32", "chosen")


def ops():
    """The steps, in order of execution."""
    return (
        step("Constant", "ids", levels=np.arange(6, dtype=np.int32)),
        step("ToInteger", "whole", "real"),
        step("ToFloat", "ids32", "ids"),
        step("Integer", "summed", "whole ids", function="add"),
        step("Compare", "holds", "real ids32", function="less"),
        step("Where", "chosen", "holds whole summed"),
    )
