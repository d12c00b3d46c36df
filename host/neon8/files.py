# SPDX-License-Identifier: Apache-2.0
"""Writing files so that nobody ever sees half of one."""

import contextlib
import errno
import os
import sys
from os import PathLike
from pathlib import Path

from neon8.errors import DataError, SetupError

STDOUT = Path("/dev/stdout")
"""What `-o -` stands for."""


def unreadable(path: str | PathLike[str], what: str, error: Exception) -> DataError:
    """The error for a file that is not `what`, "an .npy file" for example."""
    if isinstance(error, OSError) and error.strerror:
        return DataError(f"{path}: cannot be read: {error.strerror}")
    return DataError(f"{path}: cannot be read as {what}, or is truncated")


def write_atomic(path: str | PathLike[str], data: bytes) -> None:
    """Write `data` beside `path`, flush it to the disk, then rename it into place.

    A file that is replaced keeps its permissions, and its owner and group where the
    system allows it; a new one follows the umask. STDOUT, a device or a pipe cannot be
    replaced and is written to as it is. SetupError names the file if the disk is full,
    the folder is missing ...; what stood at `path` is then untouched and nothing is
    left beside it. BrokenPipeError: the reader of a pipe went away.
    """
    target = Path(path)
    try:
        if target == STDOUT:
            _print(data)
        elif target.exists() and not target.is_file() and not target.is_dir():
            target.write_bytes(data)
        else:
            _replace(Path(os.path.realpath(target)), data)  # a link stays one
    except BrokenPipeError:
        raise
    except OSError as error:
        raise SetupError(f"{target}: cannot be written: {error.strerror}") from error


def _print(data: bytes) -> None:
    if sys.stdout is None:  # closed, and descriptor 1 may be another file by now
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    with os.fdopen(os.dup(1), "wb") as stream:  # not opened again: >> appends
        stream.write(data)


def _replace(final: Path, data: bytes) -> None:
    try:
        old = final.stat()
    except FileNotFoundError:
        old = None
    temporary = final.parent / f".neon8-{os.urandom(8).hex()}"
    # Until it has the owner of the old file, nobody else may read it.
    mode = 0o666 if old is None else 0o600
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if old is not None:
                _make_like(descriptor, old)
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        temporary.replace(final)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def _make_like(descriptor: int, old: os.stat_result) -> None:
    """Owner, group and permissions; another group gets no more than everyone had."""
    mode = old.st_mode & 0o777
    try:
        os.fchown(descriptor, old.st_uid, old.st_gid)
    except OSError:
        try:
            os.fchown(descriptor, -1, old.st_gid)
        except OSError:
            mode = mode & 0o707 | (mode & 0o007) << 3
    os.fchmod(descriptor, mode)
