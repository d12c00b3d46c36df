# SPDX-License-Identifier: Apache-2.0
"""What samples can tell of several settings, and what they cannot."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neon8.evaluate.confidence import student
from neon8.evaluate.ranking import rank_settings


@pytest.mark.parametrize(
    ("freedom", "share", "wanted"),  # from printed tables
    [
        (1, 0.95, 12.706),
        (2, 0.95, 4.303),
        (3, 0.99, 5.841),
        (4, 0.95, 2.776),
        (9, 0.999, 4.781),
        (30, 0.999, 3.646),
        (120, 0.95, 1.980),
        (10**9, 0.95, 1.962),
    ],
)
def test_student(freedom, share, wanted):
    assert student(share, freedom) == pytest.approx(wanted, abs=6e-4)


def noise(seed, *factors, n=100, own=0.1):
    """Errors that are mostly those of the sample, times a factor of each setting."""
    rng = np.random.default_rng(seed)
    hard = rng.lognormal(0, 1, n)
    return [(f * hard * rng.lognormal(0, own, n)).tolist() for f in factors]


def test_pairs_tell_what_sums_do_not():
    """The samples differ by more than a decade, and a tenth of a dB shows."""
    found = rank_settings(noise(1, 1.0, 0.95, 0.5), 0)
    gain = found.gains[1]
    assert 0 < gain.least < gain.db < 0.4
    assert gain.db == pytest.approx(-10 * math.log10(0.95), abs=gain.range)
    assert found.gains[0] == type(gain)(0.0, 0.0)
    assert (found.best, found.advised, found.contenders) == (2, 2, {2})


def test_the_standard_error_is_that_of_other_samples():
    gains = [rank_settings(noise(seed, 1, 0.9), 0).gains[1] for seed in range(200)]
    spread = np.std([gain.db for gain in gains])
    ranges = np.mean([gain.range for gain in gains]) / student(0.95, 99)
    assert ranges == pytest.approx(spread, rel=0.2)


def test_the_best_of_many_equals_is_seldom_sure():
    """20 settings without a difference: the best looks better, and is not advised."""
    found = [rank_settings(noise(seed, *[1] * 20, n=60), 0) for seed in range(100)]
    assert all(each.gains[each.best].db > 0 or each.best == 0 for each in found)
    assert sum(each.advised != 0 for each in found) <= 10  # 5 are what it is made for
    assert sum(7 not in each.contenders for each in found) <= 10


def test_the_best_is_among_the_contenders():
    """In 100 draws with close settings, the truth is left out in 5 at most."""
    factors = (1, 0.97, 0.96, 0.955, 1.1)
    found = [rank_settings(noise(seed, *factors), 0) for seed in range(100)]
    assert sum(3 not in each.contenders for each in found) <= 5
    assert sum(4 in each.contenders for each in found) <= 5
    assert sum(each.advised != 0 for each in found) >= 50


def test_few_samples_tell_nothing():
    one = rank_settings([[1.0], [0.1]], 0)
    assert one.gains[1].db == pytest.approx(10)
    assert math.isinf(one.gains[1].range)
    assert (one.best, one.advised, one.contenders) == (1, 0, {0, 1})
    two = rank_settings([[1.0, 2.0], [0.5, 1.5]], 0)
    assert (two.best, two.advised) == (1, 0)


def test_equal_settings_are_one():
    errors = noise(3, 1.0, 0.9)
    plain = rank_settings(errors, 0)
    more = rank_settings([*errors, *[errors[1]] * 5], 0)
    assert more.gains[:2] == plain.gains
    assert more.advised == plain.advised == 1
    assert more.contenders == {1, 2, 3, 4, 5, 6}


def test_no_error_at_all():
    found = rank_settings([[1.0, 2.0], [0.0, 0.0], [0.0, 0.0]], 0)
    assert [gain.db for gain in found.gains] == [0, math.inf, math.inf]
    assert (found.advised, found.contenders) == (1, {1, 2})
    assert rank_settings([[0.0, 0.0], [1.0, 0.0]], 0).contenders == {0}


@given(st.data())
def test_sound(data):
    count, n = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 5))
    values = st.lists(st.floats(0, 1e6), min_size=n, max_size=n)
    errors = data.draw(st.lists(values, min_size=count, max_size=count))
    baseline = data.draw(st.integers(0, count - 1))
    found = rank_settings(errors, baseline)
    assert found.best in found.contenders
    assert found.advised in found.contenders
    if found.advised != baseline:
        assert baseline not in found.contenders
    assert not any(math.isnan(gain.db + gain.range) for gain in found.gains)
    order = data.draw(st.permutations(range(n)))
    moved = rank_settings([[e[k] for k in order] for e in errors], baseline)
    assert moved == found
