# SPDX-License-Identifier: Apache-2.0
"""Commands start quickly: each loads what it uses and no more."""

import fcntl
import os
import struct
import subprocess
import sys
import termios

import pytest

UNUSED = {
    "calibrate": {"dask", "distributed", "yaml", "elftools", "onnx.reference"},
    "observe": {"dask", "distributed", "yaml", "elftools", "onnx.reference"},
    "merge": {"onnx", "onnxruntime", "PIL", "tqdm", "yaml", "elftools"},
    "solve": {"onnx", "onnxruntime", "PIL", "tqdm", "yaml", "elftools"},
    "compile": {"onnxruntime", "PIL", "tqdm", "yaml", "elftools"},
    "run": {"PIL", "yaml", "elftools"},
    "evaluate": {"yaml", "elftools"},
    "compare": {"yaml", "elftools"},
    "convert": {"onnxruntime", "PIL", "tqdm", "elftools"},
    "inspect": {"onnxruntime", "PIL", "tqdm"},
}


def loaded(*lines):
    """Modules that a process with these lines of Python has at its end."""
    code = "\n".join(["import sys", *lines, "print(*sys.modules)"])
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("command", UNUSED)
def test_a_command_imports_what_it_uses(command):
    name = f"neon8.cli.{command}"
    modules = loaded(f"import {name}")
    assert name in modules
    assert not UNUSED[command] & modules


def test_a_run_without_a_terminal_makes_no_bar(tiny, tmp_path):
    words = ["calibrate", tiny.onnx, "--data", tiny.data, "-o", tmp_path / "t.json"]
    modules = loaded(
        "from neon8.cli.main import main", f"assert main({[*map(str, words)]!r}) == 0"
    )
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
    assert (b"calibrate: " in os.read(ours, 1 << 16)) is seen


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
