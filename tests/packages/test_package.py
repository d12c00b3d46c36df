# SPDX-License-Identifier: Apache-2.0
"""neon8 package: each kind is built, and its example gives the bytes of the PC."""

import subprocess

import pytest
from models import GOLDEN, compiled

from neon8.cli.main import main

PC = "linux-x86_64"
ARM = ("linux-aarch64", "linux-armv7")
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wpedantic", "-Werror")


BUILDS = {
    PC: "build/native",
    "linux-aarch64": "build/aarch64",
    "linux-armv7": "build/armv7",
    "include": "runtime/include",
}


@pytest.fixture(autouse=True)
def built(monkeypatch):
    """The libraries of this checkout in the place of those of make prebuilt."""
    root = GOLDEN.parents[1]
    monkeypatch.setattr(
        "neon8.package.cmake.prebuilt_file",
        lambda target, name: root / BUILDS[target] / name,
    )


def package(capsys, model, folder, kind, *options):
    """Run the command; the folder and what was printed."""
    words = ["package", model, "--for", kind, "-o", folder, *options]
    status = main([*map(str, words)])
    said = capsys.readouterr()
    assert status == 0, said.err
    return said.out


@pytest.fixture
def labels(tmp_path):
    path = tmp_path / "labels.txt"
    path.write_text('cat\ndog "??/\nÄöß\n\\\nfive\n')
    return path


def warns(folder):
    """What GCC says of the C in a package."""
    for source in sorted(folder.glob("*.c")):
        command = ["gcc", "-std=c11", *WARNINGS, "-fsyntax-only", "-Iinclude", source]
        subprocess.run(command, cwd=folder, check=True)


def test_cmake_on_every_target(capsys, tmp_path):
    folder = tmp_path / "net"
    options = [word for target in (PC, *ARM) for word in ("--target", target)]
    said = package(capsys, GOLDEN / "small.n8", folder, "cmake", *options)
    assert said.count("the bytes of this PC") == 3


@pytest.mark.parametrize(
    ("options", "how"),
    [({}, ()), ({"io": "int8"}, ("--embed",)), ({"image": True}, ())],
)
def test_cmake_of_what_models_take(capsys, tmp_path, labels, options, how):
    model, folder = compiled(tmp_path, **options), tmp_path / "net"
    how = ("--labels", labels, "--preprocess", tmp_path / "p.toml", *how)
    said = package(capsys, model, folder, "cmake", "--target", PC, *how)
    assert "the bytes of this PC" in said
    warns(folder)
