# SPDX-License-Identifier: Apache-2.0
"""Full disks, hostile names and defects: always one line."""

import sys

import pytest

from command_lines import (
    OUT,
    calibrate,
    compile_,
    refuse,
    refuse_with_list,
    spoilt_onnx,
)
from neon8.cli.main import main
from processes import ran


@pytest.mark.parametrize(
    "words", [("--isa", "neon"), ("--max-bytes", 9), ("--target", "aarch64")]
)
def test_kernels_are_chosen_for_models_only(tiny, capsys, words):
    for path in (tiny.onnx, tiny.table):
        line = refuse(capsys, "inspect", path, *words)
        assert f"{path}: {words[0]} is for an .n8 file" in line


def test_names_from_a_file_cannot_move_the_cursor(tiny, tmp_path, capsys):
    model = tiny.net(operator="Tan")
    model.graph.node[1].name = "a\x1b[2J\nb"
    lines = refuse_with_list(
        capsys, *compile_(tiny, tmp_path, tiny.table, spoilt_onnx(tmp_path, model))
    )
    assert "1 of" in lines[0]
    assert "(operator Tan)" in lines[1]
    assert all(line.isprintable() for line in lines)
    assert len(lines) == 3


LIMITED = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
from neon8.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("command", ["calibrate", "compile"])
def test_a_file_that_cannot_be_written_whole(tiny, tmp_path, command):
    out = tmp_path / OUT
    out.write_text("what was here before")
    words = compile_(tiny, tmp_path, tiny.table)
    if command == "calibrate":
        words = calibrate(tiny, tiny.data, tmp_path)
    done = ran(sys.executable, "-c", LIMITED, *words)
    assert (done.returncode, done.stdout) == (2, "")
    said = done.stderr.splitlines()
    assert len(said) == 1
    assert said[0].startswith(f"neon8: error: {out}: cannot be written: File too")
    assert [p.name for p in tmp_path.iterdir()] == [OUT]
    assert out.read_text() == "what was here before"


def test_a_defect_shows_as_one_line_too(monkeypatch, capsys, tiny):
    from neon8.inspection import describe

    def defect(*_, **__):
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(describe, "inspect_file", defect)
    monkeypatch.delenv("NEON8_TRACEBACK", raising=False)
    assert main(["inspect", str(tiny.table)]) == 1
    err = capsys.readouterr().err
    assert err.startswith("neon8: fault: ZeroDivisionError: oops")
    assert err.count("\n") == 1
    monkeypatch.setenv("NEON8_TRACEBACK", "1")
    assert main(["inspect", str(tiny.table)]) == 1
    assert "Traceback" in capsys.readouterr().err


LACKS = {
    "memory": (MemoryError(), "out of memory"),
    "threads": (RuntimeError("can't start new thread"), "ulimit -u"),
    "a module": (
        ModuleNotFoundError("No module named 'PIL'"),
        "pip install 'neon8[calibrate]'",
    ),
    "a library": (ImportError("a.so: failed to map segment"), "too little memory"),
}


@pytest.mark.parametrize("what", LACKS)
def test_what_the_machine_lacks_is_no_defect(monkeypatch, capsys, tiny, what):
    error, says = LACKS[what]

    def lack(*_, **__):
        raise error

    monkeypatch.setattr("neon8.inspection.describe.inspect_file", lack)
    assert says in refuse(capsys, "inspect", tiny.table)


@pytest.mark.parametrize("call", ["load_model_from_string", "checker.check_model"])
def test_too_little_memory_for_a_network(monkeypatch, capsys, tiny, tmp_path, call):
    """The file is not said to be damaged."""

    def lack(*_, **__):
        raise MemoryError("std::bad_alloc")

    monkeypatch.setattr(f"onnx.{call}", lack)
    line = refuse(capsys, *calibrate(tiny, tiny.data, tmp_path))
    assert line == "out of memory"
