# SPDX-License-Identifier: Apache-2.0
"""Program to the bytes of a .n8 file: neon8_format.h's structs, filled through cffi."""

import dataclasses
import math
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from neon8.errors import CompileError
from neon8.ir.program import Op, Program, Tensor
from neon8.ir.sizes import Form, Segment, Sizes, evaluated, value
from neon8.runtime import library
from neon8.runtime.model import MAGIC
from neon8.runtime.structs import TYPES

ENUMS = (
    *("format", "op", "type", "op_flags", "function"),
    *("size_kind", "form_kind", "segment_kind"),
)
"""Those of neon8_format.h whose constants stand in a file."""

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
MOST_SIZES = 2**20
"""Sizes, and words of forms, that a file has."""


def dumps(prog: Program) -> bytes:
    """The .n8 file of `prog`; the same program gives the same bytes.

    CompileError: a name, a dimension or a count is beyond what the format holds.
    """
    ffi = library.declarations(library.find().parent / library.RUNTIME.header)
    layout = _Layout(ffi)
    tensors = list(prog.tensors.values())
    number = {tensor.name: index for index, tensor in enumerate(tensors)}
    links = [number[name] for name in (*prog.inputs, *prog.outputs)]
    for tensor in largest(prog):
        layout.check(tensor)
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
        if count > layout.codes["N8_FORMAT_MAX_COUNT"]:
            raise CompileError(
                f"the network has {count} {what}, too many for a .n8 file"
            )

    # Sizes first: offsets of arrays are absolute, and all tables come before the data.
    names = [layout.name(op.name) for op in prog.ops]
    sizes = {
        "header": ffi.sizeof("struct n8_file_header"),
        "shapes": ffi.sizeof("struct n8_file_shapes") if prog.open else 0,
        "tensors": len(tensor_rows),
        "ops": len(prog.ops) * ffi.sizeof("struct n8_file_op"),
        "links": 4 * len(links),
        "strings": len(layout.strings),
    }
    opened = {} if prog.open is None else layout.opened(prog.open)
    sizes |= {name: len(rows) for name, rows in opened.items()}
    places: dict[str, int] = {}
    end = 0
    for name, size in sizes.items():
        places[name] = round_up(end, ALIGN_TABLE)
        end = places[name] + size
    data_at = places["data"] = round_up(end, layout.align_data)
    forms = {} if prog.open is None else prog.open.forms
    made = {key: 2 * number + 1 for number, key in enumerate(forms)}
    op_rows = b"".join(
        layout.op(
            op,
            name,
            first,
            number[op.output],
            data_at=data_at,
            forms={field: form for (at, field), form in made.items() if at == place},
        )
        for place, (op, name, first) in enumerate(
            zip(prog.ops, names, first_links, strict=True)
        )
    )

    header = ffi.new("struct n8_file_header *")
    header.magic[0 : len(MAGIC)] = MAGIC
    version = "N8_FORMAT_VERSION_OPEN" if prog.open else "N8_FORMAT_VERSION"
    header.version = layout.codes[version]
    header.file_size = data_at + len(layout.data)
    header.source_digest[0:32] = bytes.fromhex(prog.source_digest)
    header.tensor_count, header.op_count = len(tensors), len(prog.ops)
    header.link_count = len(links)
    header.input_count, header.output_count = len(prog.inputs), len(prog.outputs)
    header.strings_size, header.data_size = len(layout.strings), len(layout.data)
    for name in ("tensors", "ops", "links", "strings", "data"):
        setattr(header, name, places[name])
    parts = {
        "header": bytes(ffi.buffer(header)),
        "shapes": layout.shapes(prog.open, places, sizes["words"] // 4)
        if prog.open
        else b"",
        "tensors": tensor_rows,
        "ops": op_rows,
        "links": struct.pack(f"<{len(links)}I", *links),
        "strings": layout.strings,
        **opened,
        "data": layout.data,
    }
    file = bytearray(header.file_size)
    for name, part in parts.items():
        file[places[name] : places[name] + len(part)] = part
    checksum = zlib.crc32(file[CHECKSUM_OFFSET + 4 :])
    struct.pack_into("<I", file, CHECKSUM_OFFSET, checksum)
    return bytes(file)


class _Layout:
    """Rows, names and arrays while they are collected."""

    def __init__(self, ffi: Any) -> None:
        self.ffi = ffi
        self.codes: dict[str, int] = {}
        for name in ENUMS:
            self.codes |= ffi.typeof(f"enum n8_{name}").relements
        self.align_data = self.codes["N8_FORMAT_ALIGN_DATA"]
        self.strings = bytearray()
        self.data = bytearray()
        self.offsets: dict[str, int] = {}

    def name(self, text: str) -> int:
        """Offset of a name in the strings; each name is stored once."""
        if text not in self.offsets:
            encoded = text.encode()
            if b"\0" in encoded or len(encoded) > self.codes["N8_FORMAT_MAX_NAME"]:
                raise CompileError(
                    f"name {text[:40]!r}... has a NUL or more than "
                    f"{self.codes['N8_FORMAT_MAX_NAME']} bytes; rename it in the model"
                )
            self.offsets[text] = len(self.strings)
            self.strings += encoded + b"\0"
        return self.offsets[text]

    def reason(self, text: str) -> int:
        """Offset of a reason; one with very long names in it is cut off."""
        most = self.codes["N8_FORMAT_MAX_NAME"]
        return self.name(text.encode()[:most].decode(errors="ignore"))

    def array(self, values: npt.NDArray[Any] | None, dtype: str, data_at: int) -> int:
        """Offset in the file of an array that is appended to the data; 0 for None."""
        if values is None:
            return 0
        self.data += bytes(-len(self.data) % self.align_data)
        at = data_at + len(self.data)
        self.data += np.ascontiguousarray(values, dtype).tobytes()
        return at

    def check(self, tensor: Tensor) -> None:
        """CompileError: the format does not hold a tensor of this shape."""
        top = self.codes["N8_FORMAT_MAX_DIM"]
        most = self.codes["N8_FORMAT_MAX_RANK"]
        in_range = all(1 <= size <= top for size in (*tensor.dims, *tensor.shape))
        if tensor.rank > most or not in_range or not tensor_fits(tensor):
            raise CompileError(
                f"tensor {tensor.name!r}: shape {tensor.dims} is beyond a .n8 file"
            )

    def tensor(self, tensor: Tensor) -> bytes:
        """One n8_file_tensor."""
        rank, most = tensor.rank, self.codes["N8_FORMAT_MAX_RANK"]
        row = self.ffi.new("struct n8_file_tensor *")
        row.name = self.name(tensor.name)
        row.type = self.codes[TYPES[tensor.dtype]]
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
        forms: Mapping[str, int],
    ) -> bytes:
        """One n8_file_op; its arrays go to the data.

        forms: of arrays that depend on sizes, what stands for their offset.
        """
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
        row.kind = self.codes[f"N8_OP_{op.operation}"]
        for item in dataclasses.fields(op):
            if item.name in forms:
                name_of = "indices" if item.name == "levels" else item.name
                setattr(row, name_of, forms[item.name])
            elif item.name not in OP_FIELDS:
                self.put(row, item.name, getattr(op, item.name), data_at)
        return bytes(self.ffi.buffer(row))

    def opened(self, found: Sizes) -> dict[str, bytes]:
        """The parts of a file with open sizes that stand before the data."""
        words = [self.words(form) for form in found.forms.values()]
        for what, count in (
            ("sizes", len(found.sizes)),
            ("words of forms", sum(map(len, words))),
        ):
            if count > MOST_SIZES:
                raise CompileError(f"{count} {what} are too many for a .n8 file")
        symbols = [(s.lo, s.hi, s.step, s.usual) for s in found.symbols]
        sizes = [
            (self.codes[f"N8_SIZE_{size.kind.upper()}"], size.a, size.b)
            for size in found.sizes
        ]
        forms = [
            (self.codes[f"N8_FORM_{form_kind(form, field)}"], len(each))
            for ((_, field), form), each in zip(found.forms.items(), words, strict=True)
        ]
        return {
            "symbols": rows("4i", symbols),
            "sizes": rows("I2i", sizes),
            "forms": rows("2I", forms),
            "words": b"".join(struct.pack(f"<{len(w)}i", *w) for w in words),
        }

    def words(self, form: Form) -> list[int]:
        """A form as the file has it."""
        words: list[int] = []
        for part in form:
            if isinstance(part, Segment):
                kind = self.codes[f"N8_SEGMENT_{part.kind.upper()}"]
                words += (kind, *part.words)
            else:
                words.append(part)
        return words

    def shapes(self, found: Sizes, places: Mapping[str, int], words: int) -> bytes:
        """The n8_file_shapes.  places: of the parts.  words: how many."""
        row = self.ffi.new("struct n8_file_shapes *")
        row.symbol_count = len(found.symbols)
        row.size_count = len(found.sizes)
        row.form_count = len(found.forms)
        row.word_count = words
        for part in ("symbols", "sizes", "forms", "words"):
            setattr(row, part, places[part])
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
                row.flags |= self.codes[f"N8_OP_{name.upper()}"] if value else 0
            case "winograd":
                row.flags |= (
                    self.codes[f"N8_OP_WINOGRAD_{value.upper()}"] if value else 0
                )
            case "function":
                row.function = self.codes[f"N8_FUNCTION_{value.upper()}"]
            case "lines":
                row.table = self.array(value, "<i2", data_at)
            case "levels":
                kind = "<i1" if value is None else f"<i{value.dtype.itemsize}"
                at = self.array(value, kind, data_at)
                row.indices, row.weights = (at, 0) if kind == "<i4" else (0, at)
            case "weights":
                row.kernel = value.shape[1:3] if value.ndim == WEIGHT_AXES else (1, 1)
                wide = value.dtype == np.int16
                row.flags |= self.codes["N8_OP_WEIGHTS_S16"] if wide else 0
                row.weights = self.array(value, "<i2" if wide else "<i1", data_at)
            case _ if name in ARRAYS:
                setattr(row, name, self.array(value, ARRAYS[name], data_at))
            case _:
                setattr(row, name, value)


def largest(prog: Program) -> list[Tensor]:
    """Its tensors, as they are where all open dimensions are at their upper bound."""
    if prog.open is None:
        return list(prog.tensors.values())
    sizes = evaluated(prog.open.sizes, [symbol.hi for symbol in prog.open.symbols])
    return [
        dataclasses.replace(tensor, dims=tuple(value(n, sizes) for n in tensor.dims))
        for tensor in prog.tensors.values()
    ]


def form_kind(form: Form, field: str) -> str:
    """What enum n8_form_kind calls it.  field: of the step whose array it makes."""
    if not isinstance(form[0], Segment):
        return "NUMBERS"
    return "FLOATS" if field == "values" else "INTEGERS"


def rows(layout: str, table: Sequence[tuple[int, ...]]) -> bytes:
    """Structs of numbers, one after another."""
    return b"".join(struct.pack(f"<{layout}", *row) for row in table)


def tensor_fits(tensor: Tensor) -> bool:
    """True if the runtime can hold the tensor, padded channels included."""
    batch, channels, height, width = tensor.shape
    size = np.dtype(tensor.dtype).itemsize
    pixel = (channels if size == FULL_SIZE else round_up(channels, PIXEL_ALIGN)) * size
    return math.prod((batch, height, width, pixel)) + SLACK + 63 <= MAX_TENSOR_BYTES


def round_up(value: int, align: int) -> int:
    """The least multiple of `align` that is not below `value`."""
    return -(-value // align) * align
