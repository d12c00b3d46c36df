# SPDX-License-Identifier: Apache-2.0
"""The values that a tensor can have, as the library tells from the steps before it."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from neon8.compile import oracle, writer
from neon8.ir.program import Program, Tensor
from neon8.operators.arithmetic import MaximumOp
from neon8.operators.conversion import QuantizeOp, RequantizeOp
from neon8.operators.movement import ConcatOp
from neon8.operators.pointwise import TableOp
from neon8.operators.pooling import PoolOp
from neon8.operators.selection import GatherOp
from neon8.runtime import Model
from random_program import random_inputs, random_program


def codes_of(program: Program) -> dict[str, tuple[int, int]]:
    """The range of each tensor that a step makes."""
    with Model.from_bytes(writer.dumps(program)) as model:
        return {step.output: step.codes for step in model.steps if step.quantized}


@settings(max_examples=12)
@given(seed=st.integers(0, 2**32 - 1))
def test_no_value_is_outside(seed):
    program = random_program(seed)
    codes = codes_of(program)
    values = {
        name: oracle.taken(program.tensors[name], random_inputs(program, seed))
        for name in program.inputs
    }
    for op in program.ops:
        out = program.tensors[op.output]
        operands = [values[name] for name in op.inputs]
        values[op.output] = oracle.step(program, op, out, operands)
        if op.output in codes:
            lo, hi = codes[op.output]
            assert lo <= values[op.output].min(), op
            assert hi >= values[op.output].max(), op


SHAPES = {"both": (1, 16, 4, 4), "taken": (1, 16, 4, 4)}
NAMES = ("x", "low", "high", "pooled", "both", "taken", "mapped", "larger", "cut")
HALF = np.float32(0.5)


def test_ranges_are_as_narrow_as_the_steps_tell():
    """Of each kind of step that can narrow a range, or widens it by what it adds."""
    window = {"kernel": (2, 2), "strides": (1, 1), "dilations": (1, 1)}
    rescale = {"inputs": ("x",), "scale": HALF}
    lists = [[0], range(16), [0, 1, 2, -1], range(4)]
    table = np.arange(-128, 128).clip(-7, 99).astype(np.int8)
    ops = (
        QuantizeOp(name="x", inputs=("image",), output="x"),
        RequantizeOp(name="low", output="low", lo=-40, hi=-20, **rescale),
        RequantizeOp(name="high", output="high", lo=0, hi=50, **rescale),
        PoolOp(
            name="pooled",
            inputs=("high",),
            output="pooled",
            kind="max",
            pads=(1, 1, 0, 0),
            lo=-127,
            hi=45,
            **window,
        ),
        ConcatOp(name="both", inputs=("low", "pooled"), output="both", axis=1),
        GatherOp(
            name="taken",
            inputs=("both",),
            output="taken",
            indices=np.concatenate(lists).astype(np.int32),
            fill=np.float32(60),
        ),
        TableOp(name="mapped", inputs=("high",), output="mapped", table=table),
        MaximumOp(name="larger", inputs=("low", "mapped"), output="larger"),
        RequantizeOp(name="cut", output="cut", lo=-127, hi=127, **rescale),
    )
    program = Program(
        tensors={
            "image": Tensor(name="image", dims=(1, 8, 4, 4), dtype="float32"),
            **{
                name: Tensor(
                    name=name,
                    dims=SHAPES.get(name, (1, 8, 4, 4)),
                    scale=np.float32(0.1),
                    lo=-127,
                )
                for name in NAMES
            },
        },
        ops=ops,
        inputs=("image",),
        outputs=("taken", "larger", "cut"),
        source_digest="00" * 32,
    )
    assert codes_of(program) == {
        "x": (-127, 127),
        "low": (-40, -20),
        "high": (0, 50),
        "pooled": (0, 45),
        "both": (-40, 45),
        "taken": (-40, 60),
        "mapped": (0, 50),
        "larger": (-40, 50),
        "cut": (-127, 127),
    }


def test_a_caller_may_give_any_byte():
    """Whatever range its tensor names."""
    narrow = {"dims": (1, 8, 4, 4), "scale": HALF, "lo": 0, "hi": 100}
    program = Program(
        tensors={name: Tensor(name=name, **narrow) for name in ("x", "y")},
        ops=(ConcatOp(name="y", inputs=("x",), output="y", axis=1),),
        inputs=("x",),
        outputs=("y",),
        source_digest="00" * 32,
    )
    assert codes_of(program) == {"y": (-128, 127)}
