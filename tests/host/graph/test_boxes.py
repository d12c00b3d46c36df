# SPDX-License-Identifier: Apache-2.0
"""NonMaxSuppression, against onnxruntime."""

import numpy as np
import onnx
import pytest

import graph_executor
import neon8
from neon8.calibrate.run.reference import Reference
from neon8.formats.qdq.write import dumps
from neon8.graph.importer import load
from neon8.onnx_session import OnnxSession
from neon8.operators.boxes import Suppression
from onnx_nets import assert_same, net, node, save, why_opaque
from whole_nets import run_once

LIMITS = {"most": np.array([200]), "iou": np.float32([0.4]), "least": np.float32([0.3])}
ALL = "b s most iou least"


def suppressed(
    boxes=30, *, images=1, classes=2, inputs=ALL, limits=LIMITS, opset=17, **attributes
):
    """The places of boxes b by scores s."""
    shapes = {"b": (images, boxes, 4), "s": (images, classes, boxes)}
    suppression = node("NonMaxSuppression", "", "y", **attributes)
    suppression.input.extend(inputs.split(" "))
    given = {name: limits[name] for name in inputs.split() if name in limits}
    kinds = {"y": onnx.TensorProto.INT64}
    return net([suppression], shapes, "y", given, opset=opset, types=kinds)


def samples(rng, model, *, odd=()):
    """Boxes and scores of which many are equal.  odd: coordinates among them."""
    (_, boxes, _), (images, classes, _) = (
        [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        for value in model.graph.input[:2]
    )
    step = rng.choice([1, 0.25, 0.003])
    places = np.rint(rng.random((images, boxes, 4)) * 8 / step) * step
    if odd:
        wild = rng.choice(odd, places.shape)
        places = np.where(rng.random(places.shape) < 0.05, wild, places)
    scores = np.rint(rng.random((images, classes, boxes)) * 10) / 10
    return {"b": places.astype(np.float32), "s": scores.astype(np.float32)}


INPUTS = {
    "all": ALL,
    "no threshold": "b s most iou",
    "no limits": "b s most",
    "no overlap": "b s most  least",
}


@pytest.mark.parametrize("inputs", INPUTS.values(), ids=INPUTS)
@pytest.mark.parametrize("centred", [0, 1])
def test_what_onnxruntime_keeps(tmp_path, inputs, centred):
    """The same boxes in the same order, and -1 after them."""
    rng = np.random.default_rng(5)
    short = 0
    for number in range(24):
        images, most = 1 + number % 2, int(rng.choice([1, 3, 2**62]))
        boxes, classes = (int(n) for n in rng.integers(1, (80, 4)))
        limits = {
            "most": np.array([most]),
            "iou": np.float32([rng.choice([0, 0.3, 0.5, 1])]),
            "least": np.float32([rng.choice([0.2, 0.85, -1])]),
        }
        model = suppressed(
            boxes,
            images=images,
            classes=classes,
            inputs=inputs,
            limits=limits,
            center_point_box=centred,
        )
        given = samples(rng, model, odd=(0, np.inf, 1e30, 1e-40))
        graph = load(save(tmp_path, model))
        with np.errstate(all="ignore"):
            found = graph_executor.run(graph, given)["y"]
        want = OnnxSession(model.SerializeToString()).run(["y"], given)["y"]
        assert len(found) == images * classes * min(most, boxes)
        assert np.array_equal(found[: len(want)], want)
        assert (found[len(want) :] == -1).all()
        short += len(want) < len(found)
    assert short


def followed(opset=17):
    """The boxes that are kept, and the last one in rows of none."""
    model = suppressed(opset=opset)
    nodes = [
        *model.graph.node,
        node("Gather", "y two", "at", axis=1),
        node("Gather", "b at", "kept", axis=1),
        node("Shape", "y", "dims"),
    ]
    limits = {**LIMITS, "two": np.array(2)}
    shapes = {"b": (1, 30, 4), "s": (1, 2, 30)}
    kinds = dict.fromkeys(("y", "at", "dims"), onnx.TensorProto.INT64)
    return net(nodes, shapes, "kept y", limits, opset=opset, types=kinds)


@pytest.mark.parametrize("opset", [10, 11, 17])
def test_the_network_of_onnxruntime_has_as_many_rows(tmp_path, opset):
    """One node here, of which the file has all tensors, padded."""
    model = followed(opset)
    given = samples(np.random.default_rng(3), model)
    graph = assert_same(tmp_path, model, inputs=given)
    (found,) = (n for n in graph.nodes if isinstance(n, Suppression))
    assert (found.name, graph.tensors["y"].dims) == ("NonMaxSuppression_y", (60, 3))
    assert graph.tensors["kept"].dims == (1, 60, 4)


def test_compiled_and_exported(tmp_path):
    """The library and the Q/DQ file give as many rows."""
    rng = np.random.default_rng(3)
    model = followed()
    given = [samples(rng, model) for _ in range(4)]
    path = save(tmp_path, model)
    table = neon8.calibrate_model(path, given, plain=True)
    found = run_once(neon8.compile_model(path, table), given[0])
    want = Reference(path).run(given[0])
    assert np.array_equal(found["y"], want["y"])
    assert np.allclose(found["kept"], want["kept"], atol=0.02)
    assert (want["y"] == -1).any()
    exported = OnnxSession(dumps(table, load(path), path)).run(["kept", "y"], given[0])
    assert np.array_equal(exported["y"], want["y"])
    assert np.allclose(exported["kept"], want["kept"], atol=0.02)


def test_cut(tmp_path):
    """A limit that comes at run time: onnxruntime does the rest, with as many rows."""
    model = suppressed(inputs="b positive most r")
    model.graph.node.insert(0, node("Relu", "s", "positive"))
    value = onnx.helper.make_tensor_value_info("r", onnx.TensorProto.FLOAT, [1])
    model.graph.input.append(value)
    rng = np.random.default_rng(3)
    given = [samples(rng, model) | {"r": np.float32([0.4])} for _ in range(4)]
    path = save(tmp_path, model)
    table = neon8.calibrate_model(path, given, plain=True)
    neon8.compile_model(path, table, cut=True, output=tmp_path / "net.n8")
    with (
        neon8.CutModel.open(tmp_path / "net.cut.json") as cut,
        cut.session() as session,
    ):
        found = session.run(given[0])["y"]
    want = Reference(path).run(given[0])["y"]
    assert want.shape == (60, 3)
    assert (want == -1).any()
    assert np.array_equal(found, want)


REFUSED = {
    "at run time": ({"inputs": "b s most r"}, "input 'r' is computed at run time"),
    "none": ({"limits": {**LIMITS, "most": np.array([0])}}, "gives 0 rows"),
    "nothing said": ({"inputs": "b s"}, "gives 0 rows"),
    "overlap": (
        {"limits": {**LIMITS, "iou": np.float32([1.5])}},
        "iou_threshold 1.5 or center_point_box 0 is none",
    ),
    "form": ({"center_point_box": 2}, "or center_point_box 2 is none"),
    "two thresholds": (
        {"limits": {**LIMITS, "least": np.float32([0, 1])}},
        "'least' is not one number",
    ),
    "too many": (
        {"boxes": 1 << 17, "classes": 9, "limits": {**LIMITS, "most": np.array(2**40)}},
        "gives 1179648 rows",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(tmp_path, name):
    fields, reason = REFUSED[name]
    model = suppressed(**fields)
    if "r" in model.graph.node[0].input:
        value = onnx.helper.make_tensor_value_info("r", onnx.TensorProto.FLOAT, [1])
        model.graph.input.append(value)
    said = why_opaque(tmp_path, model)
    assert reason in said
    assert "compile --cut" in said


def test_shapes_that_do_not_fit(tmp_path):
    """Scores of other boxes."""
    model = suppressed()
    model.graph.input[1].type.tensor_type.shape.dim[2].dim_value = 29
    said = why_opaque(tmp_path, model)
    assert "boxes of shape [1, 30, 4] and scores of shape [1, 2, 29] do not fit" in said
