# SPDX-License-Identifier: Apache-2.0
"""Bias correction keeps the mean of each channel, whatever the convolution."""

from dataclasses import replace

import numpy as np
import pytest

import graph_executor
import neon8
from neon8.calibrate.recipe.bias import correction
from neon8.quant.lattice import quantizer
from onnx_nets import net, node, save

RNG = np.random.default_rng(5)
F = np.float32
STEP = 12345 / 2**15  # multiples of it are exact
SHAPE = (1, 4, 7, 9)

CASES = {
    "plain": ("Conv", (6, 4, 3, 3), {}),
    "padded": ("Conv", (6, 4, 3, 3), {"pads": [1, 1, 1, 1]}),
    "stride and dilation": (
        "Conv",
        (6, 4, 3, 3),
        {"pads": [2, 0, 1, 2], "strides": [2, 1], "dilations": [1, 2]},
    ),
    "depthwise": ("Conv", (4, 1, 3, 3), {"group": 4, "pads": [1] * 4}),
    "groups": ("Conv", (6, 2, 3, 3), {"group": 2}),
    "transposed": (
        "ConvTranspose",
        (4, 6, 3, 3),
        {"strides": [2, 2], "pads": [1, 0, 0, 1], "output_padding": [1, 1]},
    ),
}


def means_of(graph, images):
    """(O,) of the output, over all pixels of all images."""
    made = [graph_executor.run(graph, {"x": image})["y"] for image in images]
    return np.concatenate(made).mean(axis=(0, 2, 3))


@pytest.mark.parametrize("rounding", ["nearest", "balanced", "lattice"])
@pytest.mark.parametrize("case", CASES)
def test_the_mean_is_kept(case, rounding, tmp_path):
    """Exactly where all pixels of a channel are equal, the padding is accounted for."""
    operator, shape, attributes = CASES[case]
    weight = RNG.normal(size=shape).astype(F)
    nodes = [node(operator, "x w", "y", "c", **attributes)]
    path = save(tmp_path, net(nodes, {"x": SHAPE}, "y", {"w": weight}))
    images = RNG.normal(size=(8, 1, 4, 1, 1)).astype(F) + np.zeros(SHAPE, F)
    table, graph = neon8.calibrate_model(path, images), neon8.load_graph(path)
    (layer,) = graph.nodes
    entry = replace(table.layers["c"], rounding=rounding)
    scales = np.array(entry.weight_scales)
    levels = quantizer(rounding)(layer.weight, scales)
    rounded = (levels * scales[:, None, None, None]).astype(F)
    found = correction(layer, entry, images.mean(axis=(0, 1, 3, 4)), SHAPE[2:])
    want = means_of(graph, images)
    got = means_of(replace(graph, nodes=(replace(layer, weight=rounded),)), images)
    assert np.abs(got - want).max() > 1e-4
    assert got + found == pytest.approx(want, abs=4e-6)
    if rounding == table.layers["c"].rounding:
        assert table.layers["c"].bias_correction == pytest.approx(found, abs=1e-6)
        assert table.layers["c"].reasons[0] == "corrected"


def test_what_has_no_error_is_not_corrected(tmp_path):
    """Weights on a lattice; a channel without weights; an input of mean zero."""
    rng = np.random.default_rng(3)  # few weights may lie so by chance
    weight = rng.integers(-99, 100, (3, 4, 1, 1)).astype(F) * F(STEP)
    weight[1] = 0
    nodes = [node("Conv", "x w", "y", "c"), node("Conv", "z v", "o", "d")]
    weights = {"w": weight, "v": RNG.normal(size=weight.shape).astype(F)}
    path = save(tmp_path, net(nodes, {"x": SHAPE, "z": SHAPE}, "y o", weights))
    x = RNG.normal(size=(6, *SHAPE)).astype(F)
    z = RNG.normal(size=(3, *SHAPE)).astype(F)
    pairs = [{"x": a, "z": b} for a, b in zip(x, [*z, *-z], strict=True)]
    table = neon8.calibrate_model(path, pairs)
    assert table.layers["c"].reasons == ("step", "dead:1")
    assert table.layers["c"].bias_correction == ()
    assert table.layers["c"].weight_scales == (STEP, STEP, STEP)
    assert np.abs(table.layers["d"].bias_correction or 0).max() < 1e-9


def test_what_is_never_negative_stays_so(tmp_path):
    """A logarithm after it wants that."""
    rng = np.random.default_rng(4)
    nodes = [
        node("Conv", "x w", "s", "c"),
        node("Add", "s e", "t"),
        node("Log", "t", "y"),
    ]
    weights = {
        "w": np.abs(rng.normal(size=(16, 4, 1, 1))).astype(F) ** 4,
        "e": np.array(1e-3, F),
    }
    path = save(tmp_path, net(nodes, {"x": SHAPE}, "y", weights))
    x = np.abs(rng.normal(size=(9, *SHAPE)).astype(F)) ** 8
    table = neon8.calibrate_model(path, list(x))
    with neon8.Model.from_bytes(neon8.compile_model(path, table)) as model:
        assert all(np.isfinite(model.session().run({"x": a})["y"]).all() for a in x)
