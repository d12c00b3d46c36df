# SPDX-License-Identifier: Apache-2.0
"""The cross-built libraries, and compilers for the bad objects of the self-tests."""

import subprocess
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
def extract(machine, tmp_path_factory):
    """extract(build) unpacks the libneon8.a of a build; returns the objects.

    Those of one name, from different rooms of runtime/, are in different folders.
    """

    def extract_(build: Path) -> list[Path]:
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
def objects(build, extract) -> list[Path]:
    """Those in libneon8.a."""
    return extract(build)


@pytest.fixture(scope="session")
def by_clang(machine, extract) -> list[Path]:
    """The same, compiled and assembled by Clang."""
    folder = ROOT / "build" / f"{machine.name}-clang"
    assert (folder / "libneon8.a").exists(), f"run `make {folder.name}` first"
    return extract(folder)


@pytest.fixture
def cross(machine, tmp_path):
    """cross(source, *flags, language="c") compiles for it; returns the file."""

    def compile_(source: str, *flags: str, language: str = "c") -> Path:
        path = tmp_path / "bad"
        subprocess.run(
            [machine.tool("gcc"), "-x", language, "-", "-o", path, *flags],
            input=source,
            text=True,
            check=True,
        )
        return path

    return compile_
