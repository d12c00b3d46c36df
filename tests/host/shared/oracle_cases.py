# SPDX-License-Identifier: Apache-2.0
"""Single steps for the oracle to run."""

import numpy as np

from neon8.compile import oracle
from neon8.ir.program import Program, Tensor


def tensor(name, shape, *, scale=1.0, zero_point=0, lo=-128, dtype="int8"):
    return Tensor(
        name=name,
        dims=shape,
        dtype=dtype,
        scale=np.float32(scale),
        zero_point=zero_point,
        lo=lo,
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
