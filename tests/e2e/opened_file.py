# SPDX-License-Identifier: Apache-2.0
"""A .n8 file as the structs of neon8_format.h, to be damaged on purpose."""

import struct
import zlib

from neon8.compile import writer
from neon8.runtime import library

CHECKED_FROM = 16
CONSTANTS = {"nan": float("nan"), "inf": float("inf"), "INT8": 1, "INT16": 5}
KNOWN = ("header", "links", "number", "step")
ARRAYS = {
    **dict.fromkeys(("multiplier", "bias_f32", "slopes", "values"), "float *"),
    **dict.fromkeys(("bias", "indices"), "int32_t *"),
    "weights": "int8_t *",
}
"""What the offsets in a layer's row point to."""


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

        place: "file", "tensor NAME" or the name of a layer, whose fields those without
        an owner are. Values are Python, the other names those of this object.
        """
        for statement in text.split("; "):
            target, _, value = statement.partition(" = ")
            owner, _, field = target.partition("[")[0].rpartition(".")
            owner = {"": place, "tensor": f"tensor {place}"}.get(owner, owner)
            if field.startswith("input "):
                self.link(owner, int(field.removeprefix("input ")), value)
                continue
            value = self.value(value)
            index = (
                self.value(target[target.index("[") + 1 : -1]) if "]" in target else 0
            )
            if field in ("bytes", "links"):
                getattr(self, field)[index] = value
            elif "]" in target:
                self.part(ARRAYS[field], getattr(self.row(owner), field))[index] = value
            elif field == "dims":
                self.row(owner).dims = value + (1,) * (8 - len(value))
            else:
                setattr(self.row(owner), field, value)

    def value(self, text):
        """A Python expression of this object's attributes."""
        known = {name: getattr(self, name) for name in KNOWN}
        return eval(text, CONSTANTS | known)  # noqa: S307 - the tests' own words

    def row(self, owner):
        """The struct that "header", "tensor NAME" or the name of a layer means."""
        kind, _, name = owner.rpartition(" ")
        if kind:
            return self.tensor(name)
        return self.header if owner == "header" else self.step(name)

    def content(self) -> bytes:
        """The bytes, with a checksum that is right."""
        fresh = bytearray(self.bytes)
        struct.pack_into("<I", fresh, 12, zlib.crc32(fresh[CHECKED_FROM:]))
        return bytes(fresh)
