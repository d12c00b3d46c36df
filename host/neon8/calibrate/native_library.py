# SPDX-License-Identifier: Apache-2.0
"""Finds and loads the calibrator's C library, as runtime/library.py does for the other.

There is no substitute for it in the product: twins.py says the same in numpy, but only
tests use that.
"""

import functools
import os
import sys
import threading
from pathlib import Path

import neon8
from neon8.errors import SetupError
from neon8.runtime.library import PACKAGE, Library, check_machine, declarations

FILE_NAME = f"libneon8_calibrate.{'dylib' if sys.platform == 'darwin' else 'so'}"
CDEF_NAME = "neon8_calibrate_cdef.h"
REMEDY = "run 'make native' or set N8_CALIBRATE_LIBRARY"

_LOADING = threading.Lock()


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
    """The library of this process, loaded once.  SetupError: missing, foreign, old.

    Any thread may call it: cffi's types of two loadings would not fit each other.
    """
    with _LOADING:
        return _load()


@functools.cache
def _load() -> Library:
    return load_file(find())


@functools.cache
def load_file(path: Path) -> Library:
    """The library at `path`, checked."""
    check_machine(path)
    ffi = declarations(path.parent / CDEF_NAME)
    try:
        lib = ffi.dlopen(str(path))
        version = ffi.string(lib.n8c_version()).decode()
    except (OSError, AttributeError) as error:
        text = f"not a neon8 calibration library: {error}"
        raise SetupError(f"{path}: {text}; {REMEDY}") from error
    if version != neon8.__version__:
        text = f"version {version} does not fit neon8 {neon8.__version__}"
        raise SetupError(f"{path}: {text}; {REMEDY}")
    return Library(path, ffi, lib)
