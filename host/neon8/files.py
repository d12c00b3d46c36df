# SPDX-License-Identifier: Apache-2.0
"""Writing files so that nobody ever sees half of one."""

import contextlib
import os
import tempfile
from os import PathLike
from pathlib import Path

from neon8.errors import DataError, SetupError


def unreadable(path: str | PathLike[str], what: str, error: Exception) -> DataError:
    """The error that says why the file is no `what`, "an .npy file" for example."""
    if isinstance(error, OSError) and error.strerror:
        return DataError(f"{path}: cannot be read: {error.strerror}")
    return DataError(f"{path}: cannot be read as {what}, or is truncated")


def write_atomic(path: str | PathLike[str], data: bytes) -> None:
    """Write `data` beside `path`, flush it to the disk, then rename it into place.

    SetupError names the file if the disk is full, the folder is missing ...; what stood
    at `path` is then untouched and nothing is left beside it. A device or a pipe cannot
    be replaced and is written to as it is.
    """
    target = Path(path)
    temporary: Path | None = None
    try:
        if target.exists() and not target.is_file() and not target.is_dir():
            target.write_bytes(data)
            return
        final = Path(os.path.realpath(target))  # a link stays one
        descriptor, name = tempfile.mkstemp(dir=final.parent, prefix=".neon8-")
        temporary = Path(name)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        temporary.replace(final)
        temporary = None
    except OSError as error:
        raise SetupError(f"{target}: cannot be written: {error.strerror}") from error
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                temporary.unlink()
