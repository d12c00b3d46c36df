# SPDX-License-Identifier: Apache-2.0
"""Data flows one way: no package imports one that comes after it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "host" / "neon8"
ORDER = (
    "version",
    "errors",
    "arrays",
    "files",
    "machines",
    "prebuilt",
    "onnx_session",
    "text",
    "progress",
    "quant",
    "settings",
    "ir",
    "operators",
    "graph",
    "data",
    "rewrite",
    "runtime",
    "profile",
    "calibrate",
    "compile",
    "formats",
    "evaluate",
    "refine",
    "inspection",
    "package",
    "report",
    "qat",
    "frameworks",
    "pipeline",
    "cli",
    "__init__",
    "__main__",
)
"""Each imports those above it and none below; CONTRIBUTING.md says what they are."""

OWNERS = {
    "argcomplete": {"cli"},
    "onnx": {"graph", "formats", "qat"},
    "onnxruntime": {"onnx_session"},
    "cffi": {"runtime", "calibrate", "compile"},
    "distributed": {"calibrate"},
    "elftools": {"inspection"},
    "PIL": {"data"},
    "jinja2": {"package", "report"},
    "tensorflow": {"frameworks"},
    "tf2onnx": {"frameworks"},
    "torch": {"frameworks", "qat"},
    "tqdm": {"cli"},
    "yaml": {"formats"},
}
"""Third-party packages, and who may import them."""


def imported(source: str) -> Iterator[str]:
    """The full names of modules that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide where something is"
            if node.module == "neon8":
                yield from (f"neon8.{alias.name}" for alias in node.names)
            else:
                yield str(node.module)


def faults(area: str, source: str) -> list[str]:
    """The imports that a file of `area` must not have."""
    found = []
    for name in imported(source):
        first, _, rest = name.partition(".")
        if first == "neon8":
            other = rest.partition(".")[0]
            if other != area and ORDER.index(other) > ORDER.index(area):
                found.append(name)
        elif area not in OWNERS.get(first, {area}):
            found.append(name)
    return found


def area_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


FILES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_one_way(path):
    assert faults(area_of(path), path.read_text()) == []


def test_every_area_is_in_order():
    assert {area_of(path) for path in FILES} == set(ORDER)


@pytest.mark.parametrize(
    ("area", "source"),
    [
        ("graph", "from neon8.compile.lower import lower"),
        ("quant", "import neon8.calibrate.solve"),
        ("calibrate", "from neon8 import formats"),
        ("runtime", "def load():\n    from neon8.cli.main import main"),
        ("compile", "import onnx.helper"),
        ("evaluate", "import onnxruntime"),
    ],
)
def test_notices_a_way_back(area, source):
    assert len(faults(area, source)) == 1
