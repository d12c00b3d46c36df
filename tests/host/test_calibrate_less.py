# SPDX-License-Identifier: Apache-2.0
"""calibrate observes no more than its method reads, and nobody can tell."""

import numpy as np
import pytest
from calib_nets import branchy, images
from native_kits import facts
from onnx_nets import net, node, save
from table_nets import mixed, residual

from neon8.calibrate import calib_file
from neon8.calibrate.calibrate import calibrate, observe, solve
from neon8.calibrate.observe import Observer
from neon8.calibrate.reference import Reference
from neon8.graph.importer import load
from neon8.table import json_format


@pytest.mark.parametrize("network", [branchy, mixed, residual])
@pytest.mark.parametrize("method", ["kl", "mse", "auto", "eq:cosine"])
def test_calibrate_is_observe_and_solve(tmp_path, network, method):
    model = save(tmp_path, network())
    (shape,) = Reference(model).input_shapes.values()
    x = list(np.random.default_rng(4).normal(size=(12, *shape[1:])).astype(np.float32))
    whole = calibrate(model, x, method=method, scheme="symmetric")
    observation = observe(model, reversed(x))
    steps = solve(
        calib_file.loads(calib_file.dumps(observation), source="x"),
        method=method,
        scheme="symmetric",
    )
    assert json_format.dumps(steps) == json_format.dumps(whole)
    assert whole.samples == 12


def mean_of_an_output():
    """onnxruntime lays it out otherwise if it need not hand out what Conv gives."""
    w = np.random.default_rng(1).normal(size=(16, 3, 1, 1)).astype(np.float32)
    nodes = [
        node("Conv", "x w", "c"),
        node("LeakyRelu", "c", "a", alpha=0.3),
        node("GlobalAveragePool", "a", "y"),
    ]
    return net(nodes, {"x": (1, *images(1).shape[1:])}, "y a", {"w": w})


@pytest.mark.parametrize("network", [branchy, mean_of_an_output])
def test_less_is_observed_where_that_is_enough(tmp_path, network):
    """Of the same tensors: onnxruntime rounds otherwise if it hands out others."""
    model, x = save(tmp_path, network()), list(images(3))
    less, more = observe(model, x, layers=False), observe(model, x)
    assert not less.channels
    assert not any(len(layer.patches.keys) for layer in less.layers.values())
    for name, tensor in more.tensors.items():
        other = less.tensors[name]
        assert facts(other.histogram) == facts(tensor.histogram)
        assert (other.smallest, other.largest) == (tensor.smallest, tensor.largest)
    graph = load(model)
    assert Observer(graph, channels=False).fetch == Observer(graph).fetch
