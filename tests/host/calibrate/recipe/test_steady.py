# SPDX-License-Identifier: Apache-2.0
"""Channels that are loud in some samples only have no factors while these are few."""

import numpy as np
import pytest

import neon8
from neon8.calibrate.recipe.steady import ENOUGH
from onnx_nets import net, node, save
from recipe_kits import sqnr_of, table_of_any_order_and_split

F = np.float32
BANDS = 16
QUIET = F(0.01)


def spectrum(loud):
    """Noise in all bands, and as much as 50 times that in those that are loud."""
    rng = np.random.default_rng(loud)
    x = rng.normal(0, QUIET, (1, BANDS, 8, 8)).astype(F)
    x[:, loud] *= 50
    return x


def network(*, between):
    """x -> conv -> between -> conv -> conv -> y, each band by itself up to the last."""
    rng = np.random.default_rng(5)
    weights = {
        "w1": rng.uniform(0.7, 1.3, (BANDS, 1, 1, 1)).astype(F),
        "w2": rng.uniform(0.7, 1.3, (BANDS, 1, 1, 1)).astype(F),
        "w3": rng.normal(0, 0.3, (5, BANDS, 1, 1)).astype(F),
    }
    nodes = [node("Conv", "x w1", "s", "c1", group=BANDS)]
    name = "s"
    for number, operator in enumerate(between):
        nodes.append(node(operator, name, f"t{number}", f"n{number}"))
        name = f"t{number}"
    nodes.append(node("Conv", f"{name} w2", "u", "c2", group=BANDS))
    nodes.append(node("Conv", "u w3", "y", "c3"))
    return net(nodes, {"x": (1, BANDS, 8, 8)}, "y", weights)


FEW = [spectrum([band, band + 1]) for band in (0, 2, 4, 6)]


@pytest.mark.parametrize("between", [["Relu"], ["Abs", "Sqrt"]])
def test_other_bands_may_come(between, tmp_path):
    path = save(tmp_path, network(between=between))
    table = table_of_any_order_and_split(path, FEW)
    assert not any(tensor.factors for tensor in table.tensors.values())
    assert sqnr_of(path, table, [spectrum([9, 12])]) > 18


def test_bands_that_are_always_small_have_factors(tmp_path):
    path = save(tmp_path, network(between=["Relu"]))
    table = neon8.calibrate_model(path, [spectrum(bands) for bands in ([0, 1], [1, 0])])
    assert any(tensor.factors for tensor in table.tensors.values())


def test_enough_samples_have_shown_all(tmp_path):
    path = save(tmp_path, network(between=["Relu"]))
    samples = [spectrum([n % 4, 4 + n % 3]) + F(n * 1e-4) for n in range(ENOUGH)]
    for count in (ENOUGH - 1, ENOUGH):
        table = neon8.calibrate_model(path, samples[:count])
        factors = any(tensor.factors for tensor in table.tensors.values())
        assert factors == (count == ENOUGH)


def test_the_quietest_sample_is_kept(tmp_path):
    path = save(tmp_path, network(between=["Relu"]))
    found = neon8.observe_model(path, FEW).channels["x"].quietest
    peaks = [np.abs(x).max(axis=(0, 2, 3)) for x in FEW]
    assert found.tolist() == np.min(peaks, axis=0).tolist()
