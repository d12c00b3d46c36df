# SPDX-License-Identifier: Apache-2.0
"""What statuses, structs and enums of the C library mean in Python."""

import math
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from neon8.errors import ModelError, SetupError
from neon8.runtime.arrays import Memory, TensorInfo
from neon8.runtime.library import Library

TYPES = {
    "int8": "N8_TYPE_S8",
    "int16": "N8_TYPE_S16",
    "int32": "N8_TYPE_S32",
    "float32": "N8_TYPE_F32",
    "uint8": "N8_TYPE_U8",
}
"""The types of tensors, as numpy calls them, and enum n8_type."""


def check(lib: Library, status: int, source: str) -> None:
    """Raise what `status` of the C library means for `source`."""
    if status == lib.lib.N8_OK:
        return
    text = lib.ffi.string(lib.lib.n8_status_string(status)).decode()
    ours = status in (lib.lib.N8_E_MEMORY, lib.lib.N8_E_UNSUPPORTED)
    raise (SetupError if ours else ModelError)(f"{source}: {text}")


def old(path: Path, name: str) -> SetupError:
    """The error for a library without a field."""
    text = f"has no {name!r}, so it is older than this package; build it again"
    return SetupError(f"{path}: {text}, as by 'make native aarch64 armv7'")


def options_of(lib: Library, struct: str, values: Mapping[str, Any]) -> Any:
    """A struct of options.  SetupError: the library lacks a field."""
    try:
        return lib.ffi.new(f"struct {struct} *", values)
    except KeyError as error:
        raise old(lib.path, error.args[0]) from error


class Fields(dict[str, Any]):
    """The fields of a struct of C by name: numbers, tuples, texts ("" for NULL).

    SetupError: what is asked for is none, as the library at `path` is old.
    """

    def __init__(self, path: Path) -> None:
        """Without any."""
        super().__init__()
        self._path = path

    def __missing__(self, name: str) -> Any:
        """Say what to do."""
        raise old(self._path, name)


def values_of(lib: Library, info: Any, source: str) -> Fields:
    """The fields of `info`.  ModelError: a text is not UTF-8."""
    values = Fields(lib.path)
    for name, field in lib.ffi.typeof(info).item.fields:
        value = getattr(info, name)
        if field.type.kind == "array":
            value = tuple(value)
        elif field.type is lib.ffi.typeof("char *"):
            try:
                value = lib.ffi.string(value).decode() if value else ""
            except UnicodeDecodeError as error:
                raise ModelError(f"{source}: a name in it is not UTF-8") from error
        values[name] = value
    return values


def check_opened(lib: Library, status: int, source: str, refusal: Any) -> None:
    """Raise what `status` of n8_model_open or n8_model_measure means, as check().

    refusal: their struct n8_model_error; its name still points into the file.
    """
    if status in (lib.lib.N8_OK, lib.lib.N8_E_MEMORY):
        check(lib, status, source)
        return
    text = lib.ffi.string(refusal.reason).decode()
    if refusal.name != lib.ffi.NULL:
        name = lib.ffi.string(refusal.name).decode(errors="replace")
        text = f"{'tensor' if refusal.step < 0 else 'layer'} {name!r}: {text}"
    raise ModelError(f"{source}: {text}")


def levels(lib: Library) -> dict[str, int]:
    """enum n8_isa by names in lower case, in its order; auto first."""
    found = lib.ffi.typeof("enum n8_isa").relements
    ordered = sorted(found.items(), key=lambda each: int(each[1]))
    return {name.removeprefix("N8_ISA_").lower(): int(isa) for name, isa in ordered}


def isa_number(lib: Library, isa: str | None) -> int:
    """enum n8_isa from its name in lower case; None lets the library choose."""
    known = levels(lib)
    if (isa or "auto").lower() not in known:
        raise SetupError(f"instruction set {isa!r} is not one of {', '.join(known)}")
    return known[(isa or "auto").lower()]


def tensor_of(lib: Library, values: Mapping[str, Any]) -> TensorInfo:
    """What is public of the fields of a struct n8_tensor_info."""
    types = {getattr(lib.lib, name): kind for kind, name in TYPES.items()}
    return TensorInfo(
        shape=values["dims"][: values["rank"]],
        dtype=types[values["type"]],
        **{name: values[name] for name in ("scale", "zero_point", "lo", "hi")},
    )


def size_of(info: TensorInfo) -> int:
    """The bytes of an array."""
    return math.prod(info.shape) * np.dtype(info.dtype).itemsize


def memory_of(lib: Library, memory: Any) -> Memory:
    """A struct n8_memory as a value."""
    values = values_of(lib, memory, "")
    return Memory(**{field.name: values[field.name] for field in fields(Memory)})
