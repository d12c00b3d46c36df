# SPDX-License-Identifier: Apache-2.0
"""What people do to files and names: served where it is clear, else one right line."""

import io
import json
import os
import warnings

import numpy as np
import onnx
import pytest
from PIL import Image

from command_lines import compile_, refuse, saved, succeed, written

BOM = b"\xef\xbb\xbf"


SIGNALLING_NAN = np.array(0x7FF0000000000001).view(np.float64)[()]


@pytest.mark.parametrize("value", [1e300, -np.inf, np.nan, SIGNALLING_NAN])
@pytest.mark.parametrize("command", ["run", "evaluate"])
def test_doubles_that_no_float32_holds(tiny, tmp_path, capsys, command, value):
    """numpy warns of some of them when they are converted."""
    array = np.zeros((1, 3, 8, 8))
    array[0, 1, 2, 3] = value
    path = saved(tmp_path, "x.npy", array)
    option = {"run": "--input", "evaluate": "--data"}[command]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        line = refuse(capsys, command, tiny.n8, option, path)
    assert line.startswith(str(path))
    assert "NaN or infini" in line


def test_a_file_name_that_is_no_unicode(tiny, tmp_path, capsys):
    model = tmp_path / os.fsdecode(b"a\xff.onnx")
    model.write_bytes(tiny.onnx.read_bytes())
    table, compiled = tmp_path / "t.json", tmp_path / "m.n8"
    succeed(capsys, "calibrate", model, "--data", tiny.data, "-o", table)
    succeed(capsys, "compile", model, "--scales", table, "-o", compiled)
    assert (
        json.loads(table.read_text())["model"]["name"] == "a\N{REPLACEMENT CHARACTER}"
    )


def test_files_from_an_editor_that_writes_a_byte_order_mark(tiny, tmp_path, capsys):
    table = written(tmp_path, "t.json", BOM + tiny.table.read_bytes())
    succeed(capsys, *compile_(tiny, tmp_path, table))
    Image.new("RGB", (8, 8)).save(tmp_path / "a.png")
    written(tmp_path, "labels.txt", BOM + b"a.png 3\n")
    settings = written(tmp_path, "p.toml", BOM + b"scale = 0.5\n")
    words = ("evaluate", tiny.n8, "--data", tmp_path, "--preprocess", settings)
    assert "1 sample" in succeed(capsys, *words)


def test_a_class_of_thousands_of_digits(tiny, tmp_path, capsys):
    Image.new("RGB", (8, 8)).save(tmp_path / "a.png")
    written(tmp_path, "labels.txt", b"a.png " + b"9" * 5000)
    line = refuse(capsys, "evaluate", tiny.n8, "--data", tmp_path)
    assert line.endswith("labels.txt:1: expected a file name and its class")


@pytest.mark.parametrize(
    "spoil",
    [lambda t: t["layers"]["c1"].update(weight_scales=[0.5, 0.5]),
     lambda t: t["layers"].pop("c1"),
     lambda t: t["tensors"]["image"].update(scale=2e30),
     lambda t: t["model"].update(digest="sha256:" + "0" * 64)],
)  # fmt: skip
def test_a_table_that_does_not_fit_is_named_with_its_model(
    tiny, tmp_path, capsys, spoil
):
    data = json.loads(tiny.table.read_text())
    spoil(data)
    table = written(tmp_path, "t.json", json.dumps(data).encode())
    line = refuse(capsys, *compile_(tiny, tmp_path, table))
    assert line.startswith(f"{tiny.onnx} with {table}: ")


def test_outputs_may_have_any_name(tiny, tmp_path, capsys):
    model = tiny.net()
    names = {"act1": "file", "scores": "allow_pickle"}
    for node in model.graph.node:
        for words in (node.input, node.output):
            words[:] = [names.get(word, word) for word in words]
    model.graph.output[0].name = "allow_pickle"
    model.graph.output.append(
        onnx.helper.make_tensor_value_info("file", onnx.TensorProto.FLOAT, [1, 8, 8, 8])
    )
    onnx.save(model, tmp_path / "m.onnx")
    table, compiled, out = (tmp_path / name for name in ("t.json", "m.n8", "y.npz"))
    succeed(capsys, "calibrate", tmp_path / "m.onnx", "--data", tiny.data, "-o", table)
    succeed(capsys, "compile", tmp_path / "m.onnx", "--scales", table, "-o", compiled)
    succeed(
        *(capsys, "run", compiled, "-o", out),
        *("--input", saved(tmp_path, "x.npy", np.load(tiny.data)["x"])),
    )
    with np.load(out) as archive:
        shapes = {name: archive[name].shape for name in archive.files}
    assert shapes == {"allow_pickle": (24, 6), "file": (24, 8, 8, 8)}


def test_images_that_warn_or_lie(tiny, tmp_path, capsys):
    palette = Image.new("RGB", (8, 8)).convert("P")
    palette.save(tmp_path / "a.png", transparency=b"\0" * 9)
    words = ("evaluate", tiny.n8, "--data", tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        succeed(capsys, *words)
    stream = io.BytesIO()
    palette.save(stream, "GIF")
    written(tmp_path, "a.png", stream.getvalue())
    assert "a.png: cannot be read as an image" in refuse(capsys, *words)
    (tmp_path / "a.png").unlink()
    (tmp_path / "a.png").symlink_to("nowhere")
    assert refuse(capsys, *words).endswith("a.png: cannot be read: No such file or "
                                           "directory")  # fmt: skip
