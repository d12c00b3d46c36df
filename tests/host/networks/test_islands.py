# SPDX-License-Identifier: Apache-2.0
"""What counts as a float island, on programs made by hand."""

import numpy as np
import pytest

from bench.networks.islands import islands
from neon8.ir.program import Op, Program, Tensor
from neon8.operators.conversion import DequantizeOp, QuantizeOp
from neon8.operators.convolution import Conv2dOp


def program(*steps, inputs=("x",)):
    """steps: (class, name, inputs, output, dtype of the output)."""
    tensors = {name: Tensor(name=name, dims=(1, 1, 2, 2)) for name in inputs}
    ops = []
    for kind, name, sources, output, dtype in steps:
        tensors[output] = Tensor(name=output, dims=(1, 1, 2, 2), dtype=dtype)
        extra = {}
        if kind is Conv2dOp:
            extra = {
                "weights": np.ones((1, 1, 1, 1), np.int8),
                "bias": np.zeros(1, np.int32),
                "multiplier": np.ones(1, np.float32),
            }
        ops.append(
            kind(name=name, inputs=tuple(sources.split()), output=output, **extra)
        )
    return Program(
        source_digest="",
        tensors=tensors,
        ops=tuple(ops),
        inputs=inputs,
        outputs=(ops[-1].output,),
        islands={"w1": "no int8 form"},
    )


class Wave(Op):
    """Some float function."""


FIRST = (Conv2dOp, "first", "x", "a", "int8")
LAST = (Conv2dOp, "last", "e", "f", "int8")
BETWEEN = (
    (DequantizeOp, "up", "a", "b", "float32"),
    (Wave, "w1", "b", "c", "float32"),
    (Wave, "w2", "c", "d", "float32"),
    (QuantizeOp, "down", "d", "e", "int8"),
)


def found(steps, convolutions=("first", "last")):
    return [
        [op.name for op in island.steps]
        for island in islands(program(*steps), set(convolutions))
    ]


def test_float_steps_between_convolutions_are_one_island():
    assert found((FIRST, *BETWEEN, LAST)) == [["w1", "w2"]]
    (island,) = islands(program(FIRST, *BETWEEN, LAST), {"first", "last"})
    assert island.text == "wave (no int8 form)"


def test_a_head_or_what_comes_before_is_none():
    assert found((FIRST, *BETWEEN), ["first"]) == []
    before = [
        (DequantizeOp, "up", "x", "b", "float32"),
        *BETWEEN[1:],
        LAST,
    ]
    assert found(before, ["last"]) == []


def test_a_fully_connected_layer_is_no_convolution():
    assert found((FIRST, *BETWEEN, LAST), ["first"]) == []


def test_conversions_alone_are_none():
    steps = (FIRST, BETWEEN[0], (QuantizeOp, "down", "b", "e", "int8"), LAST)
    assert found(steps) == []


def test_two_branches_are_two_islands_unless_they_meet():
    steps = [
        FIRST,
        (DequantizeOp, "up1", "a", "b1", "float32"),
        (DequantizeOp, "up2", "a", "b2", "float32"),
        (Wave, "w1", "b1", "c1", "float32"),
        (Wave, "w2", "b2", "c2", "float32"),
    ]
    apart = [
        (QuantizeOp, "down1", "c1", "d1", "int8"),
        (QuantizeOp, "down2", "c2", "d2", "int8"),
        (Conv2dOp, "last", "d1", "e1", "int8"),
        (Conv2dOp, "end", "d2", "e2", "int8"),
    ]
    assert found([*steps, *apart], ["first", "last", "end"]) == [["w1"], ["w2"]]
    joined = [
        (Wave, "sum", "c1 c2", "d", "float32"),
        (QuantizeOp, "down", "d", "e", "int8"),
        LAST,
    ]
    assert found([*steps, *joined]) == [["w1", "w2", "sum"]]


def test_names_that_do_not_fit_are_an_error():
    with pytest.raises(ValueError, match="none of the products"):
        islands(program(FIRST), {"another"})
