# SPDX-License-Identifier: Apache-2.0
"""The steps of weights that were dequantized, and of none that were not."""

import numpy as np
import pytest

from neon8.calibrate.recipe.lattice_step import steps_of
from neon8.calibrate.recipe.recipe import moved_steps
from neon8.quant.weights import quantize_weights
from small_graphs import conv

RNG = np.random.default_rng(7)
F = np.float32


def steps(weight):
    """The steps of a convolution with these weights, (O, I, kh, kw)."""
    out, channels, kernel, _ = weight.shape
    node = conv("y", channels=channels, out=out, kernel=kernel, weight=weight)
    return steps_of(node)


def levels(*shape, most=127):
    return RNG.integers(-most, most + 1, shape)


def test_a_step_of_the_tensor_but_for_channels_beyond_int8():
    whole = levels(8, 64, 1, 1, most=120)
    found = steps((whole * F(0.0123)).astype(F))
    assert found.tolist() == pytest.approx([0.0123] * 8, rel=1e-6)
    whole[2, 5] = 200
    found = steps((whole * F(0.5)).astype(F))
    assert np.isnan(found).tolist() == [channel == 2 for channel in range(8)]
    assert (found[~np.isnan(found)] == 0.5).all()


def test_a_step_of_each_channel():
    """As batch normalization leaves it, also where most are zero."""
    whole = levels(6, 4, 3, 3, most=90)
    whole[:, :, 0] = 0
    weight = (whole * RNG.uniform(0.001, 9, (6, 1, 1, 1))).astype(F)
    assert (quantize_weights(weight, steps(weight)) == whole).all()


def test_a_little_noise_is_allowed_and_much_is_not():
    whole = levels(3, 96, 1, 1, most=100)
    for share, found in ((0.005, True), (0.3, False)):
        noise = RNG.uniform(-share, share, whole.shape)
        weight = ((whole + np.rint(noise * 50) / 50) * 0.01).astype(F)
        assert np.isfinite(steps(weight)).all() == found


def whole_axes(scales):
    return scales[:, None, None, None]


def pruned(values):
    """Two sizes, both signs, and many zeros."""
    return np.sign(values) * np.where(np.abs(values) > 1, 0.7, 0.31) * (values > 0.5)


DRAWN = {
    "normal": lambda values: values,
    "uniform": lambda values: np.sin(30 * values),
    "pruned": pruned,
    "heavy": lambda values: values**3,
    "float16": lambda values: values.astype(np.float16),
    "bfloat16": lambda values: (values.astype(F).view(np.uint32) & 0xFFFF0000).view(F),
    "tiny float16": lambda values: (values * 2.0**-16).astype(np.float16),
}


@pytest.mark.parametrize("draw", DRAWN.values(), ids=DRAWN)
def test_random_weights_have_none(draw):
    """Among thousands of channels of few weights some are near multiples of a step."""
    rng = np.random.default_rng(3)
    for shape in ((1000, 2, 1, 1), (2000, 3, 1, 1), (500, 1, 3, 3), (200, 16, 1, 1)):
        weight = draw(rng.normal(0, 0.1, shape)).astype(F)
        assert np.isnan(steps(weight)).all()


@pytest.mark.parametrize("most", [7, 31, 120])
@pytest.mark.parametrize("shape", [(16, 1, 3, 3), (16, 12, 1, 1), (8, 16, 3, 3)])
def test_true_steps_are_found(most, shape):
    """Weights of 4, 6 and 8 bits, a step for each channel, saved as float32."""
    rng = np.random.default_rng(most)
    whole = rng.integers(-most, most + 1, shape)
    whole[:, 0, 0, 0] = most
    own = rng.uniform(0.001, 0.1, (shape[0], 1, 1, 1)).astype(F)
    weight = (whole * own).astype(F)
    found = steps(weight)
    some = ~np.isnan(found)  # too few weights may not show their step
    assert some.mean() > 0.8
    rounded = quantize_weights(weight[some], found[some]) * whole_axes(found[some])
    np.testing.assert_allclose(rounded, weight[some], rtol=1e-5)


WITHOUT = {
    "reaches 127": np.append(levels(1, 63, 1, 1), F(127)).reshape(1, 64, 1, 1) / F(32),
    "1x1": RNG.normal(size=(64, 16, 1, 1)),
    "depthwise": RNG.normal(size=(64, 1, 3, 3)),
    "3x3": RNG.normal(size=(8, 64, 3, 3)),
    **{str(v): np.full((2, 3, 1, 1), v) for v in (0.0, 1.0, np.inf, np.nan)},
}


@pytest.mark.parametrize("weight", WITHOUT.values(), ids=WITHOUT)
def test_other_weights_have_none(weight):
    """A channel that reaches 127 is on the grid of absmax / 127 already."""
    assert np.isnan(steps(weight.astype(F))).all()


def test_more_even_steps_than_8_bits_have():
    """No two of these weights are 1/255 of the largest apart."""
    weight = np.arange(1, 301).reshape(1, 300, 1, 1) / 300
    assert np.isnan(steps(weight.astype(F))).all()


def test_scaled_weights_have_no_step_that_they_had_not():
    """Small numbers of a float16 network are even, and no longer float16 then."""
    whole = levels(2, 64, 1, 1, most=100)
    node = conv("y", channels=64, out=2, kernel=1, weight=(whole * 2.0**-24).astype(F))
    steps = steps_of(node)
    assert np.isnan(steps).all()
    factors = np.array([0.7, 0.3])
    scaled = node.with_factors([None], factors)
    assert np.isnan(moved_steps(steps, scaled, {"y": factors})).all()
