# SPDX-License-Identifier: Apache-2.0
"""The values that a tensor can have, as the library tells from the steps before it."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from neon8.compile import oracle, writer
from neon8.ir.program import Program
from neon8.runtime import Model
from programs import level, program, real, step
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
    """Each kind of step that can narrow a range, or widen it by what it adds."""
    window = {"kernel": (2, 2), "strides": (1, 1), "dilations": (1, 1)}
    lists = [[0], range(16), [0, 1, 2, -1], range(4)]
    table = np.arange(-128, 128).clip(-7, 99).astype(np.int8)
    ops = (
        step("Quantize", "x", "image"),
        step("Requantize", "low", "x", scale=HALF, lo=-40, hi=-20),
        step("Requantize", "high", "x", scale=HALF, lo=0, hi=50),
        step(
            "Pool",
            "pooled",
            "high",
            kind="max",
            pads=(1, 1, 0, 0),
            lo=-127,
            hi=45,
            **window,
        ),
        step("Concat", "both", "low pooled", axis=1),
        step(
            "Gather",
            "taken",
            "both",
            indices=np.concatenate(lists).astype(np.int32),
            fill=np.float32(60),
        ),
        step("Table", "mapped", "high", table=table),
        step("Maximum", "larger", "low mapped"),
        step("Requantize", "cut", "x", scale=HALF, lo=-127, hi=127),
    )
    image = real("image", (1, 8, 4, 4))
    shapes = {name: SHAPES.get(name, (1, 8, 4, 4)) for name in NAMES}
    levels = [level(*pair, lo=-127) for pair in shapes.items()]
    made = program([image, *levels], ops, "image", "taken larger cut")
    assert codes_of(made) == {
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
    ends = [level(name, (1, 8, 4, 4), lo=0, hi=100) for name in "xy"]
    made = program(ends, [step("Concat", "y", "x", axis=1)], "x", "y")
    assert codes_of(made) == {"y": (-128, 127)}
