# SPDX-License-Identifier: Apache-2.0
"""The instructions of a program, as llvm-objdump spells them."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from bench.kernels import tools
from bench.kernels.flow import Block

LINE = re.compile(r"\s*([0-9a-f]+):\s+(.+)")
FUNCTION = re.compile(r"([0-9a-f]+) <(.+)>:")
NOTE = re.compile(r"\s*(<|//).*$")
REGISTER = re.compile(r"\b(?:[wx]([0-9]+)|w?(sp)|[vqdshb]([0-9]+))\b")
BRANCH = re.compile(r"b(\.\w+|l|r|lr)?|ret|cbn?z|tbn?z")
NO_WORK = re.compile(r"nop|hint|bti|paci\w+|auti\w+|xpac\w+|svc|mrs|msr|dmb|udf")
"""Hints and system instructions, about which no model here says anything."""


class Step(NamedTuple):
    """An instruction that ran; taken: the next one does not follow it in memory."""

    text: str
    taken: bool = False


class Program:
    """Instructions by address, and the functions that they belong to."""

    def __init__(self, listing: str) -> None:
        """listing: what llvm-objdump prints."""
        self.text: dict[int, str] = {}
        self.function: dict[int, str] = {}
        name = ""
        for line in listing.splitlines():
            if found := FUNCTION.fullmatch(line):
                name = found[2]
            elif found := LINE.fullmatch(line):
                address = int(found[1], 16)
                self.text[address] = NOTE.sub("", " ".join(found[2].split()))
                self.function[address] = name

    def steps(self, blocks: Iterable[Block]) -> tuple[Step, ...]:
        """The instructions of blocks that follow one another in a circle."""
        addresses = [
            block.address + 4 * i for block in blocks for i in range(block.instructions)
        ]
        following = addresses[1:] + addresses[:1]
        return tuple(
            Step(self.text[here], after != here + 4)
            for here, after in zip(addresses, following, strict=True)
        )

    def functions(self, runs: Mapping[Block, int]) -> dict[str, int]:
        """Instructions that ran in each function.  runs: of blocks."""
        found: dict[str, int] = {}
        for block, count in runs.items():
            name = self.function[block.address]
            found[name] = found.get(name, 0) + count * block.instructions
        return found


def disassemble(objdump: str, file: Path) -> Program:
    """All code of an ELF file.  objdump: llvm-objdump.  BenchError."""
    options = ("--disassemble", "--no-show-raw-insn", "--mattr=+all")
    return Program(tools.run(objdump, *options, file))


def registers(operands: str) -> Iterator[str]:
    """x0 .. x30, sp and v0 .. v31 where they occur; parts of them by the same names."""
    for found in REGISTER.finditer(operands):
        scalar, pointer, vector = found.groups()
        yield pointer or (f"v{vector}" if scalar is None else f"x{scalar}")
