# SPDX-License-Identifier: Apache-2.0
"""A network that was quantized elsewhere, on the command line."""

import numpy as np
import pytest

from neon8.cli.main import main
from neon8.quant import table_json
from onnx_nets import save
from quantized_nets import Net, ort
from table_nets import mixed


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    n = Net(1, 3, 8, 8)
    c = n.conv(n.pair("x", 0.02), n.weights(4, 3, 3, 3), 0.01, name="c")
    n.pair(n.add("Relu", c), 0.2, np.uint8(3), output="y")
    return save(tmp_path_factory.mktemp("quantized"), n.model("y"), "q.onnx")


def test_compiles_without_a_table(path, tmp_path, capsys):
    out = tmp_path / "q.n8"
    assert main(["compile", str(path), "-o", str(out)]) == 0
    assert "1 of them convolutions" in capsys.readouterr().out
    x = np.random.default_rng(0).normal(0, 1, (5, 3, 8, 8)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    command = ["evaluate", str(out), "--data", str(tmp_path / "x.npy")]
    assert main([*command, "--reference", str(path)]) == 0
    assert "SQNR       inf dB" in capsys.readouterr().out


def test_calibrating_it_again_is_warned_of(path, tmp_path, capsys):
    np.save(tmp_path / "x.npy", np.zeros((2, 3, 8, 8), np.float32))
    command = ["calibrate", str(path), "--data", str(tmp_path / "x.npy")]
    assert main([*command, "-o", str(tmp_path / "q.scales.json")]) == 0
    warning = "is quantized, with scales of its own; `neon8 compile` takes it as it is"
    assert capsys.readouterr().err.count(warning) == 1


def test_a_table_of_its_own_changes_nothing(path, tmp_path):
    """What convert makes of the file alone is what compile takes from it."""
    table = tmp_path / "q.scales.json"
    assert main(["convert", str(path), "--to", "neon8", "-o", str(table)]) == 0
    assert set(table_json.load(table).tensors) == {"x", "y"}
    one, two = tmp_path / "1.n8", tmp_path / "2.n8"
    assert main(["compile", str(path), "-o", str(one)]) == 0
    assert main(["compile", str(path), "--scales", str(table), "-o", str(two)]) == 0
    assert one.read_bytes() == two.read_bytes()


@pytest.mark.parametrize("target", ["qdq", "trt", "ncnn", "ort", "glow"])
def test_converts_from_the_file_alone(path, tmp_path, target):
    out = tmp_path / "out.onnx"
    assert main(["convert", str(path), "--to", target, "-o", str(out)]) == 0
    if target == "qdq":
        x = {"x": np.random.default_rng(0).normal(0, 1, (1, 3, 8, 8))}
        x = {name: value.astype(np.float32) for name, value in x.items()}
        first, second = (ort(file, x, fused=False)["y"] for file in (path, out))
        assert np.array_equal(first, second)


def test_a_float_network_needs_a_table(tmp_path, capsys):
    path = save(tmp_path, mixed())
    assert main(["compile", str(path), "-o", str(tmp_path / "x.n8")]) != 0
    assert "has no scales of its own; `neon8 calibrate`" in capsys.readouterr().err
