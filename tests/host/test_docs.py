# SPDX-License-Identifier: Apache-2.0
"""What the documentation is made by, and the tutorial works. `make docs` builds it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from digits import split
from neon8.cli.main import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def test_a_broken_link_is_an_error(tmp_path):
    (tmp_path / "conf.py").write_text("extensions = ['myst_parser']\n")
    (tmp_path / "index.md").write_text("# One\n\n[](nowhere.md)\n")
    command = [sys.executable, "-m", "sphinx", "-W", "-q", tmp_path, tmp_path / "out"]
    assert subprocess.run(command, capture_output=True, check=False).returncode


def test_every_command_has_its_help():
    page = (DOCS / "reference/cli.md").read_text()
    shown = re.findall(r"program-output:: neon8 (\w+) --help", page)
    assert shown == list(COMMANDS)


@pytest.fixture
def checkout(tmp_path):
    """A folder with what a checkout has after `make demo`."""
    for name in ("docs", "runtime", "tests"):
        (tmp_path / name).symlink_to(ROOT / name)
    demo = tmp_path / "build/demo"
    demo.mkdir(parents=True)
    for name in ("native", "aarch64"):
        (tmp_path / "build" / name).symlink_to(ROOT / "build" / name)
    learned, unseen = split()
    np.savez(demo / "calib.npz", x=learned.x, y=learned.y)
    np.savez(demo / "test.npz", x=unseen.x, y=unseen.y)
    return tmp_path


def test_the_tutorial(checkout):
    page = (DOCS / "tutorial.md").read_text()
    blocks = re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    script = "set -eu\n" + "".join(blocks)
    paths = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=checkout,
        env={**os.environ, "PATH": paths, "PYTHONPATH": str(ROOT / "host")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("this is a 7\n") == 2
    # What the page quotes is what was printed.
    for quoted in re.findall(r"\n\n((?:    .*\n)+)", page[page.index("## 5") :]):
        for line in quoted.splitlines():
            assert line.strip() in done.stdout
    picture = (DOCS / "images/digits.svg").read_text()
    assert (checkout / "build/tutorial/digits.svg").read_text() == picture
