# SPDX-License-Identifier: Apache-2.0
"""A folder is written whole or not at all, and only over one of ours."""

from pathlib import Path

import pytest

from neon8.errors import SetupError
from neon8.package.folder import MANIFEST, check_place, written


def names(folder):
    return [path.name for path in folder.iterdir()]


def write(folder, text="one"):
    with written(folder, kind="cmake") as beside:
        (beside / "sub").mkdir()
        (beside / "sub" / "file").write_text(text)


def test_a_package_is_replaced(tmp_path):
    folder = tmp_path / "net"
    write(folder)
    check_place(folder, force=False)
    write(folder, "two")
    assert (folder / "sub" / "file").read_text() == "two"
    assert names(tmp_path) == ["net"]


def change(folder):
    (folder / "sub" / "file").write_text("mine")


def add(folder):
    (folder / "notes").write_text("mine")


def link(folder):
    (folder / "sub" / "link").symlink_to("file")


def unmark(folder):
    (folder / MANIFEST).write_text('{"format": "another"}')


def nest(folder):
    (folder / MANIFEST).write_text("[" * 100_000)


@pytest.mark.parametrize("spoil", [change, add, link, unmark, nest])
def test_what_is_not_ours_stays(tmp_path, spoil):
    folder = tmp_path / "net"
    write(folder)
    spoil(folder)
    with pytest.raises(SetupError, match=r"--force replaces"):
        check_place(folder, force=False)
    check_place(folder, force=True)


def test_an_empty_folder_is_taken(tmp_path):
    check_place(tmp_path, force=False)


@pytest.mark.parametrize("force", [False, True])
def test_no_place_for_a_folder(tmp_path, force):
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path)
    for name in ("file", "link"):
        with pytest.raises(SetupError, match="is no folder"):
            check_place(tmp_path / name, force=force)
    with pytest.raises(SetupError, match="create it first"):
        check_place(tmp_path / "none" / "net", force=force)


@pytest.mark.parametrize("name", [".", "..", "sub/..", "/"])
def test_where_one_works_is_never_replaced(tmp_path, monkeypatch, name):
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SetupError, match="a folder to work in"):
        check_place(Path(name), force=True)


@pytest.mark.parametrize("there", [False, True])
def test_nothing_is_left_of_a_failure(tmp_path, there):
    folder = tmp_path / "net"
    if there:
        write(folder)
    before = names(tmp_path)

    def fail():
        with written(folder, kind="cmake") as beside:
            (beside / "file").write_text("")
            raise OSError(28, "No space left on device")

    with pytest.raises(SetupError, match="No space left"):
        fail()
    assert names(tmp_path) == before
