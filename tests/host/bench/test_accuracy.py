# SPDX-License-Identifier: Apache-2.0
"""What would falsify docs/accuracy.md: a network that changed, a weak peer."""

import copy

import numpy as np
import onnx
import onnxruntime
import pytest
from onnxruntime.quantization.calibrate import HistogramCollector

from bench.accuracy import peer
from bench.accuracy.harden import HOMOGENEOUS, OCTAVES, OUTLIER, harden
from bench.accuracy.onnx_net import Net
from onnx_nets import chain

LEVELS = 128
DEPTHWISE = ("LeakyRelu", {"group": 6, "pads": [1] * 4})


def network(operator, last=None):
    """Convolution, the operator, convolution."""
    rng = np.random.default_rng(3)
    slope = rng.uniform(0.1, 0.9, (6, 1, 1)).astype(np.float32)
    more = [slope] if operator == "PRelu" else []
    options = {"kernel_shape": [2, 2]} if operator.endswith("Pool") else {}
    last = {"pads": [1] * 4} if last is None else last
    steps = [
        ("Conv", [(6, 4, 1, 1), (6,)], {}),
        (operator, more, options),
        ("Conv", [(6, 6 // last.get("group", 1), 3, 3)], last),
    ]
    return chain(steps, [1, 4, 6, 6])


def hardened(proto, by, seed=1):
    """The rewritten network, how many places, and the weights before and after."""
    model = copy.deepcopy(proto)
    count = harden(model, by, seed)
    onnx.checker.check_model(model)
    pairs = zip(proto.graph.node, model.graph.node, strict=True)
    first, second = Net(proto), Net(model)
    weights = [
        (first.constant(a, 1), second.constant(b, 1))
        for a, b in pairs
        if a.op_type == "Conv"
    ]
    return model, count, weights


def output(model):
    x = np.random.default_rng(0).standard_normal((1, 4, 6, 6), np.float32)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return session.run(None, {"x": x})[0]


@pytest.mark.parametrize(
    ("drawn", "by", "places", "largest"),
    [
        *((each, "dense", 1, 2**OCTAVES) for each in HOMOGENEOUS if "Gl" not in each),
        ("Relu", "outliers", 1, OUTLIER),
        ("Relu", "depthwise", 0, 1),
        (DEPTHWISE, "dense", 0, 1),
        (DEPTHWISE, "depthwise", 1, 2**OCTAVES),
        *((each, "dense", 0, 1) for each in ("Sigmoid", "Clip", "Tanh")),
    ],
)
def test_powers_of_two_change_weights_and_no_bit(drawn, by, places, largest):
    proto = network(drawn) if isinstance(drawn, str) else network(*drawn)
    model, count, weights = hardened(proto, by)
    assert count == places
    np.testing.assert_array_equal(output(model), output(proto))
    logs = [np.log2(np.abs(after / before)) for before, after in weights]
    assert 2 ** max(np.abs(log).max() for log in logs) == largest


def test_shifted_channels_are_taken_back():
    proto = network("Identity", {})
    model, count, _ = hardened(proto, "biases")
    assert count == 1
    np.testing.assert_allclose(output(model), output(proto), rtol=1e-5, atol=1e-4)
    first, second = (Net(one).constant(one.graph.node[0], 2) for one in (proto, model))
    assert np.abs(second - first).min() > 1
    for other in (network("Identity"), network("Relu", {})):  # zeros added, or cut
        assert hardened(other, "biases")[1] == 0


@pytest.mark.parametrize(
    ("by", "axes"), [("lattice_tensor", None), ("lattice_channel", 1)]
)
def test_weights_are_multiples_of_a_step(by, axes):
    _, count, weights = hardened(network("Relu"), by)
    assert count == 2
    for _, made in weights:
        rows = made.reshape(len(made), -1).astype(np.float64)
        step = np.abs(rows).max(axis=axes, keepdims=True) / 127
        np.testing.assert_allclose(rows / step, np.rint(rows / step), atol=1e-4)


DRAWN = {
    "normal": lambda rng: rng.normal(0, 1, 20000),
    "never negative": lambda rng: np.maximum(rng.normal(0, 1, 20000), 0),
    "long tails": lambda rng: rng.laplace(size=20000) ** 3,
    "few values": lambda rng: rng.random(40),
    "zeros": lambda _: np.zeros(50),
}


@pytest.mark.parametrize("drawn", DRAWN.values(), ids=DRAWN)
@pytest.mark.parametrize("bins", [256, 301])
def test_the_threshold_of_the_peer_is_that_of_onnxruntime(drawn, bins):
    values = drawn(np.random.default_rng(5)).astype(np.float32)
    reach = np.abs(values).max()
    counts, edges = np.histogram(values, bins, range=(-reach, reach))
    histogram = (counts, edges, values.min(), values.max(), reach)
    collector = HistogramCollector("entropy", False, bins, LEVELS, 99, "same")
    wanted = collector.get_entropy_threshold(histogram, LEVELS)
    assert peer.entropy_threshold(collector, histogram, LEVELS) == wanted
