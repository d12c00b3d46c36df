# SPDX-License-Identifier: Apache-2.0
"""Weights whose errors add up to half a step at most over the taps of a channel."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neon8.quant.balanced import on_balance
from neon8.quant.weights import quantize_weights


@given(st.integers(0, 2**32 - 1), st.integers(1, 25), st.floats(0.1, 126))
def test_sums_and_sizes(seed, taps, most):
    """Each weight has one of its neighbours, and no other ones would need fewer."""
    rng = np.random.default_rng(seed)
    weight = rng.uniform(-most, most, (3, 4, taps, 1)).astype(np.float32)
    if seed % 2:
        weight = np.rint(weight * 2) / 2  # ties
    scales = np.array([1.0, 0.5, 2.0]) if most < 60 else np.ones(3)
    real = weight / scales[:, None, None, None]
    levels = on_balance(weight, scales).astype(np.float64)
    errors = real - levels
    assert (np.abs(errors) <= 1).all()
    assert (np.abs(errors.sum(axis=(2, 3))) <= 0.5 + 1e-9).all()
    nearest = np.rint(real)
    moved = levels != nearest
    missing = np.rint((real - nearest).sum(axis=(2, 3)) * 2**40 / 2**40)
    assert (moved.sum(axis=(2, 3)) == np.abs(missing)).all()
    gaps = np.abs(real - nearest)
    towards = np.sign(missing)[..., None, None]
    left = (~moved) & ((real - nearest) * towards > 0)
    worst_left = np.where(left, gaps, 0).max(axis=(2, 3))
    best_moved = np.where(moved, gaps, 1).min(axis=(2, 3))
    assert (worst_left <= best_moved + 1e-9).all()
    if taps == 1:
        assert not moved.any()


@pytest.mark.parametrize(
    ("row", "found"),
    [
        ([0.4, 0.4, 0.4], [1, 0, 0]),  # the first of equal ones
        ([0.3, 0.45, 0.4], [0, 1, 0]),
        ([-0.4, -0.45, -0.3], [0, -1, 0]),
        ([0.25, 0.25, 0.0], [0, 0, 0]),  # half a step stays
        ([5.0, -7.0, 2.0], [5, -7, 2]),
        ([126.6, 127.0, 126.6], [126, 127, 127]),
        ([127.0, 0.4, 130.0], [127, 1, 127]),  # what is clipped counts half a step
        ([300.0, 300.0, 300.0], [127, 127, 127]),
    ],
)
def test_rows(row, found):
    weight = np.array(row, np.float32).reshape(1, 1, 1, 3)
    assert on_balance(weight, np.ones(1)).ravel().tolist() == found
    assert on_balance(-weight, np.ones(1)).ravel().tolist() == [-q for q in found]


def test_what_comes_as_integers_stays():
    rng = np.random.default_rng(1)
    weight = rng.integers(-127, 128, (4, 3, 3, 3)).astype(np.float32)
    scales = np.full(4, 0.25)
    levels = on_balance(weight * np.float32(0.25), scales)
    assert np.array_equal(levels, quantize_weights(weight, np.ones(4)))
    assert np.array_equal(levels, weight)
