# SPDX-License-Identifier: Apache-2.0
"""Lowering of functions, arithmetic of two tensors and normalizations."""

import math

import numpy as np
import pytest

from neon8.compile import oracle
from neon8.errors import CompileError
from neon8.ir.graph import Activation
from neon8.ir.program import Tensor
from neon8.operators.activation import Prelu
from neon8.operators.arithmetic import Add, Divide, Multiply, Subtract
from neon8.operators.convolution import Conv2dOp
from neon8.operators.functions import X, affine, call, evaluate, gated, number
from neon8.operators.normalization import InstanceNorm, Lrn
from neon8.operators.pointwise import table_of
from neon8.operators.pooling import Pool
from small_graphs import SHAPE, conv, kinds, lowered, scale

F = np.float32
SLOPES = np.array([0.125, -0.5, 2.0, 0.25], F)


def tensor(name, step, zero_point, lo=-128):
    return Tensor(name=name, dims=(1,), scale=F(step), zero_point=zero_point, lo=lo)


@pytest.mark.parametrize(
    ("function", "reference"),
    [
        (call("sigmoid", X), lambda x: 1 / (1 + math.exp(-x))),
        (call("tanh", X), math.tanh),
        (gated(call("sigmoid", X)), lambda x: x / (1 + math.exp(-x))),
        (call("power", X, parameters=(2.0,)), lambda x: x * x),
        (affine(2.0, -1.0), lambda x: 2 * x - 1),
    ],
)
def test_table(function, reference):
    """Each entry is the nearest level of the function's value."""
    source, out = tensor("x", 0.04, 10), tensor("y", 0.01, -100)
    table = table_of(function, source, out)
    for q in range(-128, 128):
        exact = reference(float(F(0.04)) * (q - 10)) / float(F(0.01)) - 100
        assert abs(table[q + 128] - min(max(exact, -128), 127)) <= 0.5 + 1e-9


def test_table_keeps_to_the_range_of_its_output():
    table = table_of(X, tensor("x", 1, 0, lo=-127), tensor("y", 0.25, 0, lo=-127))
    assert table.min() == -127


def test_values_that_are_not_numbers_or_infinite():
    source, out = tensor("x", 1, 0), tensor("y", 1, 3)
    assert table_of(call("log", X), source, out)[[127, 128]].tolist() == [3, -128]
    inverse = call("divide", number(1.0), X)
    assert table_of(inverse, source, out)[128] == 127
    assert set(table_of(call("divide", X, X), source, out)[[127, 128, 129]]) == {3, 4}


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, -1, -3, 0.5, -0.5, 1.7, 65.0])
def test_power(exponent):
    x = np.array([0.25, 1.0, 1.5, 2.0])
    result = evaluate(call("power", X, parameters=(float(exponent),)), x)
    np.testing.assert_allclose(result, x**exponent, rtol=1e-13)


def both(kind, **options):
    return kind(name="n", inputs=("a", "b"), output="y", **options)


@pytest.mark.parametrize("kind", [Multiply, Divide])
def test_product_of_scales_that_do_not_fit(kind):
    scales = {"a": scale(1e-20), "b": scale(1e-20), "y": scale(1e15)}
    if kind is Divide:
        scales["b"] = scale(1e20)
    with pytest.raises(CompileError, match="too far from"):
        lowered(both(kind), inputs=("a", "b"), scales=scales)


def test_a_convolution_takes_a_difference_in():
    node = Subtract(name="s", inputs=("h", "x"), output="y")
    (op,) = lowered(conv("h"), node, scales={"y": scale(0.25)}).ops
    assert isinstance(op, Conv2dOp)
    assert op.residual_scale == -2.0
    node = Subtract(name="s", inputs=("x", "h"), output="y")
    assert kinds(lowered(conv("h"), node)) == ["Conv2d", "Add"]


@pytest.mark.parametrize("kind", [Add, Multiply])
def test_broadcast_operands_are_not_taken_in(kind):
    shapes = {"b": (1, 4, 1, 1)}
    node = kind(name="n", inputs=("h", "b"), output="y")
    prog = lowered(conv("h"), node, inputs=("x", "b"), shapes=shapes)
    assert kinds(prog) == ["Conv2d", kind.__name__]


def test_an_operand_of_lower_rank_is_aligned():
    node = Multiply(name="n", inputs=("x", "b"), output="y")
    prog = lowered(node, inputs=("x", "b"), shapes={"b": (5, 5)})
    assert kinds(prog) == ["Reshape", "Multiply"]
    assert prog.tensors[prog.ops[0].output].dims == (1, 1, 5, 5)
    rng = np.random.default_rng(0)
    inputs = {
        name: rng.integers(-128, 128, prog.tensors[name].dims, np.int8)
        for name in prog.inputs
    }
    result = oracle.run(prog, inputs)["y"].astype(int)
    exact = np.rint(0.5 * inputs["x"].astype(int) * inputs["b"].astype(int))
    assert (result == np.clip(exact, -128, 127)).all()


PRELU = Prelu(name="p", inputs=("h",), output="y", slopes=SLOPES)


def test_prelu_goes_into_the_convolution():
    (op,) = lowered(conv("h"), PRELU, scales={"y": scale(0.25, 4)}).ops
    assert op.slopes.tolist() == SLOPES.tolist()
    assert op.output == "y"


def test_prelu_behind_a_residual_sum():
    add = Add(name="a", inputs=("g", "x"), output="h")
    (op,) = lowered(conv("g"), add, PRELU).ops
    assert op.slopes.tolist() == SLOPES.tolist()
    assert len(op.inputs) == 2


def test_prelu_alone_is_exact():
    node = Prelu(name="p", inputs=("x",), output="y", slopes=SLOPES)
    prog = lowered(node, scales={"x": scale(0.5, 7), "y": scale(0.5, -3)})
    (op,) = prog.ops
    assert isinstance(op, Conv2dOp)
    q = np.random.default_rng(0).integers(-128, 128, SHAPE, np.int8)
    x = q.astype(np.float64) - 7
    exact = np.where(x < 0, x * SLOPES[:, None, None].astype(np.float64), x)
    result = oracle.run(prog, {"x": q})["y"]
    assert (result == np.clip(np.rint(exact) - 3, -128, 127)).all()


def test_prelu_of_an_output_stays():
    prog = lowered(conv("h"), PRELU, outputs=("h", "y"))
    assert kinds(prog) == ["Conv2d", "Conv2d"]


def test_absurd_slopes():
    node = Prelu(name="p", inputs=("x",), output="y", slopes=np.full(4, 1e30, F))
    with pytest.raises(CompileError, match="leaky slope"):
        lowered(node)


def test_normalizations():
    node = Lrn(
        name="n", inputs=("x",), output="y", size=5, alpha=1e-4, beta=0.75, bias=2.0
    )
    (op,) = lowered(node).ops
    assert op.values.tolist() == [5, F(1e-4), 0.75, 2]
    node = InstanceNorm(
        name="n",
        inputs=("x",),
        output="y",
        gamma=SLOPES,
        beta=SLOPES + 1,
        epsilon=0.5,
        activation=Activation(lo=0.0),
    )
    (op,) = lowered(node, scales={"y": scale(1.0, 9)}).ops
    assert op.values.tolist() == [*SLOPES.tolist(), *(SLOPES + 1).tolist(), 0.5]
    assert (op.lo, op.hi) == (9, 127)


@pytest.mark.parametrize("kind", ["max", "average"])
@pytest.mark.parametrize("slope", [1.0, 0.5])
def test_a_reduced_axis_that_is_left_out(kind, slope):
    """The mean over H of (N, C, H, W) without keepdims is (N, C, W)."""
    node = Pool(
        name="p",
        inputs=("x",),
        output="y",
        kind=kind,
        kernel=(5, 1),
        activation=Activation(slope=slope),
    )
    prog = lowered(node, shapes={"y": (1, 4, 5)})
    steps = ["Pool", "Reshape"] if slope == 1 else ["Pool", "Requantize", "Reshape"]
    assert kinds(prog) == steps
    q = np.random.default_rng(0).integers(-128, 128, SHAPE, np.int8)
    result = oracle.run(prog, {"x": q})["y"]
    pooled = q.max(axis=2) if kind == "max" else np.rint(q.mean(axis=2))
    exact = np.where(pooled < 0, np.rint(pooled * slope), pooled)
    assert result.shape == (1, 4, 5)
    assert (result == exact).all()
