# SPDX-License-Identifier: Apache-2.0
"""A Python package with the model in it, which depends on neon8."""

import io
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from neon8.errors import SettingsError
from neon8.package import builds
from neon8.package.templates import render, write
from neon8.package.wrapper import Wrapper

TARGETS = ("any machine",)


def fill(
    folder: Path, wrapper: Wrapper, targets: Sequence[str], *, embed: bool
) -> None:
    """Write the package into `folder`; the model is a file of it."""
    del targets
    if embed:
        text = "a Python package has its model as a file in it; leave it out"
        raise SettingsError(f"--embed: {text}")
    name = wrapper.name
    made: dict[str, str | bytes] = {
        "pyproject.toml": render("pyproject", wrapper),
        "README.md": render("README-python.md", wrapper),
        f"src/{name}/__init__.py": render("module", wrapper),
        f"src/{name}/py.typed": "",
        f"src/{name}/{name}.n8": wrapper.model,
        f"tests/test_{name}.py": render("module-test", wrapper),
    }
    for value in wrapper.values:
        buffer = io.BytesIO()
        np.save(buffer, value.sample, allow_pickle=False)
        made[f"tests/{value.identifier}.npy"] = buffer.getvalue()
    write(folder, made)


def check(folder: Path, wrapper: Wrapper, targets: Sequence[str]) -> Iterator[str]:
    """Run the package's own test with this Python."""
    del wrapper
    test = ("-B", "-m", "unittest", "discover", "-s", folder / "tests")
    paths = [str(folder / "src"), *sys.path]
    where = {"PYTHONPATH": os.pathsep.join(each for each in paths if each)}
    builds.run("python", sys.executable, *test, variables=where)
    yield from (f"{target}: {builds.SAME}" for target in targets)
