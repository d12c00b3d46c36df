# SPDX-License-Identifier: Apache-2.0
"""What the documentation is made by, and the tutorial works. `make docs` builds it."""

import re
from pathlib import Path

from neon8.cli.main import COMMANDS
from tutorials import checkout, followed

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def test_every_command_has_its_help():
    page = (DOCS / "reference/cli.md").read_text()
    shown = re.findall(r"program-output:: neon8 (\w+) --help", page)
    assert shown == list(COMMANDS)


def test_the_tutorial(tmp_path):
    parts = ("docs", "runtime", "tests", "build/native", "build/aarch64")
    folder = checkout(tmp_path, *parts)
    said = followed((DOCS / "tutorial.md").read_text(), folder, start="## 5")
    assert said.count("this is a 7\n") == 2
    picture = (DOCS / "images/digits.svg").read_text()
    assert (folder / "build/tutorial/digits.svg").read_text() == picture
