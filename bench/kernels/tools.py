# SPDX-License-Identifier: Apache-2.0
"""The programs that do the work, and what versions of them there are."""

import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

LLVM = 19
"""The version whose models were looked into; see mca.py."""


class BenchError(Exception):
    """What the user is told: a line, or what a tool printed."""


def run(*command: str | Path, source: str | None = None) -> str:
    """What a command prints when it reads `source`.  BenchError: missing or failed."""
    try:
        done = subprocess.run(
            command, input=source, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        text = f"{command[0]} is missing; `make bench-kernels` installs what it needs"
        raise BenchError(text) from None
    if done.returncode:
        words = " ".join(map(str, command))
        raise BenchError(f"{words}\n{done.stdout}{done.stderr}".rstrip())
    return done.stdout


def version(command: str) -> str:
    """The first number with points that `command --version` prints."""
    text = run(command, "--version")
    if not (found := re.search(r"\d+(\.\d+)+", text)):
        raise BenchError(f"{command} --version prints {text.strip()!r}, no version")
    return found[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """Commands, and versions by the names that people know."""

    llvm_mca: str
    llvm_objdump: str
    versions: dict[str, str]

    @property
    def other_llvm(self) -> str:
        """What to say where LLVM is not the one that was looked into, or nothing."""
        found = self.versions["LLVM"]
        if found.startswith(f"{LLVM}."):
            return ""
        return (
            f"LLVM {found} is not {LLVM}, whose models were looked into: figures of "
            "Cortex-A76 and Neoverse N2 compare with those of no other version."
        )


def find(others: Iterable[str]) -> Tools:
    """Those of this machine: of LLVM the version LLVM if it is there, else the default.

    others: commands of which only the versions are wanted.  BenchError: one is missing.
    """
    suffix = f"-{LLVM}" if shutil.which(f"llvm-mca-{LLVM}") else ""
    llvm_mca = f"llvm-mca{suffix}"
    return Tools(
        llvm_mca=llvm_mca,
        llvm_objdump=f"llvm-objdump{suffix}",
        versions={
            **{command: version(command) for command in others},
            "LLVM": version(llvm_mca),
        },
    )
