# SPDX-License-Identifier: Apache-2.0
"""The calibrator's C library, and numpy arrays for its arguments.

The product has no fallback for it; tests/host/shared/numpy_statistics.py specifies it.
"""

import functools
from typing import Any

import numpy as np

from neon8.arrays import Array
from neon8.errors import SetupError
from neon8.runtime import library

CALIBRATE = library.Build("neon8_calibrate", "N8_CALIBRATE_LIBRARY", "n8c_version", 3)

_TYPES = {
    "f4": "float",
    "f8": "double",
    "i8": "int64_t",
    "u8": "uint64_t",
}


@functools.cache
def load() -> library.Library:
    """The library of this process.  SetupError: missing, foreign or old."""
    return library.load(CALIBRATE)


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
        raise SetupError(f"{CALIBRATE.file}: status {status}; run 'make native'")
