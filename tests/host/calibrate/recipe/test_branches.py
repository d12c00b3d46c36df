# SPDX-License-Identifier: Apache-2.0
"""Small values keep their steps although a Concat reads them beside large ones."""

import json

import numpy as np
import pytest

import neon8
from neon8.cli.main import main
from neon8.compile.lower import lower
from neon8.ir.groups import groups_of, held, scale_groups
from neon8.operators.conversion import RequantizeOp
from neon8.refine.diagnosis import diagnose_model
from onnx_nets import net, node, save
from recipe_kits import SAMPLES, SHAPE, UNSEEN, sqnr
from whole_nets import run_once

F = np.float32


def joined(times=100.0, *, upsampled=False, read=True, positive=False):
    """Layers of x, and of a Concat of x with values `times` as large.

    upsampled: both are joined in twice their rows and columns.  read: otherwise what is
    joined is not x, but a function of it that nothing else reads.  positive: only what
    is positive in x is joined.
    """
    rng = np.random.default_rng(6)
    weights = {
        "own": rng.normal(0, 0.3, (4, 3, 3, 3)),
        "large": rng.normal(0, 0.3, (4, 3, 3, 3)) * times,
        "up": np.ones((4, 4, 2, 2)),
        "both": rng.normal(0, 0.3, (4, 7, 1, 1)),
        "region": np.zeros(0),
        "sizes": np.array([1.0, 1, 2, 2]),
    }
    weights["both"][:, 3:] /= times
    nodes = [node("Conv", "x large", "w", "large", pads=[1] * 4)]
    nodes.append(node("Conv", "x own", "y", "own"))
    parts = "x w"
    if not read:
        nodes.append(node("Sigmoid", "x", "t"))
        parts = "t w"
    if positive:
        nodes += [node("Relu", "x", "t"), node("Conv", "t own", "y2", "own2")]
        parts = "t w"
    if upsampled:
        nearest = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric"}
        nodes += [
            node("ConvTranspose", "w up", "w2", "up", strides=[2, 2]),
            node("Resize", "x region sizes", "x2", nearest_mode="floor", **nearest),
        ]
        parts = "x2 w2"
    nodes += [
        node("Concat", parts, "j", axis=1),
        node("Conv", "j both", "z", "both"),
    ]
    return net(nodes, {"x": SHAPE}, "y z y2" if positive else "y z", weights)


@pytest.fixture(scope="module", params=[False, True], ids=["", "upsampled"])
def case(request, tmp_path_factory):
    network = joined(upsampled=request.param)
    path = save(tmp_path_factory.mktemp("branches"), network)
    return path, neon8.calibrate_model(path, SAMPLES)


def own(table):
    return [name for name, each in table.tensors.items() if "own" in each.reasons]


def test_what_others_read_keeps_its_steps(case):
    path, table = case
    assert sqnr(path, table) > 35
    assert sqnr(path, neon8.calibrate_model(path, SAMPLES, plain=True)) < 10
    assert own(table) == ["x"]
    whole = neon8.observe_model(path, SAMPLES).tensors
    least = min(whole[name].histogram.minimum for name in whole if name in "x w w2")
    assert table.tensors["j"].threshold[0] < 0.9 * least  # room for all of both


def test_it_is_requantized_where_values_are_fewest(case):
    path, table = case
    program = lower(neon8.load_graph(path), table)
    steps = [op for op in program.ops if isinstance(op, RequantizeOp)]
    assert [program.tensors[op.output].shape for op in steps] == [SHAPE]


def test_groups_are_those_of_the_table(case):
    path, table = case
    graph = neon8.load_graph(path)
    whole, apart = scale_groups(graph), groups_of(graph, table.tensors)
    assert whole["x"] == whole["j"]
    assert [name for name in apart if apart[name] == apart["x"]] == ["x"]
    assert apart["j"] == whole["j"]
    assert "x" in held(graph)["j"]


def test_the_users_wishes_are_of_what_shares_a_scale(case, tmp_path):
    path, table = case
    file = tmp_path / "own.json"
    file.write_text(json.dumps({"tensors": {"x": {"min": -2, "max": 2}}}))
    found = neon8.calibrate_model(path, SAMPLES, overrides=file)
    assert found.tensors["x"].threshold == pytest.approx((-2, 2), rel=0.02)
    assert found.tensors["j"] == table.tensors["j"]
    found = neon8.calibrate_model(path, SAMPLES, precision={"x": "int16"})
    assert found.tensors["x"].bits > 8
    assert found.tensors["j"].bits == 8


def test_what_diagnosis_promises_is_what_calibration_gives(case):
    path, table = case
    found = diagnose_model(path, table, SAMPLES, top=4)
    kinds = {each.kind for each in found.remedies if each.target == "x"}
    assert {"int16", "a narrower range"} <= kinds
    wide = next(e for e in found.remedies if (e.target, e.kind) == ("x", "int16"))
    given = neon8.calibrate_model(path, SAMPLES, precision={"x": "int16"})
    after = diagnose_model(path, given, SAMPLES, top=0)
    assert after.sqnr_db - found.sqnr_db == pytest.approx(wide.gain_db, abs=0.05)


@pytest.mark.parametrize("to", ["ncnn", "trt", "qdq"])
def test_other_tools_have_both_scales(case, tmp_path, to):
    """ncnn those of what layers read only; a part has that of the Concat then."""
    path, table = case
    source, there, back = (tmp_path / name for name in ("t.json", "there", "b.json"))
    neon8.save_table(table, source)
    words = ["convert", source, "--model", path, "--to", to, "-o", there]
    assert main([str(word) for word in words]) == 0
    if to == "qdq":
        found, x = neon8.compile_model(there), {"x": UNSEEN[0]}
        models = [found, neon8.compile_model(path, table)]
        theirs, ours = (run_once(each, x) for each in models)
        assert all(np.array_equal(theirs[name], ours[name]) for name in ours)
        return
    words = ["convert", there, "--model", path, "--to", "neon8", "-o", back]
    assert main([str(word) for word in words]) == 0
    found = neon8.load_table(back)
    assert sqnr(path, found) > 35
    graph = neon8.load_graph(path)
    (join,) = (node for node in graph.nodes if node.joins)
    others = [found.tensors[name] for name in join.inputs if name != "x"]
    assert {each.scale for each in others} == {found.tensors["j"].scale}


@pytest.mark.parametrize(
    "options", [{"times": 0.5}, {"read": False}], ids=["little", "read once"]
)
def test_nothing_is_requantized_without_a_gain(options, tmp_path):
    path = save(tmp_path, joined(**options))
    assert own(neon8.calibrate_model(path, SAMPLES)) == []


def test_what_is_always_zero_stays(tmp_path):
    """The scale of a tensor that is dead is made up, and no finer."""
    path = save(tmp_path, joined(positive=True))
    assert own(neon8.calibrate_model(path, SAMPLES)) == ["t"]
    assert own(neon8.calibrate_model(path, -abs(SAMPLES))) == []
