# SPDX-License-Identifier: Apache-2.0
"""Ranges that means read, and ranges of few samples."""

from dataclasses import replace

import numpy as np
import pytest

import neon8
from neon8.calibrate.recipe.reserve import ENOUGH, SHARE, SHOWN, with_reserve
from onnx_nets import net, node, save

F = np.float32
RNG = np.random.default_rng(9)


def made(folder, *, tail=(), outputs="y", hi=None):
    """A convolution with large values here and there, and a mean of what it makes."""
    weights = {"w": RNG.normal(size=(8, 3, 3, 3)), "b": RNG.normal(size=8)}
    act = node("Relu", "h", "r", "act")
    if hi is not None:
        weights |= {"lo": np.zeros(()), "hi": np.array(float(hi))}
        act = node("Clip", "h lo hi", "r", "act")
    nodes = [
        node("Conv", "x w b", "h", "conv", pads=[1] * 4),
        act,
        node("GlobalAveragePool", "r", "y", "mean"),
        *tail,
    ]
    return save(folder, net(nodes, {"x": (1, 3, 16, 16)}, outputs, weights))


def samples(count, seed=1):
    """Images, a few of which are much stronger than others."""
    rng = np.random.default_rng(seed)
    strength = np.exp(rng.normal(0, 1, size=count))
    return [rng.laplace(size=(1, 3, 16, 16)).astype(F) * F(s) for s in strength]


def test_what_only_means_read_has_the_range_of_more_bits(tmp_path):
    """16 x 16 values: 4 bits."""
    path = made(tmp_path)
    entry = neon8.calibrate_model(path, samples(ENOUGH)).tensors["r"]
    more = neon8.calibrate_model(path, samples(ENOUGH), plain=True, bits=12)
    usual = neon8.calibrate_model(path, samples(ENOUGH), plain=True).tensors["r"]
    assert entry.threshold == pytest.approx(more.tensors["r"].threshold, rel=1e-6)
    assert entry.threshold[1] > 1.03 * usual.threshold[1]
    assert (entry.bits, "averaged" in entry.reasons) == (8, True)


@pytest.mark.parametrize("how", ["read by a layer", "given", "small windows"])
def test_what_others_read_as_well_is(tmp_path, how):
    tail, outputs = (), "y"
    if how == "read by a layer":
        tail, outputs = [node("MaxPool", "r", "z", kernel_shape=[2, 2])], "y z"
        tail.append(node("Sigmoid", "z", "s"))
        outputs = "y s"
    elif how == "given":
        outputs = "y r"
    else:
        tail, outputs = [node("AveragePool", "r", "z", kernel_shape=[1, 3])], "y z"
    path = made(tmp_path, tail=tail, outputs=outputs)
    table = neon8.calibrate_model(path, samples(ENOUGH))
    assert "averaged" not in table.tensors["r"].reasons


def test_the_user_has_the_last_word(tmp_path):
    path = made(tmp_path)
    own = tmp_path / "own.json"
    own.write_text('{"tensors": {"r": {"threshold": 2.0}}}')
    table = neon8.calibrate_model(path, samples(3), overrides=own)
    assert table.tensors["r"].threshold[1] == pytest.approx(2, rel=1e-6)
    assert table.tensors["r"].reasons == ("override",)


@pytest.mark.parametrize("count", [1, 4, ENOUGH - 1, ENOUGH])
def test_few_samples_leave_a_reserve(tmp_path, count):
    path, given = made(tmp_path), samples(count)
    entry = neon8.calibrate_model(path, given, method="minmax").tensors["r"]
    plain = neon8.calibrate_model(path, given, method="minmax", plain=True)
    more = SHARE * (1 / np.sqrt(count) - 1 / np.sqrt(ENOUGH))
    assert entry.scale / plain.tensors["r"].scale == pytest.approx(1 + more, rel=1e-6)
    assert ("reserve" in entry.reasons) == (count < ENOUGH)


@pytest.mark.parametrize("covered", [1.1, 1.0, 0.95, 1 - 1 / SHOWN, 0.5])
def test_the_more_is_clipped_the_smaller_it_is(tmp_path, covered):
    table = neon8.calibrate_model(made(tmp_path), samples(4), plain=True)
    entry = table.tensors["r"]
    entry = replace(entry, max=entry.threshold[1] / covered)
    found = with_reserve(entry, (0.0, np.inf), samples=4)
    share = max(0, 1 - SHOWN * max(0, 1 - covered))
    more = share * SHARE * (1 / 2 - 1 / np.sqrt(ENOUGH))
    assert found.scale / entry.scale == pytest.approx(1 + more, rel=1e-6)


def test_inputs_have_none_nor_what_an_activation_bounds(tmp_path):
    path, given = made(tmp_path, hi=6), samples(2)
    table, plain = (
        neon8.calibrate_model(path, given, method="minmax", plain=plain)
        for plain in (False, True)
    )
    assert table.tensors["x"] == plain.tensors["x"]
    assert table.tensors["r"].threshold[1] == pytest.approx(6, rel=1e-6)


def test_a_range_near_the_end_of_float32(tmp_path):
    path = made(tmp_path)
    given = [each * F(1e34) for each in samples(1)]
    table = neon8.calibrate_model(path, given, method="minmax")
    assert np.isfinite(table.tensors["r"].threshold).all()
