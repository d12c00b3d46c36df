# SPDX-License-Identifier: Apache-2.0
"""Files stay small enough to be read in one sitting; a larger one needs an ADR."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUDGET = {".S": 250, ".inc": 250, ".c": 300, ".h": 250, ".py": 300}
"""Lines by suffix."""


def tracked():
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [Path(line) for line in done.stdout.splitlines()]


def over(path: Path, text: str) -> bool:
    return text.count("\n") > BUDGET.get(path.suffix, 10**9)


def test_every_file_keeps_to_its_budget():
    paths = [path for path in tracked() if (ROOT / path).is_file()]
    assert len(paths) > 100
    texts = {
        path: (ROOT / path).read_bytes().decode(errors="replace") for path in paths
    }
    assert [str(path) for path, text in texts.items() if over(path, text)] == []


def test_notices_a_long_file():
    assert over(Path("a.S"), "\n" * 251)
    assert not over(Path("a.S"), "\n" * 250)
