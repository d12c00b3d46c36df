# SPDX-License-Identifier: Apache-2.0
"""Networks that neon8 cannot run whole: only the compiler refuses them."""

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import neon8
from cut_nets import counted
from neon8.errors import CompileError, GraphError
from neon8.formats.conversion import convert_table as convert
from neon8.graph.importer import load
from neon8.graph.remedies import refusal
from neon8.operators.opaque import Opaque
from onnx_nets import chain, net, node, save
from quantized_nets import ort
from whole_nets import run_once

F = np.float32
FORMATS = ("ncnn", "trt", "glow", "ort", "ort-overrides", "qdq")


def strange(opset=13):
    """Operators, types and shapes that no kernel knows, among those that one does."""
    rng = np.random.default_rng(0)
    weights = {
        "w": rng.normal(0, 0.1, size=(4, 3, 3, 3)).astype(F),
        "w2": rng.normal(size=(2, 4, 3, 3)).astype(F),
        "g": rng.normal(size=(32, 5)).astype(F),
        "limit": F(0.5),
    }
    # NonZero: a shape that only a run shows; If: its branches read tensors from
    # outside, and those of MaxPool make two, one of integers.
    then = onnx.helper.make_graph(
        [node("Neg", "f", "t")], "then", [],
        [onnx.helper.make_tensor_value_info("t", 1, None)],
    )  # fmt: skip
    other = onnx.helper.make_graph(
        [node("Mul", "f limit", "e")], "else", [],
        [onnx.helper.make_tensor_value_info("e", 1, None)],
    )  # fmt: skip
    pools = {
        f"{branch}_branch": onnx.helper.make_graph(
            [node("MaxPool", "c", f"{branch}_v {branch}_i", kernel_shape=[2, 2])],
            branch, [],
            [onnx.helper.make_tensor_value_info(f"{branch}_v", 1, None),
             onnx.helper.make_tensor_value_info(f"{branch}_i", 7, None)],
        ) for branch in ("then", "else")
    }  # fmt: skip
    nodes = [
        node("Conv", "x w", "a", "conv", pads=[1] * 4),
        node("Relu", "a", "r"),
        node("Tan", "r", "s", "tangent"),
        node("Conv", "s w2", "c", "conv2"),
        node("NonZero", "c", "nz", "where"),
        node("Cast", "nz", "places", to=1),
        node("Flatten", "c", "f"),
        node("ReduceMax", "f", "m", keepdims=0),
        node("Greater", "m limit", "cond"),
        node("If", "cond", "v i", "best", **pools),
        node("Cast", "i", "fi", to=1),
        node("If", "cond", "b", "branch", then_branch=then, else_branch=other),
        node("Gemm", "f g", "y"),
    ]
    return net(nodes, {"x": ("n", 3, 6, 6)}, "y v fi b places", weights, opset=opset)


@pytest.fixture(scope="module", params=[11, 18])
def strangers(request, tmp_path_factory):
    """The file, samples for it, and its table."""
    folder = tmp_path_factory.mktemp("strange")
    path = save(folder, strange(request.param))
    x = np.random.default_rng(1).normal(size=(9, 3, 6, 6)).astype(F)
    return path, x, neon8.calibrate_model(path, list(x))


def test_it_is_imported_whole(strangers):
    path, _, _ = strangers
    graph = load(path)
    opaque = {n.name: n for n in graph.nodes if isinstance(n, Opaque)}
    assert {"tangent", "where", "best", "branch"} <= set(opaque)
    assert opaque["best"].outputs == ("v", "i")
    assert opaque["branch"].inputs == ("cond", "f")
    tensors = graph.tensors
    assert (tensors["nz"].fixed, tensors["nz"].dtype) == (False, "int64")
    assert not tensors["cond"].real
    assert tensors["places"].real


def test_it_is_calibrated(strangers):
    """Every tensor of real numbers has its scale, of values that onnxruntime gave."""
    path, x, table = strangers
    graph = load(path)
    assert set(table.tensors) == {n for n, t in graph.tensors.items() if t.real}
    session = onnxruntime.InferenceSession(str(path))
    runs = [session.run(["v", "places"], {"x": sample[None]}) for sample in x]
    assert table.tensors["v"].max == max(run[0].max() for run in runs)
    assert table.tensors["places"].max == max(run[1].max() for run in runs)


@pytest.mark.parametrize("target", FORMATS)
def test_it_is_converted(strangers, tmp_path, target):
    path, x, table = strangers
    neon8.save_table(table, tmp_path / "t.json")
    done = convert(tmp_path / "t.json", target, model=path)
    assert done.data
    if target != "qdq":
        return
    (tmp_path / "q.onnx").write_bytes(done.data)
    for sample in x:
        want, got = (
            ort(p, {"x": sample[None]}, fused=False)
            for p in (path, tmp_path / "q.onnx")
        )
        assert list(got) == list(want)
        for name in ("y", "v", "b"):
            # Three roundings to int8 of values that are sums of some dozens, with
            # the reserve of few samples.
            most = 0.15 * np.abs(want[name]).max()
            assert np.abs(want[name] - got[name]).max() <= most


def test_only_compile_refuses(strangers):
    path, _, table = strangers
    with pytest.raises(CompileError) as caught:
        neon8.compile_model(path, table)
    first, *lines, last = str(caught.value).split("\n")
    assert first.startswith(f"{path}: ")
    for name, operator in (("tangent", "Tan"), ("where", "NonZero"), ("branch", "If")):
        assert any(f"{name!r} (operator {operator}): " in line for line in lines)
    assert len(lines) == sum(isinstance(n, Opaque) for n in load(path).nodes)
    assert "calibrate and convert work" in last


def test_rows_that_depend_on_values_are_left_to_a_cut(tmp_path):
    text = str(refusal(load(save(tmp_path, counted()))))
    for name, operator, what in (
        ("upwards", "Range", "gives as much as the data wants"),
        ("how many", "Shape", "is of a tensor whose size only a run shows"),
    ):
        assert (
            f"node {name!r} (operator {operator}): {what}, and neon8 has fixed shapes; "
            "compile --cut leaves it to onnxruntime"
        ) in text


def test_a_refusal_does_not_grow_without_end(tmp_path):
    model = chain([("Tan", [], {})] * 100, (1, 3))
    text = str(refusal(load(save(tmp_path, model))))
    assert text.count("\n") < 50
    assert "60 more" in text


def test_infinite_masks_do_not_stop_calibration(tmp_path):
    """What an Opaque node gives may be infinite, as attention masks are."""
    mask = onnx.helper.make_tensor_value_info("m", 1, (1, 3))
    branch = onnx.helper.make_graph([node("Log", "h", "m")], "branch", [], [mask])
    nodes = [node("Relu", "x", "h"), node("ReduceSum", "h", "sum", keepdims=0),
             node("Cast", "sum", "some", to=onnx.TensorProto.BOOL),
             node("If", "some", "mask", then_branch=branch, else_branch=branch),
             node("Gemm", "x g", "y")]  # fmt: skip
    model = net(nodes, {"x": (1, 3)}, "mask y", {"g": np.eye(3, dtype=F)})
    data = [np.array([[-1, -2, -3]], F), np.array([[1, 2, 3]], F)]
    table = neon8.calibrate_model(save(tmp_path, model), data)
    assert table.tensors["mask"].max == pytest.approx(np.log(3))


def test_tensors_without_values_do_not_stop_calibration(tmp_path):
    """As the boxes of a detector that finds none in a sample."""
    nodes = [node("NonZero", "x", "n"), node("Cast", "n", "f", to=1),
             node("Gemm", "x g", "y")]  # fmt: skip
    model = net(nodes, {"x": (1, 3)}, "f y", {"g": np.eye(3, dtype=F)})
    data = [np.zeros((1, 3), F), np.array([[0, 1, 2]], F), np.zeros((1, 3), F)]
    table = neon8.calibrate_model(save(tmp_path, model), data)
    assert table.tensors["f"].max == 2
    assert table.tensors["y"].max == 2


RANKS = st.lists(st.integers(1, 3), min_size=0, max_size=8)


@settings(deadline=None, max_examples=25)
@given(dims=RANKS, opset=st.sampled_from([7, 11, 13, 17, 22]))
def test_any_rank(tmp_path_factory, dims, opset):
    """Rank 0 to 8, known operators and unknown ones."""
    nodes = [node("Tan", "x", "s"), node("Relu", "s", "r"), node("Add", "r s", "y")]
    model = net(nodes, {"x": tuple(dims)}, "y", opset=opset)
    path = save(tmp_path_factory.mktemp("rank"), model)
    graph = load(path)
    assert graph.tensors["y"].dims == tuple(dims)
    x = np.random.default_rng(0).normal(size=dims).astype(F)
    table = neon8.calibrate_model(path, [{"x": x}])
    assert table.tensors["s"].max == pytest.approx(np.tan(x).max(), rel=1e-3)


def test_shapes_of_the_user(tmp_path):
    """Given once for all commands; symbols that other inputs share follow."""
    nodes = [node("Add", "x z", "a"), node("Relu", "a", "y")]
    path = save(tmp_path, net(nodes, {"x": ("n", 3, "h", "w"), "z": ("n", 3, "h", "w")},
                              "y"))  # fmt: skip
    with pytest.raises(GraphError, match="give it by --shape x="):
        load(path)
    graph = load(path, shapes={"x": (2, 3, 4, 5)})
    assert [graph.tensors[n].dims for n in ("x", "z", "y")] == [(2, 3, 4, 5)] * 3
    with pytest.raises(GraphError, match=r"cannot become \[1, 4, 4, 5\]"):
        load(path, shapes={"x": (1, 4, 4, 5)})
    with pytest.raises(GraphError, match="has no input 'y'"):
        load(path, shapes={"y": (1,)})
    rng = np.random.default_rng(0)
    data = [{n: rng.normal(size=(2, 3, 4, 5)).astype(F) for n in "xz"}]
    shapes = {"x": (2, 3, 4, 5)}
    table = neon8.calibrate_model(path, data, shapes=shapes)
    (got,) = run_once(neon8.compile_model(path, table, shapes=shapes), data[0]).values()
    want = np.maximum(data[0]["x"] + data[0]["z"], 0)
    assert np.abs(got - want).max() <= 0.02 * np.abs(want).max()


def half(model):
    """The model with float16 weights, inputs, outputs and tensors."""
    for tensor in model.graph.initializer:
        values = onnx.numpy_helper.to_array(tensor)
        if values.dtype == F:
            tensor.CopyFrom(
                onnx.numpy_helper.from_array(values.astype(np.float16), tensor.name)
            )
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT16
    return model


def test_float16_throughout(tmp_path):
    """Weights are float32 once; Casts between the types are nothing."""
    steps = [
        ("Conv", [(4, 3, 3, 3), (4,)], {}),
        ("Mul", [np.array([0.05], F)], {}),  # away from the poles
        ("Relu", [], {}),
        ("Cast", [], {"to": 1}),
        ("Tan", [], {}),
        ("Cast", [], {"to": 10}),
        ("Flatten", [], {}),
        ("Gemm", [(64, 5)], {}),
    ]
    path = save(tmp_path, half(chain(steps, (1, 3, 6, 6), opset=17)))
    graph = load(path)
    assert [type(n).__name__ for n in graph.nodes][:2] == ["Conv2d", "Opaque"]
    assert all(n.operator != "Cast" for n in graph.nodes)
    x = np.random.default_rng(0).normal(size=(4, 3, 6, 6)).astype(F)
    table = neon8.calibrate_model(path, list(x))
    neon8.save_table(table, tmp_path / "t.json")
    (tmp_path / "q.onnx").write_bytes(
        convert(tmp_path / "t.json", "qdq", model=path).data
    )
    (want,) = ort(path, {"x": x[:1].astype(np.float16)}).values()
    (got,) = ort(tmp_path / "q.onnx", {"x": x[:1]}, fused=False).values()
    assert np.abs(got - want).max() <= 0.1 * np.abs(want).max()


def test_a_foreign_operator_has_the_type_that_the_file_says(tmp_path):
    model = chain([("Relu", [], {}), ("Gelu", [], {}), ("Relu", [], {})], (1, 3))
    model.graph.node[1].domain = "com.microsoft"
    model.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))
    said = onnx.helper.make_tensor_value_info("t1", 1, (1, 3))
    graph = load(save(tmp_path, model))
    assert [type(n).__name__ for n in graph.nodes[-2:]] == ["Opaque", "Opaque"]
    model.graph.value_info.append(said)
    path = save(tmp_path, model)
    graph = load(path)
    assert [type(n).__name__ for n in graph.nodes[-2:]] == ["Opaque", "Activate"]
    table = neon8.calibrate_model(path, [np.ones((1, 3), F)])
    assert set(table.tensors) == {"x", "t0", "t1", "y"}
