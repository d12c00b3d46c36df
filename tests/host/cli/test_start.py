# SPDX-License-Identifier: Apache-2.0
"""Commands start quickly: each loads what it uses and no more."""

import fcntl
import gc
import os
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from neon8.cli.main import COMMANDS, main
from processes import ran

ROOT = Path(__file__).resolve().parents[3]
PRINTING = (
    *("evaluate", "compare", "diagnose"),
    *("profile", "doctor", "inspect"),
)

THIRD_PARTY = {
    *("cffi", "dask", "distributed", "elftools", "numpy", "onnx", "onnx.reference"),
    *("argcomplete", "jinja2", "onnxruntime", "PIL", "torch", "tqdm", "yaml"),
    "multiprocessing",  # which a bar starts even where nobody sees it
}
CALIBRATES = {"numpy", "cffi", "onnx", "onnxruntime", "PIL"}
LOADED = {
    "calibrate": CALIBRATES,
    "observe": CALIBRATES,
    "merge": {"numpy", "cffi"},
    "solve": {"numpy", "cffi"},
    "compile": {"numpy", "cffi", "onnx"},
    "run": {"numpy", "cffi"},
    "evaluate": CALIBRATES,
    "compare": CALIBRATES,
    "diagnose": CALIBRATES,
    "bench": {"numpy", "cffi"},
    "profile": {"numpy", "cffi"},
    "report": {*CALIBRATES, "jinja2"},
    "package": {"numpy", "cffi", "jinja2"},
    "qat": {"numpy", "cffi", "onnx", "torch", "tqdm", "multiprocessing"},  # by torch
    "doctor": {"numpy", "cffi", "elftools"},
    "convert": {"numpy", "onnx", "yaml"},
    "inspect": {"numpy", "cffi"},  # of a model, on a board, there is no onnx
}


def loaded(*lines, **environment):
    """Modules that a process with these lines of Python has at its end."""
    code = "\n".join(["import sys", *lines, "print(*sys.modules)"])
    done = ran(sys.executable, "-c", code, env=os.environ | environment, check=True)
    return set(done.stdout.splitlines()[-1].split())


@pytest.fixture(scope="module")
def prebuilt(tmp_path_factory):
    """The lines by which this build stands in for `make prebuilt`."""
    folder = tmp_path_factory.mktemp("package")
    places = folder / "prebuilt"
    places.mkdir()
    (places / "linux-x86_64").symlink_to(ROOT / "build" / "native")
    (places / "include").symlink_to(ROOT / "runtime" / "include")
    return (
        "from pathlib import Path",
        "from neon8 import prebuilt",
        f"prebuilt.PACKAGE = Path({str(folder)!r})",
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_loads_what_it_uses(words, prebuilt, tmp_path, command, monkeypatch):
    """And writes nothing into the user's home."""
    if command == "qat":
        pytest.importorskip("torch", reason="torch is not installed")
    home = tmp_path / "home"
    home.mkdir()
    # These tests set it, which not every user does.
    monkeypatch.delenv("ORT_DISABLE_TELEMETRY")
    output = () if command in PRINTING else ("-o", tmp_path / "out")
    line = [*words[command], *map(str, output)]
    start = ("from neon8.cli.main import main", f"assert main({line!r}) == 0")
    run = (*prebuilt, *start)
    assert THIRD_PARTY & loaded(*run, HOME=str(home)) <= LOADED[command]
    assert list(home.iterdir()) == []


def test_importing_neon8_is_light():
    modules = loaded("import neon8", "neon8.Model, neon8.errors")
    assert THIRD_PARTY & modules == {"numpy", "cffi"}


def test_help_is_instant():
    modules = loaded(
        "from neon8.cli.main import COMMANDS, main",
        "for words in [[], *([command] for command in COMMANDS)]:",
        "    try: main([*words, '--help'])",
        "    except SystemExit: pass",
    )
    assert "argparse" in modules
    assert not THIRD_PARTY & modules


@pytest.mark.parametrize(("option", "seen"), [([], True), (["--quiet"], False)])
def test_a_terminal_sees_a_bar(tiny, tmp_path, option, seen):
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 25, 80, 0, 0))
    words = ["calibrate", tiny.onnx, "--data", tiny.data, "-o", tmp_path / "t.json"]
    subprocess.run([sys.executable, "-m", "neon8", *words, *option], stderr=theirs,
                   stdout=subprocess.DEVNULL, check=True)  # fmt: skip
    os.write(theirs, b"end")  # there is something to read in any case
    assert (b"observe: " in os.read(ours, 1 << 16)) is seen


@pytest.mark.parametrize("switch", [gc.enable, gc.disable])
def test_the_garbage_collector_is_left_as_it_was(switch):
    before, rare = gc.isenabled(), gc.get_threshold()
    try:
        switch()
        main(["inspect", "no such file"])
        assert gc.isenabled() is (switch is gc.enable)
        assert gc.get_threshold() == rare
    finally:
        (gc.enable if before else gc.disable)()
