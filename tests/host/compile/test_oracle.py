# SPDX-License-Identifier: Apache-2.0
"""The oracle against numbers worked out by hand, and against float arithmetic."""

import numpy as np
import pytest

from neon8.operators.conversion import DequantizeOp, QuantizeOp
from neon8.operators.convolution import Conv2dOp
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


def test_convolution_pads_with_the_zero_point():
    x = tensor("x", (1, 1, 2, 2), zero_point=-5)
    y = tensor("y", (1, 1, 2, 2))
    weights = np.arange(1, 10, dtype=np.int8).reshape(1, 3, 3, 1)
    op = conv_op(weights, pads=(1, 1, 1, 1))
    q = int8([1, 2, 3, 4], x.shape)
    # Window of the upper left pixel: five taps of padding, then 1 2 / 3 4.
    expected = -5 * (1 + 2 + 3 + 4 + 7) + 5 * 1 + 6 * 2 + 8 * 3 + 9 * 4
    assert run(op, (x, y), q).ravel()[0] == max(expected, -128)


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("dilation", [1, 2])
def test_convolution_against_a_loop(groups, stride, dilation):
    rng = np.random.default_rng(groups)
    x = tensor("x", (2, 4, 6, 5), zero_point=3)
    size = [(length + 2 - 2 * dilation - 1) // stride + 1 for length in (6, 5)]
    y = tensor("y", (2, 4, *size), dtype="float32")
    weights = rng.integers(-127, 128, (4, 3, 3, 4 // groups), np.int8)
    op = conv_op(
        weights,
        groups=groups,
        strides=(stride, stride),
        dilations=(dilation, dilation),
        pads=(1, 1, 1, 1),
        bias=np.array([7, -7, 0, 1], np.int32),
    )
    q = rng.integers(-128, 128, x.shape, np.int8)
    expected = np.zeros(y.shape, np.int64)
    for n, o, row, column in np.ndindex(*y.shape):
        total = int(op.bias[o])
        for i, ky, kx in np.ndindex(4 // groups, 3, 3):
            at = row * stride + ky * dilation - 1, column * stride + kx * dilation - 1
            inside = 0 <= at[0] < 6 and 0 <= at[1] < 5
            channel = o // (4 // groups) * (4 // groups) + i
            value = int(q[n, channel, at[0], at[1]]) if inside else 3
            total += int(weights[o, ky, kx, i]) * value
        expected[n, o, row, column] = total
    assert run(op, (x, y), q).tolist() == expected.tolist()


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
