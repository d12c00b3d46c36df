# SPDX-License-Identifier: Apache-2.0
"""Compilers and emulators of this machine."""

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from neon8.errors import SetupError
from neon8.prebuilt import prebuilt_file

SAME = "the bytes of this PC"
SECONDS = 600
LINES = 20
"""How much of the output of a command that failed is shown."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A target that runs Linux.

    triplet: of its compiler and of the folder of its system's files.  zig: as Zig calls
    it, of the C library that follows.  qemu: what emulates it.  debian: as Debian calls
    it.
    """

    triplet: str
    zig: str
    qemu: str
    debian: str

    @property
    def gcc(self) -> str:
        """The command of its compiler."""
        return f"{self.triplet}-gcc"


MACHINES = {
    "linux-x86_64": Machine(
        *("x86_64-linux-gnu", "x86_64-linux-{}", "qemu-x86_64", "amd64")
    ),
    "linux-aarch64": Machine(
        *("aarch64-linux-gnu", "aarch64-linux-{}", "qemu-aarch64", "arm64")
    ),
    "linux-armv7": Machine(
        *("arm-linux-gnueabihf", "arm-linux-{}eabihf", "qemu-arm", "armhf")
    ),
}
LINUX = tuple(MACHINES)


def native(target: str) -> bool:
    """True if it is what runs here."""
    return target == f"linux-{platform.machine()}" and platform.system() == "Linux"


def compiler(target: str) -> str:
    """The system's command that compiles C for a target."""
    return "cc" if native(target) else MACHINES[target].gcc


def emulator(target: str) -> list[str]:
    """The command before a program for a target, with its system's libraries."""
    if native(target):
        return []
    machine = MACHINES[target]
    return [machine.qemu, "-L", f"/usr/{machine.triplet}"]


def lack(target: str, *tools: str) -> str:
    """What this machine lacks of tools and to run a target, "" for nothing."""
    missing = [t for t in (*tools, *emulator(target)[:1]) if shutil.which(t) is None]
    return f"there is no {' and no '.join(missing)} here" if missing else ""


def program(
    files: Mapping[str, str], target: str, output: Path, *, static: bool
) -> None:
    """Compile C to a program by Zig, if Python has it, else by the system's compiler.

    static: with all it needs, for any Linux; otherwise libneon8.so is found where it
    runs.
    """
    if importlib.util.find_spec("ziglang") is not None:
        libc = "musl" if static else "gnu"
        triple = MACHINES[target].zig.format(libc) + ("" if static else ".2.17")
        command = [sys.executable, "-m", "ziglang", "cc", "-target", triple]
        archive = "libneon8-musl.a"
    elif shutil.which(compiler(target)):
        command, archive = [compiler(target)], "libneon8.a"
    else:
        remedy = f"pip install ziglang, or install {MACHINES[target].gcc}"
        raise SetupError(f"{target}: no compiler for it is here; {remedy}")
    library = prebuilt_file(target, archive if static else "libneon8.so")
    header = prebuilt_file("include", "neon8.h")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
        shutil.copy(header, folder)
        shutil.copy(library, folder / library.name)
        command += ["-std=c11", "-O2", "-s", *(["-static"] if static else [])]
        command += ["-Wl,--build-id=none", "-o", str(output.resolve()), *files]
        run(target, *command, library.name, "-lm", "-lpthread", cwd=folder)


def run(
    what: str,
    *command: str | PathLike[str],
    cwd: Path | None = None,
    variables: Mapping[str, str] | None = None,
) -> str:
    """Run a command and return what it prints.  SetupError: it fails.

    what: is made or checked by it, for the error.  variables: of the environment.
    """
    words = [str(each) for each in command]
    environment = {**os.environ, "LC_ALL": "C.UTF-8", **(variables or {})}
    try:
        done = subprocess.run(  # noqa: S603 - compilers, and what they made
            words, capture_output=True, text=True, check=False, timeout=SECONDS,
            errors="replace", cwd=cwd, env=environment,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SetupError(f"{what}: {words[0]} does not run: {error}") from error
    if done.returncode:
        lines = (done.stdout + done.stderr).strip().splitlines()
        text = f"{what}: {Path(words[0]).name} failed with status {done.returncode}"
        raise SetupError(f"{text}; the package was not written", lines[-LINES:])
    return done.stdout
