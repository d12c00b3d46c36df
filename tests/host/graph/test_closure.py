# SPDX-License-Identifier: Apache-2.0
"""The best closed set is that of all sets tried one by one."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from neon8.graph.closure import closure

MOST = 7


@st.composite
def choices(draw):
    """Gains of some things, and which of them imply which others."""
    gains = draw(st.lists(st.integers(-9, 9), max_size=MOST))
    one = st.integers(0, max(len(gains) - 1, 0))
    pairs = st.lists(st.tuples(one, one), max_size=2 * MOST) if gains else st.just([])
    return gains, draw(pairs)


@given(choices())
def test_it_is_the_best_one(case):
    gains, implied = case
    every = range(len(gains))
    sets = [
        set(each)
        for size in range(len(gains) + 1)
        for each in itertools.combinations(every, size)
        if all(b in each for a, b in implied if a in each)
    ]
    best = max(sum(gains[i] for i in each) for each in sets)
    smallest = set.intersection(
        *(each for each in sets if sum(gains[i] for i in each) == best)
    )
    assert closure(gains, implied) == smallest


def test_long_chains_are_no_trouble():
    count = 3000
    gains = [(-1) ** at * (count - at) for at in range(count)]
    implied = [(at, at + 1) for at in range(count - 1)]
    assert closure(gains, implied) == set(range(count))
