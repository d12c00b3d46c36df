# SPDX-License-Identifier: Apache-2.0
"""If whose condition shapes decide, against onnxruntime, which runs the file itself."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnxruntime import InferenceSession

from neon8.graph.importer import load
from neon8.graph.onnx_file import open_onnx
from onnx_nets import net, node

SHAPE = (2, 3, 4)


def branch(nodes, output, weights=None):
    tensors = [numpy_helper.from_array(v, k) for k, v in (weights or {}).items()]
    return helper.make_graph(
        nodes, "branch", [], [onnx.ValueInfoProto(name=output)], tensors
    )


def choice(condition, output, then, other):
    return node("If", condition, output, then_branch=then, else_branch=other)


def axis_is(axis, size, condition):
    """Nodes that compare a dimension of x with a number."""
    return [
        node("Shape", "x", f"{condition}_dims"),
        node("Constant", "", f"{condition}_axis", value_ints=[axis]),
        node("Gather", f"{condition}_dims {condition}_axis", f"{condition}_size"),
        node("Constant", "", f"{condition}_wanted", value_ints=[size]),
        node("Equal", f"{condition}_size {condition}_wanted", condition),
    ]


def nested(size):
    """Both branches name their tensors alike, and one holds another If."""
    scale = {"factor": np.full(1, 3, np.float32)}
    inner = choice(
        "deep",
        "t",
        branch([node("Mul", "x factor", "u")], "u", scale),
        branch([node("Neg", "x", "u")], "u"),
    )
    then = branch([*axis_is(2, 4, "deep"), inner, node("Relu", "t", "u")], "u")
    other = branch([node("Abs", "x", "t"), node("Identity", "t", "u")], "u")
    same = branch([node("Identity", "v", "t")], "t")
    last = choice("c", "y", same, branch([node("Neg", "v", "t")], "t"))
    nodes = [*axis_is(1, size, "c"), choice("c", "v", then, other), last]
    return net(nodes, {"x": SHAPE}, "y", opset=14)


@pytest.mark.parametrize("size", [3, 5])
def test_branches_that_shapes_decide_are_taken(tmp_path, size):
    path = tmp_path / "net.onnx"
    onnx.save(nested(size), path)
    taken = onnx.ModelProto.FromString(open_onnx(path).model)
    onnx.checker.check_model(taken, full_check=True)
    assert all(each.op_type != "If" for each in taken.graph.node)
    x = np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)
    original = InferenceSession(path, providers=["CPUExecutionProvider"])
    inlined = InferenceSession(
        taken.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    want, got = original.run(["y"], {"x": x})[0], inlined.run(["y"], {"x": x})[0]
    np.testing.assert_array_equal(got, want)
    assert not any(each.operator == "If" for each in load(path).nodes)


def test_a_given_batch_decides(tmp_path):
    model = nested(3)
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "size"
    path = tmp_path / "net.onnx"
    onnx.save(model, path)
    operators = {}
    for size in (3, 5):
        file = open_onnx(path, shapes={"x": (2, size, 4)})
        graph = onnx.ModelProto.FromString(file.model).graph
        operators[size] = {each.op_type for each in graph.node}
    assert "Relu" in operators[3]
    assert "Abs" in operators[5]
    assert "Abs" not in operators[3]


def test_a_condition_of_values_stays(tmp_path):
    nodes = [
        node("ReduceMax", "x", "m", keepdims=0),
        node("Constant", "", "zero", value_float=0.0),
        node("Greater", "m zero", "c"),
        choice(
            "c",
            "y",
            branch([node("Relu", "x", "t")], "t"),
            branch([node("Neg", "x", "u")], "u"),
        ),
    ]
    path = tmp_path / "net.onnx"
    onnx.save(net(nodes, {"x": SHAPE}, "y"), path)
    operators = [each.operator for each in load(path).nodes]
    assert "If" in operators
