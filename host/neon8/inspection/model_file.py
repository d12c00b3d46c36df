# SPDX-License-Identifier: Apache-2.0
"""A checked reader of .n8 files, for people who want to look; the runtime has its own.

The structs are those of runtime/include/neon8_format.h, through cffi.  Every offset and
count is checked before it is used: a file from outside may hold anything.
"""

import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neon8.errors import ModelError
from neon8.runtime import library

MAGIC = b"\x89N8\r\n\x1a\n\0"
_CHECKED_FROM = 16

TYPES = {"N8_TYPE_S8": "int8", "N8_TYPE_F32": "float32"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTensor:
    """shape: as in ONNX, `rank` dimensions; lo, hi: the range of q."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    scale: float
    zero_point: int
    lo: int
    hi: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOp:
    """acc_bound and int16_depth: the proofs (12) and (11), conv2d only."""

    name: str
    operation: str
    inputs: tuple[FileTensor, ...]
    output: FileTensor
    kernel: tuple[int, int]
    stride: tuple[int, int]
    groups: int
    acc_bound: int
    int16_depth: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """digest: SHA-256 of the ONNX file that it was compiled from, hex."""

    version: int
    size: int
    checksum: int
    digest: str
    data_size: int
    inputs: tuple[FileTensor, ...]
    outputs: tuple[FileTensor, ...]
    ops: tuple[FileOp, ...]


def load(path: Path) -> ModelFile:
    """The contents of the model file at `path`.  ModelError."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror}") from error
    return read(str(path), data)


def read(source: str, data: bytes) -> ModelFile:
    """The contents of a model file; `source` names it in errors.

    ModelError: not a model, damaged, or of another version.
    """
    if not data.startswith(MAGIC):
        raise ModelError(f"{source}: not a neon8 model")
    ffi = library.declarations(library.find().parent / library.CDEF_NAME)
    file = _File(source, data, ffi, ffi.typeof("enum n8_format").relements)
    header = file.table("header", "struct n8_file_header", 0, 1)[0]
    check_header(file, header)
    strings = file.section("names", header.strings, header.strings_size)
    kinds = names_of(ffi, "enum n8_op")
    types = names_of(ffi, "enum n8_type")

    rows = file.table(
        "tensors", "struct n8_file_tensor", header.tensors, header.tensor_count
    )
    tensors = tuple(tensor_of(file, row, strings, types) for row in rows)
    numbers = file.table("links", "uint32_t", header.links, header.link_count)
    links = tuple(tensors[file.within("link", i, len(tensors))] for i in numbers)
    ends = header.input_count + header.output_count
    file.within("last output", ends, len(links) + 1)
    rows = file.table("steps", "struct n8_file_op", header.ops, header.op_count)
    return ModelFile(
        version=header.version,
        size=len(data),
        checksum=header.checksum,
        digest=bytes(header.source_digest).hex(),
        data_size=len(file.section("data", header.data, header.data_size)),
        inputs=links[: header.input_count],
        outputs=links[header.input_count : ends],
        ops=tuple(op_of(file, row, strings, kinds, tensors, links) for row in rows),
    )


@dataclass(frozen=True, slots=True)
class _File:
    """A file and how its parts are reached.  limits: enum n8_format."""

    source: str
    data: bytes
    ffi: Any
    limits: dict[str, int]

    def bad(self, what: str) -> ModelError:
        """The error that says what is wrong with the file."""
        return ModelError(f"{self.source}: {what}")

    def within(self, what: str, index: int, count: int) -> int:
        """`index`, if it is below `count`."""
        if index >= count:
            raise self.bad(f"{what} {index} of {count}: damaged")
        return index

    def section(self, what: str, offset: int, size: int) -> bytes:
        """The bytes from `offset` on."""
        if offset > len(self.data) or size > len(self.data) - offset:
            raise self.bad(f"{what}: {size} bytes at {offset} lie outside the file")
        return self.data[offset : offset + size]

    def table(self, what: str, kind: str, offset: int, count: int) -> Any:
        """An array of `count` structs, copied so that it is aligned for cffi."""
        if count > self.limits["N8_FORMAT_MAX_COUNT"]:
            raise self.bad(f"{count} {what} are too many")
        size = count * self.ffi.sizeof(kind)
        part = self.section(what, offset, size)
        array = self.ffi.new(f"{kind}[]", count)
        self.ffi.memmove(array, part, size)
        return array

    def name(self, strings: bytes, offset: int) -> str:
        """The name that starts at `offset` of the names."""
        end = strings.find(b"\0", offset)
        if not offset <= end <= offset + self.limits["N8_FORMAT_MAX_NAME"]:
            raise self.bad(f"no name at {offset}: damaged")
        return strings[offset:end].decode(errors="replace")


def check_header(file: _File, header: Any) -> None:
    """ModelError if version, size or checksum are not what they must be."""
    if header.version != file.limits["N8_FORMAT_VERSION"]:
        raise file.bad(f"format version {header.version} is not supported")
    if header.file_size != len(file.data):
        raise file.bad(
            f"{len(file.data)} bytes of {header.file_size}: cut off or damaged"
        )
    if header.checksum != zlib.crc32(file.data[_CHECKED_FROM:]):
        raise file.bad("the checksum is wrong: damaged")


def names_of(ffi: Any, enum: str) -> dict[int, str]:
    """Value to name of a C enum."""
    elements: dict[int, str] = ffi.typeof(enum).elements
    return elements


def tensor_of(
    file: _File, row: Any, strings: bytes, types: dict[int, str]
) -> FileTensor:
    """One n8_file_tensor."""
    kind = types.get(row.type, "")
    if kind not in TYPES or not 1 <= row.rank <= len(row.dims):
        raise file.bad(f"a tensor of type {row.type} and rank {row.rank}: damaged")
    return FileTensor(
        name=file.name(strings, row.name),
        dtype=TYPES[kind],
        shape=tuple(row.dims)[: row.rank],
        scale=row.scale,
        zero_point=row.zero_point,
        lo=row.lo,
        hi=row.hi,
    )


def op_of(
    file: _File,
    row: Any,
    strings: bytes,
    kinds: dict[int, str],
    tensors: tuple[FileTensor, ...],
    links: tuple[FileTensor, ...],
) -> FileOp:
    """One n8_file_op."""
    if row.kind not in kinds:
        raise file.bad(f"a step of kind {row.kind}: damaged")
    last = file.within("input", row.inputs + row.input_count, len(links) + 1)
    return FileOp(
        name=file.name(strings, row.name),
        operation=kinds[row.kind].removeprefix("N8_OP_").lower(),
        inputs=links[row.inputs : last],
        output=tensors[file.within("output", row.output, len(tensors))],
        kernel=(row.kernel[0], row.kernel[1]),
        stride=(row.stride[0], row.stride[1]),
        groups=row.groups,
        acc_bound=row.acc_bound,
        int16_depth=row.int16_depth,
    )
