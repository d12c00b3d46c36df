# SPDX-License-Identifier: Apache-2.0
"""The scales of weights."""

import numpy as np
import pytest

from neon8.errors import CalibrationError
from neon8.operators.convolution import Conv2d
from neon8.quant.weights import weight_scales

F = np.float32


def scales_of(node, input_scale):
    return weight_scales(
        node.name,
        source=node.inputs[0],
        absmax=np.abs(node.weight).reshape(len(node.weight), -1).max(axis=1),
        bias=node.bias,
        input_scale=input_scale,
    )


def conv(weight, bias=None):
    weight = np.asarray(weight, F).reshape(len(weight), -1, 1, 1)
    return Conv2d(
        name="c",
        inputs=("x",),
        output="y",
        weight=weight,
        bias=np.zeros(len(weight), F) if bias is None else np.asarray(bias, F),
        pre_activation="y",
    )


def test_one_scale_for_each_channel():
    weight = np.random.default_rng(0).normal(size=(7, 5)).astype(F)
    layer = scales_of(conv(weight), 0.1)
    want = [float(F(float(row) / 127)) for row in np.abs(weight).max(axis=1)]
    assert layer.weight_scales == tuple(want)
    assert layer.input == "x"
    assert layer.reasons == ()
    q = np.rint(weight / np.array(want)[:, np.newaxis])
    assert np.abs(q).max(axis=1).tolist() == [127] * 7


def test_dead_channel_takes_the_largest_of_the_others():
    layer = scales_of(conv([[0, 0], [1, -2], [0.5, 0]]), 0.1)
    assert layer.weight_scales[0] == layer.weight_scales[1] == float(F(2 / 127))
    assert layer.reasons == ("dead:0",)


def test_dead_layer():
    layer = scales_of(conv([[0], [-0.0], [1e-40]], [0, 5, 0]), 0.1)
    assert layer.weight_scales == (float(F(1 / 127)),) * 3
    assert layer.reasons == ("dead:0", "dead:1", "dead:2")


def test_a_scale_of_the_input_that_kills_no_weights():
    """They are not zeros, the input's scale is too small for them."""
    layer = scales_of(conv([[0.5], [0.0], [1.0]]), 1e-30)
    assert layer.weight_scales == (1.0,) * 3
    assert layer.reasons == ("floor:0", "dead:1", "floor:2")


@pytest.mark.parametrize("weight", [0.0, 1e-6])
@pytest.mark.parametrize("bias", [3e7, -3e7])
def test_bias_fits_int32(weight, bias):
    layer = scales_of(conv([[weight], [1e-7]], [bias, 0]), 1e-3)
    b = abs(bias) / (1e-3 * layer.weight_scales[0])
    assert b <= 2**29 * 1.000001
    assert "bias:0" in layer.reasons
    assert ("dead:0" in layer.reasons) == (weight == 0)
    assert "bias:1" not in layer.reasons


@pytest.mark.parametrize("scale", [1e-30, 1e-10, 1.0, 1e30])
def test_products_of_scales_stay_normal(scale):
    for weight in (0.0, 1e-38, 1e-20, 1.0):
        (w,) = scales_of(conv([[weight]]), scale).weight_scales
        assert w >= 1e-30
        assert F(scale * w) >= F(1e-30) * F(0.999)
        assert w == float(F(w))


def test_bias_that_no_scale_can_hold():
    with pytest.raises(CalibrationError, match="layer 'c': the bias is too large"):
        scales_of(conv([[1.0]], [3e38]), 1e-30)
