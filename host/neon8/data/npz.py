# SPDX-License-Identifier: Apache-2.0
"""Arrays in .npz and .npy files, row by row, so that memory does not grow with them."""

import math
import os
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from neon8.arrays import Array
from neon8.errors import DataError
from neon8.files import open_regular, unreadable

UNREADABLE = (
    *(OSError, ValueError, EOFError, NotImplementedError, RuntimeError),
    *(zipfile.BadZipFile, zlib.error, tokenize.TokenError),
)
"""What numpy and zipfile raise for damaged, nested or encrypted files."""

MAX_FORTRAN_BYTES = 1 << 30
"""An array in Fortran order has its samples everywhere, so it is read as a whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """One array in a file; its first axis runs over the samples.

    member: its name in an .npz file, None in an .npy file.  start: where its elements
    begin, in bytes.  fortran: the first axis is the fastest.
    """

    path: Path
    member: str | None
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    start: int
    fortran: bool

    @property
    def where(self) -> str:
        """How messages name it."""
        array = f": array {self.member!r}" if self.member is not None else ":"
        return f"{self.path}{array}"


def open_npy(path: Path) -> Rows:
    """The array in an .npy file, of which only the header is read.  DataError."""
    try:
        with open_regular(path) as file:
            return _header(path, None, os.fstat(file.fileno()).st_size, file)
    except UNREADABLE as error:
        raise unreadable(path, "an .npy file", error) from error


def open_npz(path: Path) -> dict[str, Rows]:
    """The arrays of an .npz file by name; only their headers are read.  DataError."""
    try:
        with open_regular(path) as whole, zipfile.ZipFile(whole) as archive:
            rows = {}
            for info in archive.infolist():
                name = info.filename.removesuffix(".npy")
                with archive.open(info) as file:
                    rows[name] = _header(path, info.filename, info.file_size, file)
            return rows
    except UNREADABLE as error:
        raise unreadable(path, "an .npz file", error) from error


def _header(path: Path, member: str | None, size: int, file: IO[bytes]) -> Rows:
    version = np.lib.format.read_magic(file)
    try:
        if version == (1, 0):
            shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
        else:
            shape, fortran, dtype = np.lib.format.read_array_header_2_0(file)
    except MemoryError as error:  # Python's parser says so of what is nested deeply
        raise ValueError(path) from error
    rows = Rows(
        path=path,
        member=member,
        shape=shape,
        dtype=dtype,
        start=file.tell(),
        fortran=fortran and len(shape) > 1,
    )
    if dtype.hasobject:
        text = "holds Python objects; save an array of numbers"
        raise DataError(f"{rows.where} {text}")
    needed = rows.start + math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or needed != size:
        raise DataError(f"{rows.where} is truncated, or of another size than it says")
    return rows


def read(rows: Rows) -> Array:
    """The whole array.  DataError if the file is damaged."""
    size = math.prod(rows.shape) * rows.dtype.itemsize
    try:
        with _opened(rows) as file:
            values = np.frombuffer(_read(rows, file, size), rows.dtype)
    except MemoryError as error:
        raise DataError(f"{rows.where} does not fit into memory") from error
    shape = rows.shape[::-1] if rows.fortran else rows.shape
    return values.reshape(shape).T if rows.fortran else values.reshape(shape)


def iterate(rows: Rows, start: int, stop: int) -> Iterator[Array]:
    """Rows start .. stop, one at a time.  DataError if the file is damaged."""
    size = math.prod(rows.shape[1:]) * rows.dtype.itemsize
    if rows.fortran:
        if size * rows.shape[0] > MAX_FORTRAN_BYTES:
            text = "is in Fortran order; save it through numpy.ascontiguousarray"
            raise DataError(f"{rows.where} {text}")
        yield from read(rows)[start:stop]
        return
    with _opened(rows) as file:
        file.seek(start * size, os.SEEK_CUR)
        for _ in range(start, stop):
            row = np.frombuffer(_read(rows, file, size), rows.dtype)
            yield row.reshape(rows.shape[1:])


def _read(rows: Rows, file: IO[bytes], size: int) -> bytes:
    data = file.read(size)
    if len(data) != size:  # since the header was read, it was cut
        raise DataError(f"{rows.where} is truncated")
    return data


@contextmanager
def _opened(rows: Rows) -> Iterator[IO[bytes]]:
    """A context with the file, positioned at the first element.

    It is read, never mapped, as another process may truncate it at any time.
    """
    try:
        if rows.member is None:
            with open_regular(rows.path) as file:
                file.seek(rows.start)
                yield file
        else:
            with (
                open_regular(rows.path) as whole,
                zipfile.ZipFile(whole) as archive,
                archive.open(rows.member) as inner,
            ):
                inner.seek(rows.start)
                yield inner
    except UNREADABLE as error:
        raise DataError(f"{rows.where} is damaged") from error
