# SPDX-License-Identifier: Apache-2.0
"""The libraries and programs for other machines that `make prebuilt` made.

A wheel carries them in the package, a checkout has them in build/prebuilt.
"""

from pathlib import Path

from neon8.errors import SetupError

PACKAGE = Path(__file__).resolve().parent

TARGETS = (
    "linux-x86_64",
    "linux-aarch64",
    "linux-armv7",
    "android-aarch64",
    "android-armv7",
)
HEADERS = "include"
"""Where the headers of all targets are, in the place of a target."""
JARS = "java"
"""And the Java classes."""


def prebuilt_file(target: str, name: str) -> Path:
    """The file of that name for one of TARGETS, or HEADERS or JARS.

    SetupError: no such target, or the file is not there.
    """
    if target not in (*TARGETS, HEADERS, JARS):
        raise SetupError(
            f"no libraries are made for {target!r}, but for {', '.join(TARGETS)}"
        )
    folders = (PACKAGE / "prebuilt", PACKAGE.parents[1] / "build" / "prebuilt")
    for folder in folders:
        path = folder / target / name
        if path.is_file():
            return path
    raise SetupError(
        f"{target}/{name} is neither in {folders[0]} nor in {folders[1]}; run 'make "
        "prebuilt' in a checkout of neon8, or install the wheel for a computer"
    )
