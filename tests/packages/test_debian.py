# SPDX-License-Identifier: Apache-2.0
"""The Debian packages of what `make prebuilt` built: what is in them, and they work.

They are unpacked beside the C library of the emulated machine, and a program is built
against them there and run.
"""

import os
import re
import shutil
from dataclasses import dataclass

import pytest
from consumer import CONSUMER, ROOT, assert_runs, run

from neon8.version import __version__

VERSION = f"{__version__}-1"


@dataclass(frozen=True)
class Debian:
    """name: of the machine; its architecture and triplet as Debian calls them."""

    name: str
    architecture: str
    triplet: str
    compiler: str

    @property
    def runner(self):
        """What runs its programs."""
        return [] if self.name == "x86_64" else [ROOT / "cross" / f"run-{self.name}"]


MACHINES = [
    Debian("x86_64", "amd64", "x86_64-linux-gnu", "gcc"),
    Debian("aarch64", "arm64", "aarch64-linux-gnu", "aarch64-linux-gnu-gcc"),
    Debian("armv7", "armhf", "arm-linux-gnueabihf", "arm-linux-gnueabihf-gcc"),
]
FIELDS = {
    "libneon8-1": {
        "Section": "libs",
        "Multi-Arch": "same",
        "Depends": "libc6 (>= 2.17)",
    },
    "libneon8-dev": {
        "Section": "libdevel",
        "Multi-Arch": "same",
        "Depends": f"libneon8-1 (= {VERSION}), libc6-dev",
    },
    "neon8-tools": {"Section": "utils", "Multi-Arch": "foreign"},
}
FILES = {
    "libneon8-1": {"/usr/lib/TRIPLET/libneon8.so.1"},
    "libneon8-dev": {
        "/usr/include/neon8.h",
        "/usr/include/neon8.hpp",
        "/usr/lib/TRIPLET/libneon8.a",
        "/usr/lib/TRIPLET/libneon8.so -> libneon8.so.1",
        *(
            f"/usr/lib/TRIPLET/cmake/neon8/neon8{part}.cmake"
            for part in ("Config", "ConfigVersion", "Targets", "Targets-release")
        ),
        "/usr/lib/TRIPLET/pkgconfig/neon8.pc",
    },
    "neon8-tools": {"/usr/bin/neon8-runner"},
}
DOCS = {
    f"/usr/share/doc/PACKAGE/{name}"
    for name in ("changelog.Debian.gz", "changelog.gz", "copyright")
}
CONTROL = {
    "libneon8-1": {"control", "md5sums", "shlibs", "triggers"},
    "libneon8-dev": {"control", "md5sums"},
    "neon8-tools": {"control", "md5sums"},
}


@pytest.fixture(scope="module")
def debs(tmp_path_factory):
    """The folder that `make debs` fills."""
    folder = tmp_path_factory.mktemp("debs")
    run(ROOT / "cross" / "debs.sh", folder)
    return folder


@pytest.fixture(params=MACHINES, ids=lambda machine: machine.name)
def machine(request):
    return request.param


def deb(debs, package, machine):
    return debs / f"{package}_{VERSION}_{machine.architecture}.deb"


def test_all_packages_are_there(debs):
    names = {deb(debs, name, machine) for name in FILES for machine in MACHINES}
    assert {*debs.iterdir()} == names


@pytest.mark.parametrize("package", FILES)
def test_fields(debs, package, machine):
    text = run("dpkg-deb", "--field", deb(debs, package, machine))
    fields = dict(re.findall(r"^([\w-]+): (.*)$", text, re.MULTILINE))
    assert fields.pop("Maintainer")
    assert int(fields.pop("Installed-Size")) > 0
    assert len(fields.pop("Description")) < 80
    assert fields == FIELDS[package] | {
        "Architecture": machine.architecture,
        "Package": package,
        "Priority": "optional",
        "Version": VERSION,
    }


@pytest.mark.parametrize("package", FILES)
def test_contents(debs, package, machine):
    """Owned by root, and to be written by nobody else."""
    found = set()
    for line in run("dpkg-deb", "--contents", deb(debs, package, machine)).splitlines():
        mode, owner, _, _, _, path = line.split(maxsplit=5)
        assert owner == "root/root", line
        if mode.startswith("d"):
            assert mode == "drwxr-xr-x", line
            continue
        program = "/bin/" in path
        assert mode in ("lrwxrwxrwx", "-rwxr-xr-x" if program else "-rw-r--r--"), line
        found.add(path.removeprefix("."))
    assert found == {
        path.replace("TRIPLET", machine.triplet).replace("PACKAGE", package)
        for path in FILES[package] | DOCS
    }


@pytest.mark.parametrize("package", FILES)
def test_control(debs, package, machine, tmp_path):
    """The linker's cache is made anew, and who links the library depends on it."""
    run("dpkg-deb", "--control", deb(debs, package, machine), tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == CONTROL[package]
    if package == "libneon8-1":
        assert (
            tmp_path / "triggers"
        ).read_text().strip() == "activate-noawait ldconfig"
        shlibs = f"libneon8 1 libneon8-1 (>= {VERSION})"
        assert (tmp_path / "shlibs").read_text().strip() == shlibs


@pytest.fixture
def root(debs, machine, tmp_path):
    """A root with the machine's C library and all packages."""
    folder = tmp_path / "root"
    libraries = folder / "usr" / "lib" / machine.triplet
    libraries.mkdir(parents=True)
    (folder / "lib").symlink_to("usr/lib")
    if machine.runner:
        sysroot = ROOT / "build" / "sysroot" / machine.name
        for name in ("libc.so.6", "libm.so.6", "libpthread.so.0"):
            shutil.copy(sysroot / "usr" / "lib" / machine.triplet / name, libraries)
        for loader in sysroot.glob("usr/lib/ld-linux-*"):
            shutil.copy(loader, folder / "usr" / "lib")
    for package in FILES:
        run("dpkg-deb", "--extract", deb(debs, package, machine), folder)
    return folder


def test_a_program_runs(root, machine, tmp_path):
    libraries = root / "usr" / "lib" / machine.triplet
    env = os.environ | {"PKG_CONFIG_LIBDIR": str(libraries / "pkgconfig")}
    flags = run("pkg-config", "--cflags", "--libs", "neon8", env=env).split()
    program = tmp_path / "main"
    run(machine.compiler, CONSUMER / "main.c", *flags, "-o", program)
    dynamic = run("readelf", "--dynamic", program)
    assert "[libneon8.so.1]" in dynamic
    env = os.environ | {"N8_SYSROOT": str(root)}
    if not machine.runner:
        env["LD_LIBRARY_PATH"] = str(libraries)
    assert_runs(tmp_path, *machine.runner, program, env=env)


def test_the_runner_runs(root, machine, tmp_path):
    program = root / "usr" / "bin" / "neon8-runner"
    assert "DYNAMIC" not in run("readelf", "--program-headers", program)
    env = os.environ | {"N8_SYSROOT": str(tmp_path / "none")}
    assert run(*machine.runner, program, "facts", env=env)
