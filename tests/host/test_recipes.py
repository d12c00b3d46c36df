# SPDX-License-Identifier: Apache-2.0
"""The recipes of CONTRIBUTING apply to the tree as it is, and what they add works."""

import os
import re
import shutil
import subprocess
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text()
RECIPES = {
    path.stem: path.read_text() for path in (ROOT / "docs/recipes").glob("*.diff")
}

SOURCES = {
    "kernel": 2,
    "level": 4,
    "operator": 4,
    "move": 1,
    "format": 2,
    "method": 2,
    "option": 2,
    "command": 2,
}
"""How many files each recipe touches, its tests and documents apart."""

KERNELS = ("kernel", "level")

TESTS = {
    "operator": (
        "tests/host/graph/test_remainder.py",
        "tests/host/compile/test_whole_path.py::test_what_imports_runs",
        "tests/e2e/test_refusals.py",
        "tests/e2e/test_agreement.py",
    ),
    "move": (
        "tests/host/graph/test_reverse.py",
        "tests/host/compile/test_whole_path.py::test_what_imports_runs",
    ),
    "format": ("tests/host/formats", "-k", "csv or documentation"),
    "method": ("tests/host/calibrate/thresholds", "-k", "sigma"),
    "option": (
        "tests/host/calibrate/test_few.py",
        "tests/host/settings/test_reader.py",
        *("-k", "few_samples or every_field"),
    ),
    "command": (
        "tests/host/cli/test_commands.py",
        "tests/host/cli/test_start.py",
        *("-k", "digest"),
    ),
}
"""What shows that a recipe works, as arguments of pytest."""


def sections(diff: str) -> dict[str, str]:
    """File -> its part of a diff."""
    parts = re.split(r"^(?=--- \S+\n\+\+\+ b/)", diff, flags=re.MULTILINE)
    return {re.search(r"^\+\+\+ b/(\S+)$", p, re.MULTILINE)[1]: p for p in parts if p}


@pytest.fixture
def copy(tmp_path, request):
    """What the recipe needs of this checkout, with the recipe applied."""
    ignore = shutil.ignore_patterns("__pycache__")
    for name in ("asm", "bench", "docs", "host", "runtime", "tests"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignore)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    diff = RECIPES[request.param]
    subprocess.run(
        ["git", "apply", "-"], cwd=tmp_path, input=diff, text=True, check=True
    )
    return tmp_path


def interpreter(folder: Path) -> Path:
    """A Python that has what this one has, and the package of a copy."""
    venv.create(folder / ".venv", symlinks=True)
    (packages,) = (folder / ".venv").glob("lib/python*/site-packages")
    paths = folder / "host", sysconfig.get_path("purelib")
    (packages / "copy.pth").write_text("".join(f"{path}\n" for path in paths))
    return folder / ".venv" / "bin" / "python"


def build(folder: Path, *, library: bool) -> None:
    """build/native of a copy: that of this checkout, or with a library of its own."""
    made = folder / "build" / "native"
    made.mkdir(parents=True)
    for path in (ROOT / "build" / "native").glob("*neon8*.*"):
        shutil.copy(path, made)
    if library:
        # Without the levels of vectors, which take most of the time.
        configure = ["cmake", "--preset", "native", "-DN8_VECTOR=OFF"]
        make = ["cmake", "--build", "--preset", "native", "--target", "neon8"]
        for command in (configure, make):
            subprocess.run(
                command, cwd=folder / "runtime", stdout=subprocess.DEVNULL, check=True
            )


def test_every_recipe_is_counted():
    touched = {
        name: sum(not path.startswith(("tests/", "docs/")) for path in sections(diff))
        for name, diff in RECIPES.items()
    }
    assert touched == SOURCES
    assert set(RECIPES) == {*KERNELS, *TESTS}
    assert all(f"docs/recipes/{name}.diff" in PAGE for name in RECIPES)


@pytest.mark.parametrize("copy", KERNELS, indirect=True, ids=str)
def test_the_kernel_of_a_recipe_assembles(copy, request):
    diff = RECIPES[request.node.callspec.id]
    source = re.search(r"^\+\+\+ b/(asm/aarch64/\S+\.S)$", diff, re.MULTILINE)[1]
    slot, level = re.search(r"^\+N8_\w+\((\w+), (\w+)", diff, re.MULTILINE).groups()
    subprocess.run(
        [
            *("aarch64-linux-gnu-gcc", "-march=armv8-a", "-c", "-o", "kernel.o"),
            *("-Iasm/aarch64", "-Iruntime", source),
        ],
        cwd=copy,
        check=True,
    )
    symbols = subprocess.run(
        ["aarch64-linux-gnu-nm", copy / "kernel.o"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert f" T n8_{slot}_{level}" in symbols


@pytest.mark.parametrize("copy", TESTS, indirect=True, ids=str)
def test_what_a_recipe_adds_works(copy, request):
    name = request.node.callspec.id
    build(copy, library="runtime/" in RECIPES[name])
    outside = ("PYTEST_", "PYTHONPATH", "N8_")
    done = subprocess.run(
        [
            *(interpreter(copy), "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            *("--hypothesis-profile=half", *TESTS[name]),
        ],
        cwd=copy,
        env={k: v for k, v in os.environ.items() if not k.startswith(outside)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
