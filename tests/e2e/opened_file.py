# SPDX-License-Identifier: Apache-2.0
"""A .n8 file as the structs of neon8_format.h, to be damaged on purpose."""

import struct
import zlib

from neon8.compile import writer
from neon8.runtime import library

CHECKED_FROM = 16


class File:
    """The file of a program; its fields can be written through the structs.

    header, tensors, ops: the structs; links: tensor numbers.  step, tensor: a row by
    the name of its layer or tensor.
    """

    def __init__(self, program) -> None:
        """Compile it."""
        self.program = program
        self.bytes = bytearray(writer.dumps(program))
        folder = library.find().parent
        self.ffi = library.declarations(folder / library.CDEF_NAME)
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

    def content(self) -> bytes:
        """The bytes, with a checksum that is right."""
        fresh = bytearray(self.bytes)
        struct.pack_into("<I", fresh, 12, zlib.crc32(fresh[CHECKED_FROM:]))
        return bytes(fresh)
