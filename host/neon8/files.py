# SPDX-License-Identifier: Apache-2.0
"""Reading files that end, and writing them so that nobody ever sees half of one."""

import contextlib
import errno
import os
import stat
import sys
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import BinaryIO

from neon8.errors import DataError, Neon8Error, SetupError

STDOUT = Path("/dev/stdout")
"""What `-o -` stands for."""

MAX_BYTES = 1 << 32
"""The largest file that is read as a whole; ONNX files end at half of it."""
MAX_TEXT_BYTES = 1 << 26
"""The largest table or file of settings; 1000 tensors of 2048 bins each make 50 MB."""


def open_regular(path: str | PathLike[str]) -> BinaryIO:
    """Open a file to read it.  OSError: it is a pipe or a device, which need not end.

    Nothing waits for who might write to a pipe.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    file = os.fdopen(os.open(path, flags), "rb")
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    file.close()
    text = "is a pipe or a device; give a regular file"
    raise OSError(errno.EINVAL, text, str(path))


def read_file(path: str | PathLike[str], *, most: int = MAX_BYTES) -> bytes:
    """Read a whole file.  OSError: as open_regular(), or more than `most` bytes."""
    with open_regular(path) as file:
        if os.fstat(file.fileno()).st_size > most:
            text = f"is larger than {most} bytes, so it is not what is expected here"
            raise OSError(errno.EFBIG, text, str(path))
        return file.read()


@contextlib.contextmanager
def reading(path: str | PathLike[str], kind: type[Neon8Error]) -> Iterator[None]:
    """A context: an OSError in it becomes an error of this kind that names `path`."""
    try:
        yield
    except OSError as error:
        raise kind(f"{path}: cannot be read: {error.strerror}") from error


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
            _replace({target: data})
    except BrokenPipeError:
        raise
    except OSError as error:
        raise SetupError(f"{target}: cannot be written: {error.strerror}") from error


def _print(data: bytes) -> None:
    if sys.stdout is None:  # closed, and descriptor 1 may be another file by now
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    with os.fdopen(os.dup(1), "wb") as stream:  # not opened again: >> appends
        stream.write(data)


def write_all(files: Mapping[Path, bytes]) -> None:
    """Write files as write_atomic() does, which one alone need not be regular for.

    All or none: they are renamed into place, in this order, once all are on the disk.
    """
    if len(files) == 1:
        write_atomic(*next(iter(files.items())))
        return
    for path in files:
        if path.exists() and not path.is_file():
            raise SetupError(f"{path}: cannot be written: it is no regular file")
    _replace(files)


def _replace(files: Mapping[Path, bytes]) -> None:
    """Write all beside their places, then rename them.  SetupError names the file."""
    ready: dict[Path, Path] = {}
    path = next(iter(files), Path())
    try:
        for path, data in files.items():
            final = Path(os.path.realpath(path))  # a link stays one
            ready[_beside(final, data)] = final
        for temporary, final in ready.items():
            temporary.replace(final)
    except OSError as error:
        raise SetupError(f"{path}: cannot be written: {error.strerror}") from error
    finally:
        for temporary in ready:
            with contextlib.suppress(OSError):
                temporary.unlink()


def _beside(final: Path, data: bytes) -> Path:
    """Write `data` to a new file in the same folder, which may become `final`."""
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
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    return temporary


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
