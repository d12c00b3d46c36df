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

from processes import ran

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

WORDS = {
    "operator": "test_remainder or imports_runs or refusals or agreement",
    "move": "test_reverse",
    "format": "csv or documentation",
    "method": "sigma",
    "option": "few_samples or every_field",
    "command": "digest",
}
"""What the names of the tests have that show that a recipe works."""

TESTS = (
    "tests/host/graph/test_remainder.py",
    "tests/host/graph/test_reverse.py",
    "tests/host/compile/test_whole_path.py",
    "tests/host/formats",
    "tests/host/calibrate/thresholds",
    "tests/host/calibrate/test_few.py",
    "tests/host/settings/test_reader.py",
    "tests/host/cli/test_commands.py",
    "tests/host/cli/test_start.py",
    "tests/e2e/test_refusals.py",
    "tests/e2e/test_agreement.py",
)
"""Where these tests are."""


def files_of(diff: str) -> list[str]:
    """The files that a diff changes or adds."""
    return re.findall(r"^\+\+\+ b/(\S+)$", diff, re.MULTILINE)


def apply(folder: Path, diff: str, *options: str) -> None:
    command = ["git", "apply", *options, "-"]
    subprocess.run(command, cwd=folder, input=diff, text=True, check=True)


@pytest.fixture(scope="module")
def changed(tmp_path_factory):
    """What the recipes need of this checkout; each applies, and then all of them."""
    folder = tmp_path_factory.mktemp("recipes")
    ignore = shutil.ignore_patterns("__pycache__")
    for name in ("asm", "bench", "docs", "host", "runtime", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignore)
    shutil.copy(ROOT / "pyproject.toml", folder)
    for diff in RECIPES.values():
        apply(folder, diff, "--check")
    for diff in RECIPES.values():
        apply(folder, diff)
    return folder


def interpreter(folder: Path) -> Path:
    """A Python that has what this one has, and the package of a copy."""
    venv.create(folder / ".venv", symlinks=True)
    (packages,) = (folder / ".venv").glob("lib/python*/site-packages")
    paths = folder / "host", sysconfig.get_path("purelib")
    (packages / "copy.pth").write_text("".join(f"{path}\n" for path in paths))
    return folder / ".venv" / "bin" / "python"


def build(folder: Path) -> None:
    """build/native of a copy: of this checkout, but for the library."""
    made = folder / "build" / "native"
    made.mkdir(parents=True)
    for path in (ROOT / "build" / "native").glob("*neon8*.*"):
        shutil.copy(path, made)
    # Without the levels of vectors, which take most of the time.
    configure = ["cmake", "--preset", "native", "-DN8_VECTOR=OFF"]
    make = ["cmake", "--build", "--preset", "native", "--target", "neon8"]
    for command in (configure, make):
        subprocess.run(
            command, cwd=folder / "runtime", stdout=subprocess.DEVNULL, check=True
        )


def test_every_recipe_is_counted():
    touched = {
        name: sum(not path.startswith(("tests/", "docs/")) for path in files_of(diff))
        for name, diff in RECIPES.items()
    }
    assert touched == SOURCES
    assert set(RECIPES) == {*KERNELS, *WORDS}
    assert all(f"docs/recipes/{name}.diff" in PAGE for name in RECIPES)


@pytest.mark.parametrize("name", KERNELS)
def test_the_kernel_of_a_recipe_assembles(changed, name):
    diff = RECIPES[name]
    (source,) = (path for path in files_of(diff) if path.endswith(".S"))
    slot, level = re.search(r"^\+N8_\w+\((\w+), (\w+)", diff, re.MULTILINE).groups()
    subprocess.run(
        [
            *("aarch64-linux-gnu-gcc", "-march=armv8-a", "-c", "-o", "kernel.o"),
            *("-Iasm/aarch64", "-Iruntime", source),
        ],
        cwd=changed,
        check=True,
    )
    symbols = ran("aarch64-linux-gnu-nm", changed / "kernel.o", check=True).stdout
    assert f" T n8_{slot}_{level}" in symbols


def test_what_recipes_add_works(changed):
    build(changed)
    outside = ("PYTEST_", "PYTHONPATH", "N8_")
    done = ran(
        *(
            *(interpreter(changed), "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            *("--hypothesis-profile=half", "-rA", *TESTS),
            *("-k", " or ".join(WORDS.values())),
        ),
        cwd=changed,
        env={k: v for k, v in os.environ.items() if not k.startswith(outside)},
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    passed = "\n".join(re.findall(r"^PASSED .*", done.stdout, re.MULTILINE))
    for words in WORDS.values():
        assert all(word in passed for word in words.split(" or "))
