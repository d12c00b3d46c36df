# SPDX-License-Identifier: Apache-2.0
"""Arrays in .npz and .npy files, row by row, so that memory does not grow with them."""

import math
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt

from neon8.errors import DataError
from neon8.files import unreadable

Array = npt.NDArray[np.generic]
UNREADABLE = (
    *(OSError, ValueError, EOFError, NotImplementedError),
    *(zipfile.BadZipFile, zlib.error, tokenize.TokenError),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """One array of an .npz file; its first axis runs over the samples.

    member: its name in the archive.  start: where its elements begin, in bytes.
    """

    path: Path
    member: str
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    start: int


def open_npy(path: Path) -> Array:
    """The array in an .npy file, mapped and not read.  DataError names the file."""
    try:
        array: Array = np.load(path, mmap_mode="r", allow_pickle=False)
    except UNREADABLE as error:
        if "Python objects" in str(error):
            text = "holds Python objects; save an array of numbers"
            raise DataError(f"{path}: {text}") from error
        raise unreadable(path, "an .npy file", error) from error
    if not isinstance(array, np.memmap):
        raise DataError(f"{path}: is not an .npy file")
    return array


def open_npz(path: Path) -> dict[str, Rows]:
    """The arrays of an .npz file by name; only their headers are read.  DataError."""
    try:
        with zipfile.ZipFile(path) as archive:
            rows = {}
            for info in archive.infolist():
                name = info.filename.removesuffix(".npy")
                with archive.open(info) as file:
                    rows[name] = _header(path, info, file)
            return rows
    except UNREADABLE as error:
        raise unreadable(path, "an .npz file", error) from error


def _header(path: Path, info: zipfile.ZipInfo, file: IO[bytes]) -> Rows:
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
    elif version == (2, 0):
        shape, fortran, dtype = np.lib.format.read_array_header_2_0(file)
    else:
        raise DataError(f"{path}: array {info.filename!r}: format {version} is unknown")
    if dtype.hasobject:
        raise DataError(f"{path}: array {info.filename!r} holds Python objects")
    if fortran and len(shape) > 1:
        text = "is in Fortran order; save it through numpy.ascontiguousarray"
        raise DataError(f"{path}: array {info.filename!r} {text}")
    start = file.tell()
    if start + math.prod(shape) * dtype.itemsize != info.file_size:
        raise DataError(f"{path}: array {info.filename!r} is truncated")
    return Rows(path=path, member=info.filename, shape=shape, dtype=dtype, start=start)


def iterate(rows: Rows, start: int, stop: int) -> Iterator[Array]:
    """Rows start .. stop, one at a time.  DataError if the file is damaged."""
    size = math.prod(rows.shape[1:]) * rows.dtype.itemsize
    with _opened(rows) as file:
        file.seek(rows.start + start * size)
        for _ in range(start, stop):
            data = file.read(size)
            if len(data) != size:
                raise DataError(f"{rows.path}: array {rows.member!r} is truncated")
            yield np.frombuffer(data, rows.dtype).reshape(rows.shape[1:])


@contextmanager
def _opened(rows: Rows) -> Iterator[IO[bytes]]:
    try:
        with (
            zipfile.ZipFile(rows.path) as archive,
            archive.open(rows.member) as file,
        ):
            yield file
    except UNREADABLE as error:
        text = f"array {rows.member!r} is damaged"
        raise DataError(f"{rows.path}: {text}") from error
