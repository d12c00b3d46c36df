# SPDX-License-Identifier: Apache-2.0
"""write_atomic: all of a file or nothing."""

import errno
import os
import stat
from pathlib import Path

import pytest

from neon8.errors import SetupError
from neon8.files import write_atomic


def test_writes_and_overwrites(tmp_path):
    path = tmp_path / "a.n8"
    for data in (b"one", b"", b"three" * 99999):
        write_atomic(path, data)
        assert path.read_bytes() == data
    assert [file.name for file in tmp_path.iterdir()] == ["a.n8"]


def test_mode_follows_the_umask(tmp_path):
    old = os.umask(0o027)
    try:
        write_atomic(tmp_path / "a", b"")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_full_disk_leaves_what_was_there(tmp_path, monkeypatch, call):
    path = tmp_path / "a.n8"
    path.write_bytes(b"old")

    def full(*_args):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, call, full)
    with pytest.raises(SetupError, match=r"a\.n8: cannot be written: No space left"):
        write_atomic(path, b"new")
    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["a.n8"]


def test_devices_are_not_replaced():
    with pytest.raises(SetupError, match="/dev/full: cannot be written: No space left"):
        write_atomic("/dev/full", b"data")
    write_atomic("/dev/null", b"data")
    for device in ("/dev/full", "/dev/null"):
        assert Path(device).is_char_device()
    with pytest.raises(SetupError, match="/dev/null/a: cannot be written"):
        write_atomic("/dev/null/a", b"data")


def test_a_link_stays_a_link(tmp_path):
    link = tmp_path / "link"
    link.symlink_to("real")
    write_atomic(link, b"data")
    assert link.is_symlink()
    assert (tmp_path / "real").read_bytes() == b"data"


def test_folder_that_is_missing_and_folder_in_the_way(tmp_path):
    with pytest.raises(SetupError, match="No such file"):
        write_atomic(tmp_path / "none" / "a", b"")
    (tmp_path / "dir").mkdir()
    with pytest.raises(SetupError, match="dir: cannot be written"):
        write_atomic(tmp_path / "dir", b"")
    assert [file.name for file in tmp_path.iterdir()] == ["dir"]
