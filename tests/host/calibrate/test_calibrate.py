# SPDX-License-Identifier: Apache-2.0
"""calibrate(), from an ONNX file to the table."""

import tracemalloc

import numpy as np
import onnxruntime
import pytest

from neon8 import calibrate_model as calibrate
from neon8.calibrate.run.reference import Reference
from neon8.errors import CalibrationError
from neon8.graph.importer import load
from neon8.quant import table_json as json_format
from neon8.settings.methods import ROWS as METHODS
from onnx_nets import chain, net, node, save

F = np.float32
RNG = np.random.default_rng(8)
SHAPE = (1, 3, 12, 12)
SAMPLES = RNG.normal(size=(20, *SHAPE[1:])).astype(F)


def branches():
    """conv -> relu -> max pool -> concat of (conv, max pool) -> reshape; and an add."""
    weights = {
        "w1": RNG.normal(size=(4, 3, 3, 3)).astype(F),
        "b1": RNG.normal(size=4).astype(F),
        "w2": RNG.normal(size=(4, 4, 1, 1)).astype(F) * F(9),
        "s": np.array([1, 16, 9]),
        "w3": RNG.normal(size=(4, 4, 1, 1)).astype(F),
    }
    nodes = [
        node("Conv", "x w1 b1", "c1", "conv1", pads=[1] * 4),
        node("Relu", "c1", "r1"),
        node("MaxPool", "r1", "p1", kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", "p1 w2", "c2", "conv2"),
        node("Concat", "c2 p1", "cat", axis=1),
        node("Reshape", "p1 s", "flat"),
        node("Conv", "p1 w3", "c3", "conv3"),
        node("Add", "c3 c2", "sum"),
        node("LeakyRelu", "sum", "leaky"),
    ]
    weights["s"] = np.array([1, 8, 18])
    return net(nodes, {"x": SHAPE}, "cat flat leaky", weights)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return save(tmp_path_factory.mktemp("calibrate"), branches())


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("scheme", ["auto", "symmetric"])
def test_table(path, method, scheme):
    done = []
    table = calibrate(
        path,
        SAMPLES,
        method=method,
        scheme=scheme,
        plain=True,
        progress=lambda count, total: done.append((count, total)),
    )
    graph = load(path)
    assert list(dict.fromkeys(done)) == [(count, 20) for count in range(21)]
    assert table.samples == 20
    assert (table.method, table.scheme) == (method, scheme)
    assert (table.model_name, table.model_digest) == ("net", graph.digest)
    assert onnxruntime.__version__ in table.engine
    assert "ORT_ENABLE_ALL" in table.engine
    assert list(table.tensors) == list(graph.tensors)
    assert {name: layer.input for name, layer in table.layers.items()} == {
        "conv1": "x",
        "conv2": "p1",
        "conv3": "p1",
    }
    shared = {table.tensors[name] for name in ("r1", "p1", "c2", "cat", "flat")}
    assert len(shared) == 1
    schemes = {"x": "asymmetric", "leaky": "asymmetric", "cat": "asymmetric"}
    for name, want in schemes.items():
        assert table.tensors[name].scheme == (want if scheme == "auto" else scheme)
    assert json_format.loads(json_format.dumps(table)) == table


def test_minimum_and_maximum_are_those_of_the_network(path):
    table = calibrate(path, SAMPLES, method="minmax", plain=True)
    run = Reference(path, ["r1", "c2", "c3"]).run
    seen = [run({"x": sample[np.newaxis]}) for sample in SAMPLES]
    for names in (["c3"], ["leaky"], ["r1", "c2"]):
        values = np.concatenate(
            [out[name].reshape(-1) for out in seen for name in names]
        )
        t = table.tensors[names[0]]
        assert (t.min, t.max) == (values.min(), values.max())


def test_memory_does_not_grow_with_the_samples(path):
    def peak(count):
        samples = (SAMPLES[n % 20] for n in range(count))
        tracemalloc.start()
        try:
            calibrate(path, samples, method="minmax")
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(4)  # what is only made once
    few, many = peak(64), peak(512)
    assert many < few + 100_000


def test_overflow_in_the_network_is_named(tmp_path):
    steps = [("Mul", [F(3e38)], {}), ("Relu", [], {}), ("Mul", [F(3e38)], {})]
    path = save(tmp_path, chain(steps, SHAPE))
    data = [np.zeros(SHAPE, F), np.full(SHAPE, 0.5, F)]
    with pytest.raises(CalibrationError) as caught:
        calibrate(path, data)
    assert "tensor 'y': 0 NaN and 432 infinite values" in str(caught.value)
    assert "values in sample 1;" in str(caught.value)
