# SPDX-License-Identifier: Apache-2.0
"""Boards that are none: a real sshd on this machine, and a stand-in of adb.

The sshd has keys and settings of its own and runs as the current user. Each command
goes through a shell that answers `uname -m` as a board does, and has qemu run the ARM
runner. A test may leave a `hook` there, which the shell reads before each command.

The stand-in of adb does what the real command line documents for get-state, push, pull
and shell, with this machine for a device; it shows that neon8 calls it rightly, not
that a device behaves so.
"""

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
MACHINES = {"aarch64": "qemu-aarch64", "armv7l": "qemu-arm"}
SSHD = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")

SHELL = """#!/bin/sh
export PATH={bin}:$PATH TMPDIR={board} HOME={board}
command=$(printf '%s' "$SSH_ORIGINAL_COMMAND" |
    sed "s#[.]/neon8-runner#$(cat {folder}/qemu) ./neon8-runner#g")
printf '%s\\n' "$command" >>{folder}/log
[ ! -e {folder}/hook ] || . {folder}/hook
exec sh -c "$command"
"""

ADB = """#!/bin/sh
[ "$1" = -s ] && {{ serial=$2; shift 2; }}
case ${{serial:-}} in "" | board) ;; *)
    echo "adb: device '$serial' not found" >&2; exit 1 ;;
esac
command=$1; shift
export PATH={bin}:$PATH TMPDIR={board} HOME={board}
here() {{ printf '%s' "$1" | sed "s#/data/local/tmp#{board}#g"; }}
[ ! -e {folder}/hook ] || . {folder}/hook
case $command in
get-state) echo device ;;
push) cp "$1" "$(here "$2")" && echo "$1: 1 file pushed" ;;
pull) cp "$(here "$1")" "$2" && echo "$1: 1 file pulled" ;;
shell)
    line=$(here "$*" | sed "s#[.]/neon8-runner#$(cat {folder}/qemu) ./neon8-runner#g")
    printf '%s\\n' "$line" >>{folder}/log
    sh -c "$line" ;;
*) echo "adb: unknown command $command" >&2; exit 1 ;;
esac
"""


@dataclass
class FakeBoard:
    """A board of this machine.  target: as --target has it.

    place: where neon8 makes its folder; log: the commands that were run there.
    """

    target: str
    folder: Path

    @property
    def place(self) -> Path:
        return self.folder / "board"

    def log(self) -> str:
        path = self.folder / "log"
        return path.read_text() if path.exists() else ""

    def runs(self) -> int:
        """How often the runner was told to run a batch that has samples."""
        return self.log().count("neon8-runner run ")

    def hook(self, text: str) -> None:
        """Have the shell do this before each command; "" for nothing."""
        hook = self.folder / "hook"
        hook.with_suffix(".new").write_text(text + "\n")
        hook.with_suffix(".new").replace(hook)

    def machine(self, name: str) -> None:
        """Answer so to `uname -m`, and emulate that."""
        (self.folder / "machine").write_text(name)
        (self.folder / "qemu").write_text(MACHINES.get(name, ""))

    def left(self) -> list[str]:
        """What is still there."""
        return sorted(each.name for each in self.place.iterdir())


def made(folder: Path, target: str) -> FakeBoard:
    """With `uname`."""
    (folder / "bin").mkdir()
    (folder / "board").mkdir()
    script(folder / "bin" / "uname", f"#!/bin/sh\ncat {folder}/machine; echo\n")
    board = FakeBoard(target, folder)
    board.machine("aarch64")
    return board


def script(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o700)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def sshd(tmp_path_factory):
    """The folder of an sshd, which has its port in a file."""
    assert SSHD, "sshd is missing: run cross/setup.sh sshd:openssh-server"
    folder = tmp_path_factory.mktemp("sshd")
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    for key in ("host", "user", "stranger"):
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key]
        subprocess.run(words, check=True)
    shutil.copy(folder / "user.pub", folder / "authorized")
    port = free_port()
    settings = [
        f"Port {port}",
        "ListenAddress 127.0.0.1",
        f"HostKey {folder}/host",
        f"AuthorizedKeysFile {folder}/authorized",
        f"PidFile {folder}/pid",
        "StrictModes no",
        "PermitRootLogin yes",
        "PasswordAuthentication no",
        "MaxStartups 100",
        f"ForceCommand {folder}/shell",
    ]
    (folder / "sshd_config").write_text("\n".join([*settings, ""]))
    script(
        folder / "shell",
        SHELL.format(bin=folder / "bin", board=folder / "board", folder=folder),
    )
    with (folder / "said").open("wb") as said:
        # Not for ever, should these tests be killed.
        words = ["timeout", "1800", SSHD, "-D", "-e", "-f", folder / "sshd_config"]
        server = subprocess.Popen(words, stderr=said, start_new_session=True)
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", port)),
        ):
            break
        assert server.poll() is None, (folder / "said").read_text()
        time.sleep(0.02)
    (folder / "port").write_text(str(port))
    key = (folder / "host.pub").read_text()
    (folder / "known").write_text(f"[127.0.0.1]:{port} {key}")
    made(folder, "")
    yield folder
    os.killpg(server.pid, signal.SIGKILL)
    server.wait()


@pytest.fixture
def ssh_board(sshd, tmp_path, monkeypatch):
    """A board by ssh; a test may change `client`, the settings of ssh."""
    (sshd / "log").unlink(missing_ok=True)
    board = FakeBoard("ssh:board", sshd)
    board.hook("")
    board.machine("aarch64")
    (tmp_path / "client").write_text(
        f"Host board\nHostName 127.0.0.1\nPort {(sshd / 'port').read_text()}\n"
        f"User {getpass.getuser()}\nIdentityFile {sshd}/user\nIdentitiesOnly yes\n"
        f"UserKnownHostsFile {sshd}/known\nStrictHostKeyChecking yes\n"
    )
    (tmp_path / "bin").mkdir()
    real = shutil.which("ssh")
    script(
        tmp_path / "bin" / "ssh",
        f'#!/bin/sh\nexec {real} -F {tmp_path}/client "$@"\n',
    )
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    yield board
    assert board.left() == [], "the board was not cleaned up"


@pytest.fixture
def adb_board(tmp_path, monkeypatch):
    """A device by the stand-in of adb."""
    board = made(tmp_path, "adb:board")
    (tmp_path / "tools").mkdir()
    script(
        tmp_path / "tools" / "adb",
        ADB.format(bin=tmp_path / "bin", board=tmp_path / "board", folder=tmp_path),
    )
    monkeypatch.setenv("PATH", f"{tmp_path}/tools:{os.environ['PATH']}")
    yield board
    assert board.left() == [], "the device was not cleaned up"
