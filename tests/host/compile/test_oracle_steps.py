# SPDX-License-Identifier: Apache-2.0
"""The oracle on steps without weights, against numbers worked out by hand."""

import math

import numpy as np
import pytest

from neon8.compile import oracle
from neon8.errors import DataError
from neon8.ir.program import Program
from neon8.operators.arithmetic import AddOp
from neon8.operators.conversion import RequantizeOp
from neon8.operators.movement import ConcatOp, ReshapeOp
from neon8.operators.normalization import SoftmaxOp
from neon8.operators.pooling import PoolOp
from oracle_cases import int8, run, tensor


def pool_op(kind, **options):
    settings = {"strides": (1, 1), "dilations": (1, 1), "pads": (0, 0, 0, 0)} | options
    return PoolOp(name="p", inputs=("x",), output="y", kind=kind, **settings)


def test_max_pool_ignores_padding():
    x, y = tensor("x", (1, 1, 1, 3), zero_point=50), tensor("y", (1, 1, 1, 3))
    op = pool_op("max", kernel=(1, 3), pads=(0, 1, 0, 1))
    assert run(op, (x, y), int8([-9, -8, -7], x.shape)).ravel().tolist() == [-8, -7, -7]


@pytest.mark.parametrize(
    ("count_pad", "expected"),
    [
        # Windows of three over 30 60 90 (zero point 0), one column of padding left and
        # right, and a fourth window that reaches beyond it: taps there never count.
        (False, [45, 60, 75, 90]),
        (True, [30, 60, 50, 45]),
    ],
)
def test_average_pool_counts(count_pad, expected):
    x, y = tensor("x", (1, 1, 1, 3)), tensor("y", (1, 1, 1, 4))
    op = pool_op("average", kernel=(1, 3), pads=(0, 1, 0, 1), count_pad=count_pad)
    assert run(op, (x, y), int8([30, 60, 90], x.shape)).ravel().tolist() == expected


def test_average_pool_moves_the_zero_point():
    x = tensor("x", (1, 1, 1, 2), scale=0.5, zero_point=-10)
    y = tensor("y", (1, 1, 1, 1), scale=0.25, zero_point=4)
    op = pool_op("average", kernel=(1, 2))
    # ((0 + 10) + (6 + 10)) / 2 steps of 0.5 are 26 steps of 0.25.
    assert run(op, (x, y), int8([0, 6], x.shape)).item() == 30


def test_add_and_requantize():
    shape = (1, 2, 1, 1)
    tensors = (
        tensor("a", shape, zero_point=1),
        tensor("b", shape, zero_point=-1),
        tensor("y", shape, zero_point=10),
    )
    op = AddOp(
        name="",
        inputs=("a", "b"),
        output="y",
        scale=np.float32(0.5),
        residual_scale=np.float32(2),
        slope=np.float32(0.25),
    )
    a, b = int8([6, 1], shape), int8([0, -5], shape)
    # 2.5 + 2 = 4.5 -> 4; 0 - 8 = -8, * 0.25 = -2.
    assert run(op, tensors, a, b).ravel().tolist() == [14, 8]
    op = RequantizeOp(name="", inputs=("a",), output="y", scale=np.float32(0.5))
    assert run(op, tensors, a).ravel().tolist() == [12, 10]


def test_data_movement():
    a = int8(np.arange(6), (1, 2, 1, 3))
    tensors = (
        tensor("a", (1, 2, 1, 3)),
        tensor("y", (1, 6, 1, 1)),
        tensor("z", (1, 4, 1, 3)),
    )
    op = ReshapeOp(name="", inputs=("a",), output="y")
    assert run(op, tensors, a).ravel().tolist() == [0, 1, 2, 3, 4, 5]
    op = ConcatOp(name="", inputs=("a", "a"), output="z", axis=1)
    assert run(op, tensors, a)[0, 2:].tolist() == a[0].tolist()


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
