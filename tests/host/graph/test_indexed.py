# SPDX-License-Identifier: Apache-2.0
"""Operators that choose values, and take and put them by indices."""

import numpy as np
import onnx
import pytest

import neon8
from neon8.compile.lower import lower
from neon8.formats.qdq.write import dumps
from neon8.graph.importer import load
from neon8.operators.indexed import Take
from onnx_nets import assert_same, net, node, save, why_opaque
from whole_nets import run_once

INT64 = onnx.TensorProto.INT64
X = (2, 5, 3, 4)


def shaped(*shape):
    """Small numbers of this shape, which repeat."""
    return (np.arange(np.prod(shape)) * 5 % 7 - 3).reshape(shape).astype(np.int64)


def one(operator, inputs, shapes, indices, weights=None, *, opset=18, **attributes):
    """A network of one node, its indices at run time, and what they are."""
    made = node(operator, inputs, "y", "n", **attributes)
    ints = {"i": list(indices.shape)} if "i" in inputs.split() else {}
    kinds = {"i": INT64} if ints else {}
    model = net([made], shapes | ints, "y", weights, opset=opset, types=kinds)
    return model, {"i": indices}


TAKEN = {
    "gather one": ("Gather", np.array(-2), {"axis": 2}),
    "elements axis 0": ("GatherElements", shaped(1, 5, 3, 4) % 2, {}),
    "elements of fewer": ("GatherElements", shaped(1, 6, 2, 4) % 5, {"axis": 1}),
    "elements of the last": ("GatherElements", shaped(2, 5, 3, 9) % 4, {"axis": -1}),
    "nd of rows": ("GatherND", shaped(3, 2) % 2, {}),
    "nd of batches": ("GatherND", shaped(2, 3, 2) % 3, {"batch_dims": 1}),
    "nd of two batches": ("GatherND", shaped(2, 5, 1) % 3, {"batch_dims": 2}),
}


@pytest.mark.parametrize("constant", [False, True], ids=["run time", "constant"])
@pytest.mark.parametrize("name", TAKEN)
def test_take(tmp_path, name, constant):
    operator, indices, attributes = TAKEN[name]
    if constant:
        model, _ = one(operator, "x w", {"x": X}, indices, {"w": indices}, **attributes)
        assert_same(tmp_path, model)
        return
    model, given = one(operator, "x i", {"x": X}, indices, **attributes)
    assert_same(tmp_path, model, inputs=given)


PUT = {
    "nd of rows": ("ScatterND", np.array([[1, 2], [0, -1]]), (2, 3, 4), {}),
    "nd of batches": ("ScatterND", np.array([[1], [0]]), X, {}),
    "elements": ("ScatterElements", np.tile([[[[3, -4]]]], (2, 5, 3, 1)),
                 (2, 5, 3, 2), {"axis": 3}),
}  # fmt: skip


@pytest.mark.parametrize("constant", [False, True], ids=["run time", "constant"])
@pytest.mark.parametrize("name", PUT)
def test_put(tmp_path, name, constant):
    operator, indices, shape, attributes = PUT[name]
    ends = {"x": X, "u": shape}
    if constant:
        inputs, weights = "x w u", {"w": indices}
        model, _ = one(operator, inputs, ends, indices, weights, **attributes)
        assert_same(tmp_path, model)
        return
    model, given = one(operator, "x i u", ends, indices, **attributes)
    assert_same(tmp_path, model, inputs=given)


def test_constant_indices_are_whole_rows(tmp_path):
    """What exporters write for x[:, 1:3] = u has an index for every value."""
    places = np.stack(np.meshgrid([0, 1], [1, 2], *map(np.arange, X[2:])), -1)
    places = places.transpose(1, 0, 2, 3, 4)
    shapes = {"x": X, "u": (2, 2, 3, 4)}
    model, _ = one("ScatterND", "x w u", shapes, places, {"w": places})
    (put,) = assert_same(tmp_path, model).nodes
    assert put.places.inner == 2 * 3 * 4 // 2
    assert put.constants[1].size == 4


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("read", ["v i", "v", "i"])
def test_top_k(tmp_path, axis, largest, read):
    nodes = [
        node("Relu", "x", "r"),
        node("TopK", "r k", "v i", axis=axis, largest=largest),
    ]
    kinds = {"i": INT64} if "i" in read else {}
    model = net(nodes, {"x": X}, read, {"k": np.array([2])}, types=kinds)
    assert_same(tmp_path, model)


def test_an_embedding_stays_int8(tmp_path):
    """A table of constants on the grid of what is taken from it."""
    rng = np.random.default_rng(0)
    table = rng.normal(0, 1, (50, 8)).astype(np.float32)
    weight = rng.normal(0, 1, (8, 4)).astype(np.float32)
    nodes = [node("Gather", "t i", "e"), node("MatMul", "e w", "y")]
    weights = {"t": table, "w": weight}
    path = save(tmp_path, net(nodes, {"i": (1, 6)}, "y", weights, types={"i": INT64}))
    data = [{"i": rng.integers(0, 50, (1, 6))} for _ in range(20)]
    scales = neon8.calibrate_model(path, data, method="minmax")
    graph = load(path)
    assert isinstance(graph.nodes[0], Take)
    program = lower(graph, scales)
    assert graph.nodes[0].name not in program.islands
    constants = [t for t in program.tensors.values() if t.dims == table.shape]
    assert [t.dtype for t in constants] == ["int8"]
    ids = np.array([[-1, 99, 3, -51, 0, 49]], np.int32)
    y = run_once(neon8.compile_model(path, scales), {"i": ids})["y"]
    want = table[[49, 49, 3, 0, 0, 49]] @ weight
    assert np.abs(y - want).max() < 0.1


def test_qdq_keeps_the_nodes(tmp_path):
    nodes = [node("TopK", "x k", "v i", "n"), node("Relu", "v", "y")]
    path = save(tmp_path, net(nodes, {"x": (2, 9)}, "y i", {"k": np.array([3])},
                              types={"i": INT64}))  # fmt: skip
    data = [{"x": np.random.default_rng(1).normal(0, 1, (2, 9)).astype(np.float32)}]
    scales = neon8.calibrate_model(path, data, method="minmax")
    made = onnx.load_from_string(dumps(scales, load(path), path))
    names = [name for n in made.graph.node for name in n.output]
    assert len(names) == len(set(names))
    onnx.checker.check_model(made, full_check=True)


REFUSED = [
    (
        "TopK",
        {"k": np.array([10])},
        {"x": (2, 9)},
        {},
        "its shapes do not fit",
    ),
    (
        "GatherND",
        {"k": np.array([[0, 9]])},
        {"x": (2, 9)},
        {},
        "an index is outside 9 values",
    ),
    (
        "GatherElements",
        {"k": np.zeros((3, 1), np.int64)},
        {"x": (2, 9)},
        {"axis": 1},
        "indices of shape [3, 1] of values of shape [2, 9] are not supported",
    ),
]


@pytest.mark.parametrize(("operator", "weights", "inputs", "more", "reason"), REFUSED)
def test_refused(tmp_path, operator, weights, inputs, more, reason):
    outputs = "y i" if operator == "TopK" else "y"
    model = net([node(operator, "x k", outputs, "n", **more)], inputs, "y", weights)
    assert reason in why_opaque(tmp_path, model)
