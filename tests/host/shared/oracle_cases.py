# SPDX-License-Identifier: Apache-2.0
"""Single steps for the oracle to run."""

import numpy as np

from neon8.compile import oracle
from neon8.ir.program import Program, Tensor


def tensor(name, shape, *, scale=1.0, zero_point=0, lo=None, dtype="int8"):
    """With all levels of an integer type, unless there are fewer from `lo` on."""
    ends = np.iinfo(dtype if dtype == "int16" else "int8")
    return Tensor(
        name=name,
        dims=shape,
        dtype=dtype,
        scale=np.float32(scale),
        zero_point=zero_point,
        lo=ends.min if lo is None else lo,
        hi=ends.max,
    )


def run(op, tensors, *arrays):
    """One op as a program; returns its only result."""
    inputs = tuple(dict.fromkeys(op.inputs))
    prog = Program(
        source_digest="00" * 32,
        tensors={each.name: each for each in tensors},
        ops=(op,),
        inputs=inputs,
        outputs=(op.output,),
    )
    return oracle.run(prog, dict(zip(inputs, arrays, strict=True)))[op.output]


def int8(values, shape):
    return np.array(values, np.int8).reshape(shape)
