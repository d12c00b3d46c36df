# SPDX-License-Identifier: Apache-2.0
"""Functions of int16 as lines (26): how near they come, on every integer value."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neon8.ir.program import Tensor
from neon8.operators.functions import Function, X, affine, call, evaluate, gated
from neon8.operators.interpolation import (
    FARTHEST,
    MOST_LINES,
    InterpolateOp,
    Lines,
    compute_interpolate,
    lines_of,
)
from neon8.operators.onnx_functions import HARD_SWISH
from neon8.operators.reference import Operand
from neon8.quant.grid import Grid

SMOOTH = {
    "sigmoid": call("sigmoid", X),
    "tanh": call("tanh", X),
    "silu": gated(call("sigmoid", X)),
    "mish": gated(call("tanh", call("softplus", X))),
    "gelu": gated(affine(0.5, 0.5, call("erf", affine(0.5**0.5, 0.0)))),
    "softplus": call("softplus", X),
    "negative": affine(-1.0, 0.0),
}


def covering(least: float, most: float, bits: int) -> Tensor:
    """A tensor of these real values, with as many bits."""
    step, zero_point = Grid("asymmetric", bits).cover(least, most)
    end = 1 << (bits - 1)
    return Tensor(
        name="t",
        dims=(1, 1, 1, 1 << bits),
        dtype="int8" if bits <= 8 else "int16",
        scale=np.float32(step),
        zero_point=zero_point,
        lo=-end,
        hi=end - 1,
    )


def reals(tensor: Tensor):
    levels = np.arange(tensor.lo, tensor.hi + 1, dtype=np.float64)
    return np.float64(tensor.scale) * (levels - tensor.zero_point)


def image_of(function: Function, source: Tensor, bits: int, *, part: float = 1.0):
    """A tensor of what the function makes of `source`, or of a part of that."""
    real = evaluate(function, reals(source)) * part
    return covering(min(real.min(), 0.0), max(real.max(), 0.0), bits)


def result(lines: Lines, source: Tensor, out: Tensor, values):
    """What a step makes of `values`."""
    op = InterpolateOp(
        name="f", inputs=("x",), output="y", lines=lines.lines, groups=lines.groups
    )
    x = np.array(values).astype(source.dtype).reshape(1, 1, 1, -1)
    return compute_interpolate(op, out, Operand(source, x)).reshape(-1)


def errors(function: Function, lines: Lines, source: Tensor, out: Tensor):
    """For each value of the input, the distance to the exact result, in steps."""
    found = result(lines, source, out, np.arange(source.lo, source.hi + 1))
    exact = evaluate(function, reals(source)) / np.float64(out.scale) + out.zero_point
    return np.abs(found - np.clip(exact, out.lo, out.hi))


@pytest.mark.parametrize("bits", [(16, 16), (16, 8), (12, 16), (16, 11), (8, 16)])
@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("ends", [(-1.0, 1.5), (-20.0, 30.0), (-60.0, 12.0)])
def test_smooth_functions_are_a_step_off_at_most(name, bits, ends):
    """With 8 bits much less: a result is the nearest, or hardly farther."""
    function, source = SMOOTH[name], covering(*ends, bits[0])
    out = image_of(function, source, bits[1])
    lines = lines_of(function, source, out)
    assert lines is not None
    assert len(lines.lines) <= MOST_LINES
    assert lines.error <= {8: 16, 11: 2, 16: 1}[bits[1]]
    off = errors(function, lines, source, out)
    assert off.max() <= {8: 0.57, 11: 0.6, 16: 1.51}[bits[1]]


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("name", SMOOTH)
def test_where_the_range_of_the_output_ends_first(name, bits):
    """Beyond it a function is flat, which makes a corner."""
    function, source = SMOOTH[name], covering(-20.0, 30.0, 16)
    out = image_of(function, source, bits, part=0.7)
    lines = lines_of(function, source, out)
    off = errors(function, lines, source, out)
    assert off.max() <= (0.57 if bits == 8 else FARTHEST)
    assert (off > 1.51).mean() < 0.001


def test_fewer_lines_would_be_farther():
    function, source = SMOOTH["silu"], covering(-98.0, 100.0, 16)
    wide, narrow = (image_of(function, source, bits) for bits in (16, 8))
    found = lines_of(function, source, wide)
    assert len(found.lines) == 2048
    assert len(lines_of(function, source, narrow).lines) == 256
    first = found.lines[::2, 0]
    rise = np.diff(first.astype(int), append=first[-1])
    joined = Lines(
        lines=np.stack([first, rise], axis=1).astype(np.int16),
        groups=found.groups * 2,
        error=0,
    )
    assert errors(function, joined, source, wide).max() > 2


@pytest.mark.parametrize("ends", [(-9.3, 11.7), (-31.0, 33.1)])
def test_corners_are_less_than_a_quarter_of_a_step_of_8_bits(ends):
    """Those of hard-swish."""
    source = covering(*ends, 16)
    out = image_of(HARD_SWISH, source, 16)
    lines = lines_of(HARD_SWISH, source, out)
    off = errors(HARD_SWISH, lines, source, out)
    assert off.max() <= min(lines.error + 1, FARTHEST)
    assert (off > 1.51).mean() < 0.001


@pytest.mark.parametrize(
    "function", [call("floor", X), call("threshold", X, parameters=(1.0,))]
)
def test_jumps_have_no_lines(function):
    source = covering(-8.0, 8.0, 16)
    assert lines_of(function, source, image_of(function, source, 16)) is None


def test_values_beyond_the_range_count_as_its_ends():
    """So that no value, whoever gives it, leads beyond the lines."""
    source = covering(-4.0, 4.0, 12)
    out = covering(0.0, 1.0, 16)
    lines = lines_of(SMOOTH["sigmoid"], source, out)
    found = result(lines, source, out, [-32768, source.lo, source.hi, 32767])
    assert found[0] == found[1] < found[2] == found[3]


@given(
    lines=st.lists(
        st.tuples(st.integers(-(2**15), 2**15 - 1), st.integers(-(2**15), 2**15 - 1)),
        min_size=2,
        max_size=2,
    ),
    bits=st.sampled_from([8, 12, 16]),
)
def test_both_roundings_are_half_up(lines, bits):
    """By fractions, of each place on a line."""
    source = covering(-1.0, 1.0, 12)
    out = covering(-1.0, 1.0, bits)
    given_lines = Lines(lines=np.array(lines, np.int16), groups=2048, error=0)
    values = np.arange(source.lo, source.hi + 1)
    found = result(given_lines, source, out, values)
    first, rise = np.repeat(np.array(lines, np.float64), 2048, axis=0).T
    v = first + np.floor(rise * (np.arange(4096) % 2048) / 2048 + 0.5)
    v = np.clip(v, -(2**15), 2**15 - 1) / 2.0 ** (16 - bits)
    assert (found == np.clip(np.floor(v + 0.5), out.lo, out.hi)).all()
