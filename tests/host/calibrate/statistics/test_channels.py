# SPDX-License-Identifier: Apache-2.0
"""Channel statistics: exact, whatever the order, and what they are said to be."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import numpy_statistics
from native_kits import facts, isas, taken
from neon8.calibrate.statistics import channels
from neon8.calibrate.statistics.channels import FRACTION_BITS

F = np.float32
RNG = np.random.default_rng(3)
number = st.floats(width=32, allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize("sign", [1, -1])
def test_sums_of_sizes_far_apart(sign):
    """Every place that a sum can begin at, carries through all words, either sign."""
    samples = np.full((16, 1, 250), np.nextafter(F(2), F(0)), F)
    samples[1:, 0] = np.ldexp(samples[1:, 0], np.arange(-125, 125)) * sign
    samples[::5, 0, ::7] *= -1
    want = channels.empty(250)
    for sample in samples:
        want = channels.merge(want, numpy_statistics.channels_of(sample))
    assert facts(taken(samples, 1)[0].channels()) == facts(want)


@given(st.lists(st.lists(number, min_size=3, max_size=3), min_size=1, max_size=5))
def test_mean_and_variance_are_those_of_the_sums(rows):
    """One value per channel and sample, so that the sums of a sample are exact."""
    samples = [np.array(row, F).reshape(1, 3) for row in rows]
    got = taken(samples, 1)[0].channels()
    for channel in range(3):
        values = [float(sample[0, channel]) for sample in samples]
        grid, most = Fraction(1, 2**FRACTION_BITS), 2.0**127
        totals = [min(max(v, -most), most) for v in values]
        squares = [min(v * v, most) for v in values]
        first = sum(round(Fraction(v) / grid) for v in totals) * grid
        second = sum(round(Fraction(v) / grid) for v in squares) * grid
        n = len(values)
        assert got.mean()[channel] == float(first / n)
        assert got.variance()[channel] == max(float(second / n - (first / n) ** 2), 0)


def test_variance_of_large_values_that_hardly_differ():
    x = (2.0**20 + np.arange(64) % 2).astype(F).reshape(1, 1, 8, 8)
    assert numpy_statistics.channels_of(x).variance().tolist() == [0.25]


@given(st.lists(st.tuples(*[st.integers(-(2**254), 2**254 - 1)] * 2), min_size=1))
def test_merge_adds_integers(pairs):
    parts = []
    for numbers in zip(*pairs, strict=True):
        words = numpy_statistics.words_of(numbers)
        parts.append(replace(channels.empty(len(pairs)), total=words, squares=words))
    both = channels.merge(*parts)
    assert channels.integers(both.total) == [sum(pair) for pair in pairs]
    assert channels.integers(both.squares) == [sum(pair) for pair in pairs]


def test_what_is_too_large_saturates():
    """Sums stop at 2**127, sample by sample; the extremes are exact."""
    x = np.full((1, 2, 2), 2.0**126, F)
    x[0, 1] = [2.0**127, -(2.0**127)]
    for isa in isas():
        got = taken([x * F(1), x * F(-1), x], isa)[0].channels()
        assert [n >> FRACTION_BITS for n in channels.integers(got.total)] == [2**127, 0]
        assert channels.integers(got.squares) == [3 << 127 + FRACTION_BITS] * 2
        assert got.maximum.tolist() == [2.0**126, 2.0**127]


def test_what_is_too_small_is_rounded_in_each_sample():
    """To a multiple of 2**-96, ties to even."""
    x = np.array([[[0.5], [1.5], [0.75], [-0.5], [-1.5]]], F) * F(2.0**-96)
    for isa in isas():
        got = taken([x] * 3, isa)[0].channels()
        assert channels.integers(got.total) == [0, 6, 3, 0, -6]
        assert channels.integers(got.squares) == [0] * 5


def test_without_values():
    nothing = channels.empty(2)
    assert nothing.mean().tolist() == [0, 0]
    assert nothing.variance().tolist() == [0, 0]
    one = numpy_statistics.channels_of(np.ones((1, 2, 3), F))
    assert facts(channels.merge(nothing, one)) == facts(one)


def test_join():
    x = RNG.normal(size=(1, 5, 3, 3)).astype(F)
    parts = [numpy_statistics.channels_of(part) for part in (x[:, :2], x[:, 2:])]
    assert facts(channels.join(parts)) == facts(numpy_statistics.channels_of(x))


def test_counts_are_of_finite_values():
    x = np.array([[[1, np.nan, 2], [np.inf, np.nan, -np.inf]]], F)
    got = numpy_statistics.channels_of(x)
    assert got.count.tolist() == [2, 0]
    assert got.mean().tolist() == [1.5, 0]
    assert got.minimum.tolist() == [1, math.inf]
