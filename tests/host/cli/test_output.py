# SPDX-License-Identifier: Apache-2.0
"""What commands write where: files, standard output, notes, and nothing twice."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from command_lines import refuse, saved
from neon8.cli.main import main
from processes import ran

WRITING = ("calibrate", "observe", "merge", "solve", "compile", "run", "convert")


@pytest.mark.parametrize("command", WRITING)
def test_standard_output_gets_the_file_and_nothing_else(
    words, tmp_path, monkeypatch, capfdbinary, command
):
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    line = words[command]
    assert main([*line, "-q", "-o", str(tmp_path / "file")]) == 0
    assert capfdbinary.readouterr() == (b"", b"")
    wanted = (tmp_path / "file").read_bytes()
    assert main([*line, "-o", "-"]) == 0
    out, said = capfdbinary.readouterr()
    assert (out, said[:13]) == (wanted, b"/dev/stdout: ")
    assert list((tmp_path / "cwd").iterdir()) == []
    assert main([*line, "-q", "-o", "-"]) == 0
    assert capfdbinary.readouterr() == (wanted, b"")


def test_a_file_may_still_be_named_minus(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main([*words["solve"], "-o", "./-"]) == 0
    assert json.loads((tmp_path / "-").read_text())["format"]
    assert capsys.readouterr().out.startswith("-: ")


def test_a_report_on_standard_output(words, tmp_path, capfd):
    report = [*words["observe"], "--report", "-", "-o"]
    assert main([*report, str(tmp_path / "a.calib")]) == 0
    out, said = capfd.readouterr()
    assert json.loads(out)["format"] == "neon8 convergence"
    assert "a.calib: " in said
    said = refuse(capfd, *report, "-")
    assert said.endswith("is to be written twice; name another file")


def test_a_reader_that_goes_away_is_no_error(tiny, words):
    """Neither of a file nor of what is told."""
    for command in ((*words["solve"], "-q", "-o", "-"), ("inspect", tiny.table)):
        line = f"{sys.executable} -m neon8 {' '.join(map(str, command))}"
        done = ran("bash", "-c", f"{line} | true; echo ${{PIPESTATUS[0]}}", check=True)
        assert done.stderr == ""
        assert done.stdout.strip() in {"141", "0"}


@pytest.mark.parametrize(
    ("command", "place", "status", "said"),
    [
        ("solve", "&-", 2, "/dev/stdout: cannot be written: Bad file descriptor"),
        ("solve", "/dev/full", 2, "/dev/stdout: cannot be written: No space left"),
        ("inspect", "/dev/full", 2, "standard output: No space left on device"),
        ("inspect", "&-", 0, ""),
    ],
)
def test_standard_output_that_is_closed_or_full(words, command, place, status, said):
    line = f"{sys.executable} -m neon8 {' '.join(words[command])}"
    line += " -o -" * (command == "solve")
    done = ran("sh", "-c", f"exec {line} >{place}")
    assert done.returncode == status
    assert done.stderr.startswith(said and f"neon8: error: {said}")
    assert done.stderr.count("\n") == bool(said)


def test_quiet_leaves_errors_and_results(tiny, words, tmp_path, capsys):
    line = refuse(capsys, *words["solve"], "-q", "-o", tmp_path / "no" / "out")
    assert "no folder" in line
    for asked in (
        words["run"],
        ("evaluate", tiny.n8, "--data", tiny.data),
    ):
        assert main([*map(str, asked), "-q"]) == 0
        out, error = capsys.readouterr()
        assert out
        assert error == ""


@pytest.mark.parametrize("options", [[], ["-q"]])
def test_quiet_is_for_warnings_too(tiny, tmp_path, capsys, options):
    """A sample that is there twice; -q of one run leaves the next as it was."""
    x = np.load(tiny.data)["x"][:4]
    data = saved(tmp_path, "x.npy", np.concatenate([x, x[:1]]))
    words = ["observe", tiny.onnx, "--data", data, "-o", tmp_path / "a.calib", *options]
    assert main([str(word) for word in words]) == 0
    error = capsys.readouterr().err
    if options:
        assert error == ""
    else:
        assert error.startswith("neon8: warning: 1 samples are the same")


@pytest.mark.parametrize("command", ["calibrate", "solve"])
def test_a_guard_is_said_once(words, tmp_path, capsys, command):
    assert main([*words[command], "-o", str(tmp_path / "t.json")]) == 0
    out, error = capsys.readouterr()
    assert error == ""
    table = json.loads((tmp_path / "t.json").read_text())
    codes = [
        code for entry in table["tensors"].values() for code in entry.get("reasons", [])
    ]
    assert "few:values" in codes
    assert out.count("few:values") == 1


def test_no_code_from_the_working_directory(words, tmp_path):
    """Neither by the command nor by its children."""
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    for folder in (here, elsewhere):
        folder.mkdir()
    for name in ("json", "numpy", "struct", "random", "neon8", "sitecustomize"):
        text = f"open({str(tmp_path / 'ran')!r}, 'a').write(__file__)\n"
        (here / f"{name}.py").write_text(text)
    script = elsewhere / "start"
    script.write_text("import sys\nfrom neon8.cli.main import main\nsys.exit(main())\n")
    environment = dict(os.environ)
    environment.pop("PYTHONSAFEPATH", None)
    output = elsewhere / "a.calib"
    line = [*words["observe"], "--workers", "2", "-o", str(output)]
    done = subprocess.run(
        [sys.executable, script, *line],
        cwd=here,
        env=environment,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert output.stat().st_size
    assert not (tmp_path / "ran").exists()
