# SPDX-License-Identifier: Apache-2.0
"""What several commands do with their arguments."""

import argparse
from pathlib import Path

from neon8.errors import DataError, SetupError


def check_output(output: Path, *inputs: Path | None) -> None:
    """SetupError, before any work is done, for an output that cannot be meant.

    A folder that is missing, a folder in the file's place, or one of the inputs, which
    are None where the user gave none.
    """
    if not output.parent.is_dir():
        raise SetupError(f"{output}: no folder {str(output.parent)!r}; create it first")
    if output.is_dir():
        raise SetupError(f"{output}: is a folder; name a file in it")
    for path in filter(None, inputs):
        known = output.exists() and path.exists()
        if known and output.samefile(path):
            raise SetupError(f"{output}: is an input; name another file to write")


def cpu_of(arguments: argparse.Namespace) -> str:
    """The core of --cpu, which only means something under emulation."""
    if arguments.cpu is not None and arguments.target != "aarch64":
        raise DataError(
            f"--cpu {arguments.cpu} is a core that qemu imitates: add --target aarch64"
        )
    return arguments.cpu or "max"
