# SPDX-License-Identifier: Apache-2.0
"""What all sources hold to that no linter knows; CONTRIBUTING.md says it, too."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FORWARDED = 6
"""Keywords that a call may hand on under their own names; more are an object."""
NOT_SAID = {
    "Of ...": re.compile(r'(?:"""|/\*\*?|//+|^\s*#) ?Of ', re.MULTILINE),
    "behind for after": re.compile(r"\bbehind\b(?! the scenes| on | by )"),
}
SPOKEN = {"bench", "docs", "host", "runtime", "asm", "cross", "tests"}
MEASURES = ("bench/accuracy/page.py", "bench/networks/report.py")
"""Where a figure may be behind another."""


def texts() -> dict[str, str]:
    """Every file that people read, by its path."""
    names = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).split(
        "\n"
    )
    paths = [Path(name) for name in names if name and name.split("/")[0] in SPOKEN]
    ends = {".py", ".c", ".h", ".hpp", ".S", ".inc", ".java", ".cmake", ".md", ".diff"}
    return {
        str(path): (ROOT / path).read_text()
        for path in paths
        if path.suffix in ends and (ROOT / path).is_file()
    }


def said(text: str) -> list[str]:
    """Which of the ways to say it that nobody else has."""
    return [name for name, pattern in NOT_SAID.items() if pattern.search(text)]


def forwards(source: str) -> int:
    """The most keywords that one call hands on under their own names."""
    return max(
        (
            sum(
                isinstance(each.value, ast.Name) and each.value.id == each.arg
                for each in call.keywords
            )
            for call in ast.walk(ast.parse(source))
            if isinstance(call, ast.Call)
        ),
        default=0,
    )


def test_sources_speak_plainly():
    found = {path: said(text) for path, text in texts().items()}
    own = (*MEASURES, str(Path(__file__).relative_to(ROOT)))
    assert not {path: how for path, how in found.items() if how and path not in own}


def test_no_call_forwards_many_keywords():
    files = (ROOT / "host" / "neon8").rglob("*.py")
    most = {path.name: forwards(path.read_text()) for path in files}
    assert not {name: count for name, count in most.items() if count > FORWARDED}


@pytest.mark.parametrize(
    "text",
    [
        '"""Of the axes."""',
        "// Of a tap.",
        "    # Of each",
        "/** Of x. */",
        "a behind b",
    ],
)
def test_notices_what_is_not_said(text):
    assert said(text)


def test_notices_keywords_that_are_handed_on():
    assert forwards("f(a=a, b=b, c=1, d=g(d=d))") == 2
