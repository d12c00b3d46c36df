# SPDX-License-Identifier: Apache-2.0
"""What would falsify docs/accuracy.md: a network that changed, a weak peer."""

import copy
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from bench.accuracy import page, peer_ncnn
from bench.accuracy.harden import HOMOGENEOUS, OCTAVES, OUTLIER, harden
from bench.accuracy.networks import Network
from bench.accuracy.onnx_net import Net
from bench.accuracy.peers import exact
from bench.accuracy.rows import Case
from onnx_nets import chain

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


def linear(x, y, scale, zero, axis=1):
    """Names of scale and zero point, the nodes, the constants."""
    names = [f"{y}.scale", f"{y}.zero"]
    nodes = [
        helper.make_node(kind, [given, *names], [made], axis=axis)
        for kind, given, made in (
            ("QuantizeLinear", x, f"{y}.q"),
            ("DequantizeLinear", f"{y}.q", y),
        )
    ]
    return nodes, dict(zip(names, (np.float32(scale), zero), strict=True))


def test_a_peer_is_run_as_its_q_dq_says():
    rng = np.random.default_rng(4)
    weights = rng.standard_normal((4, 3, 3, 3)).astype(np.float32)
    steps = rng.uniform(0.01, 0.03, 4)
    parts = [
        linear("x", "a", rng.uniform(0.01, 0.05, 3), np.array([9, 0, 200], np.uint8)),
        linear("w", "b", steps, np.array([0, 3, -5, 0], np.int8), 0),
        linear("c", "y", 0.05, np.uint8(77)),
    ]
    nodes = [*parts[0][0], *parts[1][0]]
    nodes += [helper.make_node("Conv", ["a", "b"], ["c"]), *parts[2][0]]
    constants = {"w": weights} | parts[0][1] | parts[1][1] | parts[2][1]
    graph = helper.make_graph(
        nodes,
        "peer",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4, 6, 6])],
        [numpy_helper.from_array(np.asarray(v), n) for n, v in constants.items()],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    proto.ir_version = 8
    x = rng.standard_normal((1, 3, 8, 8), np.float32) * 3
    results = []
    for model in (copy.deepcopy(proto), exact(proto)):
        options = onnxruntime.SessionOptions()
        level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.graph_optimization_level = level
        data = model.SerializeToString()
        session = onnxruntime.InferenceSession(data, options)
        results.append(session.run(None, {"x": x})[0])
    np.testing.assert_allclose(*results, atol=1e-5)
    assert len(np.unique(results[0])) > 50
    assert not any("Linear" in node.op_type for node in proto.graph.node)


def shared(counts, levels):
    """How `levels` levels share the counts, bin by bin and part by part."""
    width, got = len(counts) / levels, np.zeros(len(counts))
    for level in range(levels):
        low, high = level * width, (level + 1) * width
        parts = [max(0.0, min(high, n + 1) - max(low, n)) for n in range(len(counts))]
        got += np.array(parts) * (np.dot(parts, counts) / width)
    return got


def test_the_threshold_of_ncnn_is_by_its_definition(monkeypatch):
    monkeypatch.setattr(peer_ncnn, "BINS", 64)
    monkeypatch.setattr(peer_ncnn, "LEVELS", 8)
    draws = np.abs(np.random.default_rng(2).laplace(size=4000))
    counts = np.histogram(draws, 64, (0, draws.max()))[0]
    share, entropy = counts / counts.sum(), {}
    for bins in range(8, 64):
        p = share[:bins] + peer_ncnn.LEAST
        p[-1] += share[bins:].sum()
        q = shared(share[:bins], 8) + peer_ncnn.LEAST
        entropy[bins] = (p * np.log(p / q)).sum()
    assert 8 < peer_ncnn.cut(counts) == min(entropy, key=entropy.get) < 63


def row(noise, right=(), boxes=()):
    """A row of a page; one that is known is enough."""
    samples = {"noise": noise, "right": list(right), "boxes": list(boxes)}
    known = {"top1": 1.0 if right else None, "detection": {} if boxes else None}
    return {"samples": samples} | known


@pytest.mark.parametrize(
    ("ours", "theirs", "said"),
    [
        (row([1.0, 2.0, 3.0] * 9), row([1.0, 2.0, 2.9] * 9), "net: nncf by 0.1 dB"),
        (row([1.0, 2.0, 3.0] * 9), row([1.0, 3.0, 2.1] * 9), "Behind on none"),
        (row([1.0] * 9, [False] * 9), row([1.0] * 9, [True] * 9), "by 100.0 points"),
        (row([1.0] * 9, [True] * 9), row([1.0] * 9, [False] * 9), "Behind on none"),
        (row([1.0] * 9, boxes=[(3, 8)] * 8 + [(4, 8)]),
         row([1.0] * 9, boxes=[(4, 8)] * 9), "nncf by 22.2 points"),
        (row([1.0] * 9, boxes=[(3, 8)] + [(4, 8)] * 8),
         row([1.0] * 9, boxes=[(4, 8)] * 9), "Behind on none"),
    ],
)  # fmt: skip
def test_the_page_says_where_it_is_behind(ours, theirs, said):
    path = Path("net.onnx")
    network = Network(name="net", model=path, data=path, calibrate=1, evaluate=1)
    results = {("net", "default"): ours, ("net", "nncf"): theirs}
    case = Case(network, "", path, path)
    assert said in "\n".join(page.beside([case], results, ["default", "nncf"]))
