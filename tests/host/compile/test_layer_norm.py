# SPDX-License-Identifier: Apache-2.0
"""Normalization in integers  (31), against the one of real numbers."""

import numpy as np
import pytest

from neon8.compile import oracle
from neon8.compile.lower import lower
from neon8.operators.layer_norm import (
    IMAGE,
    PIXEL,
    Normalization,
    NormalizationOp,
    compute_normalization,
)
from neon8.operators.reference import Operand
from oracle_cases import tensor
from small_graphs import conv, graph_of, table_of

BITS = {"int8": (-128, 127), "int16": (-32768, 32767)}


@pytest.mark.parametrize("made", ["int8", "int16"])
@pytest.mark.parametrize("given", ["int8", "int16"])
@pytest.mark.parametrize("function", ["none", "subtract"])
@pytest.mark.parametrize(("axis", "groups"), [(PIXEL, 1), (PIXEL, 3), (IMAGE, 2)])
def test_half_a_step_from_the_exact_result(given, made, function, axis, groups):
    rng = np.random.default_rng(groups)
    dims = (2, 12, 5, 4)
    most = BITS[given][1]
    x = tensor("x", dims, dtype=given, scale=6 / most, zero_point=most // 9)
    out = tensor("y", dims, dtype=made, scale=5 / BITS[made][1], zero_point=3)
    gamma, beta = rng.normal(1, 0.5, 12), rng.normal(0, 1, 12)
    q = rng.integers(*BITS[given], dims, endpoint=True).astype(given)
    op = NormalizationOp(
        name="n",
        inputs=("x",),
        output="y",
        values=np.concatenate((gamma, beta, [1e-3])).astype(np.float32),
        groups=groups,
        axis=axis,
        function=function,
        lo=out.lo,
        hi=out.hi,
    )
    y = compute_normalization(op, out, Operand(x, q))
    gamma, beta = np.split(op.values[:-1].astype(np.float64).reshape(-1, 1, 1), 2)
    real = np.float64(x.scale) * (q.astype(np.int64) - x.zero_point)
    rows = real.reshape(2, groups, -1, 20)
    axes = (2, 3) if axis == IMAGE else (2,)
    if function == "subtract":
        rows = rows - rows.mean(axis=axes, keepdims=True)
    epsilon = np.float64(op.values[-1])
    rows = rows / np.sqrt((rows**2).mean(axis=axes, keepdims=True) + epsilon)
    exact = (rows.reshape(dims) * gamma + beta) / np.float64(out.scale) + out.zero_point
    error = np.abs(y - np.clip(exact, *BITS[made]))
    assert error.max() <= 0.5 + BITS[made][1] * 2.0**-21


def test_a_row_without_variance_is_beta():
    out = tensor("y", (1, 6), scale=0.1)
    op = NormalizationOp(
        name="n",
        inputs=("x",),
        output="y",
        values=np.array([1] * 6 + [*range(6)] + [1e-30], np.float32),
        groups=1,
        axis=PIXEL,
        function="subtract",
    )
    x = tensor("x", (1, 6), scale=1e28, zero_point=7)
    q = np.full((1, 6, 1, 1), 99, np.int8)
    y = compute_normalization(op, out, Operand(x, q))
    # 0 times infinity is no number, and so 0.
    assert y.reshape(-1).tolist() == [0] * 6
    y = compute_normalization(op, out, Operand(tensor("x", (1, 6), zero_point=7), q))
    assert y.reshape(-1).tolist() == [0, 10, 20, 30, 40, 50]


def norm(**fields):
    return Normalization(
        name="n",
        inputs=("h",),
        output="y",
        gamma=np.float32([1, 2, 3, 4]),
        beta=np.float32([4, 3, 2, 1]),
        epsilon=1e-5,
        **fields,
    )


@pytest.mark.parametrize(
    "fields", [{}, {"centred": False}, {"groups": 2, "image": True}]
)
def test_in_float32_it_is_the_same(fields):
    graph = graph_of(conv("h"), norm(**fields), outputs=("y",))
    inputs = np.random.default_rng(2).normal(0, 1, graph.tensors["x"].dims)
    made = [
        oracle.run(
            lower(graph, table_of(graph), io="float", keep_float=frozenset(keep)),
            {"x": inputs.astype(np.float32)},
        )["y"]
        for keep in ((), ("n",))
    ]
    scale = table_of(graph).tensors["y"].scale
    inside = np.abs(made[1]) < 120 * scale
    assert inside.mean() > 0.2
    assert np.abs(made[0] - made[1])[inside].max() <= 12 * scale


def test_factors_are_in_gamma_and_beta():
    made = norm().with_factors([None], np.array([0.5, 1, 2, 4]))
    assert made.gamma.tolist() == [2, 2, 1.5, 1]
    assert made.beta.tolist() == [8, 3, 1, 0.25]
