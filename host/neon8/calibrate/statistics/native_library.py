# SPDX-License-Identifier: Apache-2.0
"""The calibrator's C library: finding, loading, and numpy arrays for its arguments.

host/neon8/runtime/library.py does the first two for libneon8. The product has no
fallback for this library; tests/host/shared/numpy_statistics.py specifies it.
"""

import functools
import os
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np

from neon8.arrays import Array
from neon8.errors import SetupError
from neon8.runtime.library import PACKAGE, Library, check_machine, declarations
from neon8.version import __version__

FILE_NAME = f"libneon8_calibrate.{'dylib' if sys.platform == 'darwin' else 'so'}"
CDEF_NAME = "neon8_calibrate_cdef.h"
REMEDY = "run 'make native' or set N8_CALIBRATE_LIBRARY"


_LOADING = threading.Lock()
_TYPES = {
    "f4": "float",
    "f8": "double",
    "i8": "int64_t",
    "u8": "uint64_t",
}


def find() -> Path:
    """The library that this process uses, absolute.

    $N8_CALIBRATE_LIBRARY, else the file that a wheel carries, else build/native of the
    checkout.  SetupError: none of them is there.
    """
    override = os.environ.get("N8_CALIBRATE_LIBRARY")
    if override:
        path = Path(override).absolute()
        if not path.is_file():
            text = "no such library; correct N8_CALIBRATE_LIBRARY"
            raise SetupError(f"{override}: {text}")
        return path
    folders = (PACKAGE, PACKAGE.parents[1] / "build" / "native")
    for folder in folders:
        if (folder / FILE_NAME).is_file():
            return folder / FILE_NAME
    text = f"is neither in {folders[0]} nor in {folders[1]}"
    raise SetupError(f"{FILE_NAME} {text}; {REMEDY}")


def load() -> Library:
    """Load the library once for this process.  SetupError: missing, foreign or old.

    Any thread may call it. cffi types of two loads would not match, hence the lock.
    """
    with _LOADING:
        return _load()


@functools.cache
def _load() -> Library:
    return load_file(find())


@functools.cache
def load_file(path: Path) -> Library:
    """Load the library at `path` and check its version.  SetupError."""
    check_machine(path)
    ffi = declarations(path.parent / CDEF_NAME)
    try:
        lib = ffi.dlopen(str(path))
        version = ffi.string(lib.n8c_version()).decode()
    except (OSError, AttributeError) as error:
        text = f"not a neon8 calibration library: {error}"
        raise SetupError(f"{path}: {text}; {REMEDY}") from error
    if version != __version__:
        text = f"version {version} does not fit neon8 {__version__}"
        raise SetupError(f"{path}: {text}; {REMEDY}")
    return Library(path, ffi, lib)


def pointer(array: Array) -> Any:
    """A cffi pointer to the first element; the array must outlive it."""
    return load().ffi.cast(f"{_TYPES[array.dtype.str[1:]]} *", address(array))


def address(array: Array) -> int:
    """The address of the first element."""
    place: int = array.__array_interface__["data"][0]
    return place


def field(structs: Any, kind: str, name: str, dtype: str) -> Any:
    """One field of all structs of an array, as an array that shares their memory."""
    ffi = load().ffi
    layout = np.dtype(
        {
            "names": [name],
            "formats": [dtype],
            "offsets": [ffi.offsetof(kind, name)],
            "itemsize": ffi.sizeof(kind),
        }
    )
    return np.frombuffer(ffi.buffer(structs), dtype=layout)[name]


def check(status: int) -> None:
    """Raise SetupError if a call failed."""
    # The arguments are our own, so the library must be of another build.
    if status != 0:
        raise SetupError(f"{FILE_NAME}: status {status}; {REMEDY}")
