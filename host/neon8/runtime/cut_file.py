# SPDX-License-Identifier: Apache-2.0
"""NAME.cut.json: which files are the parts of a network that was cut.

It stands beside them. They are known by their SHA-256, so that parts of two networks,
or of two tables, are never run together.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neon8.errors import ModelError, TableError
from neon8.files import read_file, reading
from neon8.ir.graph import FLOATS, INTEGERS, MAX_RANK
from neon8.quant import checks, strict_json
from neon8.quant.strict_json import JsonObject

FORMAT = "neon8 cut network"
VERSION = 1
MAX_BYTES = 1 << 22
"""The largest description; one of 16384 outputs is smaller."""
MAX_DIM = 2**31 - 1
NUMBERS = (*FLOATS, *INTEGERS)
PARTS = ("before", "inside", "after")
"""In order of execution; `inside` is the .n8 file."""
END_KEYS = {"name", "type", "shape"}
DIGEST = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """An input or output of the whole network.

    dtype: as numpy calls it, "" if it is no tensor of numbers.  shape: None if only a
    run shows it.
    """

    dtype: str
    shape: tuple[int, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartFile:
    """The name of a file beside the description, and its SHA-256, hex."""

    file: str
    digest: str

    @classmethod
    def of(cls, name: str, data: bytes) -> "PartFile":
        """The entry of a file with this content."""
        return cls(file=name, digest=hashlib.sha256(data).hexdigest())

    def read(self, description: Path) -> bytes:
        """The file, checked.  ModelError: it cannot be read, or is another one."""
        path = description.parent / self.file
        try:
            data = read_file(path)
        except OSError as error:
            text = f"cannot be read: {error.strerror}; it is a part of {description}"
            raise ModelError(f"{path}: {text}") from error
        if hashlib.sha256(data).hexdigest() != self.digest:
            text = f"is not the file that {description} was written with"
            raise ModelError(f"{path}: {text}; compile with --cut again")
        return data


@dataclass(frozen=True, slots=True, kw_only=True)
class CutFile:
    """source: SHA-256 of the ONNX file, hex.  parts: by their names in PARTS.

    `inside` is there, and one of the others, unless an output is an input as well.
    """

    source: str
    inputs: Mapping[str, End]
    outputs: Mapping[str, End]
    parts: Mapping[str, PartFile]


def dumps(cut: CutFile) -> bytes:
    """The content of the file."""
    value = {
        "format": FORMAT,
        "version": VERSION,
        "compiled_from": cut.source,
        "inputs": _ends(cut.inputs),
        "outputs": _ends(cut.outputs),
        **{
            name: {"file": part.file, "sha256": part.digest}
            for name, part in cut.parts.items()
        },
    }
    return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()


def _ends(ends: Mapping[str, End]) -> list[dict[str, Any]]:
    return [
        {"name": name, "type": end.dtype or None, "shape": end.shape}
        for name, end in ends.items()
    ]


def recognise(data: bytes) -> bool:
    """True if this looks like a description."""
    return data.lstrip()[:1] == b"{" and f'"{FORMAT}"'.encode() in data[:256]


def load(path: Path) -> CutFile:
    """Read and check a description.  ModelError names the file and the entry."""
    with reading(path, ModelError):
        data = read_file(path, most=MAX_BYTES)
    try:
        text = checks.decode(data, str(path))
        return _checked(path, strict_json.loads(text, source=str(path)))
    except TableError as error:
        raise ModelError(error.text) from error


def _checked(path: Path, value: Any) -> CutFile:
    if not isinstance(value, JsonObject) or value.get("format") != FORMAT:
        text = "is no description of a cut network, as compile --cut writes it"
        raise ModelError(f"{path}: {text}")
    if value.get("version") != VERSION or isinstance(value["version"], bool):
        text = f"is of a version that this neon8 does not read; it reads {VERSION}"
        raise ModelError(f"{path}: {text}")
    needed = {"format", "version", "compiled_from", "inputs", "outputs", "inside"}
    _check_keys(path, value, needed, ("before", "after"))
    inputs, outputs = (_read_ends(path, n, value[n]) for n in ("inputs", "outputs"))
    if not {"before", "after"} & set(value) and inputs.keys().isdisjoint(outputs):
        raise ModelError(f"{path}: nothing stands before or after the .n8 file")
    return CutFile(
        source=_digest(f"{path}: 'compiled_from'", value["compiled_from"]),
        inputs=inputs,
        outputs=outputs,
        parts={name: _part(path, name, value[name]) for name in PARTS if name in value},
    )


def _check_keys(
    where: str | Path, value: Any, needed: set[str], more: Iterable[str] = ()
) -> None:
    if not isinstance(value, JsonObject):
        raise ModelError(f"{where}: expected an object")
    for key in sorted(needed - set(value)):
        raise ModelError(f"{where}: lacks {key!r}")
    for key in value:
        if key not in {*needed, *more}:
            raise ModelError(f"{where}: has {key[:40]!r}, which is unknown")


def _read_ends(path: Path, what: str, value: Any) -> dict[str, End]:
    if not isinstance(value, list) or not value:
        raise ModelError(f"{path}: {what!r} is not a list of {what}")
    ends: dict[str, End] = {}
    for number, entry in enumerate(value):
        where = f"{path}: entry {number} of {what!r}"
        _check_keys(where, entry, END_KEYS)
        name = checks.string(f"{where}: 'name'", entry["name"])
        if name in ends:
            raise ModelError(f"{where}: {name[:40]!r} is there twice")
        dtype, dims = entry["type"], entry["shape"]
        known = dtype in NUMBERS if isinstance(dtype, str) else dtype is None
        if not known:
            text = "'type' is neither a type of numbers, such as float32, nor null"
            raise ModelError(f"{where}: {text}")
        if dims is not None and (not isinstance(dims, list) or len(dims) > MAX_RANK):
            text = f"'shape' is neither a list of up to {MAX_RANK} sizes nor null"
            raise ModelError(f"{where}: {text}")
        if what == "inputs" and None in (dtype, dims):
            raise ModelError(f"{where}: an input has a type and a shape")
        shape = None
        if dims is not None:
            size = f"{where}: a size"
            shape = tuple(checks.integer(size, dim, 0, MAX_DIM) for dim in dims)
        ends[name] = End(dtype=dtype or "", shape=shape)
    return ends


def _part(path: Path, name: str, value: Any) -> PartFile:
    where = f"{path}: {name!r}"
    _check_keys(where, value, {"file", "sha256"})
    file = checks.string(f"{where}: 'file'", value["file"])
    if file != Path(file).name or file in (".", "..") or "\0" in file or "\\" in file:
        text = "'file' is not the name of a file beside the description"
        raise ModelError(f"{where}: {text}")
    return PartFile(file=file, digest=_digest(f"{where}: 'sha256'", value["sha256"]))


def _digest(where: str, value: Any) -> str:
    text = checks.string(where, value)
    if len(text) != DIGEST or set(text) - set("0123456789abcdef"):
        raise ModelError(f"{where} is no SHA-256 of {DIGEST} hexadecimal digits")
    return text
