# SPDX-License-Identifier: Apache-2.0
"""Finds and loads the C libraries: cffi in ABI mode, from the headers beside them.

The only module of the package that imports cffi.
"""

import functools
import os
import platform
import re
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cffi

from neon8.errors import SetupError
from neon8.files import reading
from neon8.version import __version__

PACKAGE = Path(__file__).resolve().parents[1]

MOST_NARROW = 2**31 - 1
"""sys.maxsize of a Python of 32 bits."""

ELF_MAGIC = b"\x7fELF"
ELF_MACHINES = {3: "x86", 40: "32-bit ARM", 62: "x86-64", 183: "AArch64", 243: "RISC-V"}
PYTHON_MACHINES = {
    "aarch64": "AArch64",
    "amd64": "x86-64",
    "arm64": "AArch64",
    "x86_64": "x86-64",
}
NARROW_MACHINES = {"AArch64": "32-bit ARM", "x86-64": "x86"}
"""What a 32-bit process is on a machine of 64 bits, whose name it is told."""


@dataclass(frozen=True, slots=True)
class Library:
    """A loaded library.  ffi, lib: as cffi calls them."""

    path: Path
    ffi: Any
    lib: Any


@dataclass(frozen=True, slots=True)
class Build:
    """What the build makes of a library.

    stem: of its files.  variable: of the environment, which may name another file.
    version: the function that tells its own.  digits: how many numbers of that must be
    those of this package.
    """

    stem: str
    variable: str
    version: str
    digits: int

    @property
    def file(self) -> str:
        """The name of the library."""
        return f"lib{self.stem}.{'dylib' if sys.platform == 'darwin' else 'so'}"

    @property
    def header(self) -> str:
        """The name of the declarations that stand beside it."""
        return f"{self.stem}_cdef.h"


RUNTIME = Build("neon8", "N8_LIBRARY", "n8_version", 2)
TRACE = Build("neon8_trace", "N8_TRACE_LIBRARY", "n8_version", 3)
_LOADING = threading.Lock()


def find(build: Build = RUNTIME) -> Path:
    """The library that this process uses, absolute.

    That of the environment, else the file that a wheel carries, else build/native of
    the checkout.  SetupError: none of them is there.
    """
    override = os.environ.get(build.variable)
    if override:
        path = Path(override).absolute()
        if not path.is_file():
            raise SetupError(f"{override}: no such library; correct {build.variable}")
        return path
    folders = (PACKAGE, PACKAGE.parents[1] / "build" / "native")
    for folder in folders:
        if (folder / build.file).is_file():
            return folder / build.file
    raise SetupError(
        f"{build.file} is neither in {folders[0]} nor in {folders[1]}; "
        f"run 'make native' or set {build.variable}"
    )


def load(build: Build = RUNTIME) -> Library:
    """The library of this process, loaded once.  SetupError: missing, foreign, old.

    Any thread may call it. cffi types of two loads would not match, hence the lock.
    """
    with _LOADING:
        return load_file(find(build), build)


@functools.cache
def load_file(path: Path, build: Build) -> Library:
    """The library at `path`, checked."""
    check_machine(path)
    ffi = declarations(path.parent / build.header)
    try:
        lib = ffi.dlopen(str(path))
    except OSError as error:
        raise SetupError(f"{path}: cannot be loaded: {error}") from error
    try:
        version = ffi.string(getattr(lib, build.version)()).decode()
    except AttributeError as error:
        raise SetupError(f"{path}: not a neon8 library: {error}") from error
    theirs, ours = (each.split(".")[: build.digits] for each in (version, __version__))
    if theirs != ours:
        raise SetupError(
            f"{path}: version {version} does not fit neon8 {__version__}; "
            "build it again"
        )
    return Library(path, ffi, lib)


@functools.cache
def declarations(path: Path) -> Any:
    """cffi's view of the library's headers from the generated file at `path`."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(
            f"{path}: cannot be read; the build writes it beside the library"
        ) from error
    ffi = cffi.FFI()
    try:
        ffi.cdef(text)
    except (cffi.CDefError, cffi.FFIError) as error:
        raise SetupError(f"{path}: not the header of a neon8 library") from error
    return ffi


def check_machine(path: Path) -> None:
    """SetupError if `path` is an ELF file for another processor than this Python's.

    dlopen would only say 'cannot open shared object file'.
    """
    with reading(path, SetupError), path.open("rb") as file:
        head = file.read(20)
    if len(head) < 20 or not head.startswith(ELF_MAGIC):
        if sys.platform == "linux":
            raise SetupError(f"{path}: not an ELF library")
        return
    code = int.from_bytes(head[18:20], "big" if head[5] == 2 else "little")
    theirs = ELF_MACHINES.get(code, f"ELF machine {code}")
    ours = python_machine(platform.machine(), wide=sys.maxsize > MOST_NARROW)
    if ours is not None and theirs != ours:
        raise SetupError(
            f"{path}: {path.name} is for {theirs}, this Python runs on {ours}; "
            "build it with 'make native' or run in the emulated Python"
        )


def python_machine(name: str, *, wide: bool) -> str | None:
    """What ELF_MACHINES calls a Python of 64 bits, or not, on such a machine."""
    if re.fullmatch(r"armv[5-8]\w*", name):
        return "32-bit ARM"
    machine = PYTHON_MACHINES.get(name.lower())
    return machine if wide or machine is None else NARROW_MACHINES[machine]
