# SPDX-License-Identifier: Apache-2.0
"""Command lines, and what success and failure look like."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx

from neon8.cli.main import main

OUT = "out"


def process(*words, **options) -> subprocess.CompletedProcess:
    """A command in a process of its own."""
    line = [sys.executable, "-m", "neon8", *map(str, words)]
    return subprocess.run(line, capture_output=True, check=False, **options)


def succeed(capsys, *words, warned=False) -> str:
    """Run a command that must succeed, silently unless it warns; what it printed."""
    status = main([str(word) for word in words])
    out, err = capsys.readouterr()
    assert status == 0
    assert warned or err == ""
    return out


def refuse(capsys, *words) -> str:
    """Run a command that must fail; its one line without 'neon8: error: '."""
    (line,) = refuse_with_list(capsys, *words)
    return line


def refuse_with_list(capsys, *words) -> list[str]:
    """Run a command that must fail; its lines, the first without 'neon8: error: '."""
    status = main([str(word) for word in words])
    out, err = capsys.readouterr()
    assert (status, out) == (2, "")
    assert err.startswith("neon8: error: ")
    assert err.endswith("\n")
    return err.removeprefix("neon8: error: ").rstrip("\n").split("\n")


def saved(folder: Path, name: str, array) -> Path:
    np.save(folder / name, array)
    return folder / name


def spoilt_onnx(folder: Path, model: onnx.ModelProto) -> Path:
    onnx.save(model, folder / "spoilt.onnx")
    return folder / "spoilt.onnx"


def written(folder: Path, name: str, data: bytes) -> Path:
    (folder / name).write_bytes(data)
    return folder / name


def calibrate(tiny, data, folder, model=None, *more):
    words = ("calibrate", model or tiny.onnx, "--data", data, "-o", folder / OUT)
    return (*words, *more)


def compile_(tiny, folder, table, model=None):
    return ("compile", model or tiny.onnx, "--scales", table, "-o", folder / OUT)
