# SPDX-License-Identifier: Apache-2.0
"""Tables of functions: a level for each level, as near as there is one."""

import math

import numpy as np
import pytest

from neon8.ir.program import Tensor
from neon8.operators.functions import X, affine, call, evaluate, gated, number
from neon8.operators.pointwise import table_of

F = np.float32


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
