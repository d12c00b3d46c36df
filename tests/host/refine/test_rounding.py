# SPDX-License-Identifier: Apache-2.0
"""Rounding by coordinate descent."""

import tracemalloc

import numpy as np
import pytest

from neon8.quant.weights import neighbours
from neon8.refine import rounding
from neon8.refine.rounding import covariance, crossed, descend

RNG = np.random.default_rng(5)


def drawn(*shape, reach=100):
    """Weights in steps of 1."""
    return RNG.uniform(-reach, reach, shape).astype(np.float32)


def sums(weights, rows):
    """(n, G, O / G), exact."""
    return np.einsum("gok,ngk->ngo", weights.astype(np.float64), rows)


def chosen(weights, rows, wanted=None):
    """The flips, and the integers with and without them."""
    wanted = sums(weights, rows) if wanted is None else wanted
    flips = descend(weights, np.ones(weights.shape[:2]), rows, wanted, samples=10)
    flat = weights.reshape(-1, weights.shape[2])
    nearest, other, _ = neighbours(flat, np.ones(len(flat)))
    nearest, other = (each.reshape(weights.shape) for each in (nearest, other))
    return flips, np.where(flips, other, nearest), nearest, other


def noise(levels, rows, wanted):
    """Variance of what is lost, of each channel."""
    return np.var(wanted - sums(levels, rows), axis=0)


def alike(*shape):
    """Rows of neighbours that go together."""
    rows = RNG.integers(-128, 128, shape, np.int32)
    rows[:, :, 1:] = (rows[:, :, 1:] + 2 * rows[:, :, :-1]) // 3
    return rows


def test_errors_of_equal_inputs_cancel():
    """Twice 0.4 is 0.8: the nearest levels 0 0 lose it all, 1 0 is 0.2 too much."""
    rows = np.repeat(RNG.integers(-99, 99, (4000, 1, 1), np.int32), 2, axis=2)
    flips, *_ = chosen(np.float32([[[0.4, 0.4], [0.4, -0.4]]]), rows)
    assert flips.tolist() == [[[True, False], [False, False]]]


def test_errors_of_earlier_layers_are_taken_back():
    """Inputs should be larger by a fifth: then 4.3 of them are 5.16."""
    rows = np.repeat(RNG.integers(-90, 90, (4000, 1, 1), np.int32), 2, axis=2)
    weights = np.float32([[[4.2, 0.1]]])
    assert chosen(weights, rows)[1].sum() == 4
    assert chosen(weights, rows, 1.2 * sums(weights, rows))[1].sum() == 5
    rows = alike(3000, 2, 12)
    weights = drawn(2, 6, 12)
    wanted = sums(weights, rows) + 2 * rows[:, :, :1] - rows[:, :, 3:4]
    flips, levels, nearest, _ = chosen(weights, rows, wanted)
    without = chosen(weights, rows)[1]
    assert flips.any()
    least = noise(levels, rows, wanted)
    assert (least <= noise(nearest, rows, wanted)).all()
    assert least.sum() < 0.5 * noise(without, rows, wanted).sum()


def test_what_may_be_chance_counts_little():
    """Errors of nothing that the layer reads; the second channel has some in common."""
    x = RNG.integers(-99, 99, (1, 20, 1000)).astype(float)
    x -= np.rint(x.mean(axis=2, keepdims=True))
    d = RNG.normal(0, 200, (1, 2, 1000))
    d[:, 1] += 3 * x[:, 4] - 2 * x[:, 7]
    got = crossed(x, d, 20)[0] / 1000**2
    want = np.cov(np.vstack([d[0], x[0]]), ddof=0)[:2, 2:]
    kept = np.linalg.norm(got, axis=1) / np.linalg.norm(want, axis=1)
    assert kept[0] < 0.5
    assert 0.9 < kept[1] < 1
    np.testing.assert_allclose(got, kept[:, None] * want, atol=1)


def test_constant_differences_are_for_the_bias():
    rows, weights = alike(500, 2, 9), drawn(2, 3, 9)
    wanted = sums(weights, rows)
    other = wanted + RNG.normal(0, 1e6, (1, *wanted.shape[1:])).round()
    assert (chosen(weights, rows)[0] == chosen(weights, rows, other)[0]).all()


@pytest.mark.parametrize("shape", [(1, 12, 40), (5, 1, 9), (3, 4, 18)])
def test_no_flip_is_left_that_helps(shape):
    groups, _, inputs = shape
    weights, rows = drawn(*shape), alike(300, groups, inputs)
    flips, levels, nearest, other = chosen(weights, rows)
    share = len(rows) / (len(rows) + inputs)
    matrix, _ = covariance(rows.transpose(1, 2, 0).astype(float), share)

    def cost(values):
        error = weights.astype(np.float64) - values
        return np.einsum("gok,gkl,gol->go", error, matrix, error)

    least = cost(levels)
    assert (least <= cost(nearest)).all()
    assert least.sum() < 0.9 * cost(nearest).sum()
    for k in range(inputs):
        flipped = levels.copy()
        flipped[:, :, k] = np.where(flips, nearest, other)[:, :, k]
        # e has 16 bits of fraction there, and all of them here.
        assert (cost(flipped) >= least * (1 - 1e-3)).all()


def test_channels_do_not_depend_on_each_other(monkeypatch):
    rows, weights = alike(50, 2, 9), drawn(2, 6, 9)
    whole = chosen(weights, rows)[0]
    for at in np.ndindex(2, 6):
        one = tuple(slice(i, i + 1) for i in at)
        alone = chosen(weights[one], rows[:, one[0]])[0]
        assert (alone == whole[one]).all()
    monkeypatch.setattr(rounding, "PART", 40)
    assert len(rounding.parts(weights.shape)) == 3
    assert (chosen(weights, rows)[0] == whole).all()


def test_layers_with_very_many_inputs_take_little_memory():
    """K = 9216: 1024 channels under 3x3 taps. The matrix alone would take 680 MB."""

    def some():
        found = np.repeat(RNG.integers(-40, 41, (300, 1, 1152), np.int32), 8, axis=2)
        return found + RNG.integers(-9, 10, found.shape, np.int32)

    rows, fresh, weights = some(), some(), drawn(1, 3, 9216)
    wanted = sums(weights, rows)
    tracemalloc.start()
    flips, levels, nearest, _ = chosen(weights, rows, wanted)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200e6
    starts = range(0, 9216, rounding.CHUNK)
    assert all(flips[..., at : at + rounding.CHUNK].any() for at in starts)
    wanted = sums(weights, fresh)
    before, after = (noise(each, fresh, wanted).sum() for each in (nearest, levels))
    assert after < 0.95 * before


def test_chunks_see_what_others_lose(monkeypatch):
    """Two equal inputs in two chunks cancel as two in one do."""
    rows = np.repeat(RNG.integers(-99, 99, (4000, 1, 1), np.int32), 2, axis=2)
    monkeypatch.setattr(rounding, "CHUNK", 1)
    _, levels, *_ = chosen(np.float32([[[0.4, 0.4]]]), rows)
    assert levels.sum() == 1
    rows, weights = alike(900, 2, 60), drawn(2, 5, 60)
    wanted = sums(weights, rows)
    monkeypatch.setattr(rounding, "CHUNK", 60)
    one = noise(chosen(weights, rows)[1], rows, wanted).sum()
    for size in (7, 30, 59):
        monkeypatch.setattr(rounding, "CHUNK", size)
        _, levels, nearest, _ = chosen(weights, rows)
        assert noise(levels, rows, wanted).sum() < 1.1 * one
        assert 1.3 * one < noise(nearest, rows, wanted).sum()


def test_covariance_is_exact_and_in_no_order():
    rows = RNG.integers(-255, 256, (2, 30, 700)).astype(float)
    matrix, unit = covariance(rows, 0.8)
    assert (matrix == np.rint(matrix)).all()
    assert np.abs(matrix).max() == 2.0**20
    assert (covariance(RNG.permutation(rows, axis=2), 0.8)[0] == matrix).all()
    # ... and is what numpy says, but for the share that few rows leave.
    for group in range(2):
        want = np.cov(rows[group], ddof=0) * 700**2 * unit[group]
        off = ~np.eye(30, dtype=bool)
        np.testing.assert_allclose(matrix[group][off], 0.8 * want[off], atol=1)
        np.testing.assert_allclose(np.diag(matrix[group]), np.diag(want), atol=1)


def test_inputs_that_never_change_leave_the_levels():
    rows = np.full((40, 1, 8), 3, np.int32)
    weights = drawn(1, 4, 8)
    wanted = RNG.normal(0, 1e4, (40, 1, 4))
    for each in (None, wanted):
        assert not chosen(weights, rows, each)[0].any()


def test_levels_without_a_neighbour_stay():
    rows = np.repeat(RNG.integers(-9, 9, (90, 1, 1), np.int32), 3, axis=2)
    assert not chosen(np.full((1, 1, 3), 127.4, np.float32), rows)[0].any()
