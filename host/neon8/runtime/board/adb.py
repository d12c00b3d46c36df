# SPDX-License-Identifier: Apache-2.0
"""An Android device by the system's adb.

Its shell is no channel for bytes on every version of Android, so standard input, output
and error are files beside the folder of the run, which are pushed and pulled.
"""

import os
from pathlib import Path

from neon8.errors import SetupError
from neon8.runtime.board.link import (
    Answer,
    Calls,
    LostError,
    last_line,
    private_folder,
    program,
    remedy,
)

FOLDER = "/data/local/tmp"
STATUS = "neon8-status "
REMEDIES = {
    "unauthorized": "allow USB debugging on its screen",
    "more than one": "say which as adb:SERIAL; `adb devices` lists them",
    "no devices": "connect it and allow USB debugging; see `adb devices`",
    "not found": "`adb devices` lists what is there",
    "offline": "unplug it and plug it in again, or run `adb reconnect`",
    "no permissions": "give this user the USB device, by a udev rule",
}


class Adb:
    """A device; serial: "" for the only one."""

    runner: Path | None = None
    prefix: tuple[str, ...] = ()

    def __init__(self, serial: str) -> None:
        """SetupError: there is no adb."""
        self.name = f"adb:{serial}" if serial else "adb"
        adb = program("adb", "adb, or in Android's platform tools")
        self._adb = [adb, *(["-s", serial] if serial else [])]
        self._calls = Calls()
        self._folder = private_folder()
        self._there = f"{FOLDER}/neon8-{os.urandom(4).hex()}"
        self._been_there = False

    def connect(self, *, last: bool = False) -> None:
        """See that it is there."""
        found = self._run("get-state", last=last)
        if found.status == 0 and found.out.strip() == b"device":
            self._been_there = True
            return
        said = found.said or found.out.decode(errors="replace")
        text = f"{self.name}: {last_line(said)}"
        if self._been_there:
            raise LostError(text)
        raise SetupError(text + remedy(said, REMEDIES))

    def execute(
        self, command: str, given: bytes = b"", *, last: bool = False
    ) -> Answer:
        """As Link says."""
        source = "/dev/null"
        if given:
            source = f"{self._there}.in"
            sent = self.send(source, given)
            if sent.status:
                return sent
        out, said = f"{self._there}.out", f"{self._there}.err"
        line = f"( {command}\n) <{source} >{out} 2>{said}; echo {STATUS}$?; cat {said}"
        found = self._run("shell", line, last=last)
        head, mark, rest = found.out.decode(errors="replace").partition(STATUS)
        status, _, words = rest.partition("\n")
        if not mark or not status.strip().isdigit():
            raise LostError(last_line(found.said or head))
        here = Path(self._folder.name) / "out"
        pulled = self._run("pull", out, str(here), last=last)
        if pulled.status:
            raise LostError(last_line(pulled.said))
        return Answer(int(status), here.read_bytes(), words)

    def send(self, path: str, data: bytes) -> Answer:
        """As Link says."""
        here = Path(self._folder.name) / "in"
        here.write_bytes(data)
        found = self._run("push", str(here), path)
        said = found.said + found.out.decode(errors="replace")
        if found.status and remedy(said, REMEDIES):
            raise LostError(last_line(said))
        return Answer(found.status, b"", said)

    def _run(self, *words: str, last: bool = False) -> Answer:
        return self._calls.run([*self._adb, *words], last=last)

    def stop(self) -> None:
        """As Link says."""
        self._calls.stop()

    def close(self) -> None:
        """As Link says."""
        self._run("shell", f"rm -f {self._there}.*", last=True)
        self._folder.cleanup()
