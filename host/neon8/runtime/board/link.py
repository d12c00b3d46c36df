# SPDX-License-Identifier: Apache-2.0
"""A way to a machine: commands for its shell, and files.  Here: this machine itself."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from neon8.errors import SetupError
from neon8.machines import EMULATIONS


class LostError(Exception):
    """The connection was lost; what was asked for may be asked for again."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a command.  said: its standard error, as text."""

    status: int
    out: bytes
    said: str


class Link(Protocol):
    """A way to a machine.

    name: as the user calls it.  prefix: words before a program that runs there.
    runner: the build that it takes, None where uname -m tells.
    """

    name: str
    prefix: tuple[str, ...]
    runner: Path | None

    def connect(self, *, last: bool = False) -> None:
        """Connect, also anew.  LostError: later perhaps. SetupError: not so.

        last: also after stop().
        """

    def execute(
        self, command: str, given: bytes = b"", *, last: bool = False
    ) -> Answer:
        """Have the shell run a command on standard input.  LostError, SetupError.

        last: also after stop(), to clean up.
        """

    def send(self, path: str, data: bytes) -> Answer:
        """Write a file there.  LostError, SetupError."""

    def stop(self) -> None:
        """End what another thread waits for, which then raises SetupError."""

    def close(self) -> None:
        """Give back what it holds; nothing else is called then."""


class Calls:
    """Processes that threads wait for, until another thread ends them all.

    Each has a session of its own: Ctrl-C is for us, who clean up by such processes.
    """

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self.stopped = threading.Event()

    def run(
        self, words: Sequence[str], given: bytes = b"", *, last: bool = False
    ) -> Answer:
        """Run a program until it ends.  SetupError: it was stopped."""
        with self._lock:
            self._check(last=last)
            process = subprocess.Popen(  # noqa: S603 (our own words)
                list(words),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
            self._running.add(process)
        try:
            out, said = process.communicate(given)
        except BaseException:
            _kill(process)
            raise
        finally:
            with self._lock:
                self._running.discard(process)
        self._check(last=last)
        return Answer(process.returncode, out, said.decode(errors="replace"))

    def _check(self, *, last: bool) -> None:
        if self.stopped.is_set() and not last:
            raise SetupError("stopped")

    def stop(self) -> None:
        """End all, now and to come."""
        with self._lock:
            self.stopped.set()
            for process in self._running:
                _kill(process)


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """A process and what it began."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


class Here:
    """This machine, or one that is emulated on it."""

    def __init__(self, name: str, runner: Path, prefix: tuple[str, ...] = ()) -> None:
        self.name, self.prefix = name, prefix
        self.runner: Path | None = runner
        self._calls = Calls()

    def connect(self, *, last: bool = False) -> None:
        """It is there."""

    def execute(
        self, command: str, given: bytes = b"", *, last: bool = False
    ) -> Answer:
        """As Link says."""
        found = self._calls.run(["sh", "-c", command], given, last=last)
        if found.status < 0:  # as a shell would say it
            return Answer(128 - found.status, found.out, found.said)
        return found

    def send(self, path: str, data: bytes) -> Answer:
        """As Link says."""
        try:
            Path(path).write_bytes(data)
        except OSError as error:
            return Answer(1, b"", f"{error.strerror}")
        return Answer(0, b"", "")

    def stop(self) -> None:
        """As Link says."""
        self._calls.stop()

    def close(self) -> None:
        """Nothing is held."""


def program(name: str, package: str) -> str:
    """A program of this PC.  SetupError: it is not installed."""
    found = shutil.which(name)
    if found is None:
        raise SetupError(f"{name} is not installed; it is in the package {package}")
    return found


def qemu_for(target: str) -> str:
    """What emulates one of EMULATIONS.  SetupError: it is not installed."""
    name = EMULATIONS[target].qemu
    found = shutil.which(name) or shutil.which(f"{name}-static")
    if found is None:
        raise SetupError(f"{name} is not installed; apt-get install qemu-user")
    return found


def last_line(said: str) -> str:
    """What a program said last, without control characters."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return "".join(c if c.isprintable() else " " for c in (lines or ["no message"])[-1])


def remedy(said: str, remedies: Mapping[str, str]) -> str:
    """'; REMEDY' for the first of these that was said, or nothing."""
    found = (text for cause, text in remedies.items() if cause in said)
    return next((f"; {text}" for text in found), "")


def private_folder() -> tempfile.TemporaryDirectory[str]:
    """A folder for sockets and files, with a short name."""
    return tempfile.TemporaryDirectory(prefix="neon8-")
