# SPDX-License-Identifier: Apache-2.0
"""Commands start quickly: each loads what it uses and no more."""

import fcntl
import os
import struct
import subprocess
import sys
import termios

import numpy as np
import pytest

from neon8.cli.main import COMMANDS, main

PRINTING = (
    "evaluate",
    "compare",
    "diagnose",
    "profile",
    "doctor",
    "inspect",
)

THIRD_PARTY = {
    *("cffi", "dask", "distributed", "elftools", "numpy", "onnx", "onnx.reference"),
    *("argcomplete", "jinja2", "onnxruntime", "PIL", "torch", "tqdm", "yaml"),
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
    "qat": {"numpy", "cffi", "onnx", "torch", "tqdm"},  # torch loads tqdm
    "doctor": {"numpy", "cffi", "elftools"},
    "convert": {"numpy", "onnx", "yaml"},
    "inspect": {"numpy", "cffi", "onnx", "yaml", "elftools"},
}


def loaded(*lines):
    """Modules that a process with these lines of Python has at its end."""
    code = "\n".join(["import sys", *lines, "print(*sys.modules)"])
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return set(done.stdout.splitlines()[-1].split())


def running(*words):
    """The lines that run a command."""
    code = f"assert main({[*map(str, words)]!r}) == 0"
    return ("from neon8.cli.main import main", code)


@pytest.fixture(scope="module")
def words(tiny, tmp_path_factory):
    """A good command line for each command, without its output."""
    folder = tmp_path_factory.mktemp("words")
    calib, array = folder / "tiny.calib", folder / "x.npy"
    data = ("--data", tiny.data, "--limit", 2)
    assert main([*map(str, ["observe", tiny.onnx, *data, "-o", calib])]) == 0
    np.save(array, np.load(tiny.data)["x"][:2])
    model = folder / "net.py"
    model.write_text(
        "from torch import nn\n"
        "def build():\n"
        "    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(),\n"
        "                        nn.Linear(144, 6))\n"
        "    return net, (3, 8, 8)\n"
    )
    return {
        "calibrate": (tiny.onnx, *data),
        "observe": (tiny.onnx, *data),
        "merge": (calib,),
        "solve": (calib,),
        "compile": (tiny.onnx, "--scales", tiny.table),
        "run": (tiny.n8, "--input", array),
        "evaluate": (tiny.n8, *data, "--reference", tiny.onnx),
        "compare": (calib, tiny.onnx, *data, "--methods", "mse", "--schemes", "auto"),
        "diagnose": (tiny.onnx, tiny.table, *data, "--top", 1),
        "profile": (tiny.n8, "--board", "rpi4"),
        "bench": (tiny.n8, "--seconds", "0.01"),
        "report": (tiny.onnx, tiny.table, tiny.n8, *data, "--top", 1),
        "package": (tiny.n8, "--for", "cmake", "--no-check"),
        "qat": (f"{model}:build", "--data", tiny.labelled, "--batch", 4),
        "doctor": (),
        "convert": (tiny.table, "--to", "ncnn"),
        "inspect": (tiny.n8,),
    }


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_loads_what_it_uses(words, tmp_path, command):
    if command == "qat":
        pytest.importorskip("torch", reason="torch is not installed")
    output = () if command in PRINTING else ("-o", tmp_path / "out")
    modules = loaded(*running(command, *words[command], *output))
    assert THIRD_PARTY & modules <= LOADED[command]


def test_a_model_is_inspected_on_a_board(tiny):
    """There are numpy and cffi, and no onnx."""
    modules = loaded(*running("inspect", tiny.n8))
    assert THIRD_PARTY & modules == {"numpy", "cffi"}


@pytest.mark.parametrize("words", [[], *([command] for command in COMMANDS)])
def test_help_is_instant(words):
    modules = loaded(
        "from neon8.cli.main import main",
        f"try: main({[*words, '--help']!r})",
        "except SystemExit: pass",
    )
    assert "argparse" in modules
    assert not THIRD_PARTY & modules


def test_a_run_without_a_terminal_makes_no_bar(tiny, tmp_path):
    words = ["calibrate", tiny.onnx, "--data", tiny.data, "-o", tmp_path / "t.json"]
    modules = loaded(*running(*words))
    assert "onnxruntime" in modules
    assert "multiprocessing" not in modules


@pytest.mark.parametrize(("option", "seen"), [([], True), (["--quiet"], False)])
def test_a_terminal_sees_a_bar(tiny, tmp_path, option, seen):
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 25, 80, 0, 0))
    words = ["calibrate", tiny.onnx, "--data", tiny.data, "-o", tmp_path / "t.json"]
    subprocess.run([sys.executable, "-m", "neon8", *words, *option], stderr=theirs,
                   stdout=subprocess.DEVNULL, check=True)  # fmt: skip
    os.write(theirs, b"end")  # there is something to read in any case
    assert (b"observe: " in os.read(ours, 1 << 16)) is seen


def test_nothing_is_written_into_the_users_home(tiny, tmp_path):
    home, out = tmp_path / "home", tmp_path / "t.json"
    home.mkdir()
    environment = {**os.environ, "HOME": str(home)}
    del environment["ORT_DISABLE_TELEMETRY"]  # of these tests, not of every user
    words = ["calibrate", tiny.onnx, "--data", tiny.data, "-q", "-o", out]
    subprocess.run([sys.executable, "-m", "neon8", *words], env=environment, check=True)
    assert list(home.iterdir()) == []


def test_the_garbage_collector_is_left_as_it_was():
    code = (
        "import gc, sys\n"
        "from neon8.cli.main import main\n"
        "for on in (True, False):\n"
        "    (gc.enable if on else gc.disable)()\n"
        "    main(['inspect', 'no such file'])\n"
        "    assert gc.isenabled() is on\n"
    )
    subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
