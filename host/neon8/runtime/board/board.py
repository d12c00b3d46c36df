# SPDX-License-Identifier: Apache-2.0
"""Board: neon8-runner in a folder of its own on another machine.

The folder, the runner and what else is put there are checked, come back after a lost
connection or a reboot, and go away in the end.
"""

import contextlib
import json
import os
import platform
import shlex
import threading
import zlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, final

from neon8.errors import ModelError, SetupError
from neon8.machines import EMULATIONS, NATIVE, serial_of, ssh_host
from neon8.prebuilt import prebuilt_file
from neon8.runtime.board.adb import Adb
from neon8.runtime.board.link import (
    Answer,
    Here,
    Link,
    LostError,
    last_line,
    qemu_for,
)
from neon8.runtime.board.ssh import Ssh
from neon8.runtime.closable import Closable
from neon8.runtime.library import PACKAGE

CHECKOUT = PACKAGE.parents[1]
RUNNER = "neon8-runner"
BUILDS = {
    "aarch64": "linux-aarch64",
    "arm64": "linux-aarch64",
    "armv7l": "linux-armv7",
    "armv8l": "linux-armv7",
    "x86_64": "linux-x86_64",
}
"""What uname -m says, and which runner is for that."""

PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0)
"""Seconds before each new try after a lost connection: it may have to start."""

# The first folder in which a program can be made and run.
FIND_FOLDER = """
why=readonly
for place in "$TMPDIR" /data/local/tmp /tmp /var/tmp "$HOME"; do
    folder=$place/{name}
    [ -n "$place" ] && mkdir -m 700 "$folder" || continue
    if ! echo "exit 0" >"$folder/try"; then why=full
    elif ! chmod 700 "$folder/try" || ! "$folder/try"; then why=noexec
    else rm "$folder/try"; echo "neon8 $(uname -m) $folder"; exit 0
    fi
    rm -rf "$folder"
done 2>/dev/null
echo "neon8 $(uname -m) $why"
"""

NOWHERE = {
    "readonly": "no folder there may be written; set TMPDIR there to one that may",
    "full": "its disk is full; make room in /tmp, or set TMPDIR there to another one",
    "noexec": (
        "no folder there may hold programs (mounted noexec?); set TMPDIR there to one "
        "that may"
    ),
}
STATUSES = {
    126: "the runner may not be run there (mounted noexec?); set TMPDIR there",
    132: "the processor lacks an instruction; try --isa neon, or --isa c",
    135: "the runner ended by a bus error; is its disk or memory full?",
    137: "the runner was killed; out of memory? see --max-bytes",
    139: "the runner crashed; a defect of neon8, or of the board's memory",
}
MODEL_FAULTS = ("model: ", "sample: ", "session: ", "run: ")
"""What the runner says of a model, not of what is around it."""
GONE = 127


@final
class Board(Closable):
    """A machine that runs neon8-runner.  Threads take turns."""

    def __init__(self, link: Link, pauses: Sequence[float] | None = None) -> None:
        """Connect, and put the runner there.  SetupError says what is in the way.

        pauses: before each new try after a lost connection, PAUSES by default.
        """
        self._link = link
        self._pauses = PAUSES if pauses is None else tuple(pauses)
        self._files: dict[str, bytes] = {}
        self._folder = ""
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._whole = False  # connected, and all files are there
        try:
            with self._lock:
                self._retried(lambda: None)
        except BaseException:
            self.close()
            raise

    @property
    def name(self) -> str:
        """As the user calls it."""
        return self._link.name

    @cached_property
    def facts(self) -> dict[str, Any]:
        """What the runner tells of the machine."""
        return self.ask(["facts"])

    @property
    def cores(self) -> int:
        """How many threads run at the same time there."""
        return max(1, min(64, len(online(self.facts))))

    def put(self, name: str, data: bytes) -> None:
        """Have a file in the folder, also after a reboot.  SetupError: no room."""
        with self._lock:
            self._files[name] = data
            self._whole = False
            self._retried(lambda: None)

    def call(self, words: Sequence[object], given: bytes = b"") -> bytes:
        """What the runner writes, in its folder, when run with these words.

        Asked again after a lost connection.  ModelError: it refuses the model or the
        sample. SetupError: all else.
        """
        with self._lock:
            out: bytes = self._retried(lambda: self._checked(self._run(words, given)))
            return out

    def ask(self, words: Sequence[object], given: bytes = b"") -> dict[str, Any]:
        """A JSON object that the runner writes."""
        return parsed(self.name, self.call(words, given))

    def _run(
        self, words: Sequence[object], given: bytes = b"", *, before: str = ":"
    ) -> Answer:
        line = shlex.join([*self._link.prefix, f"./{RUNNER}", *map(str, words)])
        place = shlex.quote(self._folder)
        return self._link.execute(f"cd {place} && {before} && {line}", given)

    def _checked(self, answer: Answer) -> bytes:
        """Its output.  LostError: the folder has gone."""
        if answer.status == 0:
            return answer.out
        said = last_line(answer.said)
        mark = f"{RUNNER}: "
        if mark in said:
            text = said.partition(mark)[2]
            wrong = text.startswith(MODEL_FAULTS)
            raise (ModelError if wrong else SetupError)(f"{self.name}: {text}")
        if answer.status == GONE or "can't cd" in said or "No such file" in said:
            raise LostError("the runner has gone")
        known = STATUSES.get(answer.status, f"status {answer.status}: {said}")
        raise SetupError(f"{self.name}: {known}")

    def _retried(self, act: Any) -> Any:
        """What `act` returns, once the board is whole, with a bound of tries."""
        pauses = iter(self._pauses)
        while True:
            try:
                if not self._whole:
                    self._mend()
                return act()
            except LostError as lost:  # noqa: PERF203 (each try is a connection)
                self._whole = False
                pause = next(pauses, None)
                if pause is None:
                    tries = len(self._pauses) + 1
                    raise SetupError(
                        f"{self.name}: lost {tries} times, and given up: {lost}"
                    ) from lost
                if self._stopped.wait(pause):
                    raise SetupError(f"{self.name}: stopped") from lost

    def _mend(self) -> None:
        """Connect, and put there what is not."""
        if not self._connected():
            self._link.connect()
        there = self._digests() if self._folder else {}
        if RUNNER not in there:
            self._settle()
            there = {}
        for name, data in self._files.items():
            if there.get(name) != digest(data):
                self._send(name, data)
        there = self._digests()
        for name, data in self._files.items():
            if there.get(name) != digest(data):
                raise LostError(f"{name} was damaged on its way")
        self._whole = True

    def _connected(self) -> bool:
        try:
            return bool(self._folder) and self._link.execute(":").status == 0
        except LostError:
            return False

    def _digests(self) -> dict[str, list[int]]:
        """Size and CRC-32 of the files that are there."""
        there = f"$(ls {' '.join(map(shlex.quote, self._files))})"
        runner = shlex.join([*self._link.prefix, f"./{RUNNER}", "digest"])
        place = shlex.quote(self._folder)
        line = f"cd {place} && echo {there} && {runner} {there}"
        answer = self._link.execute(line)
        if answer.status:
            if answer.status in STATUSES:
                self._checked(answer)
            return {}
        names, _, told = answer.out.partition(b"\n")
        rows = parsed(self.name, told)["files"]
        return dict(zip(names.decode(errors="replace").split(), rows, strict=True))

    def _settle(self) -> None:
        """Make the folder, with the runner for this machine in it."""
        name = f"neon8-{os.urandom(6).hex()}"
        answer = self._link.execute(FIND_FOLDER.format(name=name))
        words = answer.out.decode(errors="replace").strip().split(" ", 2)
        if len(words) < 3 or words[0] != "neon8":
            said = last_line(answer.out.decode(errors="replace") + answer.said)
            raise SetupError(
                f"{self.name}: has no POSIX shell for this user (it said: {said}); "
                "give a user whose shell is sh"
            )
        _, machine, place = words
        if place in NOWHERE:
            raise SetupError(f"{self.name}: {NOWHERE[place]}")
        self._folder = place
        if self._link.runner is None and machine not in BUILDS:
            known = ", ".join(BUILDS)
            raise SetupError(
                f"{self.name}: is {machine!r}, for which there is no runner; neon8 "
                f"runs on {known}"
            )
        path = self._link.runner or prebuilt_file(BUILDS[machine], RUNNER)
        program = path.read_bytes()
        self._files[RUNNER] = program
        self._send(RUNNER, program)
        first = self._run(["digest"], before=f"chmod 700 {RUNNER}")
        if first.status:
            text = f"{path.parent.name}/{RUNNER} does not run there: "
            text += last_line(first.said)
            text = STATUSES.get(first.status, text)
            raise SetupError(f"{self.name}: {text}")

    def _send(self, name: str, data: bytes) -> None:
        answer = self._link.send(f"{self._folder}/{name}", data)
        if answer.status:
            said = last_line(answer.said)
            full = "No space left" in answer.said or "quota" in answer.said
            more = f"; {NOWHERE['full']}" if full else ""
            raise SetupError(f"{self.name}: {name} cannot be copied: {said}{more}")

    def stop(self) -> None:
        """End what another thread waits for, which then raises SetupError."""
        self._stopped.set()
        self._link.stop()

    def close(self) -> None:
        """Remove all from the machine; closing twice is allowed."""
        self.stop()
        with self._lock, contextlib.suppress(LostError, SetupError):
            folder, self._folder = self._folder, ""
            if folder:
                self._remove(folder)
        with contextlib.suppress(LostError, SetupError):
            self._link.close()

    def _remove(self, folder: str) -> None:
        """Remove the folder, with one more try to get there."""
        line = f"rm -rf {shlex.quote(folder)}"
        try:
            self._link.execute(line, last=True)
        except LostError:
            self._link.connect(last=True)
            self._link.execute(line, last=True)


def opening(path: str, isa: str | None, max_bytes: int | None) -> list[str]:
    """Words for the runner: a model, and how to open it, as Model.open has it."""
    words = [path]
    words += [] if isa is None else ["--isa", isa.lower()]
    return words + ([] if max_bytes is None else ["--max-bytes", str(max_bytes)])


def digest(data: bytes) -> list[int]:
    """Size and CRC-32, as the runner tells them."""
    return [len(data), zlib.crc32(data)]


def parsed(name: str, out: bytes) -> dict[str, Any]:
    """A JSON object of the runner.  SetupError: it is none."""
    try:
        found = json.loads(out)
    except ValueError as error:
        raise SetupError(f"{name}: the runner's answer is damaged") from error
    if not isinstance(found, dict):
        raise SetupError(f"{name}: the runner's answer is damaged")
    return found


def online(facts: Mapping[str, Any]) -> list[int]:
    """The numbers of the processors that run."""
    return [each["cpu"] for each in facts["cores"] if each.get("online", "1") != "0"]


def link_to(target: str, core: str) -> Link:
    """The way to a target, as TargetSettings has it.  SetupError: a tool is missing."""
    if target in EMULATIONS:
        return Here(target, _runner(target), (qemu_for(target), "-cpu", core))
    if target == NATIVE:
        return Here(NATIVE, _runner(NATIVE))
    host = ssh_host(target)
    return Adb(serial_of(target)) if host is None else Ssh(*host)


def _runner(target: str) -> Path:
    """The program: of a checkout, where `make` refreshes it, or of a wheel."""
    if not (CHECKOUT / "cross").is_dir():
        machine = platform.machine() if target == NATIVE else target
        return prebuilt_file(BUILDS.get(machine, f"linux-{machine}"), RUNNER)
    path = CHECKOUT / "build" / target / RUNNER
    if not path.is_file():
        raise SetupError(f"{path} is missing; run 'make {target}'")
    return path
