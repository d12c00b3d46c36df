# SPDX-License-Identifier: Apache-2.0
"""write_atomic: all of a file or nothing."""

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from neon8 import files
from neon8.cli.main import main
from neon8.errors import SetupError
from neon8.files import open_regular, read_file, write_all, write_atomic

SUFFIXES = ("", ".npy", ".npz", ".n8", ".onnx")


@pytest.mark.parametrize("failing", [1, 2, 3])
def test_all_files_or_none(tmp_path, monkeypatch, failing):
    names = [tmp_path / name for name in "abc"]
    names[0].write_bytes(b"old")
    calls = []

    def fsync(_descriptor):
        calls.append(1)
        if len(calls) == failing:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        with pytest.raises(SetupError, match="No space left"):
            write_all(dict.fromkeys(names, b"new"))
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert names[0].read_bytes() == b"old"
    write_all(dict.fromkeys(names, b"new"))
    assert sorted(tmp_path.iterdir()) == names
    assert {path.read_bytes() for path in names} == {b"new"}


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


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o444])
def test_a_file_that_is_replaced_keeps_its_mode(tmp_path, mode):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(mode)
    write_atomic(path, b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.parametrize(
    ("refused", "mode", "wanted"),
    [(0, 0o664, 0o664), (1, 0o664, 0o664), (2, 0o664, 0o644), (2, 0o640, 0o600)],
)
def test_owner_and_group_are_kept_where_that_is_allowed(
    tmp_path, monkeypatch, refused, mode, wanted
):
    """Where the group cannot be kept, the new one gets what everyone had."""
    asked = []

    def chown(_descriptor, owner, group):
        asked.append((owner, group))
        if len(asked) <= refused:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "fchown", chown)
    old = os.stat_result((stat.S_IFREG | mode, 0, 0, 1, 77, 88, 0, 0, 0, 0))
    with (tmp_path / "a").open("wb") as file:
        files._make_like(file.fileno(), old)
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == wanted
    assert asked == [(77, 88), (-1, 88)][: refused + 1]


def test_the_umask_is_never_touched(tmp_path, monkeypatch):
    """It belongs to the whole process: another thread may be making a file."""

    def touch(_mask):
        raise AssertionError("umask was set")

    monkeypatch.setattr(os, "umask", touch)
    write_atomic(tmp_path / "a", b"one")
    write_atomic(tmp_path / "a", b"two")


@pytest.mark.parametrize("before", [b"", b"first\n"])
def test_standard_output_is_appended_to(tmp_path, before):
    """As the shell opened it: >> must not lose what the file holds."""
    (tmp_path / "a").write_bytes(before)
    code = "from neon8.files import *; write_atomic(STDOUT, b'x'); print('y')"
    with (tmp_path / "a").open("ab") as file:
        subprocess.run([sys.executable, "-c", code], stdout=file, check=True)
    assert (tmp_path / "a").read_bytes() == before + b"xy\n"


def test_a_file_that_cannot_take_its_place(tmp_path, monkeypatch):
    path = tmp_path / "a.n8"
    path.write_bytes(b"old")

    def full(*_args):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", full)
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


def test_what_need_not_end_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(OSError, match="is a pipe or a device; give a regular file"):
            open_regular(path)
    with pytest.raises(IsADirectoryError):
        open_regular(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path / "data")
    (tmp_path / "data").write_bytes(b"12345")
    assert read_file(tmp_path / "link", most=5) == b"12345"
    with pytest.raises(OSError, match="is larger than 4 bytes"):
        read_file(tmp_path / "link", most=4)


@pytest.mark.parametrize(
    "words",
    [
        "calibrate {end} --data {tiny.data} -o {out}",
        "calibrate {tiny.onnx} --data {end} -o {out}",
        "calibrate {tiny.onnx} --data {folder} -o {out}",
        "calibrate {tiny.onnx} --data {tiny.data} --override {end} -o {out}",
        "calibrate {tiny.onnx} --data {folder} --preprocess {end} -o {out}",
        "solve {end} --model {tiny.onnx} -o {out}",
        "compile {tiny.onnx} --scales {end} -o {out}",
        "convert {end} --to ncnn -o {out}",
        "convert {tiny.table} --to ncnn --onnx {end} -o {out}",
        "run {end} --input {tiny.data}",
        "run {tiny.n8} --input {end}",
        "evaluate {end} --data {tiny.data}",
        "evaluate {end} --data {tiny.data} --target armv7",
        "inspect {end}",
    ],
)
def test_no_command_waits_or_reads_for_ever(tiny, tmp_path, capsys, words):
    folder = tmp_path / "images"
    folder.mkdir()
    for name in (folder / "x.npy", *(tmp_path / f"e{s}" for s in SUFFIXES)):
        os.mkfifo(name)
    for suffix in SUFFIXES if "{end}" in words else [""]:
        end, out = tmp_path / f"e{suffix}", tmp_path / "out"
        given = words.format(tiny=tiny, folder=folder, end=end, out=out)
        assert main(given.split()) == 2
        said = capsys.readouterr().err
        assert said.startswith("neon8: error: ")
        assert said.count("\n") == 1
        if words.startswith(("run {end}", "evaluate {end}")):
            assert "is a pipe or a device" in said
        assert not out.exists()
