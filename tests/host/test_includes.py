# SPDX-License-Identifier: Apache-2.0
"""The library's includes go one way: no room reads one that comes after it."""

import re
from pathlib import Path

import pytest

RUNTIME = Path(__file__).resolve().parents[2] / "runtime"
ORDER = (
    "include",
    ".",
    "cpu",
    "ref",
    "vector",
    "move",
    "conv",
    "model",
    "memory",
    "exec",
    "ops",
    "java",
    "runner",
)
"""Each includes those above it and none below; CONTRIBUTING.md says what they are."""


def included(path: Path, root: Path) -> list[Path]:
    """The files of the tree that a file includes, relative to `root`."""
    names = re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(), re.MULTILINE)
    found = []
    for name in names:
        beside, above = path.parent / name, root / name
        target = beside if beside.exists() else above
        assert target.exists(), f"{path} includes {name}, which is not there"
        found.append(target.resolve().relative_to(root.resolve()))
    return found


def faults(root: Path) -> list[str]:
    """Includes against the order of the rooms, and circles within a room."""
    graph = {
        path.relative_to(root): included(path, root)
        for path in sorted(root.rglob("*"))
        if path.suffix in {".c", ".h", ".inc"}
    }

    def room(path: Path) -> int:
        return ORDER.index(str(path.parent))

    found = [
        f"{path} -> {other}"
        for path, others in graph.items()
        for other in others
        if room(other) > room(path)
    ]
    done: set[Path] = set()

    def visit(path: Path, above: tuple[Path, ...]) -> None:
        if path in above:
            found.append(" -> ".join(map(str, (*above[above.index(path) :], path))))
        elif path not in done:
            for other in graph[path]:
                visit(other, (*above, path))
            done.add(path)

    for path in graph:
        visit(path, ())
    return found


def test_includes_go_one_way():
    assert faults(RUNTIME) == []


def test_every_room_is_in_order():
    files = RUNTIME.rglob("*.[ch]")
    rooms = {str(path.parent.relative_to(RUNTIME)) for path in files}
    assert rooms == set(ORDER)


@pytest.mark.parametrize(
    ("files", "fault"),
    [
        (
            {"conv/a.c": '#include "model/b.h"', "model/b.h": ""},
            "conv/a.c -> model/b.h",
        ),
        ({"cpu/a.c": ' # include "../ops/b.h"', "ops/b.h": ""}, "cpu/a.c -> ops/b.h"),
        ({"a.h": '#include "cpu/b.h"', "cpu/b.h": ""}, "a.h -> cpu/b.h"),
        (
            {"ops/a.h": '#include "b.h"', "ops/b.h": '#include "ops/a.h"'},
            "ops/a.h -> ops/b.h -> ops/a.h",
        ),
    ],
)
def test_notices_a_way_back(tmp_path, files, fault):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert faults(tmp_path) == [fault]


def test_notices_what_is_not_there(tmp_path):
    (tmp_path / "a.c").write_text('#include "b.h"')
    with pytest.raises(AssertionError, match=r"b\.h, which is not there"):
        faults(tmp_path)
