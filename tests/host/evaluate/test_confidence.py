# SPDX-License-Identifier: Apache-2.0
"""Intervals and tests, against published figures and plain computations."""

from fractions import Fraction
from itertools import product
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


def test_a_change_excludes_0_where_the_test_says_so():
    for gained, lost in product(range(16), repeat=2):
        sure = mcnemar(gained, lost) < 0.05
        for whole in (gained + lost, gained + lost + 7, 1000):
            if whole:
                found = paired_change(gained, lost, whole)
                assert (not found.low <= 0 <= found.high) == sure
                assert found.low <= (gained - lost) / whole <= found.high
                other = paired_change(lost, gained, whole)
                assert (-other.high, -other.low) == (found.low, found.high)


@pytest.mark.parametrize("whole", [12, 25])
@pytest.mark.parametrize("better", [0.5, 0.7, 0.9, 1.0])
@pytest.mark.parametrize("rate", [0.03, 0.1, 0.3])
def test_a_change_holds_the_true_one(whole, better, rate):
    """Over all that can come up, with its chance."""
    wins, losses = rate * better, rate * (1 - better)
    held = 0.0
    for gained, lost in product(range(whole + 1), repeat=2):
        if gained + lost <= whole:
            ways = comb(whole, gained) * comb(whole - gained, lost)
            rest = (1 - rate) ** (whole - gained - lost)
            found = paired_change(gained, lost, whole)
            if found.low <= wins - losses + 1e-12 and wins - losses <= found.high:
                held += ways * wins**gained * losses**lost * rest
    assert held > 0.92


def test_a_change_of_many_is_the_plain_formula():
    found = paired_change(400_000, 600_000, 2_000_000)
    error = sqrt(1_000_000 - 200_000**2 / 2_000_000) / 2_000_000
    assert found.low == pytest.approx(-0.1 - 1.959964 * error, rel=1e-4)
    assert found.high == pytest.approx(-0.1 + 1.959964 * error, rel=1e-4)
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
