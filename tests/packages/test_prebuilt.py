# SPDX-License-Identifier: Apache-2.0
"""The libraries for other machines in build/prebuilt, which `make prebuilt` made."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

from neon8.prebuilt import prebuilt_file

ROOT = Path(__file__).resolve().parents[2]
MACHINES = ("x86_64", "aarch64", "armv7")
GLIBC = (2, 17)
"""The oldest that has what the library calls, and on which wheels must run."""


def glibc_versions(path: Path) -> set[tuple[int, ...]]:
    with path.open("rb") as file:
        sections = [
            section
            for section in ELFFile(file).iter_sections()
            if isinstance(section, GNUVerNeedSection)
        ]
        names = [
            version.name
            for section in sections
            for _, versions in section.iter_versions()
            for version in versions
        ]
    return {
        tuple(map(int, name.removeprefix("GLIBC_").split(".")))
        for name in names
        if re.fullmatch(r"GLIBC_[0-9.]+", name)
    }


@pytest.mark.parametrize("machine", MACHINES)
def test_an_old_c_library_is_enough(machine):
    versions = glibc_versions(prebuilt_file(f"linux-{machine}", "libneon8.so"))
    assert versions
    assert max(versions) <= GLIBC


@pytest.mark.parametrize("machine", MACHINES)
def test_gives_the_bytes_of_other_builds(machine):
    """The models of tests/golden, whose results are kept."""
    library = ROOT / "build" / f"linux-{machine}" / "libneon8.so"
    shipped = prebuilt_file(f"linux-{machine}", library.name)
    assert shipped.read_bytes() == library.read_bytes()
    python = [sys.executable]
    if machine != "x86_64":
        root = ROOT / "build" / "sysroot" / machine
        python = [str(ROOT / "cross" / f"run-{machine}"), f"{root}/usr/bin/python3"]
    env = os.environ | {"N8_LIBRARY": str(library), "PYTHONPATH": str(ROOT / "host")}
    tests = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/e2e/test_golden.py")
    done = subprocess.run(
        [*python, *tests],
        cwd=ROOT,
        env=env,
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("machine", MACHINES)
def test_a_program_needs_nothing_but_the_kernel(machine):
    runner = prebuilt_file(f"linux-{machine}", "neon8-runner")
    with runner.open("rb") as file:
        kinds = {segment["p_type"] for segment in ELFFile(file).iter_segments()}
    assert not kinds & {"PT_INTERP", "PT_DYNAMIC"}
    qemu = {"x86_64": [], "aarch64": ["qemu-aarch64"], "armv7": ["qemu-arm"]}[machine]
    said = subprocess.check_output([*qemu, runner, "facts"], text=True)
    assert json.loads(said)["bits"] == (32 if machine == "armv7" else 64)


@pytest.mark.parametrize("machine", MACHINES)
def test_has_what_static_programs_link(machine):
    for name in ("libneon8.a", "libneon8-musl.a"):
        assert prebuilt_file(f"linux-{machine}", name).stat().st_size > 100_000
