# SPDX-License-Identifier: Apache-2.0
"""neon8 diagnose: the command, its text, its JSON and its picture."""

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from command_lines import succeed
from neon8 import diagnose_model
from neon8.cli.main import main
from neon8.inspection.chart import drawn
from neon8.inspection.diagnosis import described
from onnx_nets import net, node, save

SVG = "{http://www.w3.org/2000/svg}"


def parsed(picture: str) -> ET.Element:
    return ET.fromstring(picture)  # noqa: S314 - written by ourselves


@pytest.fixture(scope="module")
def found(tiny):
    with np.load(tiny.data) as data:
        return diagnose_model(tiny.onnx, tiny.table, data["x"], top=1)


def test_json_is_what_python_gives(tiny, found, capsys):
    line = ("diagnose", tiny.onnx, tiny.table, "--data", tiny.data, "--top", 1)
    result = json.loads(succeed(capsys, *line, "--json"))
    assert result["n"] == 20
    assert result["sqnr_db"] == pytest.approx(found.sqnr_db)
    assert [each["name"] for each in result["tensors"]] == [
        each.name for each in found.tensors
    ]
    assert [each["layer"] for each in result["layers"]] == ["c1", "fc"]
    assert {each["kind"] for each in result["remedies"]} >= {"int16", "float32"}
    for each in result["tensors"]:  # nothing is clipped, which JSON has no word for
        assert each["clipping_db"] is None or each["clipping_db"] > 20


def test_all_shows_what_the_short_text_leaves_out(found):
    many = replace(found, tensors=found.tensors * 4, layers=found.layers * 4)
    short, whole = described(many), described(many, everything=True)
    assert "--all shows all" in short
    assert "--all" not in whole
    assert len(whole.splitlines()) > len(short.splitlines())
    for each in many.remedies:
        assert each.how in whole


def test_one_sample_tells_no_error(tiny, capsys):
    line = ("diagnose", tiny.onnx, tiny.table, "--data", tiny.data, "--limit", 1)
    result = json.loads(succeed(capsys, *line, "--top", 1, "--json"))
    assert {each["error_db"] for each in result["remedies"]} == {None}
    text = succeed(capsys, *line, "--top", 1, "--all")
    assert re.search(r" int16 +[+-]\d+\.\d+ +- +\d+\.\d+ +\d+\.\d+\n", text)


def test_commands_have_shapes_and_preprocessing_again(tmp_path, capsys, monkeypatch):
    """Each of them runs: without --shape none would."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(2)
    weights = {"w": rng.normal(size=(8, 3, 3, 3)).astype(np.float32)}
    nodes = [node("Conv", "x w", "a", "conv"), node("Relu", "a", "y")]
    path = save(tmp_path, net(nodes, {"x": (1, 3, "h", "w")}, "y", weights))
    np.savez("x.npz", x=rng.integers(0, 256, (9, 12, 10, 3), np.uint8))
    Path("p.toml").write_text("mean = [127]\nstd = [64]\n")
    given = ["--data", "x.npz", "--preprocess", "p.toml", "--shape", "x=1,3,12,10"]
    succeed(capsys, "calibrate", path, *given, "--plain", "-o", "t.json")
    result = json.loads(succeed(capsys, "diagnose", path, "t.json", *given, "--json"))
    for each in result["remedies"]:
        words = shlex.split(each["how"].replace("CALIBRATION_DATA", "x.npz"), True)
        at = words.index("--shape")
        assert words[at + 1] == "x=1,3,12,10"
        if words[1] == "calibrate":
            assert words[words.index("--preprocess") + 1] == "p.toml"
        if "ranges.json" in words:
            held = each["how"].split("  # which holds ")[1]
            Path("ranges.json").write_text(held)
        assert main(words[1:]) == 0
    assert {each["how"].split()[1] for each in result["remedies"]} == {
        *("calibrate", "compile"),
    }


def test_dead_channels_and_guards_are_counted_in_one_line_each(found):
    dead = replace(found.tensors[0], dead=900)
    each = tuple(f"layer 'c{at}': dead:1" for at in range(900))
    guards = ("900 channels of 900 layers: dead: nothing but zeros",)
    many = replace(found, tensors=(dead,), guards=guards, guarded=each)
    text = described(many)
    assert "900 channels of 1 tensor hold nothing but 0" in text
    assert guards[0] in text
    assert len(text.splitlines()) < 60
    assert len(described(many, everything=True).splitlines()) > 900


def test_the_picture_is_xml_with_a_mark_for_each_tensor(tiny, tmp_path, capsys):
    path = tmp_path / "net.svg"
    line = ("diagnose", tiny.onnx, tiny.table, "--data", tiny.data, "--limit", 3)
    succeed(capsys, *line, "--top", 0, "--plot", path)
    root = parsed(path.read_text())
    assert root.tag == f"{SVG}svg"
    titles = [each.text for each in root.iter(f"{SVG}title")]
    assert any(each.startswith("act1: ") for each in titles)


def test_names_cannot_harm_the_picture(found):
    name = '</svg><script>"&\x1b\x00'
    named = replace(found, model=name)
    named = replace(
        named, tensors=tuple(replace(each, name=name) for each in found.tensors)
    )
    root = parsed(drawn(named))
    assert not list(root.iter(f"{SVG}script"))
