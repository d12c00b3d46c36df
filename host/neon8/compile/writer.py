# SPDX-License-Identifier: Apache-2.0
"""Program to the bytes of a .n8 file: neon8_format.h's structs, filled through cffi."""

import dataclasses
import math
import struct
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

from neon8.errors import CompileError
from neon8.ir.program import Op, Program, Tensor
from neon8.runtime import library
from neon8.runtime.model import MAGIC, TYPES

ALIGN_TABLE = 8
CHECKSUM_OFFSET = 12
"""Offset of the checksum; it covers all bytes after itself."""

OP_FIELDS = ("name", "inputs", "output", "kind")
"""Fields of an op that are not copied: they are links, strings and the kind."""

ARRAYS = {
    "bias": "<i4",
    "multiplier": "<f4",
    "bias_f32": "<f4",
    "slopes": "<f4",
    "table": "<i1",
    "indices": "<i4",
    "values": "<f4",
}

WEIGHT_AXES = 4
"""The weights of a convolution have O, kh, kw and I / groups."""

MAX_TENSOR_BYTES = 2**31 - 1
PIXEL_ALIGN = 8
FULL_SIZE = 4
"""Bytes of a value of float32 or int32, of which pixels have no padding."""
SLACK = 64


def dumps(prog: Program) -> bytes:
    """The .n8 file of `prog`; the same program gives the same bytes.

    CompileError: a name, a dimension or a count is beyond what the format holds.
    """
    ffi = library.declarations(library.find().parent / library.RUNTIME.header)
    layout = _Layout(ffi)
    tensors = list(prog.tensors.values())
    number = {tensor.name: index for index, tensor in enumerate(tensors)}
    links = [number[name] for name in (*prog.inputs, *prog.outputs)]
    tensor_rows = b"".join(layout.tensor(tensor) for tensor in tensors)
    first_links = []
    for op in prog.ops:
        first_links.append(len(links))
        links += [number[name] for name in op.inputs]
    for what, count in (
        ("tensors", len(tensors)),
        ("steps", len(prog.ops)),
        ("links", len(links)),
    ):
        if count > layout.limits["N8_FORMAT_MAX_COUNT"]:
            raise CompileError(
                f"the network has {count} {what}, too many for a .n8 file"
            )

    # Sizes first: offsets of arrays are absolute, and all tables come before the data.
    names = [layout.name(op.name) for op in prog.ops]
    header_size = ffi.sizeof("struct n8_file_header")
    tensors_at = round_up(header_size, ALIGN_TABLE)
    ops_at = round_up(tensors_at + len(tensor_rows), ALIGN_TABLE)
    ops_size = len(prog.ops) * ffi.sizeof("struct n8_file_op")
    links_at = round_up(ops_at + ops_size, ALIGN_TABLE)
    strings_at = round_up(links_at + 4 * len(links), ALIGN_TABLE)
    data_at = round_up(strings_at + len(layout.strings), layout.align_data)
    op_rows = b"".join(
        layout.op(op, name, first, number[op.output], data_at=data_at)
        for op, name, first in zip(prog.ops, names, first_links, strict=True)
    )

    header = ffi.new("struct n8_file_header *")
    header.magic[0 : len(MAGIC)] = MAGIC
    header.version = layout.limits["N8_FORMAT_VERSION"]
    header.file_size = data_at + len(layout.data)
    header.source_digest[0:32] = bytes.fromhex(prog.source_digest)
    header.tensor_count = len(tensors)
    header.op_count = len(prog.ops)
    header.link_count = len(links)
    header.input_count = len(prog.inputs)
    header.output_count = len(prog.outputs)
    header.strings_size = len(layout.strings)
    header.tensors = tensors_at
    header.ops = ops_at
    header.links = links_at
    header.strings = strings_at
    header.data = data_at
    header.data_size = len(layout.data)
    file = bytearray(header.file_size)
    for at, part in (
        (0, bytes(ffi.buffer(header))),
        (tensors_at, tensor_rows),
        (ops_at, op_rows),
        (links_at, struct.pack(f"<{len(links)}I", *links)),
        (strings_at, layout.strings),
        (data_at, layout.data),
    ):
        file[at : at + len(part)] = part
    checksum = zlib.crc32(file[CHECKSUM_OFFSET + 4 :])
    struct.pack_into("<I", file, CHECKSUM_OFFSET, checksum)
    return bytes(file)


class _Layout:
    """Rows, names and arrays while they are collected."""

    def __init__(self, ffi: Any) -> None:
        self.ffi = ffi
        self.limits: dict[str, int] = ffi.typeof("enum n8_format").relements
        self.kinds: dict[str, int] = ffi.typeof("enum n8_op").relements
        self.types: dict[str, int] = ffi.typeof("enum n8_type").relements
        self.flags: dict[str, int] = ffi.typeof("enum n8_op_flags").relements
        self.functions: dict[str, int] = ffi.typeof("enum n8_function").relements
        self.align_data = self.limits["N8_FORMAT_ALIGN_DATA"]
        self.strings = bytearray()
        self.data = bytearray()
        self.offsets: dict[str, int] = {}

    def name(self, text: str) -> int:
        """Offset of a name in the strings; each name is stored once."""
        if text not in self.offsets:
            encoded = text.encode()
            if b"\0" in encoded or len(encoded) > self.limits["N8_FORMAT_MAX_NAME"]:
                raise CompileError(
                    f"name {text[:40]!r}... has a NUL or more than "
                    f"{self.limits['N8_FORMAT_MAX_NAME']} bytes; rename it in the model"
                )
            self.offsets[text] = len(self.strings)
            self.strings += encoded + b"\0"
        return self.offsets[text]

    def reason(self, text: str) -> int:
        """Offset of a reason; one with very long names in it is cut off."""
        most = self.limits["N8_FORMAT_MAX_NAME"]
        return self.name(text.encode()[:most].decode(errors="ignore"))

    def array(self, values: npt.NDArray[Any] | None, dtype: str, data_at: int) -> int:
        """Offset in the file of an array that is appended to the data; 0 for None."""
        if values is None:
            return 0
        self.data += bytes(-len(self.data) % self.align_data)
        at = data_at + len(self.data)
        self.data += np.ascontiguousarray(values, dtype).tobytes()
        return at

    def tensor(self, tensor: Tensor) -> bytes:
        """One n8_file_tensor."""
        top = self.limits["N8_FORMAT_MAX_DIM"]
        rank, most = len(tensor.dims), self.limits["N8_FORMAT_MAX_RANK"]
        in_range = all(1 <= size <= top for size in (*tensor.dims, *tensor.shape))
        if rank > most or not in_range or not tensor_fits(tensor):
            raise CompileError(
                f"tensor {tensor.name!r}: shape {tensor.dims} is beyond a .n8 file"
            )
        row = self.ffi.new("struct n8_file_tensor *")
        row.name = self.name(tensor.name)
        row.type = self.types[TYPES[tensor.dtype]]
        row.rank = rank
        row.dims = (*tensor.dims, *(1,) * (most - rank))
        row.scale = float(tensor.scale)
        row.zero_point = tensor.zero_point
        row.lo = tensor.lo
        row.hi = tensor.hi
        row.reason = self.reason(tensor.reason) if tensor.reason else 0
        return bytes(self.ffi.buffer(row))

    def op(
        self,
        op: Op,
        name: int,
        first: int,
        output: int,
        *,
        data_at: int,
    ) -> bytes:
        """One n8_file_op; its arrays go to the data."""
        row = self.ffi.new("struct n8_file_op *")
        row.name = name
        row.inputs = first
        row.input_count = len(op.inputs)
        row.output = output
        row.slope = 1
        row.kernel = row.stride = row.dilation = (1, 1)
        row.groups = 1
        row.lo, row.hi = -128, 127
        row.int16_depth = 2
        row.kind = self.kinds[f"N8_OP_{op.operation}"]
        for item in dataclasses.fields(op):
            if item.name not in OP_FIELDS:
                self.put(row, item.name, getattr(op, item.name), data_at)
        return bytes(self.ffi.buffer(row))

    def put(self, row: Any, name: str, value: Any, data_at: int) -> None:
        """One field of an op; the arrays come in the order of the fields."""
        match name:
            case "pads":
                row.pad, row.pad_end = value[:2], value[2:]
            case "strides":
                row.stride = value
            case "dilations":
                row.dilation = value
            case "count_pad" | "reverse" | "linear_before_reset":
                row.flags |= self.flags[f"N8_OP_{name.upper()}"] if value else 0
            case "winograd":
                row.flags |= (
                    self.flags[f"N8_OP_WINOGRAD_{value.upper()}"] if value else 0
                )
            case "function":
                row.function = self.functions[f"N8_FUNCTION_{value.upper()}"]
            case "lines":
                row.table = self.array(value, "<i2", data_at)
            case "levels":
                kind = "<i1" if value is None else f"<i{value.dtype.itemsize}"
                at = self.array(value, kind, data_at)
                row.indices, row.weights = (at, 0) if kind == "<i4" else (0, at)
            case "weights":
                row.kernel = value.shape[1:3] if value.ndim == WEIGHT_AXES else (1, 1)
                wide = value.dtype == np.int16
                row.flags |= self.flags["N8_OP_WEIGHTS_S16"] if wide else 0
                row.weights = self.array(value, "<i2" if wide else "<i1", data_at)
            case _ if name in ARRAYS:
                setattr(row, name, self.array(value, ARRAYS[name], data_at))
            case _:
                setattr(row, name, value)


def tensor_fits(tensor: Tensor) -> bool:
    """True if the runtime can hold the tensor, padded channels included."""
    batch, channels, height, width = tensor.shape
    size = np.dtype(tensor.dtype).itemsize
    pixel = (channels if size == FULL_SIZE else round_up(channels, PIXEL_ALIGN)) * size
    return math.prod((batch, height, width, pixel)) + SLACK + 63 <= MAX_TENSOR_BYTES


def round_up(value: int, align: int) -> int:
    """The least multiple of `align` that is not below `value`."""
    return -(-value // align) * align
