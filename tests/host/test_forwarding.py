# SPDX-License-Identifier: Apache-2.0
"""Arguments travel as objects: no call hands many on one by one, as x=x."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "host" / "neon8"
MOST = 6
OBJECTS = {"arguments", "options", "settings"}
"""What is taken apart again by x=settings.x."""


def forwarded(call: ast.Call) -> list[str]:
    """The keywords that a call hands on by name."""

    def same(name: str | None, value: ast.expr) -> bool:
        if isinstance(value, ast.Name):
            return value.id == name
        return (
            isinstance(value, ast.Attribute)
            and value.attr == name
            and isinstance(value.value, ast.Name)
            and value.value.id in OBJECTS
        )

    return [each.arg for each in call.keywords if same(each.arg, each.value)]


def faults(source: str) -> list[int]:
    """Lines of calls that hand on too many."""
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    return [call.lineno for call in calls if len(forwarded(call)) > MOST]


@pytest.mark.parametrize(
    "path",
    sorted(PACKAGE.rglob("*.py")),
    ids=lambda path: str(path.relative_to(PACKAGE)),
)
def test_few_keywords_are_handed_on(path):
    assert faults(path.read_text()) == []


@pytest.mark.parametrize("value", ["{0}={0}", "{0}=arguments.{0}", "{0}=settings.{0}"])
def test_notices_a_front_end(value):
    names = [value.format(name) for name in "abcdefg"]
    assert faults(f"def f():\n    return g({', '.join(names)})") == [2]
    assert faults(f"g({', '.join(names[1:])}, h=i, j=k.j)") == []
