# SPDX-License-Identifier: Apache-2.0
"""Bad input: exit status 2, one line that names the culprit, no file left behind."""

# ruff: noqa: ARG005 - all rows of the table of cases have one signature

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest

from failing import OUT, calibrate, compile_, refuse, saved, spoilt_onnx, written


@dataclass(frozen=True, slots=True)
class Case:
    """words: of (Tiny, folder for spoilt files); says: parts of the line."""

    name: str
    words: Callable
    says: tuple[str, ...]


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
LIMIT = ("more than the limit of 1000", "--max-bytes")
CASES = [
    *(
        Case(
            f"{command} takes more memory than it may on {target}",
            lambda t, d, command=command, target=target: (
                *(command, t.n8, "--max-bytes", 1000, "--target", target),
                *{
                    "run": ("--input", saved(d, "x.npy", np.zeros((1, 3, 8, 8), "f4"))),
                    "evaluate": ("--data", t.data),
                    "inspect": (),
                }[command],
            ),
            ("tiny.n8", *LIMIT),
        )
        for command, target in (
            ("run", "native"),
            ("run", "aarch64"),
            ("run", "armv7"),
            ("evaluate", "native"),
            ("inspect", "native"),
            ("inspect", "aarch64"),
            ("inspect", "armv7"),
        )
    ),
    Case(
        "a variable that is not set",
        lambda t, d: calibrate(t, "", d),
        ("argument --data: is empty", "variable"),
    ),
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
        "a network that is quantized dynamically",
        lambda t, d: calibrate(
            t, t.data, d, spoilt_onnx(d, t.net(operator="DynamicQuantizeLinear"))
        ),
        ("spoilt.onnx", "a1", "DynamicQuantizeLinear"),
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
    *(
        Case(
            f"the core {cpu} on {target}",
            lambda t, d, cpu=cpu, target=target: (
                *("run", t.n8, "--input", t.data),
                *("--cpu", cpu, "--target", target),
            ),
            says,
        )
        for cpu, target, says in (
            ("max", "native", ("--cpu max", "add --target aarch64 or armv7")),
            ("cortex-a9", "native", ("--cpu cortex-a9", "add --target armv7")),
            (
                *("cortex-a9", "aarch64"),
                ("a core of armv7, not of aarch64", "cortex-a53, neoverse-n1, max"),
            ),
            (
                *("cortex-a53", "armv7"),
                ("a core of aarch64, not of armv7", "cortex-a9, cortex-a15, max"),
            ),
        )
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
