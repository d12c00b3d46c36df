# SPDX-License-Identifier: Apache-2.0
"""A board by the system's ssh, with the user's own configuration, keys and agent.

One connection is made and shared by all commands. No password is asked for.
"""

import shlex
import subprocess
import tempfile
import time
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

OPTIONS = (
    *("-T", "-o", "BatchMode=yes", "-o", "RemoteCommand=none"),
    *("-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=5"),
    *("-o", "ServerAliveCountMax=3", "-o", "LogLevel=ERROR"),
)
LOGIN_SECONDS = 60
POLL_SECONDS = 0.01
LOST = 255
"""The status of ssh itself."""

REFUSED = {
    "Host key verification failed": (
        "its key is not known here, or has changed: run `ssh {host}` once and check it"
    ),
    "Permission denied": (
        "it takes none of your keys: run `ssh-copy-id {host}`, or unlock the key by "
        "`ssh-add`"
    ),
    "Could not resolve hostname": "check the name, or ~/.ssh/config",
    "Bad owner or permissions": "correct them",
}
"""What does not go away by itself."""
ABSENT = {
    "Connection refused": "is sshd running there, at this port?",
    "timed out": "is it on, and in this network?",
    "No route to host": "is it on, and in this network?",
    "Connection closed": "does its sshd let this user in?",
}


class Ssh:
    """A connection to user@host."""

    runner: Path | None = None
    prefix: tuple[str, ...] = ()

    def __init__(self, host: str, port: int | None) -> None:
        """host: [user@]host.  SetupError: there is no ssh."""
        self.name = f"ssh:{host}" + ("" if port is None else f":{port}")
        self._host = host
        self._port = () if port is None else ("-p", str(port))
        self._ssh = program("ssh", "openssh-client")
        self._calls = Calls()
        self._folder = private_folder()
        self._socket = Path(self._folder.name) / "socket"
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 (closed by close)
        self._master: subprocess.Popen[bytes] | None = None
        self._been_there = False

    def connect(self, *, last: bool = False) -> None:
        """Log in.  LostError: it was there before, or answers later."""
        self._end()
        self._said.seek(0)
        self._said.truncate()
        self._master = subprocess.Popen(  # noqa: S603 (no shell, our own words)
            self._words("-M", "-N"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._said,
            start_new_session=True,  # Ctrl-C is for us, who clean up by it
        )
        until = time.monotonic() + LOGIN_SECONDS
        while not self._socket.exists():
            if self._master.poll() is not None:
                raise self._failure()
            time.sleep(POLL_SECONDS)
            stopped = self._calls.stopped.is_set() and not last
            if stopped or time.monotonic() > until:
                self._end()
                raise LostError("no answer to the login")
        self._been_there = True

    def _failure(self) -> Exception:
        """Why there is no connection."""
        self._said.seek(0)
        said = self._said.read().decode(errors="replace")
        text = f"{self.name}: {last_line(said)}"
        refused = remedy(said, REFUSED).format(host=self._host)
        if refused or not self._been_there:
            return SetupError(text + (refused or remedy(said, ABSENT)))
        return LostError(text)

    def _words(self, *more: str) -> list[str]:
        words = [self._ssh, *OPTIONS, *self._port, "-S", str(self._socket)]
        return [*words, *more, "--", self._host]

    def execute(
        self, command: str, given: bytes = b"", *, last: bool = False
    ) -> Answer:
        """As Link says."""
        if self._master is None or self._master.poll() is not None:
            raise LostError("the connection has ended")
        # A shell that stays tells signals and 255 from the end of the connection.
        line = f"{command}\nexit $(($? < {LOST} ? $? : 1))"
        words = self._words("-o", "ControlMaster=no")
        words.append(f"sh -c {shlex.quote(line)}")
        found = self._calls.run(words, given, last=last)
        if found.status == LOST:
            raise LostError(last_line(found.said))
        return found

    def send(self, path: str, data: bytes) -> Answer:
        """As Link says."""
        return self.execute(f"cat >{shlex.quote(path)}", data)

    def stop(self) -> None:
        """As Link says.  The connection, which holds on to what runs, ends, too."""
        self._calls.stop()
        master = self._master
        if master is not None:
            master.terminate()

    def _end(self) -> None:
        """End the connection; waits, so that its socket is gone."""
        if self._master is not None:
            self._master.terminate()
            self._master.wait()
            self._master = None
        self._socket.unlink(missing_ok=True)

    def close(self) -> None:
        """As Link says."""
        self._end()
        self._said.close()
        self._folder.cleanup()
