# SPDX-License-Identifier: Apache-2.0
"""Arrays as segments, and sizes as expressions of others."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neon8.compile.segments import array_of, bits, entries, fitted, real, resized, runs
from neon8.compile.size_search import SizeBook
from neon8.ir.sizes import evaluated, value
from neon8.operators.resize import COORDINATES, ROUNDINGS, Filter, nearest, tapped

SIZES = (5, 9, 14, 22, 31, 48, 64)


def book():
    """One symbol, as it is in SIZES."""
    return SizeBook([SIZES])


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=40))
def test_runs_give_the_array_back(listed):
    array = np.array(listed, np.int32)
    parts = [entries(run, np.int32) for run in runs(array)]
    assert np.concatenate(parts).tolist() == listed


@pytest.mark.parametrize(
    ("listed", "count"),
    [
        (range(3, 40, 2), 1),
        ([0, 0, 0, *range(20), 19, 19], 3),
        (np.repeat(np.arange(9), 3), 1),
        (np.tile(np.arange(7), 4), 1),
        (np.tile(np.repeat(np.arange(5), 2), 3), 1),
        ([2, 1, *range(9), 7, 6], 3),
        ([-1, 8, 9, 10, 3], 3),
    ],
)
def test_patterns_are_few_runs(listed, count):
    assert len(runs(np.array(listed, np.int32))) == count


LISTS = {
    "slice": lambda n: np.arange(n)[1:-2:2],
    "backwards": lambda n: np.arange(n)[::-1],
    "padded": lambda n: np.pad(np.arange(n), (2, 1), constant_values=-1),
    "mirrored": lambda n: np.pad(np.arange(n), (3, 2), mode="reflect"),
    "to a multiple": lambda n: np.pad(np.arange(n), (0, -n % 8), constant_values=-1),
    "tiled": lambda n: np.tile(np.arange(n), n),
    "repeated": lambda n: np.repeat(np.arange(n), 2),
    "halves": lambda n: np.tile(
        np.arange(n, dtype=np.float32) / 2 + np.float32(0.1), 2
    ),
    "grid": lambda n: np.repeat(np.arange(n, dtype=np.float32) + np.float32(0.5), n),
}


@pytest.mark.parametrize("name", LISTS)
def test_lists_that_depend_on_a_size(name):
    arrays = [np.asarray(LISTS[name](n)) for n in SIZES]
    kind = np.float32 if arrays[0].dtype == np.float32 else np.int32
    arrays = [array.astype(kind) for array in arrays]
    b = book()
    b.found(tuple(n + -n % 8 for n in SIZES), b.symbols)  # as the output has it
    found = fitted(arrays, b, b.symbols, far=True)
    assert found is not None
    for n in (6, 7, 16, 40, 41):
        made = array_of(found, evaluated(b.sizes, [n]), kind)
        assert made.dtype == kind
        assert made.tobytes() == np.asarray(LISTS[name](n)).astype(kind).tobytes()


def test_lists_without_a_pattern():
    chance = np.random.default_rng(0)
    arrays = [chance.permutation(n).astype(np.int32) for n in SIZES]
    assert fitted(arrays, book(), (), far=True) is None


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("by", [None, 1.5, 0.7])
def test_nearest(coordinates, rounding, by):
    outs = [int(n * (by or 2.6)) for n in SIZES]
    steps = [
        np.float32(by) if by else np.float32(o) / np.float32(n)
        for n, o in zip(SIZES, outs, strict=True)
    ]
    lists = [
        {"indices": nearest(n, out, step, coordinates, rounding)}
        for n, out, step in zip(SIZES, outs, steps, strict=True)
    ]
    b = book()
    out = b.found(tuple(outs), b.symbols)
    found = resized(lists, (b.symbols[0], SIZES), (out, tuple(outs)), 1)
    sizes = evaluated(b.sizes, [26])
    there = value(out, sizes)
    step = np.float32(by) if by else np.float32(there) / np.float32(26)
    want = nearest(26, there, step, coordinates, rounding)
    assert array_of([found], sizes, np.int32).tolist() == want.tolist()


TAPS = [
    (Filter(), 3, 2),
    (Filter(cubic=True), 3, 4),
    (Filter(cubic=True, exclude=True, a=-0.5), 2, 4),
    (Filter(cubic=True, antialias=True, a=-0.5), 0.5, 8),
    (Filter(antialias=True), 0.5, 4),
    (Filter(antialias=True, exclude=True), 0.25, 8),
]


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize(("how", "by", "taps"), TAPS)
def test_taps(coordinates, how, by, taps):
    sizes = tuple(4 * n for n in SIZES)
    outs = tuple(int(by * n) for n in sizes)

    def lists(size):
        found = tapped(size, int(by * size), np.float32(by), coordinates, how, taps)
        return dict(zip(("indices", "values"), map(np.ravel, found), strict=True))

    b = SizeBook([sizes])
    out = b.found(outs, b.symbols)
    found = resized([*map(lists, sizes)], (b.symbols[0], sizes), (out, outs), taps)
    for each in lists(80).values():
        made = array_of([found], evaluated(b.sizes, [80]), each.dtype)
        assert made.tobytes() == each.tobytes()
    wrong = [*map(lists, sizes)]
    wrong[0]["values"][0] += np.float32(1)
    assert resized(wrong, (b.symbols[0], sizes), (out, outs), taps) is None


def test_taps_that_are_more_than_there_is_room_for():
    how = Filter(cubic=True)
    assert tapped(9, 18, np.float32(2), "half_pixel", how, 3) is None


@given(st.floats(width=32, allow_nan=False))
def test_bits_of_a_float(number):
    assert real(bits(number)).tobytes() == np.float32(number).tobytes()


PAIRS = (
    *("7", "-3", "a", "3 * a - 5", "40 - b", "(a + 1) // 2", "3 * a // 2", "a * b"),
    *("(b - 3) // 4 * 12", "5 * a * b", "a * b * b", "a + b - 9", "a - b", "max(a, b)"),
)


@pytest.mark.parametrize("of", PAIRS)
def test_what_follows_from_two_sizes(of):
    first, second = (4, 9, 6, 16, 21, 10, 33), (12, 5, 31, 8, 22, 17, 3)
    formula = eval(f"lambda a, b: {of}")  # noqa: S307 - one of PAIRS
    b = SizeBook([first, second])
    wanted = tuple(map(formula, first, second))
    found = b.found(wanted, b.symbols)
    assert b.vector(found) == wanted
    for pair in ((5, 5), (18, 40), (64, 7)):
        assert value(found, evaluated(b.sizes, pair)) == formula(*pair)


def test_what_follows_from_none():
    assert book().found((3, 1, 4, 1, 5, 9, 2), (), far=True) is None


def test_what_does_not_fit_leaves_nothing():
    b = book()
    wanted = tuple(2 * n for n in SIZES)
    (n,) = b.symbols
    builds = [lambda: b.plus(b.make("multiply", n, 3), 1), lambda: b.plus(n, 4)]
    assert b.tried(wanted, builds) is None
    assert len(b.sizes) == 1
    assert b.tried(wanted, [*builds, lambda: b.make("multiply", n, 2)]) is not None
    assert len(b.sizes) == 3
