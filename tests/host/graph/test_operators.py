# SPDX-License-Identifier: Apache-2.0
"""Each operator and its attributes: the imported Graph computes what the file says."""

import numpy as np
import pytest

from onnx_nets import assert_same, chain, net, node

F = np.float32
IMAGE = (1, 3, 11, 14)


def conv(w, *more, **attributes):
    return ("Conv", [w, *more], attributes)


def positive(*shape):
    return np.random.default_rng(7).uniform(0.5, 2, shape).astype(F)


RELU = ("Relu", [], {})
FLATTEN = ("Flatten", [], {})
GAP = ("GlobalAveragePool", [], {})
BN = ("BatchNormalization", [(3,), (3,), (3,), positive(3)], {"epsilon": 1e-3})
W3 = (6, 3, 3, 3)

CONVOLUTIONS = {
    "2x2": [conv((4, 3, 2, 2), (4,), kernel_shape=[2, 2])],
    "same even": [conv((2, 3, 4, 2), auto_pad="SAME_UPPER", strides=[3, 1])],
    "bn after relu": [conv((3, 3, 3, 3)), RELU, BN],
    "bn before": [BN, conv(W3, pads=[1, 1, 1, 1])],
    "bn twice": [conv((3, 3, 1, 1)), BN, BN],
    "add 1C11": [conv(W3, (6,)), ("Add", [(1, 6, 1, 1)], {})],
    "mul scalar": [conv(W3, (6,)), ("Mul", [np.full((1, 1), 0.5, F)], {})],
}  # fmt: skip


@pytest.mark.parametrize("steps", CONVOLUTIONS.values(), ids=CONVOLUTIONS)
def test_convolution(tmp_path, steps):
    assert_same(tmp_path, chain(steps, IMAGE))


C3 = conv((3, 3, 3, 3), (3,))
ACTIVATIONS = {
    "leaky default": (9, [C3, ("LeakyRelu", [], {})]),
    "leaky twice": (13, [C3, ("LeakyRelu", [], {}), ("LeakyRelu", [], {})]),
    "leaky then clip": (13, [C3, ("LeakyRelu", [], {}),
                             ("Clip", [F(-0.01), F(2)], {})]),
    "relu6 opset 10": (10, [C3, ("Clip", [], {"min": 0.0, "max": 6.0})]),
    "clip default 10": (10, [C3, ("Clip", [], {})]),
    "clip above zero": (13, [C3, ("Clip", [F(0.5), F(1.5)], {})]),
    "relu then clip": (13, [C3, RELU, ("Clip", [F(-1), F(1)], {})]),
    "clip then clip": (13, [C3, ("Clip", [F(-2), F(-1)], {}),
                            ("Clip", [F(0), F(1)], {})]),
}  # fmt: skip


@pytest.mark.parametrize(("opset", "steps"), ACTIVATIONS.values(), ids=ACTIVATIONS)
def test_activation(tmp_path, opset, steps):
    assert_same(tmp_path, chain(steps, IMAGE, opset=opset))


FLAT = {
    "gemm C scalar": [("Gemm", [(5, 7), F(2)], {"beta": 0.5})],
    "gemm C (1,)": [("Gemm", [(5, 7), (1,)], {})],
    "matmul add 1M": [("MatMul", [(5, 7)], {}), ("Add", [(1, 7)], {})],
    "softmax": [("Softmax", [], {})],
    "unsqueeze": [("Unsqueeze", [np.array([2, 3])], {}), conv((4, 5, 1, 1))],
}  # fmt: skip


@pytest.mark.parametrize("steps", FLAT.values(), ids=FLAT)
def test_vectors(tmp_path, steps):
    assert_same(tmp_path, chain(steps, (1, 5)))


WINDOWS = {
    "plain": {"kernel_shape": [2, 2]},
    "stride": {"kernel_shape": [3, 2], "strides": [2, 3]},
    "pads": {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
    "one side": {"kernel_shape": [3, 3], "strides": [3, 3], "pads": [0, 0, 2, 1]},
    "large stride": {"kernel_shape": [2, 2], "strides": [4, 5], "pads": [1, 1, 0, 0]},
    "dilations": {"kernel_shape": [3, 2], "dilations": [2, 3], "strides": [2, 2],
                  "pads": [1, 1, 1, 1]},
}  # fmt: skip


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
@pytest.mark.parametrize("size", [(11, 14), (10, 9)])
def test_pools_of_ceil_mode(tmp_path, window, size):
    """Whose last window may begin in the padding; others are among random networks."""
    for kind, more in (
        ("MaxPool", {}),
        ("AveragePool", {"count_include_pad": 0}),
        ("AveragePool", {"count_include_pad": 1}),
    ):
        attributes = {**window, **more, "ceil_mode": 1}
        model = chain([(kind, [], attributes)], (1, 2, *size), opset=22)
        assert_same(tmp_path, model)


RESHAPES = {
    "flatten negative": (13, [C3, ("Flatten", [], {"axis": -3})]),
    "flatten relu gemm": (13, [C3, FLATTEN, RELU, ("Gemm", [(324, 4)], {})]),
    "reshape twice": (13, [C3, ("Reshape", [np.array([1, 27, 12])], {}),
                           ("Reshape", [np.array([1, 12, 27])], {})]),
    "reshape to 2 spatial": (13, [("Reshape", [np.array([1, 6, 77])], {}),
                                  conv((4, 6, 3))]),
    "squeeze": (13, [GAP, ("Squeeze", [np.array([2, 3])], {}),
                     ("Gemm", [(3, 4)], {})]),
    "squeeze opset 11": (11, [("GlobalMaxPool", [], {}),
                              ("Squeeze", [], {"axes": [2, 3]}),
                              ("Gemm", [(3, 4), (4,)], {}),
                              ("Unsqueeze", [], {"axes": [2, 3]})]),
    "identity only": (13, [("Identity", [], {})]),
    "dropout opset 7": (7, [C3, ("Dropout", [], {"ratio": 0.3}), RELU]),
    "softmax opset 9": (9, [GAP, ("Softmax", [], {})]),
    "softmax pixels": (13, [C3, ("Softmax", [], {"axis": 1})]),
    "softmax last": (13, [C3, ("Softmax", [], {})]),
    "softmax rows": (13, [C3, ("Softmax", [], {"axis": -2})]),
    "softmax batch": (13, [C3, ("Softmax", [], {"axis": 0})]),
    "softmax image": (11, [C3, ("Softmax", [], {})]),
    "softmax planes": (11, [C3, ("Softmax", [], {"axis": 2})]),
    "softmax then flatten": (13, [GAP, ("Softmax", [], {"axis": 1}),
                                  FLATTEN]),
}  # fmt: skip


@pytest.mark.parametrize(("opset", "steps"), RESHAPES.values(), ids=RESHAPES)
def test_reshapes(tmp_path, opset, steps):
    assert_same(tmp_path, chain(steps, IMAGE, opset=opset))


def test_symbolic_batch_and_computed_shape(tmp_path):
    """What PyTorch writes for x.view(x.size(0), -1)."""
    nodes = [
        node("Shape", "x", "s"),
        node("Gather", "s zero", "n", axis=0),
        node("Unsqueeze", "n axis", "n1"),
        node("Concat", "n1 minus", "shape", axis=0),
        node("Reshape", "x shape", "flat"),
        node("Gemm", "flat w", "y"),
    ]
    weights = {
        "zero": np.array(0),
        "axis": np.array([0]),
        "minus": np.array([-1]),
        "w": np.random.default_rng(3).normal(size=(18, 4)).astype(F),
    }
    model = net(nodes, {"x": ("batch", 2, 3, 3)}, "y", weights)
    graph = assert_same(tmp_path, model)
    assert [item.weight.shape for item in graph.nodes] == [(4, 2, 3, 3)]
