# SPDX-License-Identifier: Apache-2.0
"""A .n8 file as the structs of neon8_format.h, to be damaged on purpose."""

import re
import struct
import zlib

import pytest

from neon8.compile import writer
from neon8.errors import ModelError
from neon8.runtime import Model, library

CHECKED_FROM = 16
CONSTANTS = {"nan": float("nan"), "inf": float("inf"), "INT8": 1, "INT16": 5}
ARRAYS = {
    **dict.fromkeys(("multiplier", "bias_f32", "slopes", "values"), "float *"),
    **dict.fromkeys(("bias", "indices"), "int32_t *"),
    "weights": "int8_t *",
}
"""What the offsets in a layer's row point to."""


def damages(table):
    """(reason, place, damage) of a table: a reason, and below it what brings it about.

    A line has a place and statements, as File.damage() has them. The last one may have
    several values, of which each is tried.
    """
    reason = ""
    for line in table.splitlines():
        if not line.startswith(" "):
            reason = line
            continue
        place, _, text = line.strip().partition(": ")
        first, *others = text.split(" / ")
        start = first.rpartition(" = ")[0]
        yield reason, place, first
        for value in others:
            yield reason, place, f"{start} = {value}"


def with_checksum(content) -> bytes:
    """The content with a checksum that is right again."""
    fresh = bytearray(content)
    struct.pack_into("<I", fresh, 12, zlib.crc32(fresh[CHECKED_FROM:]))
    return bytes(fresh)


def refusal(content) -> str:
    """What opening says."""
    with pytest.raises(ModelError) as caught:
        Model.from_bytes(content, source="net.n8")
    return str(caught.value)


def said_of(place, reason) -> str:
    """The whole of what opening says."""
    kind, _, name = place.rpartition(" ")
    where = "" if place == "file" else f"{kind or 'layer'} {name!r}: "
    return f"net.n8: {where}{reason}"


class Row:
    """A struct of a file: its arrays are where its offsets are, and 1 follows dims."""

    def __init__(self, file, struct) -> None:
        """file: a File."""
        vars(self).update(file=file, struct=struct)

    def __getattr__(self, field):
        """What an index may follow."""
        value = getattr(self.struct, field)
        return self.file.part(ARRAYS[field], value) if field in ARRAYS else value

    def __setattr__(self, field, value) -> None:
        """Offsets are numbers."""
        more = (1,) * (8 - len(value)) if field == "dims" else ()
        setattr(self.struct, field, value + more if more else value)


class File:
    """The file of a program; its fields can be written through the structs.

    header, tensors, ops: the structs; links: tensor numbers.  step, tensor: a row by
    the name of its layer or tensor.
    """

    def __init__(self, program, content=None) -> None:
        """Take a copy of its bytes, or compile it."""
        self.program = program
        self.bytes = bytearray(content or writer.dumps(program))
        self.ffi = library.load().ffi
        self.at = self.ffi.from_buffer(self.bytes)
        self.header = self.part("struct n8_file_header *", 0)[0]
        self.tensors = self.part("struct n8_file_tensor *", self.header.tensors)
        self.ops = self.part("struct n8_file_op *", self.header.ops)
        self.links = self.part("uint32_t *", self.header.links)

    def part(self, kind, offset):
        """A pointer into the file."""
        return self.ffi.cast(kind, self.at + offset)

    def step(self, name):
        """The row of a layer."""
        return self.ops[[op.name for op in self.program.ops].index(name)]

    def number(self, name):
        """The number of a tensor."""
        return list(self.program.tensors).index(name)

    def tensor(self, name):
        """The row of a tensor."""
        return self.tensors[self.number(name)]

    def link(self, name, which, tensor):
        """Let input `which` of a layer be another tensor."""
        self.links[self.step(name).inputs + which] = self.number(tensor)

    def damage(self, place, text) -> None:
        """Carry out statements like "lo = -127; tensor.dims = 1, 4; input 1 = x".

        place: "file", "tensor NAME" or the name of a layer, whose fields those are that
        this object does not have; "tensor" alone is what the layer makes.
        """
        known = (
            CONSTANTS
            | vars(self)
            | {
                "number": self.number,
                "step": self.step,
                "tensor": lambda name: Row(self, self.tensor(name)),
            }
        )
        kind, _, name = place.rpartition(" ")
        if place != "file":
            known["row"] = Row(self, self.tensor(name) if kind else self.step(name))
        for statement in text.split("; "):
            if statement.startswith("input "):
                which, _, other = statement.removeprefix("input ").partition(" = ")
                self.link(name, int(which), other)
                continue
            code = re.sub(r"^tensor\.", f"tensor {name}.", statement)
            code = re.sub(r"^tensor (\w+)\.", r'tensor("\1").', code)
            if re.match(r"\w+", code)[0] not in known:
                code = f"row.{code}"
            exec(code, known)  # noqa: S102 - the tests' own words

    def content(self) -> bytes:
        """The bytes, with a checksum that is right."""
        return with_checksum(self.bytes)
