# SPDX-License-Identifier: Apache-2.0
"""Intervals and tests, against published figures and plain computations."""

from fractions import Fraction
from math import comb, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neon8.evaluate.confidence import (
    mcnemar,
    mean_error,
    paired_change,
    share_error,
    wilson,
)


@pytest.mark.parametrize(
    ("part", "whole", "low", "high"),
    [
        # Newcombe 1998, Statistics in Medicine 17, table I, method 3
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        (29, 29, 1 - 0.1170, 1.0),
    ],
)
def test_wilson(part, whole, low, high):
    found = wilson(part, whole)
    assert (found.low, found.high) == pytest.approx((low, high), abs=5e-5)


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_the_binomial_tail(gained, lost):
    n = gained + lost
    tail = sum(comb(n, k) for k in range(min(gained, lost) + 1))
    exact = min(Fraction(1), Fraction(2 * tail, 2**n))
    assert mcnemar(gained, lost) == pytest.approx(float(exact), rel=1e-10)
    assert mcnemar(gained, lost) == mcnemar(lost, gained)


def test_mcnemar_of_many():
    assert mcnemar(500_000, 500_000) == 1
    assert 0 <= mcnemar(400_000, 600_000) < 1e-300


def test_a_change_of_pairs():
    found = paired_change(3, 7, 100)
    error = sqrt(10 + 1 - 16 / 102) / 102
    assert found.low == pytest.approx(-4 / 102 - 1.959964 * error, abs=1e-7)
    assert found.high == pytest.approx(-4 / 102 + 1.959964 * error, abs=1e-7)
    nothing = paired_change(0, 0, 50)
    assert nothing.high == -nothing.low > 0


@given(st.integers(1, 500), st.data())
def test_errors_and_intervals_are_never_points(whole, data):
    part = data.draw(st.integers(0, whole))
    found = wilson(part, whole)
    assert 0 <= found.low <= part / whole <= found.high <= 1
    assert found.low < found.high
    assert share_error(part, whole) > 0
    lost = data.draw(st.integers(0, whole - part))
    change = paired_change(part, lost, whole)
    assert -1 <= change.low < change.high <= 1


def test_share_error_of_many_is_the_plain_formula():
    plain = sqrt(0.7 * 0.3 / 10_000)
    assert share_error(7000, 10_000) == pytest.approx(plain, rel=1e-3)


def test_mean_error():
    values = np.random.default_rng(1).normal(size=30)
    found = mean_error(values.sum(), values @ values, 30)
    assert found == pytest.approx(values.std(ddof=1) / sqrt(30))
    assert mean_error(2.0, 4.0, 1) is None
    assert mean_error(0.3, 0.03, 3) == pytest.approx(0, abs=1e-8)
