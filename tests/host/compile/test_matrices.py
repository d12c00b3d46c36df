# SPDX-License-Identifier: Apache-2.0
"""MatMul and Gemm of any rank, and what is reduced, from ONNX to int8 outputs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onnx_nets import assert_same, net, node, why_opaque
from quantized_nets import differences, noise, quantized_by_ort, steps
from whole_nets import whole

GOOD = 25.0
"""dB, as in test_arithmetic.py."""


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(0, 0.5, shape).astype(np.float32)


def operations(program):
    return [op.operation for op in program.ops]


@settings(max_examples=15)
@given(
    lead=st.lists(st.integers(1, 4), max_size=3),
    sizes=st.tuples(*[st.integers(1, 9)] * 3),
    left=st.booleans(),
    vector=st.booleans(),
    ones=st.integers(0, 2),
    keep=st.booleans(),
)
def test_matmul(tmp_path_factory, lead, sizes, left, vector, ones, keep):
    """vector: the constant has one dimension; ones: in front of its dimensions."""
    folder = tmp_path_factory.mktemp("matmul")
    rows, inner, columns = sizes
    shape = (*lead, inner, columns) if left else (*lead, inner)
    weight = normal(*((rows, inner) if left else (inner, columns)))
    weight = weight[0] if vector and left else weight
    weight = weight[:, 0] if vector and not left else weight
    if not vector:
        weight = weight.reshape((1,) * ones + weight.shape)
    names = "w x" if left else "x w"
    model = net([node("MatMul", names, "y", "m")], {"x": shape}, "y", {"w": weight})
    assert_same(folder, model)
    whole(folder, model, keep=["m"] if keep else ())


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("turns", [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize("c", [(), (1,), "full", "long", None])
def test_gemm(tmp_path, left, turns, c):
    """4 x 8 times 8 x 5; C is a number, or one for each output of the layer."""
    shapes = [(4, 8)[:: -1 if turns[0] else 1], (8, 5)[:: -1 if turns[1] else 1]]
    shape = {"full": (4, 1) if left else (1, 5), "long": (4, 1) if left else (5,)}
    names = ("w x" if left else "x w") + (" c" if c is not None else "")
    weights = {"w": normal(*shapes[0 if left else 1])}
    if c is not None:
        weights["c"] = normal(*shape.get(c, c), seed=1)
    attributes = {"transA": turns[0], "transB": turns[1], "alpha": 0.5, "beta": 2.0}
    nodes = [node("Gemm", names, "y", **attributes)]
    model = net(nodes, {"x": shapes[1 if left else 0]}, "y", weights)
    assert_same(tmp_path, model)
    assert whole(tmp_path, model)[1] > GOOD


GELU = [
    node("Div", "h root", "d"),
    node("Erf", "d", "e"),
    node("Add", "e one", "f"),
    node("Mul", "h f", "g0"),
    node("Mul", "g0 half", "g"),
]
MIXER = [
    node("MatMul", "t w1", "m"),
    node("Add", "b1 m", "h"),
    *GELU,
    node("MatMul", "g w2", "o"),
    node("Add", "o b2", "p"),
    node("Add", "t p", "z"),
]
WEIGHTS = {
    "w1": normal(8, 16),
    "b1": normal(16, seed=1),
    "w2": normal(16, 8, seed=2),
    "b2": normal(8, seed=3),
    "root": np.float32(2**0.5),
    "one": np.float32(1),
    "half": np.float32(0.5),
    "position": normal(12, 8, seed=4),
}


def test_layers_over_tokens_need_no_moves(tmp_path):
    """Biases, Gelu and the residual sum are computed where the convolutions are."""
    nodes = [
        node("Transpose", "x", "t", perm=[0, 2, 3, 1]),
        *MIXER,
        node("Transpose", "z", "y", perm=[0, 3, 1, 2]),
    ]
    model = net(nodes, {"x": (2, 8, 3, 4)}, "y", WEIGHTS)
    assert_same(tmp_path, model)
    program, ratio = whole(tmp_path, model)
    assert operations(program) == [
        *("QUANTIZE", "CONV2D", "TABLE", "CONV2D", "DEQUANTIZE")
    ]
    assert ratio > GOOD


@settings(max_examples=25)
@given(
    operator=st.sampled_from(
        ["ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL2"]
    ),
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=5),
    data=st.data(),
    keepdims=st.integers(0, 1),
    opset=st.sampled_from([11, 13, 18]),
    keep=st.booleans(),
)
def test_reductions(tmp_path_factory, operator, shape, data, keepdims, opset, keep):
    """Over any axes, counted from either end; an input since some opset."""
    folder = tmp_path_factory.mktemp("reduced")
    rank = len(shape)
    axes = data.draw(st.lists(st.integers(0, rank - 1), unique=True))
    axes = [axis - rank * data.draw(st.integers(0, 1)) for axis in axes]
    given_as_input = opset >= 18 or (operator == "ReduceSum" and opset >= 13)
    weights = {"axes": np.array(axes, np.int64)} if given_as_input and axes else {}
    attributes = {} if given_as_input or not axes else {"axes": axes}
    names = "x axes" if weights else "x"
    nodes = [node(operator, names, "r", "n", keepdims=keepdims, **attributes)]
    nodes.append(node("Neg", "r", "y"))
    model = net(nodes, {"x": tuple(shape)}, "y", weights, opset=opset)
    graph = assert_same(folder, model)
    known = any(each.name == "n" for each in graph.nodes)
    whole(folder, model, keep=["n"] if keep and known else ())


def test_a_name_that_is_taken(tmp_path):
    """The file has a tensor that is called as the rearranged one would be."""
    nodes = [node("Relu", "x", "x_channels_first"), node("MatMul", "x w", "m"),
             node("Add", "m x_channels_first", "y")]  # fmt: skip
    model = net(nodes, {"x": (2, 3, 3)}, "y", {"w": normal(3, 3)})
    assert "rename it" in why_opaque(tmp_path, model)


def test_a_quantized_file(tmp_path):
    """Pairs stand between the layers and their biases, and no move is left inside."""
    nodes = [
        node("MatMul", "x w1", "m"),
        node("Add", "m b1", "h"),
        node("Relu", "h", "r"),
        node("MatMul", "r w2", "o"),
        node("Add", "o b2", "p"),
        node("Add", "x p", "y"),
    ]
    weights = {name: WEIGHTS[name] for name in ("w1", "b1", "w2", "b2")}
    model = net(nodes, {"x": (1, 12, 8)}, "y", weights)
    samples = noise((1, 12, 8))
    path = quantized_by_ort(tmp_path, model, samples)
    found = differences(path, samples, fused=False)
    assert found.max() <= 1
    assert (found == 0).mean() > 0.98
    assert "constant" not in steps(path)
    assert steps(path).count("permute") <= 2
