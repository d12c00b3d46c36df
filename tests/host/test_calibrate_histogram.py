# SPDX-License-Identifier: Apache-2.0
"""Histograms are exact: they depend on the values and on nothing else."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neon8.calibrate import histogram
from neon8.calibrate.histogram import BINS, MIN_EXPONENT, empty, merge, of
from neon8.calibrate.observe import observe
from neon8.errors import CalibrationError

F = np.float32
AWKWARD = [0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 1e-45, -1e-45, 3.4e38, -3.4e38, 1 / 2048,
           1.9999999, 2.0**-100, 2.0**-101, 1.1754944e-38, 4095 / 4096]  # fmt: skip
value = st.one_of(
    st.sampled_from(AWKWARD),
    st.floats(-4, 4, width=32),
    st.floats(width=32, allow_nan=False, allow_infinity=False),
)
values = st.lists(value, min_size=1, max_size=40)


def facts(h):
    """All that there is in a histogram, comparable."""
    return (
        h.exponent, h.positive.tolist(), h.negative.tolist(), h.zeros,
        h.minimum, h.maximum, math.copysign(1, h.minimum), math.copysign(1, h.maximum),
    )  # fmt: skip


def plain(numbers):
    """The definition, in exact arithmetic."""
    numbers = [float(F(number)) for number in numbers]
    largest = max(map(abs, numbers))
    exponent = MIN_EXPONENT
    while Fraction(largest) >= Fraction(2) ** exponent:
        exponent += 1
    positive, negative = [0] * BINS, [0] * BINS
    for number in numbers:
        if number:
            size = Fraction(abs(number)) * BINS / Fraction(2) ** exponent
            (positive if number > 0 else negative)[math.floor(size)] += 1
    return (
        exponent, positive, negative, numbers.count(0.0),
        min(numbers) + 0.0, max(numbers) + 0.0,
    )  # fmt: skip


@given(values)
def test_counts_are_those_of_the_definition(numbers):
    assert facts(of(np.array(numbers, F)))[:6] == plain(numbers)


@given(values, st.data())
def test_any_order_and_any_split_give_the_same_integers(numbers, data):
    whole = of(np.array(numbers, F))
    shuffled = np.array(data.draw(st.permutations(numbers)), F)
    cuts = data.draw(st.lists(st.integers(0, len(numbers)), max_size=6))
    parts = [of(part) for part in np.split(shuffled, sorted(cuts)) if part.size]
    parts = data.draw(st.permutations([*parts, empty()]))
    while len(parts) > 1:
        first, second = parts.pop(), parts.pop(0)
        parts.append(merge(first, second))
    assert facts(parts[0]) == facts(whole)
    assert whole.total == len(numbers)


@given(values, values)
def test_merge_commutes_and_changes_nothing(first, second):
    a, b = of(np.array(first, F)), of(np.array(second, F))
    before = facts(a), facts(b)
    assert facts(merge(a, b)) == facts(merge(b, a))
    assert (facts(a), facts(b)) == before
    assert facts(merge(a, empty())) == facts(a)


def test_large_tensors_go_in_pieces(monkeypatch):
    x = np.random.default_rng(0).normal(size=(3, 7, 11, 13)).astype(F)
    whole = facts(of(x))
    monkeypatch.setattr(histogram, "_CHUNK", 100)
    assert facts(of(x)) == whole
    assert facts(of(x.transpose(3, 1, 0, 2))) == whole


def test_width_and_range():
    h = of(np.array([3.0, -1.0], F))
    assert h.exponent == 2
    assert h.width == 4 / BINS
    assert h.positive[1536] == 1
    assert h.negative[512] == 1
    assert of(np.array([4.0], F)).exponent == 3


@pytest.mark.parametrize(
    ("bad", "text"),
    [
        ([np.nan, 1, np.nan], "2 NaN and 0 infinite values of 5"),
        ([np.inf, 1, -np.inf], "0 NaN and 2 infinite values of 5"),
        ([np.inf, np.nan, 0], "1 NaN and 1 infinite values of 5"),
    ],
)
def test_values_that_are_not_finite_are_named(bad, text):
    numbers = np.array([1, 2, *bad], F)
    with pytest.raises(CalibrationError) as caught:
        observe({"conv": empty()}, {"conv": numbers}, sample="cat.jpg")
    assert str(caught.value) == f"tensor 'conv': {text} in sample cat.jpg"


def test_observe_leaves_its_arguments_alone():
    start = {"a": empty()}
    after = observe(start, {"a": np.ones((2, 3), F), "other": np.ones(1)}, sample="s")
    assert start["a"].total == 0
    assert list(after) == ["a"]
    assert after["a"].total == 6
