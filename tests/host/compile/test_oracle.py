# SPDX-License-Identifier: Apache-2.0
"""The oracle against numbers worked out by hand: what it rounds, and how."""

import math

import numpy as np
import pytest

from neon8.compile import oracle
from neon8.errors import DataError
from neon8.ir.program import Program
from neon8.operators.conversion import DequantizeOp, QuantizeOp, RequantizeOp
from neon8.operators.convolution import Conv2dOp
from neon8.operators.softmax import SoftmaxOp
from oracle_cases import int8, run, tensor


@pytest.mark.parametrize("zero_point", [0, 5])
@pytest.mark.parametrize(
    ("x", "q"),
    [
        (0.25, 0),
        (0.75, 2),
        (1.25, 2),
        (-0.25, 0),
        (-0.75, -2),
        (np.nan, 0),
        (-0.0, 0),
        (np.inf, 999),
        (-np.inf, -999),
        (1e38, 999),
    ],
)
def test_quantize(x, q, zero_point):
    shape = (1, 1, 1, 1)
    lo = -127 if zero_point == 0 else -128
    tensors = (
        tensor("x", shape, dtype="float32"),
        tensor("q", shape, scale=0.5, zero_point=zero_point, lo=lo),
    )
    op = QuantizeOp(name="", inputs=("x",), output="q")
    result = run(op, tensors, np.full(shape, x, np.float32))
    assert result.item() == min(max(q + zero_point, lo), 127)


def test_dequantize():
    shape = (1, 3, 1, 1)
    tensors = (
        tensor("q", shape, scale=0.1, zero_point=-128),
        tensor("x", shape, dtype="float32"),
    )
    op = DequantizeOp(name="", inputs=("q",), output="x")
    result = run(op, tensors, int8([-128, -127, 127], shape))
    step = np.float32(0.1)
    assert result.ravel().tolist() == [0, step, np.float32(255) * step]


def conv_op(weights, **options):
    settings = {
        "bias": np.zeros(len(weights), np.int32),
        "multiplier": np.ones(len(weights), np.float32),
    } | options
    return Conv2dOp(
        name="c",
        inputs=("x",) if "residual_scale" not in options else ("x", "r"),
        output="y",
        weights=weights,
        **settings,
    )


@pytest.mark.parametrize(
    ("acc", "multiplier", "slope", "residual", "expected"),
    [
        (5, 0.5, None, None, 2),  # 2.5 rounds to even
        (7, 0.5, None, None, 4),
        (-5, 0.5, None, None, -2),
        (-10, 1.0, 0.25, None, -2),
        (10, 1.0, 0.25, None, 10),
        (5, 0.5, None, 3, 4),  # 2.5 + 3 * 0.5, rounded once
        (2**31 - 1, 2.0**64, None, None, 100),
        (-(2**31) + 1, 1.0, None, None, -90),
        (2**24 + 1, 2.0**-24, None, None, 1),
    ],
)
def test_epilogue(acc, multiplier, slope, residual, expected):
    shape = (1, 1, 1, 1)
    options = {} if residual is None else {"residual_scale": np.float32(0.5)}
    op = conv_op(
        np.zeros((1, 1, 1, 1), np.int8),
        bias=np.array([acc], np.int32),
        multiplier=np.array([multiplier], np.float32),
        slopes=None if slope is None else np.array([slope], np.float32),
        lo=-90,
        hi=100,
        **options,
    )
    tensors = (
        tensor("x", shape),
        tensor("y", shape),
        tensor("r", shape, zero_point=-1),
    )
    arrays = [int8([1], shape)]
    if residual is not None:
        arrays.append(int8([residual - 1], shape))
    assert run(op, tensors, *arrays).item() == expected


def test_float_result_rounds_twice():
    """(4): where fused multiply-add would give another last bit."""
    shape = (1, 1, 1, 1)
    scale, bias = np.float32(0.1), np.float32(-0.3)
    op = conv_op(
        np.zeros((1, 1, 1, 1), np.int8),
        bias=np.array([3], np.int32),
        multiplier=np.array([scale]),
        bias_f32=np.array([bias]),
    )
    tensors = tensor("x", shape), tensor("y", shape, dtype="float32")
    result = run(op, tensors, int8([1], shape)).item()
    twice = np.float32(np.float32(3) * scale) + bias
    fused = np.float32(3.0 * float(scale) + float(bias))
    assert twice != fused
    assert result == twice


def test_sum_that_leaves_int32_is_an_assertion():
    x, y = tensor("x", (1, 2, 1, 1)), tensor("y", (1, 1, 1, 1))
    op = conv_op(
        np.full((1, 1, 1, 2), 127, np.int8), bias=np.array([2**31 - 1], np.int32)
    )
    with pytest.raises(AssertionError, match="left int32"):
        run(op, (x, y), int8([1, 1], x.shape))


@pytest.mark.parametrize(
    "x",
    [
        [0.0],
        [1.0, 2.0, 3.0],
        [-50.0, 0.0, 50.0],
        [1000.0, -1000.0, 999.5],
        [-104.5, 0.0, -103.5],
        list(np.linspace(-30, 30, 1000)),
    ],
)
def test_softmax(x):
    shape = (1, len(x), 1, 1)
    tensors = (
        tensor("x", shape, dtype="float32"),
        tensor("p", shape, dtype="float32"),
    )
    op = SoftmaxOp(name="", inputs=("x",), output="p", axis=1)
    x32 = np.array(x, np.float32)
    result = run(op, tensors, x32.reshape(shape)).ravel()
    powers = [math.exp(float(value) - float(x32.max())) for value in x32]
    exact = [0 if p < math.exp(-104) else p / math.fsum(powers) for p in powers]
    # The polynomial is good to 2e-16, so a float32 is off by one unit at most.
    np.testing.assert_array_almost_equal_nulp(result, np.float32(exact), nulp=1)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, r"input 'x': nothing given, int8 \(1, 1, 1, 1\) expected"),
        ({"x": np.zeros((1, 1, 1, 1))}, "input 'x': float64"),
        ({"x": np.zeros((1, 1), np.int8)}, r"int8 \(1, 1\) given"),
    ],
)
def test_refused_inputs(inputs, message):
    shape = (1, 1, 1, 1)
    op = RequantizeOp(name="", inputs=("x",), output="y", scale=np.float32(1))
    prog = Program(
        source_digest="00" * 32,
        tensors={"x": tensor("x", shape), "y": tensor("y", shape)},
        ops=(op,),
        inputs=("x",),
        outputs=("y",),
    )
    with pytest.raises(DataError, match=message):
        oracle.run(prog, inputs)
