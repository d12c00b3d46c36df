# SPDX-License-Identifier: Apache-2.0
"""Small Programs, step by step."""

import numpy as np

from neon8.ir.program import Op, Program, Tensor
from neon8.operators.registry import STEPS

KINDS = {kind.__name__.removesuffix("Op"): kind for kind in STEPS}


def step(kind: str, output: str, inputs: str = "", /, **fields) -> Op:
    """A step named as its output.  kind: its class without "Op"; inputs: words."""
    names = tuple(inputs.split())
    return KINDS[kind](name=output, inputs=names, output=output, **fields)


def level(name, dims, scale=0.1, **fields) -> Tensor:
    """A tensor of int8."""
    return Tensor(name=name, dims=dims, scale=np.float32(scale), **fields)


def real(name, dims) -> Tensor:
    """A tensor of float32."""
    return Tensor(name=name, dims=dims, dtype="float32")


def program(tensors, ops, inputs: str, outputs: str) -> Program:
    """inputs, outputs: words."""
    return Program(
        source_digest="00" * 32,
        tensors={tensor.name: tensor for tensor in tensors},
        ops=tuple(ops),
        inputs=tuple(inputs.split()),
        outputs=tuple(outputs.split()),
    )
