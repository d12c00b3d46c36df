# SPDX-License-Identifier: Apache-2.0
"""Histograms are exact: they depend on the values and on nothing else."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import numpy_statistics
from native_kits import facts, histogram_of, isas
from neon8.calibrate.statistics.histogram import BINS, empty, merge

F = np.float32
of = numpy_statistics.histogram_of
AWKWARD = [0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 1e-45, -1e-45, 3.4e38, -3.4e38, 1 / 2048,
           1.9999999, 2.0**-100, 2.0**-101, 1.1754944e-38, 4095 / 4096]  # fmt: skip
value = st.one_of(
    st.sampled_from(AWKWARD),
    st.floats(-4, 4, width=32),
    st.floats(width=32, allow_nan=False, allow_infinity=False),
)
values = st.lists(value, min_size=1, max_size=40)


@given(values)
def test_counts_are_those_of_the_definition(numbers):
    array = np.array(numbers, F)
    for isa in isas():
        assert facts(histogram_of(array, isa)) == facts(of(array))


@given(values, st.data())
def test_any_order_and_any_split_give_the_same_integers(numbers, data):
    whole = of(np.array(numbers, F))
    shuffled = np.array(data.draw(st.permutations(numbers)), F)
    cuts = data.draw(st.lists(st.integers(0, len(numbers)), max_size=6))
    parts = [of(part) for part in np.split(shuffled, sorted(cuts)) if part.size]
    parts = data.draw(st.permutations([*parts, empty()]))
    pieces, before = list(parts), list(map(facts, parts))
    while len(parts) > 1:
        first, second = parts.pop(), parts.pop(0)
        parts.append(merge(first, second))
    assert facts(parts[0]) == facts(whole)
    assert whole.total == len(numbers)
    assert list(map(facts, pieces)) == before


def test_width_and_range():
    h = of(np.array([3.0, -1.0], F))
    assert h.exponent == 2
    assert h.width == 4 / BINS
    assert h.positive[1536] == 1
    assert h.negative[512] == 1
    assert of(np.array([4.0], F)).exponent == 3


@pytest.mark.parametrize(
    ("bad", "nans", "infs"),
    [
        ([np.nan, -0.0, np.nan], 2, 0),
        ([np.inf, 1, -np.inf], 0, 2),
        ([np.inf, np.nan, 0], 1, 1),
    ],
)
@pytest.mark.parametrize("others", [[], [1, -2], [0.0] * 70])
def test_values_that_are_not_finite_are_counted_apart(bad, nans, infs, others):
    numbers = np.array([*others, *bad], F)
    h = of(numbers)
    assert (h.nans, h.infs) == (nans, infs)
    finite = of(numbers[np.isfinite(numbers)])
    assert facts(h) == facts(finite) | {"nans": nans, "infs": infs}
    for isa in isas():
        assert facts(histogram_of(numbers, isa)) == facts(h)


def test_nothing_finite():
    h = of(np.array([np.nan, np.inf], F))
    assert facts(h) == facts(empty(nans=1, infs=1))
    assert h.total == 0
