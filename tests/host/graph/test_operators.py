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
    "plain": [conv(W3)],
    "bias": [conv(W3, (6,))],
    "pads": [conv(W3, (6,), pads=[1, 2, 0, 1])],
    "strides": [conv(W3, (6,), strides=[2, 3], pads=[1, 1, 1, 1])],
    "dilations": [conv(W3, (6,), dilations=[2, 3], pads=[2, 3, 2, 3])],
    "1x1": [conv((8, 3, 1, 1), (8,), strides=[2, 2])],
    "5x5": [conv((4, 3, 5, 5), (4,), pads=[2, 2, 2, 2])],
    "1x7": [conv((4, 3, 1, 7), (4,), pads=[0, 3, 0, 3])],
    "2x2": [conv((4, 3, 2, 2), (4,), kernel_shape=[2, 2])],
    "depthwise": [conv((3, 1, 3, 3), (3,), group=3, pads=[1, 1, 1, 1])],
    "depthwise x2": [conv((6, 1, 3, 3), (6,), group=3)],
    "groups": [conv(W3), conv((4, 3, 3, 3), (4,), group=2)],
    "same upper": [conv(W3, auto_pad="SAME_UPPER", strides=[2, 2])],
    "same lower": [conv(W3, auto_pad="SAME_LOWER", strides=[2, 2])],
    "same even": [conv((2, 3, 4, 2), auto_pad="SAME_UPPER", strides=[3, 1])],
    "valid": [conv(W3, auto_pad="VALID", strides=[2, 2])],
    "bn after": [conv((3, 3, 3, 3)), BN],
    "bn after bias": [conv((3, 3, 3, 3), (3,)), BN, RELU],
    "bn alone": [BN],
    "bn after relu": [conv((3, 3, 3, 3)), RELU, BN],
    "bn before": [BN, conv(W3, pads=[1, 1, 1, 1])],
    "bn twice": [conv((3, 3, 1, 1)), BN, BN],
    "add per channel": [conv(W3), ("Add", [(6, 1, 1)], {})],
    "add 1C11": [conv(W3, (6,)), ("Add", [(1, 6, 1, 1)], {})],
    "add scalar": [conv(W3, (6,)), ("Add", [F(1.5)], {})],
    "add to input": [("Add", [(3, 1, 1)], {}), conv(W3)],
    "sub": [conv(W3), ("Sub", [(6, 1, 1)], {})],
    "mul": [conv(W3, (6,)), ("Mul", [(6, 1, 1)], {})],
    "mul scalar": [conv(W3, (6,)), ("Mul", [np.full((1, 1), 0.5, F)], {})],
    "div": [conv(W3, (6,)), ("Div", [positive(6, 1, 1)], {})],
}  # fmt: skip


@pytest.mark.parametrize("steps", CONVOLUTIONS.values(), ids=CONVOLUTIONS)
def test_convolution(tmp_path, steps):
    assert_same(tmp_path, chain(steps, IMAGE))


LINES = {
    "conv": [conv((6, 3, 5), (6,), pads=[2, 1])],
    "conv stride": [conv((6, 3, 3), strides=[2], dilations=[2])],
    "conv same": [conv((6, 3, 4), auto_pad="SAME_LOWER", strides=[3])],
    "depthwise": [conv((3, 1, 3), (3,), group=3)],
    "bn": [conv((3, 3, 3)), BN],
    "add": [conv((6, 3, 3)), ("Add", [(6, 1)], {})],
    "max pool": [("MaxPool", [], {"kernel_shape": [3], "strides": [2],
                                  "pads": [1, 0]})],
    "average pool": [("AveragePool", [], {"kernel_shape": [4], "strides": [3],
                                          "pads": [2, 2], "count_include_pad": 1})],
    "global": [GAP, FLATTEN],
    "concat free": [conv((2, 3, 3), pads=[1, 1]), RELU],
}  # fmt: skip


@pytest.mark.parametrize("steps", LINES.values(), ids=LINES)
def test_one_spatial_dimension(tmp_path, steps):
    assert_same(tmp_path, chain(steps, (1, 3, 17)))


C3 = conv((3, 3, 3, 3), (3,))
ACTIVATIONS = {
    "relu": (13, [C3, RELU]),
    "relu alone": (13, [RELU]),
    "leaky": (13, [C3, ("LeakyRelu", [], {"alpha": 0.3})]),
    "leaky default": (9, [C3, ("LeakyRelu", [], {})]),
    "leaky then relu": (13, [C3, ("LeakyRelu", [], {}), RELU]),
    "relu then leaky": (13, [C3, RELU, ("LeakyRelu", [], {})]),
    "leaky twice": (13, [C3, ("LeakyRelu", [], {}), ("LeakyRelu", [], {})]),
    "leaky then clip": (13, [C3, ("LeakyRelu", [], {}),
                             ("Clip", [F(-0.01), F(2)], {})]),
    "prelu": (13, [C3, ("PRelu", [np.full((1, 1, 1), 0.2, F)], {})]),
    "relu6": (13, [C3, ("Clip", [F(0), F(6)], {})]),
    "relu6 opset 10": (10, [C3, ("Clip", [], {"min": 0.0, "max": 6.0})]),
    "clip default 10": (10, [C3, ("Clip", [], {})]),
    "clip min": (13, [C3, ("Clip", [F(-0.5)], {})]),
    "clip max": (13, [C3, ("Clip", [None, F(0.5)], {})]),
    "clip above zero": (13, [C3, ("Clip", [F(0.5), F(1.5)], {})]),
    "relu then clip": (13, [C3, RELU, ("Clip", [F(-1), F(1)], {})]),
    "clip then clip": (13, [C3, ("Clip", [F(-2), F(-1)], {}),
                            ("Clip", [F(0), F(1)], {})]),
    "pool relu": (13, [("MaxPool", [], {"kernel_shape": [2, 2]}), RELU]),
    "pool leaky": (13, [GAP, ("LeakyRelu", [], {})]),
    "average relu": (13, [GAP, RELU]),
}  # fmt: skip


@pytest.mark.parametrize(("opset", "steps"), ACTIVATIONS.values(), ids=ACTIVATIONS)
def test_activation(tmp_path, opset, steps):
    assert_same(tmp_path, chain(steps, IMAGE, opset=opset))


FLAT = {
    "gemm": [("Gemm", [(5, 7), (7,)], {})],
    "gemm transB": [("Gemm", [(7, 5), (7,)], {"transB": 1})],
    "gemm alpha beta": [("Gemm", [(5, 7), (7,)], {"alpha": 0.5, "beta": 3.0})],
    "gemm C (1, M)": [("Gemm", [(5, 7), (1, 7)], {})],
    "gemm C scalar": [("Gemm", [(5, 7), F(2)], {"beta": 0.5})],
    "gemm C (1,)": [("Gemm", [(5, 7), (1,)], {})],
    "gemm no C": [("Gemm", [(5, 7)], {})],
    "matmul": [("MatMul", [(5, 7)], {})],
    "matmul add": [("MatMul", [(5, 7)], {}), ("Add", [(7,)], {}), RELU],
    "matmul add 1M": [("MatMul", [(5, 7)], {}), ("Add", [(1, 7)], {})],
    "bn": [("BatchNormalization", [(5,), (5,), (5,), positive(5)], {})],
    "softmax": [("Softmax", [], {})],
    "softmax axis": [("Softmax", [], {"axis": 1})],
    "two layers": [("Gemm", [(5, 7), (7,)], {}), RELU, ("Gemm", [(7, 4)], {})],
    "unsqueeze": [("Unsqueeze", [np.array([2, 3])], {}), conv((4, 5, 1, 1))],
}  # fmt: skip


@pytest.mark.parametrize("steps", FLAT.values(), ids=FLAT)
def test_vectors(tmp_path, steps):
    assert_same(tmp_path, chain(steps, (1, 5)))


def pools():
    for kind in ("MaxPool", "AveragePool"):
        for ceil in (0, 1):
            for name, more in {
                "plain": {"kernel_shape": [2, 2]},
                "stride": {"kernel_shape": [3, 2], "strides": [2, 3]},
                "pads": {"kernel_shape": [3, 3], "strides": [2, 2],
                         "pads": [1, 1, 1, 1]},
                "one side": {"kernel_shape": [3, 3], "strides": [3, 3],
                             "pads": [0, 0, 2, 1]},
                "large stride": {"kernel_shape": [2, 2], "strides": [4, 5],
                                 "pads": [1, 1, 0, 0]},
                "dilations": {"kernel_shape": [3, 2], "dilations": [2, 3],
                              "strides": [2, 2], "pads": [1, 1, 1, 1]},
            }.items():  # fmt: skip
                for count in (0, 1) if kind == "AveragePool" else (None,):
                    extra = {} if count is None else {"count_include_pad": count}
                    text = f"{kind} {name} ceil={ceil} count={count}"
                    yield pytest.param(
                        kind, {**more, "ceil_mode": ceil, **extra}, id=text
                    )
        for mode in ("SAME_UPPER", "SAME_LOWER", "VALID"):
            attributes = {"kernel_shape": [3, 4], "strides": [2, 2], "auto_pad": mode}
            yield pytest.param(kind, attributes, id=f"{kind} {mode}")


@pytest.mark.parametrize(("kind", "attributes"), list(pools()))
@pytest.mark.parametrize("size", [(11, 14), (10, 9)])
def test_pool(tmp_path, kind, attributes, size):
    assert_same(tmp_path, chain([(kind, [], attributes)], (1, 2, *size), opset=22))


RESHAPES = {
    "flatten gemm": (13, [C3, FLATTEN, ("Gemm", [(324, 4), (4,)], {})]),
    "flatten": (13, [C3, ("Flatten", [], {"axis": 1})]),
    "flatten negative": (13, [C3, ("Flatten", [], {"axis": -3})]),
    "flatten relu gemm": (13, [C3, FLATTEN, RELU, ("Gemm", [(324, 4)], {})]),
    "reshape": (13, [C3, ("Reshape", [np.array([0, -1])], {}),
                     ("MatMul", [(324, 4)], {})]),
    "reshape image": (13, [C3, ("Reshape", [np.array([1, 27, 4, 3])], {}), RELU]),
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
    "identity": (13, [C3, ("Identity", [], {}), RELU]),
    "identity last": (13, [C3, ("Identity", [], {})]),
    "identity only": (13, [("Identity", [], {})]),
    "dropout": (13, [C3, ("Dropout", [F(0.5)], {}), RELU]),
    "dropout opset 7": (7, [C3, ("Dropout", [], {"ratio": 0.3}), RELU]),
    "softmax 4d": (13, [GAP, ("Softmax", [], {"axis": 1})]),
    "softmax opset 9": (9, [GAP, ("Softmax", [], {})]),
    "softmax opset 9 2d": (9, [GAP, FLATTEN,
                               ("Softmax", [], {"axis": -1})]),
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


def test_constant_on_the_left(tmp_path):
    c = np.linspace(0.5, 1, 3, dtype=F).reshape(3, 1, 1)
    nodes = [node("Add", "c x", "a"), node("Sub", "c a", "b"), node("Mul", "c b", "y")]
    assert_same(tmp_path, net(nodes, {"x": IMAGE}, "y", {"c": c}))


@pytest.mark.parametrize("axis", [1, 2, 3, -1])
def test_concat_and_add(tmp_path, axis):
    nodes = [
        node("Relu", "x", "a"),
        node("LeakyRelu", "x", "b", alpha=0.5),
        node("Concat", "a b a", "c", axis=axis),
        node("Add", "c c", "d"),
        node("Relu", "d", "y"),
        node("Add", "a b", "z"),
    ]
    assert_same(tmp_path, net(nodes, {"x": IMAGE}, "y z"))


def test_two_inputs(tmp_path):
    nodes = [node("Add", "a b", "s"), node("Concat", "s a", "y", axis=1)]
    assert_same(tmp_path, net(nodes, {"a": IMAGE, "b": IMAGE}, "y"))


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
