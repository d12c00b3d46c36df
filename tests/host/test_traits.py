# SPDX-License-Identifier: Apache-2.0
"""Outside of its family nobody asks for an operator by name: there are traits."""

import ast
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "host" / "neon8"
MOST = 10
"""Questions for a class that no trait is worth."""


def classes() -> set[str]:
    """The names of all classes of nodes and steps."""
    found = {"Node", "Op", "Activated"}
    trees = [ast.parse(p.read_text()) for p in (PACKAGE / "operators").glob("*.py")]
    defined = [each for tree in trees for each in tree.body]
    while True:
        more = {
            each.name
            for each in defined
            if isinstance(each, ast.ClassDef)
            and found.intersection(base.id for base in each.bases)
        }
        if more <= found:
            return found - {"Node", "Op"}
        found |= more


def questions(source: str, names: set[str]) -> int:
    """How often a file asks if something is of one of these classes."""
    calls = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Call)]
    return sum(
        getattr(call.func, "id", "") == "isinstance"
        and bool(
            names
            & {
                getattr(n, "id", "") or getattr(n, "attr", "")
                for n in ast.walk(call.args[1])
            }
        )
        for call in calls
    )


def test_few_questions_outside_of_the_families():
    names = classes()
    assert {"Conv2d", "Conv2dOp", "Add", "Opaque"} <= names
    found = {
        str(path.relative_to(PACKAGE)): questions(path.read_text(), names)
        for path in PACKAGE.rglob("*.py")
        if path.parent.name not in ("operators", "qat")  # which has PyTorch's own
    }
    assert sum(found.values()) <= MOST, {k: v for k, v in found.items() if v}


def test_notices_a_question():
    names = {"Add", "Conv2d"}
    assert questions("isinstance(node, Add | Conv2d)", names) == 1
    assert questions("isinstance(node, arithmetic.Add)", names) == 1
    assert questions("isinstance(node, Node)", names) == 0
