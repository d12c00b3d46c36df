# SPDX-License-Identifier: Apache-2.0
"""neon8.h is C++, too: a program that opens a model with open dimensions."""

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from neon8.runtime import Model

ROOT = Path(__file__).resolve().parents[3]
MODEL = ROOT / "tests" / "golden" / "open.n8"


def compiler(name):
    """The newest of a name, as "clang++-19"; the name alone if there is no number."""
    numbers = [
        int(found[1])
        for path in Path("/usr/bin").iterdir()
        if (found := re.fullmatch(rf"{re.escape(name)}-(\d+)", path.name))
    ]
    return f"{name}-{max(numbers)}" if numbers else name


@pytest.mark.parametrize("name", ["g++", "clang++"])
def test_a_model_with_open_dimensions(tmp_path, name):
    flags = ("-std=c++11", "-Wall", "-Wextra", "-Wconversion", "-Wpedantic", "-Werror")
    library = ROOT / "build" / "native" / "libneon8.a"
    program = tmp_path / "open"
    subprocess.run(
        [
            *(compiler(name), *flags, f"-I{ROOT / 'runtime' / 'include'}"),
            *(ROOT / "tests" / "native" / "open.cpp", library),
            *("-lm", "-pthread", "-o", program),
        ],
        check=True,
    )
    subprocess.run([program, MODEL, tmp_path / "out"], check=True)
    with Model.open(MODEL) as model, model.session() as session:
        shape = tuple(limits.hi for limits in model.bounds["image"])
        values = np.arange(np.prod(shape)) % 17 - 8
        image = values.astype(np.float32).reshape(shape)
        results = session.run({"image": image})
    wanted = b"".join(array.tobytes() for array in results.values())
    assert (tmp_path / "out").read_bytes() == wanted
