# SPDX-License-Identifier: Apache-2.0
"""Fetches musl's C library for x86-64 and AArch64 from Debian, in build/sysroot/musl-*.

Programs that are linked with it dynamically, as those of Alpine are, run by its loader.
"""

import shutil
import sys

from sysroot import (
    SYSROOTS,
    Machine,
    StepError,
    download_packages,
    unpack_packages,
)

MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


def make(name: str) -> None:
    """Unpacks it unless it is there."""
    root = SYSROOTS / f"musl-{name}"
    if root.exists():
        return
    work = SYSROOTS / f"musl-{name}.new"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    machine = Machine(name, MACHINES[name], "", ("musl",), (), megabytes=1)
    packages = download_packages(machine, work)
    unpack_packages(packages, work / "root")
    (work / "root").rename(root)
    shutil.rmtree(work)


if __name__ == "__main__":
    try:
        for name in MACHINES:
            make(name)
    except StepError as error:
        print(f"musl: {error}", file=sys.stderr)
        sys.exit(1)
