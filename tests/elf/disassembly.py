# SPDX-License-Identifier: Apache-2.0
"""What an object's code does, as text that its assembler takes again."""

import re
import subprocess
from functools import cache
from pathlib import Path
from typing import NamedTuple

from elftools.elf.elffile import ELFFile
from machines import Machine

from processes import ran

LINE = re.compile(
    r"^Disassembly of section (.*):$|^ *([0-9a-f]+):\t([0-9a-f ]+?) *\t(.*)$",
    re.MULTILINE,
)
COMMENT = re.compile(r"\s*(//|;|@).*")
TARGET = re.compile(r"\b([0-9a-f]+) <[^>]*>")
A32_WORD = 8  # digits in a row; Thumb has a space between halfwords


class Line(NamedTuple):
    section: str
    address: int
    state: str  # the directive that 32-bit code needs: .arm or .thumb
    code: str  # empty: nothing that the disassembler knows
    target: int | None  # of a branch, which goes to the next instruction in `code`


@cache
def disassembly(path: Path, machine: Machine) -> list[Line]:
    """The instructions in all sections; data between them is left out."""
    listing = subprocess.check_output([machine.tool("objdump"), "-d", path], text=True)
    lines: list[Line] = []
    section = ""
    for heading, address, word, text in LINE.findall(listing):
        if heading:
            section = heading
            continue
        code = COMMENT.sub("", text).strip()
        if re.match(r"\.(word|short|byte)\b", code):
            continue
        to = TARGET.search(code)
        code = TARGET.sub(". + 4", code)
        # Printed as the immediate's bits, read as its value; any will do.
        code = re.sub(r"^(vmov\.f(?:32|64)\s.*#).*", r"\g<1>1.0", code)
        state = ".arm" if len(word) == A32_WORD else ".thumb"
        state = state if machine.bits == 32 else ""
        target = int(to[1], 16) if to else None
        lines.append(Line(section, int(address, 16), state, code, target))
    return lines


@cache
def functions(path: Path) -> dict[str, tuple[str, range]]:
    """The section of each function that an object defines, and its addresses there."""
    with path.open("rb") as file:
        elf = ELFFile(file)
        return {
            symbol.name: (
                elf.get_section(symbol["st_shndx"]).name,
                range(symbol["st_value"], symbol["st_value"] + symbol["st_size"]),
            )
            for symbol in elf.get_section_by_name(".symtab").iter_symbols()
            if symbol["st_info"]["type"] == "STT_FUNC"
            and symbol["st_shndx"] != "SHN_UNDEF"
        }


def inside(lines: list[Line], place: tuple[str, range]) -> list[Line]:
    """Those lines of one function."""
    section, addresses = place
    return [
        line for line in lines if line.section == section and line.address in addresses
    ]


def refused(march: str, lines: list[Line], machine: Machine) -> list[str]:
    """What the assembler does not take for `march`: it knows all instructions."""
    source, state = [machine.dialect], ""
    for line in lines:
        if line.state != state:
            source.append(line.state)
            state = line.state
        source.append(line.code)
    done = ran(
        *(machine.tool("as"), f"-march={march}", "-o", "/dev/null", "-"),
        input="\n".join(source) + "\n",
    )
    unknown = [f"{line.address:#x}: no instruction" for line in lines if not line.code]
    words = [line.code for line in lines if line.code.startswith(".inst")]
    errors = [line for line in done.stderr.splitlines() if "Error" in line]
    return unknown + words + errors
