# SPDX-License-Identifier: Apache-2.0
"""The libraries for other machines in build/prebuilt, which `make prebuilt` made."""

import json
import os
import re
import subprocess
import sys

import pytest
from consumer import CONSUMER, ROOT, assert_runs, run, symbol_versions
from elftools.elf.elffile import ELFFile

from neon8.prebuilt import HEADERS, prebuilt_file
from processes import ran

MACHINES = ("x86_64", "aarch64", "armv7")
QEMU = {"x86_64": [], "aarch64": ["qemu-aarch64"], "arm": ["qemu-arm"]}
GLIBC = (2, 17)
"""The oldest that has what the library calls, and on which wheels must run."""


@pytest.mark.parametrize("machine", MACHINES)
def test_an_old_c_library_is_enough(machine):
    names = symbol_versions(prebuilt_file(f"linux-{machine}", "libneon8.so"))
    found = [re.fullmatch(r"GLIBC_([0-9.]+)", name) for name in names]
    versions = {tuple(map(int, each[1].split("."))) for each in found if each}
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
    done = ran(*python, *tests, cwd=ROOT, env=env)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("machine", MACHINES)
def test_a_program_needs_nothing_but_the_kernel(machine):
    runner = prebuilt_file(f"linux-{machine}", "neon8-runner")
    with runner.open("rb") as file:
        kinds = {segment["p_type"] for segment in ELFFile(file).iter_segments()}
    assert not kinds & {"PT_INTERP", "PT_DYNAMIC"}
    qemu = QEMU[machine.removesuffix("v7")]
    said = subprocess.check_output([*qemu, runner, "facts"], text=True)
    assert json.loads(said)["bits"] == (32 if machine == "armv7" else 64)


@pytest.mark.parametrize(
    ("target", "name", "machine"),
    [
        ("linux-x86_64", "libneon8-musl.a", "x86_64-linux-musl"),
        ("linux-aarch64", "libneon8-musl.a", "aarch64-linux-musl"),
        ("linux-armv7", "libneon8-musl.a", "arm-linux-musleabihf"),
        # Android and musl lay out on 64 bits what the library uses of either alike.
        ("android-aarch64", "libneon8.a", "aarch64-linux-musl"),
    ],
)
def test_a_static_program_gives_the_same_bytes(target, name, machine, tmp_path):
    program = tmp_path / "program"
    # Stripped and not from ROOT, as the runner was linked, or Zig makes musl anew.
    options = ("-static", "-s", "-O2")
    compiler = (ROOT / "cross" / "zig-cc", f"--target={machine}", *options)
    include = prebuilt_file(HEADERS, "neon8.h").parent
    library = prebuilt_file(target, name)
    files = ("-I", include, CONSUMER / "main.c", library, "-o", program)
    run(*compiler, *files, cwd=tmp_path)
    assert_runs(tmp_path, *QEMU[machine.partition("-")[0]], program)
