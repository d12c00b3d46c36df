# SPDX-License-Identifier: Apache-2.0
"""The cross-built library, and a compiler for the bad objects of the self-tests."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def build() -> Path:
    """The folder of the cross build."""
    folder = ROOT / "build" / "aarch64"
    assert (folder / "libneon8.so").exists(), "run `make aarch64` first"
    return folder


@pytest.fixture
def cross(tmp_path):
    """cross(source, *flags, language="c") compiles for aarch64; returns the file."""

    def compile_(source: str, *flags: str, language: str = "c") -> Path:
        path = tmp_path / "bad"
        subprocess.run(
            ["aarch64-linux-gnu-gcc", "-x", language, "-", "-o", path, *flags],
            input=source,
            text=True,
            check=True,
        )
        return path

    return compile_
