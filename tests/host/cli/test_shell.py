# SPDX-License-Identifier: Apache-2.0
"""Words that TAB completes in real shells, and the manual pages."""

import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from neon8.cli import manual
from neon8.cli.main import COMMANDS
from processes import ran

HOST = Path(__file__).resolve().parents[3] / "host"


@pytest.fixture(scope="module")
def share(tmp_path_factory):
    folder = tmp_path_factory.mktemp("share")
    manual.main(folder)
    return folder


@pytest.fixture
def place(tmp_path):
    """A folder with files of many kinds, and a neon8 on the path."""
    for name in ("net.onnx", "net.n8", "x.npz", "p.toml", "notes.txt"):
        (tmp_path / name).touch()
    (tmp_path / "folder").mkdir()
    command = tmp_path / "bin/neon8"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m neon8 "$@"\n')
    command.chmod(0o755)
    return tmp_path


def environment(place):
    path = f"{place}/bin:{os.environ['PATH']}"
    kept = {**os.environ, "PATH": path, "PYTHONPATH": str(HOST), "HOME": str(place)}
    return {**kept, "TERM": "dumb", "PS1": "> ", "BASH_SILENCE_DEPRECATION_WARNING": ""}


def offered(place, line):
    """The words that a shell is given for the end of a line."""
    answer = place / "answer"
    asked = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_SUPPRESS_SPACE": "1",
    }
    command, env = [place / "bin/neon8"], environment(place) | asked
    subprocess.run(command, cwd=place, env=env, check=False)
    return set(answer.read_text().split())


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("neon8 pro", {"profile"}),
        ("neon8 inspect n", {"net.onnx", "net.n8"}),
        ("neon8 profile n", {"net.n8"}),
        ("neon8 compile n", {"net.onnx"}),
        ("neon8 calibrate f", {"folder/"}),
        ("neon8 calibrate net.onnx --data x", {"x.npz"}),
        ("neon8 run net.n8 --preprocess p", {"p.toml"}),
        ("neon8 run net.n8 --target a", {"aarch64", "armv7", "adb"}),
        ("neon8 run net.n8 --cpu cortex-a5", {"cortex-a53"}),
        ("neon8 run net.n8 --isa c", {"c"}),
        ("neon8 run net.n8 --limit ", set()),
        ("neon8 calibrate net.onnx --method kl", {"kl", "kl2017"}),
        ("neon8 calibrate net.onnx --no-", set()),
        ("neon8 profile --core cortex-a5", {"cortex-a53", "cortex-a55"}),
        ("neon8 profile --board rpi3", {"rpi3b+"}),
        ("neon8 profile --kernel avgpool", {"avgpool_s8_neon"}),
        ("neon8 convert t --to nc", {"ncnn"}),
    ],
)
def test_what_is_offered(place, line, words):
    assert offered(place, line) == words


START = {
    "bash": (["--norc", "--noprofile", "-i"], "source {}\n"),
    "zsh": (["-f", "-i"], "autoload -U compinit; compinit -u -D; source {}\n"),
}


def typed(shell, place, script, words, completed):
    """What a terminal shows after words and TAB are typed, and RETURN once `completed`.

    A shell may drop what is typed while it completes.
    """
    flags, load = START[shell]
    process, terminal = pty.fork()
    if process == 0:  # in the shell
        os.chdir(place)
        os.execvpe(shell, [shell, *flags], environment(place))  # noqa: S606
    seen = b""
    try:
        os.write(terminal, load.format(script).encode() + b"echo rea''dy\n")
        deadline = time.monotonic() + 120
        steps = [
            (rb"\nready\r", words + b"\t"),
            (re.escape(completed) + b" ", b"\necho e''nd\n"),
            (rb"\nend\r", b""),
        ]
        while time.monotonic() < deadline and steps:
            if select.select([terminal], [], [], 0.1)[0]:
                seen += os.read(terminal, 1 << 16)
            if re.search(steps[0][0], seen):
                os.write(terminal, steps.pop(0)[1])
    finally:
        os.close(terminal)
        os.waitpid(process, 0)
    return seen.decode(errors="replace")


@pytest.mark.parametrize("shell", START)
def test_a_shell_completes(shell, share, place):
    (place / "bin/neon8").write_text(
        "#!/bin/sh\n"
        f'[ -z "$_ARGCOMPLETE" ] || exec "{sys.executable}" -m neon8 "$@"\n'
        'echo "called with $*"\n'
    )
    seen = typed(
        shell, place, share / manual.SHELLS[shell], b"neon8 profile net.n", b"net.n8"
    )
    assert "called with profile net.n8\r" in seen


def test_fish_completes(share, place):
    script = share / manual.SHELLS["fish"]
    for line, word in (("neon8 prof", "profile"), ("neon8 profile net.n", "net.n8")):
        done = ran(
            *("fish", "-c", f"source {script}; complete -C '{line}'"),
            cwd=place,
            env=environment(place),
            check=True,
        )
        assert [each.split("\t")[0] for each in done.stdout.splitlines()] == [word]


def test_every_command_has_a_page_without_a_warning(share):
    pages = [*(share / "man/man1").iterdir()]
    names = {"neon8", *(f"neon8-{name}" for name in COMMANDS)}
    assert {page.stem for page in pages} == names
    lint = ["mandoc", "-T", "lint", "-W", "warning", *pages]
    assert subprocess.run(lint, capture_output=True, check=False).stdout == b""


def test_a_page_has_all_that_help_says(share):
    shown = ran(
        *("mandoc", "-T", "utf8", "-O", "width=200", share / "man/man1/neon8-run.1"),
        check=True,
    ).stdout
    plain = re.sub(".\b", "", shown)
    for said in (".npy files. An image", "--max-bytes N", "(default: 1 GiB)", "[data]"):
        assert said in plain
    assert not re.search("^ *--no-", plain, re.MULTILINE)


def test_pages_are_the_same_again(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    assert ".TH NEON8 1 1970-01-02 " in manual.files()["man/man1/neon8.1"]
