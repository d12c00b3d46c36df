# SPDX-License-Identifier: Apache-2.0
"""The cross-built libraries, and compilers for the bad objects of the self-tests."""

import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest
from machines import MACHINES

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session", params=MACHINES, ids=lambda machine: machine.name)
def machine(request):
    return request.param


@pytest.fixture(scope="session")
def build(machine) -> Path:
    """The folder of the cross build."""
    folder = ROOT / "build" / machine.name
    assert (folder / "libneon8.so").exists(), f"run `make {machine.name}` first"
    return folder


@pytest.fixture(scope="session")
def extract(tmp_path_factory):
    """extract(machine, build) unpacks the libneon8.a of a build; returns the objects.

    Once for all tests, in whatever order those of several machines run. Objects of one
    name, from different rooms of runtime/, are in different folders.
    """

    @cache
    def extract_(machine, build: Path) -> list[Path]:
        archive = build / "libneon8.a"
        ar = machine.tool("ar")
        names = subprocess.check_output([ar, "t", archive], text=True).split()
        found: list[Path] = []
        for instance in range(1, max(map(names.count, names)) + 1):
            folder = tmp_path_factory.mktemp(build.name)
            present = {name for name in names if names.count(name) >= instance}
            command = [ar, "xN", str(instance), archive, *present]
            subprocess.run(command, cwd=folder, check=True)
            found += sorted(folder.iterdir())
        assert len(found) == len(names)
        return found

    return extract_


@pytest.fixture(scope="session")
def objects(machine, build, extract) -> list[Path]:
    """Those in libneon8.a."""
    return extract(machine, build)


@pytest.fixture(scope="session")
def by_clang(machine, extract) -> list[Path]:
    """The same, compiled and assembled by Clang."""
    folder = ROOT / "build" / f"linux-{machine.name}-musl"
    assert (folder / "libneon8.a").exists(), "run `make prebuilt` first"
    return extract(machine, folder)


@pytest.fixture
def cross(machine, tmp_path):
    """cross(source, *flags, language="c") compiles for it; returns the file."""

    def compile_(source: str, *flags: str, language: str = "c") -> Path:
        path = Path(tempfile.mkdtemp(dir=tmp_path), "bad")
        subprocess.run(
            [machine.tool("gcc"), "-x", language, "-", "-o", path, *flags],
            input=source,
            text=True,
            check=True,
        )
        return path

    return compile_
