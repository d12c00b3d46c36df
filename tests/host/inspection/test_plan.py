# SPDX-License-Identifier: Apache-2.0
"""The plan as a table, and its float islands."""

import dataclasses
from pathlib import Path

import pytest

import neon8
from neon8 import text
from neon8.inspection import plan
from neon8.runtime import StepInfo

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "small.n8"
with neon8.Model.open(GOLDEN) as model:
    PLAIN = dataclasses.replace(
        model.steps[0],
        kernel="n8_requantize_s8_c",
        dtype="int8",
        offset=128,
        zero_point=0,
        lo=-127,
        hi=127,
        int16_depth=0,
    )


def step(operation, inputs, output, dtype="int8") -> StepInfo:
    """A step of which only the tensors matter."""
    names = tuple(inputs.split())
    return dataclasses.replace(
        PLAIN, operation=operation, inputs=names, output=output, dtype=dtype
    )


def lines_of(parts):
    return text.as_text(parts).split("\n")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "symmetric"),
        ({"zero_point": -128, "lo": -128}, "unsigned"),
        ({"zero_point": 7, "lo": -128}, "asymmetric 7"),
        ({"zero_point": 0, "lo": -128}, "asymmetric 0"),
        ({"dtype": "float32"}, "float32"),
    ],
)
def test_schemes(fields, said):
    assert plan.scheme(dataclasses.replace(PLAIN, **fields)) == said


@pytest.mark.parametrize(
    ("sharing", "said"),
    [
        ("own", "at 128"),
        ("place", "at 128, in place of x"),
        ("view", "at 128, view of x"),
        ("slice", "at 128, slice of x"),
        ("tail", "at 128, end of x"),
    ],
)
def test_places(sharing, said):
    assert plan.memory(dataclasses.replace(PLAIN, sharing=sharing, shared="x")) == said


def test_islands_are_steps_that_hand_on_float32():
    steps = [
        step("quantize", "image", "a"),
        step("conv2d", "a", "b"),
        step("dequantize", "b", "c", "float32"),
        step("softmax", "c", "d", "float32"),
        step("permute", "d", "e", "float32"),
        step("quantize", "e", "f"),
        step("conv2d", "f", "g"),
        step("conv2d", "g", "h", "float32"),  # an output: nothing reads it
        step("dequantize", "g", "i", "float32"),
        step("softmax", "i", "j", "float32"),
    ]
    said = lines_of(plan.islands(steps, {"image"}))
    assert [line.split()[:2] for line in said[2:]] == [["3", "4"], ["9", "before"]]
    assert "between int8 steps" in said[2]
    assert "softmax, permute" in said[2]
    assert "moves what is float32 already" in said[2]
    assert plan.islands(steps[:2], {"image"}) == ["float islands: none"]


def test_islands_say_what_the_file_says():
    kept = dataclasses.replace(
        step("table", "image", "a", "float32"), reason="kept in float32 by request"
    )
    said = lines_of(plan.islands([kept, step("table", "a", "b", "float32")], {"image"}))
    assert said[2].endswith("kept in float32 by request; table has no int8 form")


def test_the_table_is_that_of_the_library(tiny):
    with neon8.Model.open(tiny.n8) as model:
        steps = model.steps
    lines = lines_of(plan.table(steps))[1:]
    assert len(lines) == 1 + len(steps) + 1 + len(plan.LEGEND)
    for number, (line, each) in enumerate(zip(lines[1:], steps, strict=False)):
        words = line.split()
        assert words[0] == str(number)
        assert each.kernel in words
        assert f"at {each.offset}" in line
    assert lines == lines_of(plan.table(steps))[1:]


def test_why_a_kernel_serves_and_a_faster_one_does_not():
    """In the order of the steps, convolutions only."""
    conv = dataclasses.replace(PLAIN, int16_depth=2, chosen="it is", name="c")
    other = dataclasses.replace(conv, passed="n8_other", lack="it lacks that")
    lines = lines_of(plan.choices([PLAIN, conv, PLAIN, other]))
    rows = [line for line in lines if "n8_requantize_s8_c" in line]
    assert [row.split()[0] for row in rows] == ["1", "3"]
    assert rows[0].rstrip().endswith("it is  -         -")
    assert rows[1].rstrip().endswith("it is  n8_other  it lacks that")
    assert plan.choices([PLAIN]) == []
