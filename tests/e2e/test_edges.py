# SPDX-License-Identifier: Apache-2.0
"""What a run takes and gives: values between the caller's order and the arena's."""

import numpy as np
import pytest

from neon8.compile import oracle, writer
from neon8.compile.program import (
    Dequantize,
    Program,
    Quantize,
    Requantize,
    Softmax,
    Tensor,
)
from neon8.runtime import Model
from random_program import differing_bytes, random_inputs

SHAPES = (
    (1, 1, 5, 7),
    (2, 1, 33, 33),
    (2, 3, 40, 30),
    (1, 4, 16, 1),
    (1, 5, 3, 3),
    (2, 8, 33, 35),
    (1, 21, 7, 9),
    (3, 30, 1, 1),
    (2, 1100, 1, 1),
    (1, 1030, 4, 4),
)
"""Few and many channels; one pixel, tiles and their rests, more than one piece."""


def level(name, dims):
    return Tensor(name=name, dims=dims, scale=np.float32(0.03), zero_point=-5)


def real(name, dims):
    return Tensor(name=name, dims=dims, dtype="float32")


def program(tensors, ops, outputs):
    return Program(
        source_digest="00" * 32,
        tensors={tensor.name: tensor for tensor in tensors},
        ops=tuple(ops),
        inputs=("x",),
        outputs=outputs,
    )


def rounded(dims):
    """float32 to int8 to float32."""
    return program(
        [real("x", dims), level("q", dims), real("y", dims)],
        [
            Quantize(name="q", inputs=("x",), output="q"),
            Dequantize(name="y", inputs=("q",), output="y"),
        ],
        ("y",),
    )


def halved(dims):
    """int8 to int8."""
    return program(
        [level("x", dims), level("y", dims)],
        [Requantize(name="y", inputs=("x",), output="y", scale=np.float32(0.5))],
        ("y",),
    )


def read_again(dims):
    """The float output is an input of the last step, too."""
    first = rounded(dims)
    return program(
        [*first.tensors.values(), real("z", dims)],
        [*first.ops, Softmax(name="z", inputs=("y",), output="z", axis=1)],
        ("y", "z"),
    )


@pytest.mark.parametrize("dims", SHAPES)
@pytest.mark.parametrize("make", [rounded, halved, read_again])
def test_every_shape_is_turned(make, dims):
    made = make(dims)
    inputs = random_inputs(made, sum(dims))
    expected = oracle.run(made, inputs)
    with Model.from_bytes(writer.dumps(made)) as model:
        for threads in (1, 2):
            result = model.session(threads).run(inputs)
            assert differing_bytes(result, expected) == {}


def test_float_ends_stay_with_the_caller():
    """They take no room in the arena, unless a step reads the output."""
    dims = (1, 3, 40, 30)
    with Model.from_bytes(writer.dumps(rounded(dims))) as model:
        assert [step.sharing for step in model.steps] == ["own", "caller"]
        assert model.memory.arena < 40 * 30 * (8 + 1)
    with Model.from_bytes(writer.dumps(read_again(dims))) as model:
        assert [step.sharing for step in model.steps][1] == "own"
