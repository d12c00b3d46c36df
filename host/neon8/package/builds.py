# SPDX-License-Identifier: Apache-2.0
"""Compilers and emulators of this machine, for the check of a package."""

import platform
import shutil
import subprocess
from os import PathLike

from neon8.errors import SetupError

SAME = "the bytes of this PC"
SECONDS = 600
COMPILERS = {
    "linux-x86_64": "x86_64-linux-gnu-gcc",
    "linux-aarch64": "aarch64-linux-gnu-gcc",
    "linux-armv7": "arm-linux-gnueabihf-gcc",
}
EMULATORS = {
    "linux-x86_64": ("qemu-x86_64", "/usr/x86_64-linux-gnu"),
    "linux-aarch64": ("qemu-aarch64", "/usr/aarch64-linux-gnu"),
    "linux-armv7": ("qemu-arm", "/usr/arm-linux-gnueabihf"),
}


def native(target: str) -> bool:
    """True if it is what runs here."""
    return target == f"linux-{platform.machine()}" and platform.system() == "Linux"


def compiler(target: str) -> str:
    """The command that compiles C for a target."""
    return "cc" if native(target) else COMPILERS[target]


def emulator(target: str) -> list[str]:
    """The command before a program for a target, with its system's libraries."""
    if native(target):
        return []
    command, root = EMULATORS[target]
    return [command, "-L", root]


def lack(target: str, *tools: str, compiles: bool = True) -> str:
    """What this machine lacks to build and run for a target, "" for nothing."""
    if target not in COMPILERS:
        return "it does not run on a PC"
    needed = [*tools, *([compiler(target)] if compiles else []), *emulator(target)[:1]]
    missing = [tool for tool in needed if shutil.which(tool) is None]
    return f"there is no {' and no '.join(missing)} here" if missing else ""


def run(what: str, *command: str | PathLike[str]) -> str:
    """Run a command and return what it prints.  SetupError: it fails.

    what: is checked by it, for the error.
    """
    words = [str(each) for each in command]
    try:
        done = subprocess.run(  # noqa: S603 - compilers, and what they made
            words, capture_output=True, text=True, check=False, timeout=SECONDS,
            errors="replace",
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SetupError(f"{what}: {words[0]} does not run: {error}") from error
    if done.returncode:
        lines = (done.stdout + done.stderr).strip().splitlines()
        text = f"{what}: {words[0]} failed with status {done.returncode}"
        remedy = "the package was not written; --no-check writes it all the same"
        raise SetupError(f"{text}; {remedy}", lines[-LINES:])
    return done.stdout


LINES = 20
"""Of the output of a command that failed."""
