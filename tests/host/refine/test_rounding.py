# SPDX-License-Identifier: Apache-2.0
"""Rounding by coordinate descent."""

import numpy as np
import pytest

from neon8.refine.rounding import covariance, descend

RNG = np.random.default_rng(5)


def candidates(*shape, reach=100):
    real = RNG.uniform(-reach, reach, shape)
    nearest = np.rint(real)
    return real, nearest, nearest + np.sign(real - nearest)


def noise(error, matrix):
    """(G, O / G): e' H e."""
    return np.einsum("gok,gkl,gol->go", error, matrix, error)


def test_errors_of_equal_inputs_cancel():
    """Twice 0.4 is 0.8: the nearest levels 0 0 lose it all, 1 0 is 0.2 too much."""
    rows = np.repeat(RNG.integers(-99, 99, (4000, 1, 1)), 2, axis=2)
    real = np.array([[[0.4, 0.4], [0.4, -0.4]]])
    matrix = covariance(rows)
    found = descend(real, np.zeros_like(real), np.sign(real), matrix)
    assert found.tolist() == [[[True, False], [False, False]]]


@pytest.mark.parametrize("shape", [(1, 12, 40), (5, 1, 9), (3, 4, 18)])
def test_no_flip_is_left_that_helps(shape):
    groups, _, inputs = shape
    rows = RNG.integers(-128, 128, (300, groups, inputs))
    rows[:, :, 1:] = (rows[:, :, 1:] + 2 * rows[:, :, :-1]) // 3
    matrix = covariance(rows)
    real, nearest, other = candidates(*shape)
    found = descend(real, nearest, other, matrix)
    levels = np.where(found, other, nearest)
    least = noise(real - levels, matrix)
    assert (least <= noise(real - nearest, matrix)).all()
    assert least.sum() < 0.9 * noise(real - nearest, matrix).sum()
    for k in range(inputs):
        flipped = levels.copy()
        flipped[:, :, k] = np.where(found, nearest, other)[:, :, k]
        # e has 16 bits of fraction there, and all of them here.
        assert (noise(real - flipped, matrix) >= least * (1 - 1e-3)).all()


def test_channels_do_not_depend_on_each_other():
    rows = RNG.integers(-128, 128, (50, 2, 9))
    real, nearest, other = candidates(2, 6, 9)
    matrix = covariance(rows)
    whole = descend(real, nearest, other, matrix)
    for at in np.ndindex(2, 6):
        one = tuple(slice(i, i + 1) for i in at)
        alone = (each[one] for each in (real, nearest, other))
        assert (descend(*alone, matrix[one[:1]]) == whole[one]).all()


def test_covariance_is_exact_and_in_no_order():
    rows = RNG.integers(-255, 256, (700, 2, 30))
    matrix = covariance(rows)
    assert (matrix == np.rint(matrix)).all()
    assert np.abs(matrix).max() == 2.0**20
    assert (covariance(RNG.permutation(rows)) == matrix).all()
    # ... and is what numpy says, but for the share that few rows leave.
    for group in range(2):
        want = np.cov(rows[:, group].T)
        off = ~np.eye(30, dtype=bool)
        scale = matrix[group].max() / want.max()
        share = 700 / 730
        np.testing.assert_allclose(
            matrix[group][off], share * want[off] * scale, atol=1
        )
        np.testing.assert_allclose(
            np.diagonal(matrix[group]), np.diag(want) * scale, atol=1
        )


def test_inputs_that_never_change_leave_the_levels():
    rows = np.full((40, 1, 8), 3)
    real, nearest, other = candidates(1, 4, 8)
    assert not descend(real, nearest, other, covariance(rows)).any()


def test_levels_without_a_neighbour_stay():
    rows = np.repeat(RNG.integers(-9, 9, (90, 1, 1)), 3, axis=2)
    real = np.array([[[127.4, 127.4, 127.4]]])
    ends = np.full_like(real, 127)
    assert not descend(real, ends, ends, covariance(rows)).any()
