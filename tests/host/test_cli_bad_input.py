# SPDX-License-Identifier: Apache-2.0
"""Bad input: exit status 2, one line that names the culprit, no file left behind."""

# ruff: noqa: ARG005 - all rows of the table of cases have one signature

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest

from neon8.cli import main


def refuse(capsys, *words) -> str:
    """Run a command that must fail; its one line without 'neon8: error: '."""
    status = main([str(word) for word in words])
    out, err = capsys.readouterr()
    assert (status, out) == (2, "")
    assert err.startswith("neon8: error: ")
    assert err.count("\n") == 1
    assert err.endswith("\n")
    return err.removeprefix("neon8: error: ").rstrip("\n")


@dataclass(frozen=True, slots=True)
class Case:
    """words: of (Tiny, folder for spoilt files); says: parts of the line."""

    name: str
    words: Callable
    says: tuple[str, ...]


def saved(folder: Path, name: str, array) -> Path:
    np.save(folder / name, array)
    return folder / name


def spoilt_onnx(folder: Path, model: onnx.ModelProto) -> Path:
    onnx.save(model, folder / "spoilt.onnx")
    return folder / "spoilt.onnx"


def written(folder: Path, name: str, data: bytes) -> Path:
    (folder / name).write_bytes(data)
    return folder / name


def edited_table(tiny, folder: Path, key: str, value) -> Path:
    """The table with one number of tensor 'image', or of the model, replaced."""
    data = json.loads(tiny.table.read_text())
    where = data["model"] if key == "digest" else data["tensors"]["image"]
    where[key] = value
    return written(folder, "edited.json", json.dumps(data).encode())


def empty_folder(folder: Path) -> Path:
    (folder / "empty").mkdir()
    return folder / "empty"


def broken_samples(value: float):
    x = np.zeros((3, 3, 8, 8), np.float32)
    x[1, 2, 3, 4] = value
    return x


def renamed_input(tiny) -> onnx.ModelProto:
    model = tiny.net()
    model.graph.input[0].name = "photo"
    model.graph.node[0].input[0] = "photo"
    return model


WRONG_SHAPE = np.zeros((2, 3, 8, 9), np.float32)
OUT = "out"


def calibrate(tiny, data, folder, model=None, *more):
    words = ("calibrate", model or tiny.onnx, "--data", data, "-o", folder / OUT)
    return (*words, *more)


def compile_(tiny, folder, table, model=None):
    return ("compile", model or tiny.onnx, "--scales", table, "-o", folder / OUT)


CASES = [
    Case(
        "not an ONNX file",
        lambda t, d: calibrate(t, t.data, d, written(d, "a.onnx", b"\x00\xff rubbish")),
        ("a.onnx",),
    ),
    Case(
        "an empty ONNX file",
        lambda t, d: calibrate(t, t.data, d, written(d, "a.onnx", b"")),
        ("a.onnx",),
    ),
    Case(
        "a model that is missing",
        lambda t, d: calibrate(t, t.data, d, d / "missing.onnx"),
        ("missing.onnx",),
    ),
    Case(
        "a folder as model",
        lambda t, d: calibrate(t, t.data, d, d),
        ("",),
    ),
    Case(
        "an unsupported operator",
        lambda t, d: calibrate(t, t.data, d, spoilt_onnx(d, t.net(operator="Sin"))),
        ("spoilt.onnx", "a1", "Sin"),
    ),
    Case(
        "NaN in the data",
        lambda t, d: calibrate(t, saved(d, "x.npy", broken_samples(np.nan)), d),
        ("x.npy", "NaN"),
    ),
    Case(
        "infinity in the data",
        lambda t, d: calibrate(t, saved(d, "x.npy", broken_samples(-np.inf)), d),
        ("x.npy",),
    ),
    Case(
        "a sample of the wrong shape",
        lambda t, d: calibrate(t, saved(d, "x.npy", WRONG_SHAPE), d),
        ("x.npy", "[3, 8, 9]"),
    ),
    Case(
        "an empty data folder",
        lambda t, d: calibrate(t, empty_folder(d), d),
        ("empty",),
    ),
    Case(
        "data that is missing",
        lambda t, d: calibrate(t, d / "nowhere", d),
        ("nowhere",),
    ),
    Case(
        "a pickle as data",
        lambda t, d: calibrate(t, written(d, "x.npy", b"\x80\x04\x95."), d),
        ("x.npy",),
    ),
    Case(
        "more skipped than there is",
        lambda t, d: calibrate(t, t.data, d, None, "--skip", 24),
        ("train.npz", "24"),
    ),
    Case(
        "preprocessing that is not TOML",
        lambda t, d: calibrate(
            t, t.data, d, None, "--preprocess", written(d, "p.toml", b"size = [8,")
        ),
        ("p.toml",),
    ),
    Case(
        "a key that preprocessing does not know",
        lambda t, d: calibrate(
            t, t.data, d, None, "--preprocess", written(d, "p.toml", b"mena = [1]")
        ),
        ("p.toml", "mena"),
    ),
    Case(
        "a scale of 0",
        lambda t, d: compile_(t, d, edited_table(t, d, "scale", 0)),
        ("edited.json", "image", "scale"),
    ),
    Case(
        "a scale of infinity",
        lambda t, d: compile_(t, d, edited_table(t, d, "scale", float("inf"))),
        ("edited.json",),
    ),
    Case(
        "a negative scale",
        lambda t, d: compile_(t, d, edited_table(t, d, "scale", -0.5)),
        ("edited.json", "image", "scale"),
    ),
    Case(
        "a table of another model",
        lambda t, d: compile_(t, d, t.table, spoilt_onnx(d, t.net(seed=9))),
        ("another",),
    ),
    Case(
        "a table that is not JSON",
        lambda t, d: compile_(t, d, written(d, "t.json", b"{oops")),
        ("t.json",),
    ),
    Case(
        "a name that is no Unicode",
        lambda t, d: (
            "convert",
            written(
                d, "t.json", t.table.read_bytes().replace(b'"image"', b'"\\ud800"')
            ),
            *("--to", "ncnn", "-o", d / OUT),
        ),
        ("t.json",),
    ),
    Case(
        "a table that is missing",
        lambda t, d: compile_(t, d, d / "t.json"),
        ("t.json",),
    ),
    Case(
        "the model as its own output",
        lambda t, d: ("compile", t.onnx, "--scales", t.table, "-o", t.onnx),
        ("tiny.onnx", "input"),
    ),
    Case(
        "an output folder that is missing",
        lambda t, d: (
            *("compile", t.onnx, "--scales", t.table),
            *("-o", d / "no" / "m.n8"),
        ),
        ("m.n8", "folder"),
    ),
    Case(
        "a folder as output",
        lambda t, d: ("compile", t.onnx, "--scales", t.table, "-o", d),
        ("folder",),
    ),
    Case(
        "a truncated .n8",
        lambda t, d: (
            *("run", written(d, "m.n8", t.n8.read_bytes()[:-1])),
            *("--input", t.data),
        ),
        ("m.n8",),
    ),
    Case(
        "ONNX where an .n8 is wanted",
        lambda t, d: ("run", t.onnx, "--input", t.data),
        ("tiny.onnx", ".n8"),
    ),
    Case(
        "an input that is missing",
        lambda t, d: ("run", t.n8, "--input", d / "x.npy"),
        ("x.npy",),
    ),
    Case(
        "an input of the wrong shape",
        lambda t, d: ("run", t.n8, "--input", saved(d, "x.npy", WRONG_SHAPE)),
        ("x.npy", "[1, 3, 8, 8]"),
    ),
    Case(
        "no samples at all",
        lambda t, d: ("run", t.n8, "--input", saved(d, "x.npy", WRONG_SHAPE[:0])),
        ("x.npy",),
    ),
    Case(
        "floats for an int8 model",
        lambda t, d: (
            *("run", t.n8_int8),
            *("--input", saved(d, "x.npy", np.zeros((1, 3, 8, 8), np.float32))),
        ),
        ("x.npy", "float32", "int8"),
    ),
    Case(
        "NaN to run on",
        lambda t, d: (
            *("run", t.n8, "--input", saved(d, "x.npy", broken_samples(np.nan))),
            *("-o", d / OUT),
        ),
        ("x.npy", "NaN"),
    ),
    Case(
        "a core without emulation",
        lambda t, d: ("run", t.n8, "--input", t.data, "--cpu", "max"),
        ("--cpu", "--target aarch64"),
    ),
    Case(
        "kernels that this machine lacks",
        lambda t, d: ("run", t.n8, "--input", t.data, "--isa", "neon"),
        ("tiny.n8",),
    ),
    Case(
        "an ONNX file under emulation",
        lambda t, d: (
            *("evaluate", t.onnx, "--data", t.data),
            *("--target", "aarch64"),
        ),
        ("tiny.onnx", "aarch64"),
    ),
    Case(
        "a reference that takes something else",
        lambda t, d: (
            *("evaluate", t.n8, "--data", t.data),
            *("--reference", spoilt_onnx(d, renamed_input(t))),
        ),
        ("spoilt.onnx", "photo", "image"),
    ),
    Case(
        "an unknown file to inspect",
        lambda t, d: ("inspect", written(d, "x.txt", b"hello")),
        ("x.txt",),
    ),
    Case(
        "a damaged library to inspect",
        lambda t, d: (
            "inspect",
            written(d, "x.so", b"\x7fELF\x02\x01\x01" + b"\xff" * 90),
        ),
        ("x.so",),
    ),
    Case(
        "a damaged archive to inspect",
        lambda t, d: ("inspect", written(d, "x.a", b"!<arch>\n" + b"x" * 70)),
        ("x.a",),
    ),
    Case(
        "a table that is missing to convert",
        lambda t, d: ("convert", d / "t.json", "--to", "ncnn", "-o", d / OUT),
        ("t.json",),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_bad_input_gives_one_line(tiny, tmp_path, capsys, case):
    words = case.words(tiny, tmp_path)
    before = sorted(tmp_path.iterdir())
    line = refuse(capsys, *words)
    for part in case.says:
        assert part in line
    assert sorted(tmp_path.iterdir()) == before


USAGE = [
    ([], "COMMAND"),
    (["nonsense"], "nonsense"),
    (["calibrate"], "MODEL.onnx"),
    (["calibrate", "m.onnx", "--data", "d", "-o", "t", "--limit", "0"], "--limit"),
    (["calibrate", "m.onnx", "--data", "d", "-o", "t", "--skip", "-1"], "--skip"),
    (
        ["calibrate", "m.onnx", "--data", "d", "-o", "t", "--limit", "9" * 5000],
        "--limit",
    ),
    (["calibrate", "m.onnx", "--data", "d", "-o", "t", "--method", "luck"], "luck"),
    (["compile", "m.onnx", "--scales", "t", "-o", "m", "--io", "int4"], "int4"),
    (["run", "m.n8", "--input", "x", "--cpu", "z80"], "z80"),
    (["convert", "t.json", "--to", "stone", "-o", "t"], "stone"),
    (["inspect", "a", "b"], "b"),
]


@pytest.mark.parametrize(("words", "says"), USAGE, ids=lambda value: str(value)[:60])
def test_bad_usage_gives_one_line(capsys, words, says):
    line = refuse(capsys, *words)
    assert says in line
    assert "--help" in line


def test_names_from_a_file_cannot_move_the_cursor(tiny, tmp_path, capsys):
    model = tiny.net(operator="Sin")
    model.graph.node[1].name = "a\x1b[2J\nb"
    line = refuse(
        capsys, *calibrate(tiny, tiny.data, tmp_path, spoilt_onnx(tmp_path, model))
    )
    assert line.isprintable()


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_full_disk(tiny, tmp_path, capsys, monkeypatch, call):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    owner = os if call == "fsync" else Path
    monkeypatch.setattr(owner, call, full)
    line = refuse(capsys, *compile_(tiny, tmp_path, tiny.table))
    assert "No space left on device" in line
    assert str(tmp_path / OUT) in line
    assert list(tmp_path.iterdir()) == []


LIMITED = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
from neon8.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("command", ["calibrate", "compile", "run", "convert"])
def test_a_file_that_cannot_be_written_whole(tiny, tmp_path, command):
    out = tmp_path / OUT
    out.write_text("what was here before")
    words = {
        "calibrate": calibrate(tiny, tiny.data, tmp_path),
        "compile": compile_(tiny, tmp_path, tiny.table),
        "run": (
            *("run", tiny.n8, "-o", out),
            *("--input", saved(tiny.folder, "x.npy", np.load(tiny.data)["x"])),
        ),
        "convert": ("convert", tiny.table, "--to", "ncnn", "-o", out),
    }[command]
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"neon8: error: {out}: cannot be written: File too")
    assert done.stderr.count("\n") == 1
    assert [p.name for p in tmp_path.iterdir()] == [OUT]
    assert out.read_text() == "what was here before"


def test_a_full_standard_output(tiny):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "neon8", "inspect", str(tiny.table)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr == "neon8: error: standard output: No space left on device\n"


def test_a_defect_shows_as_one_line_too(monkeypatch, capsys, tiny):
    import neon8.commands.inspect

    def defect(*_, **__):
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(neon8.commands.inspect, "describe", defect)
    monkeypatch.delenv("NEON8_TRACEBACK", raising=False)
    assert main(["inspect", str(tiny.table)]) == 1
    err = capsys.readouterr().err
    assert err.startswith("neon8: fault: ZeroDivisionError: oops")
    assert err.count("\n") == 1
    monkeypatch.setenv("NEON8_TRACEBACK", "1")
    assert main(["inspect", str(tiny.table)]) == 1
    assert "Traceback" in capsys.readouterr().err
