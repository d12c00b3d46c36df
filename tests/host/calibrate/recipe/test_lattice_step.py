# SPDX-License-Identifier: Apache-2.0
"""The steps of weights that were dequantized, and of none that were not."""

import numpy as np
import pytest

from neon8.calibrate.recipe.lattice_step import steps_of
from neon8.quant.weights import quantize_weights
from small_graphs import conv

RNG = np.random.default_rng(7)
F = np.float32


def steps(weight):
    """Of a convolution with these weights, (O, I, kh, kw)."""
    out, channels, kernel, _ = weight.shape
    node = conv("y", channels=channels, out=out, kernel=kernel, weight=weight)
    return steps_of(node)


def levels(*shape, most=127):
    return RNG.integers(-most, most + 1, shape)


def test_a_step_of_the_tensor():
    whole = levels(8, 16, 1, 1, most=120)
    weight = (whole * F(0.0123)).astype(F)
    found = steps(weight)
    assert found.tolist() == pytest.approx([0.0123] * 8, rel=1e-6)
    assert (quantize_weights(weight, found) == whole).all()


def test_a_step_of_each_channel():
    """As batch normalization leaves it, also where most are zero."""
    whole = levels(6, 4, 3, 3, most=90)
    whole[:, :, 0] = 0
    weight = (whole * RNG.uniform(0.001, 9, (6, 1, 1, 1))).astype(F)
    assert (quantize_weights(weight, steps(weight)) == whole).all()


def test_channels_beyond_int8_are_left_out():
    whole = levels(4, 64, 1, 1, most=120)
    whole[2, 5] = 200
    found = steps((whole * F(0.5)).astype(F))
    assert np.isnan(found).tolist() == [False, False, True, False]
    assert found[[0, 1, 3]].tolist() == [0.5] * 3


def test_the_usual_scale_is_no_step():
    """A channel that reaches 127 is on the grid of absmax / 127 already."""
    whole = levels(1, 64, 1, 1)
    whole[0, 0] = 127
    assert np.isnan(steps((whole * F(0.03125)).astype(F))).all()


def test_a_little_noise_is_allowed_and_much_is_not():
    whole = levels(3, 96, 1, 1, most=100)
    for share, found in ((0.005, True), (0.3, False)):
        noise = RNG.uniform(-share, share, whole.shape)
        weight = ((whole + np.rint(noise * 50) / 50) * 0.01).astype(F)
        assert np.isfinite(steps(weight)).all() == found


@pytest.mark.parametrize("shape", [(64, 16, 1, 1), (64, 1, 3, 3), (8, 64, 3, 3)])
def test_other_weights_have_none(shape):
    weight = RNG.normal(size=shape).astype(F)
    assert np.isnan(steps(weight)).all()


@pytest.mark.parametrize("value", [0.0, 1.0, np.inf, np.nan])
def test_weights_without_two_values(value):
    assert np.isnan(steps(np.full((2, 3, 1, 1), value, F))).all()
