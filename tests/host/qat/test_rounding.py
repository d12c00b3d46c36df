# SPDX-License-Identifier: Apache-2.0
"""Simulated rounding is numerics (1), (2) to the last bit, and has its gradient."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from neon8.ir.program import Tensor
from neon8.operators.reference import quantize
from neon8.qat.rounding import BIAS, WEIGHT, rounded, rounded_rows
from neon8.quant.grid import Grid
from neon8.quant.weights import quantize_weights

F = np.float32


def by_the_oracle(values, grid, scale, zero_point):
    tensor = Tensor(
        name="t",
        dims=values.shape,
        dtype="int8",
        scale=F(scale),
        zero_point=zero_point,
        lo=grid.lowest,
        hi=grid.highest,
    )
    q = quantize(values, tensor).astype(np.int32)
    return (q - zero_point).astype(F) * F(scale)


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from(["symmetric", "unsigned", "asymmetric"]),
    st.floats(-50, 0),
    st.floats(0.01, 50),
    st.integers(0, 2**32),
)
def test_activations(scheme, lo, hi, seed):
    grid = Grid(scheme)
    scale, zero_point = grid.cover(0.0 if scheme == "unsigned" else lo, hi)
    rng = np.random.default_rng(seed)
    ties = (rng.integers(-300, 300, 60) + F(0.5)) * scale
    values = np.concatenate([rng.normal(0, 2 * hi, 60), ties, [0.0, -0.0, 1e30]])
    values = values.astype(F)
    got = rounded(
        torch.from_numpy(values), float(scale), zero_point, (grid.lowest, grid.highest)
    )
    want = by_the_oracle(values, grid, scale, zero_point)
    assert got.numpy().tobytes() == (want + F(0)).tobytes() or np.array_equal(
        got.numpy(), want
    )


def test_nan_is_seen_by_the_loop():
    got = rounded(torch.tensor([np.nan, 1.0]), 0.5, 3, (-128, 127))
    assert got.isnan().tolist() == [True, False]


def test_gradients_end_where_the_grid_does():
    values = torch.tensor([-3.0, -1.1, 0.2, 0.9, 1.1, 3.0], requires_grad=True)
    (rounded(values, 0.01, 0, (-110, 100)) * torch.arange(1.0, 7.0)).sum().backward()
    assert values.grad.tolist() == [0.0, 2.0, 3.0, 4.0, 0.0, 0.0]


@pytest.mark.parametrize("shape", [(5, 3, 3, 3), (6, 1, 5, 5), (7, 9)])
def test_weights_and_bias(shape):
    rng = np.random.default_rng(1)
    weight = rng.normal(size=shape).astype(F)
    scales = (np.abs(weight).reshape(shape[0], -1).max(1) / F(127)).astype(np.float64)
    scales[0] /= 2  # saturates
    weight[1].flat[0] = F(2.5) * F(scales[1])
    values = torch.from_numpy(weight).requires_grad_()
    got = rounded_rows(values, torch.from_numpy(scales), WEIGHT)
    levels = quantize_weights(weight, scales)
    rows = scales.astype(F).reshape(-1, *(1,) * (len(shape) - 1))
    assert np.array_equal(got.detach().numpy(), levels.astype(F) * rows)
    got.sum().backward()
    assert (values.grad == 1).all()
    bias = rng.normal(0, 9, shape[0]).astype(F)
    got = rounded_rows(torch.from_numpy(bias), torch.from_numpy(scales * 0.013), BIAS)
    want = np.rint(bias / (scales * 0.013)) * (scales * 0.013)
    assert np.array_equal(got.numpy(), want.astype(F))
