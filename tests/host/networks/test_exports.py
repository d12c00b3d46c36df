# SPDX-License-Identifier: Apache-2.0
"""The command that measures exports of torch packages, without torch."""

import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from bench import pages
from bench.networks import exports


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """With what both exporters made of a network of one convolution."""
    monkeypatch.setattr(
        exports, "NETWORKS", {"tiny": exports.Source("timm", "tiny", (3, 8, 8))}
    )
    weight = np.random.default_rng(1).normal(size=(4, 3, 3, 3)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"], name="conv")],
        "tiny",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4, 6, 6])],
        [numpy_helper.from_array(weight, "w")],
    )
    opsets = [helper.make_opsetid("", 17)]
    proto = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    for exporter in exports.EXPORTERS:
        onnx.save(proto, tmp_path / f"tiny.{exporter}.onnx")
    return tmp_path


def run(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["exports", *map(str, words)])
    return exports.main()


def test_a_row_for_each_exporter(folder, monkeypatch):
    page = folder / "page.md"
    page.write_text(f"{pages.begin(exports.COMMAND)}\n\n{pages.END}\n")
    assert run(monkeypatch, folder, "--write", page) == 0
    rows = [row for row in page.read_text().splitlines() if row.startswith("| tiny")]
    assert [row.split(" | ")[0] for row in rows] == [
        "| tiny, torchscript",
        "| tiny, dynamo",
    ]
    assert all(row.endswith("| 2 of 2 |") for row in rows)


def test_it_says_which_packages_it_wants(folder, monkeypatch, capsys):
    (folder / "tiny.dynamo.onnx").unlink()
    monkeypatch.setattr(exports, "REQUIREMENTS", "no_such_package onnx")
    assert run(monkeypatch, folder) == 2
    said = capsys.readouterr().err
    assert said.endswith("-m pip install no_such_package onnx\n")
    assert run(monkeypatch, folder, "--python", folder / "none") == 2
    assert "none: No such file or directory" in capsys.readouterr().err
