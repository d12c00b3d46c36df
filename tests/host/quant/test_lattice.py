# SPDX-License-Identifier: Apache-2.0
"""Rounding to rows of even sum that stay in reach, and what it may do to a weight."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from neon8.quant.lattice import HALF_REACH, lattice_scales, on_lattice, reaches
from neon8.quant.weights import quantize_weights

WEIGHTS = hnp.arrays(
    np.float32,
    st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(1, 3), st.just(3)),
    elements=st.floats(-1, 1, width=32).filter(lambda w: w == 0 or abs(w) > 1e-3),
)


def absmax_scales(weight):
    largest = np.abs(weight.reshape(len(weight), -1)).max(axis=1)
    return (np.where(largest > 0, largest, 1) / 127).astype(np.float32).astype(float)


@settings(max_examples=40)
@given(weight=WEIGHTS, clipped=st.sampled_from([1.0, 0.75, 1.5]))
def test_rows_are_even_and_at_most_one_element_has_moved(weight, clipped):
    scales = absmax_scales(weight) * clipped
    levels = on_lattice(weight, scales).astype(int)
    nearest = quantize_weights(weight, scales).astype(int)
    assert (levels.sum(axis=-1) % 2 == 0).all()
    assert np.abs(levels).max() <= 127
    moved = np.abs(levels - nearest)
    assert moved.max() <= 1
    assert (moved.sum(axis=-1) == nearest.sum(axis=-1) % 2).all()
    real = weight / scales.reshape(-1, 1, 1, 1)
    inside = np.abs(real) <= 127
    assert np.abs(levels - real)[inside].max(initial=0) < 1 + 1e-6


@given(row=st.tuples(*[st.floats(-127, 127, width=32)] * 3))
def test_no_row_of_even_sum_is_nearer(row):
    (levels,) = on_lattice(np.array([row], np.float32), np.ones(1)).astype(float)
    around = [range(int(x // 1) - 1, int(x // 1) + 3) for x in row]
    errors = [
        sum((x - q) ** 2 for x, q in zip(row, each, strict=True))
        for each in itertools.product(*around)
        if sum(each) % 2 == 0 and max(map(abs, each)) <= 127
    ]
    assert np.square(levels - row).sum() == pytest.approx(min(errors), abs=1e-9)


@settings(max_examples=40)
@given(weight=WEIGHTS)
def test_scales_are_the_least_with_which_rows_stay_in_reach(weight):
    given = absmax_scales(weight)
    scales = lattice_scales(weight, given)
    for channel, scale in enumerate(scales):
        own = weight[channel : channel + 1]
        assert reaches(on_lattice(own, scales[channel : channel + 1])).max() <= 254
        assert scale == np.float32(scale) >= given[channel]
        if scale > given[channel]:
            below = np.nextafter(np.float32(scale), np.float32(0)).astype(float)
            least = on_lattice(own, np.array([below]))
            assert reaches(least).max() > HALF_REACH


@pytest.mark.parametrize(
    ("row", "levels"),
    [
        ([1, 2, 3], [1, 2, 3]),
        ([1, 2.4, 2], [1, 3, 2]),  # 5 is odd; the largest error decides
        ([1, 2.6, 3], [1, 2, 3]),
        ([-1, -2.4, -2], [-1, -3, -2]),
        ([0, 0, 0], [0, 0, 0]),
        ([0, 0, 1], [1, 0, 1]),  # of equal errors the first
        ([127, 126, 126], [126, 126, 126]),
        ([126.4, 127, 126], [127, 127, 126]),
        ([300, 0.1, 0], [127, 1, 0]),  # beyond the end there is no other neighbour
        ([0.5, 1.5, 0], [0, 2, 0]),  # halves to even first
    ],
)
def test_rows_by_hand(row, levels):
    found = on_lattice(np.array([row], np.float32), np.ones(1))
    assert found.tolist() == [levels]


def test_reaches_by_hand():
    rows = np.array([[127, 127, 127], [-128, 1, 127], [100, -20, -100]], np.int8)
    assert reaches(rows).tolist() == [381, 2, 20]
