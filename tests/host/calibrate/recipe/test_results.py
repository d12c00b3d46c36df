# SPDX-License-Identifier: Apache-2.0
"""Scores keep their steps although the network gives them beside boxes in pixels."""

import numpy as np
import pytest

import neon8
from neon8.calibrate.run.reference import Reference
from neon8.cli.main import main
from neon8.compile.lower import lower
from neon8.operators.conversion import DequantizeOp
from onnx_nets import net, node, save
from recipe_kits import SAMPLES, SHAPE, UNSEEN
from whole_nets import run_once

F = np.float32


def detector(*, pixels=640.0, read=False):
    """What is given is scores from 0 to 1, and boxes up to `pixels`, moved together.

    read: a convolution reads both together, too.
    """
    rng = np.random.default_rng(6)
    weights = {
        "boxes": rng.normal(0, 0.3, (4, 3, 3, 3)),
        "scores": rng.normal(0, 0.3, (5, 3, 3, 3)),
        "logits": rng.normal(0, 0.3, (2, 9, 1, 1)),
        "pixels": np.array(pixels),
        "half": np.array(0.5),
    }
    height, width = SHAPE[2:]
    nodes = [
        node("Conv", "x boxes", "b", "boxes", pads=[1] * 4),
        node("Conv", "x scores", "s", "scores", pads=[1] * 4),
        node("Concat", "b s", "l", axis=1),
        node("Conv", "l logits", "z", "logits"),  # so that b and s are int8
        node("Sigmoid", "b", "b1"),
        node("Add", "b1 half", "b2"),
        node("Mul", "b2 pixels", "b3"),
        node("Sigmoid", "s", "s1"),
        node("Concat", "b3 s1", "j", axis=1),
        node("Reshape", "j shape", "r"),
        node("Transpose", "r", "y", perm=[0, 2, 1]),
    ]
    if read:
        weights["both"] = rng.normal(0, 0.3, (2, 9, 1, 1))
        nodes.append(node("Conv", "j both", "t", "both"))
    weights["shape"] = np.array([1, 9, height * width])
    return net(nodes, {"x": SHAPE}, "y z t" if read else "y z", weights)


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    path = save(tmp_path_factory.mktemp("results"), detector())
    return path, neon8.calibrate_model(path, SAMPLES)


def in_float32(table):
    return {name for name, each in table.tensors.items() if each.float32}


def outputs(file):
    return run_once(file, {"x": UNSEEN[0]})


def worst(path, table):
    """The largest error of a score of an unseen sample."""
    wanted = Reference(path).run({"x": UNSEEN[0]})["y"]
    found = outputs(neon8.compile_model(path, table))["y"]
    return np.abs(found - wanted)[..., 4:].max()


def test_scores_are_not_rounded_to_the_steps_of_boxes(case):
    path, table = case
    assert in_float32(table) == {"j", "y"}
    assert worst(path, table) < 0.05
    assert worst(path, neon8.calibrate_model(path, SAMPLES, plain=True)) > 0.5


def test_parts_are_computed_in_int8(case):
    path, table = case
    program = lower(neon8.load_graph(path), table)
    floats = [op for op in program.ops if isinstance(op, DequantizeOp)]
    made = {name for op in floats for name in op.inputs}
    assert {program.tensors[name].dtype for name in made} == {"int8"}
    assert {op.name for op in floats} == {"b3", "s1"}


def test_the_users_wishes_come_first(case):
    path, _ = case
    found = neon8.calibrate_model(path, SAMPLES, precision={"y": "int16"})
    assert in_float32(found) == set()
    assert found.tensors["y"].bits == found.tensors["j"].bits == 16
    assert worst(path, found) < 0.05


def test_int8_outputs_have_the_scale_of_the_table(case):
    path, table = case
    program, entry = lower(neon8.load_graph(path), table, io="int8"), table.tensors["y"]
    made = program.tensors["y"]
    assert (made.dtype, made.scale) == ("int8", np.float32(entry.scale))
    assert made.zero_point == entry.zero_point


def test_qdq_files_have_no_rounding_there(case, tmp_path):
    path, table = case
    source, there = tmp_path / "t.json", tmp_path / "there.onnx"
    neon8.save_table(table, source)
    words = ["convert", source, "--model", path, "--to", "qdq", "-o", there]
    assert main([str(word) for word in words]) == 0
    found = outputs(neon8.compile_model(there))
    ours = outputs(neon8.compile_model(path, table))
    assert np.array_equal(found["y"], ours["y"])


@pytest.mark.parametrize(
    "options", [{"pixels": 1.0}, {"read": True}], ids=["alike", "read"]
)
def test_other_joined_tensors_stay_int8(options, tmp_path):
    path = save(tmp_path, detector(**options))
    assert in_float32(neon8.calibrate_model(path, SAMPLES)) == set()
