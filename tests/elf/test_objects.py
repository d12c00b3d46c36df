# SPDX-License-Identifier: Apache-2.0
"""Audit of the objects in libneon8.a for each machine: kernels, and what they use.

As in test_shared_library.py, each audit has to complain about a bad object first.
"""

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
from disassembly import Line, disassembly, functions, inside, refused
from elftools.elf.elffile import ELFFile
from machines import AARCH64, ARMV7, MACHINES, Machine

RUNTIME = Path(__file__).resolve().parents[2] / "runtime"
# Hints: they do nothing where they are not known, but gas wants a newer -march.
HINTS = (["bti"], ["paciasp"], ["autiasp"])


class Row(NamedTuple):
    """A row of kernels.inc."""

    slot: str
    level: str
    variant: str

    @property
    def symbol(self) -> str:
        return f"n8_{self.slot}_{self.level}{self.variant}"


def expanded(machine: Machine, name: str, *macros: str) -> str:
    """A table in runtime/ as a build for the machine has it."""
    command = [machine.tool("gcc"), "-E", "-P", "-x", "c", RUNTIME / name, *macros]
    return subprocess.check_output(command, text=True)


def rows(machine: Machine) -> list[Row]:
    kinds = ("GEMM", "DEPTHWISE", "WINOGRAD", "PART")
    text = expanded(machine, "kernels.inc", *(f"-DN8_{k}=N8_{k}" for k in kinds))
    pattern = r"N8_\w+\((\w+), (\w+)(?:, (\w*),[^)]*)?\)"
    return [Row(*row) for row in re.findall(pattern, text)]


def levels(machine: Machine) -> dict[str, str]:
    """Level -> the architecture that its kernels may use."""
    text = expanded(machine, "levels.inc")
    found = re.findall(r'N8_LEVEL\((\w+), \w+, "([^"]*)"', text)
    return {level: march or machine.baseline for level, march in found}


def wrong_kernel(path: Path, symbol: str) -> list[str]:
    """Complains unless `symbol` is a hidden function with a size."""
    with path.open("rb") as file:
        found = ELFFile(file).get_section_by_name(".symtab").get_symbol_by_name(symbol)
    if not found or found[0]["st_shndx"] == "SHN_UNDEF":
        return [f"{symbol}: not in {path.name}"]
    info, other, size = (found[0][key] for key in ("st_info", "st_other", "st_size"))
    problems = {
        "no function": info["type"] != "STT_FUNC",
        "not hidden": other["visibility"] != "STV_HIDDEN",
        "size 0": size == 0,
    }
    return [f"{symbol}: {problem}" for problem, is_so in problems.items() if is_so]


def named(value) -> str | None:
    """The part of a test's name that a machine or a row is."""
    if isinstance(value, Row):
        return value.symbol
    return value.name if isinstance(value, Machine) else None


def beyond(march: str, lines: list[Line], machine: Machine) -> list[str]:
    """Instructions that `march` does not have."""
    known = [line for line in lines if line.code.split()[:1] not in HINTS]
    return refused(march, known, machine)


def kernel(path: Path, symbol: str, machine: Machine) -> list[Line]:
    """The code of one kernel of an object."""
    return inside(disassembly(path, machine), functions(path)[symbol])


def shared(path: Path, symbols: set[str], machine: Machine) -> list[Line]:
    """All code of an object that is in none of the kernels `symbols`."""
    lines, places = disassembly(path, machine), functions(path)
    for symbol in symbols & set(places):
        own = set(inside(lines, places[symbol]))
        lines = [line for line in lines if line not in own]
    return lines


@pytest.fixture(scope="session")
def holders(objects) -> dict[str, Path]:
    """Function -> the object that defines it."""
    return {name: path for path in objects for name in functions(path)}


@pytest.mark.parametrize(
    ("machine", "row"),
    [(machine, row) for machine in MACHINES for row in rows(machine)],
    indirect=["machine"],
    ids=named,
)
def test_kernel(machine, row, holders):
    path = holders[row.symbol]
    assert (path.name == f"{row.slot}.c.o") == (row.level == "c")
    assert wrong_kernel(path, row.symbol) == []
    own = kernel(path, row.symbol, machine)
    if row.level == "c":  # with all that the compiler put beside it
        own = disassembly(path, machine)
    assert own
    assert beyond(levels(machine)[row.level], own, machine) == []


def test_a_kernel_is_read_in_two_files(machine):
    sources = list((RUNTIME.parent / "asm" / machine.name).glob("*.*"))
    text = "".join(path.read_text() for path in sources)
    assert {path.suffix for path in sources} == {".S", ".h"}
    assert set(re.findall(r'^#include "(.*)"', text, re.MULTILINE)) == {
        "asm.h",
        "kernel.h",
    }


def test_what_kernels_share(machine, objects):
    symbols = {row.symbol for row in rows(machine)}
    lowest = levels(machine)["neon"]
    assembly = [path for path in objects if path.name.endswith(".S.o")]
    assert assembly
    assert [
        f"{path.name}: {line}"
        for path in assembly
        for line in beyond(lowest, shared(path, symbols, machine), machine)
    ] == []


def code(path: Path) -> tuple[bytearray, set[int]]:
    """An object's code, and where in it are words that the linker completes."""
    with path.open("rb") as file:
        elf = ELFFile(file)
        text = bytearray(elf.get_section_by_name(".text").data())
        sections = (
            elf.get_section_by_name(f"{kind}.text") for kind in (".rel", ".rela")
        )
        return text, {
            relocation["r_offset"]
            for section in sections
            if section is not None
            for relocation in section.iter_relocations()
        }


def different(one: Path, other: Path) -> list[str]:
    """Complains unless the code is the same, but for words that a linker completes."""
    (text, places), (other_text, other_places) = code(one), code(other)
    for at in places | other_places:
        text[at : at + 4] = other_text[at : at + 4] = bytes(4)
    return [] if text == other_text else [f"{one.name}: assembled in two ways"]


def test_clang_assembles_the_same(objects, by_clang):
    pairs = [
        (one, other)
        for one in objects
        for other in by_clang
        if one.name == other.name and one.name.endswith(".S.o")
    ]
    assert len(pairs) == sum(path.name.endswith(".S.o") for path in objects) > 0
    assert [line for one, other in pairs for line in different(one, other)] == []


def test_audit_sees_other_code(cross, tmp_path):
    one = cross("nop\nnop\n", "-c", language="assembler").rename(tmp_path / "one")
    assert different(one, one) == []
    other = cross("nop\nb elsewhere\n", "-c", language="assembler")
    assert different(one, other) == []
    bad = cross("b elsewhere\nbl . + 4\n", "-c", language="assembler")
    assert different(one, bad) == ["one: assembled in two ways"]


def test_the_tables_were_read(machine):
    found = rows(machine)
    assert list(levels(machine)) == sorted(
        levels(machine), key=[row.level for row in found].index
    )
    assert {"c", "neon"} <= set(levels(machine))
    count = expanded(machine, "kernels.inc", "-DN8_KERNEL(slot, level)=ROW")
    assert len(found) == len(re.findall(r"\bROW\b", count))
    assert len({row.symbol for row in found}) == len(found)


def test_every_c_kernel_is_compared_with_another():
    """Its slot has one more row, or a naive twin."""
    table = (RUNTIME / "kernels.inc").read_text()
    naive = (RUNTIME.parent / "tests" / "checkasm" / "naive.c").read_text()
    slots = re.findall(r"^N8_\w+\((\w+), c\b", table, re.MULTILINE)
    alone = {slot for slot in slots if len(re.findall(rf"\b{slot}\b", table)) == 1}
    assert alone == set(re.findall(r"naive_(\w+)", naive))


FUNCTION = """
.hidden n8_x
.globl n8_x
.type n8_x, %function
n8_x: nop
.size n8_x, . - n8_x
"""


@pytest.mark.parametrize(
    ("remove", "complaint"),
    [
        (".hidden n8_x", "n8_x: not hidden"),
        (".type n8_x, %function", "n8_x: no function"),
        (".size n8_x, . - n8_x", "n8_x: size 0"),
        (FUNCTION, "n8_x: not in bad"),
    ],
)
def test_audit_sees_a_wrong_kernel(remove, complaint, cross):
    good = cross(FUNCTION, "-c", language="assembler")
    assert wrong_kernel(good, "n8_x") == []
    source = FUNCTION.replace(remove, "")
    bad = cross(source, "-c", language="assembler")
    assert wrong_kernel(bad, "n8_x") == [complaint]


PLAIN = {
    AARCH64: "f: cbz x0, f\nsmull v0.8h, v1.8b, v2.8b\nret\n",
    ARMV7: ".thumb\nf: cbz r0, 1f\nvadd.f32 s0, s1, s2\nvmov.f32 s0, #1.0\n1: bx lr\n",
}
LATER = {
    AARCH64: [
        "sdot v0.4s, v1.16b, v2.16b",
        "smmla v0.4s, v1.16b, v2.16b",
        "usdot v0.4s, v1.16b, v2.16b",
        "bfdot v0.4s, v1.8h, v2.8h",
        "fadd v0.8h, v1.8h, v2.8h",
        "sqrdmlah v0.4s, v1.4s, v2.4s",
        "ldadd w0, w1, [x2]",
        "ptrue p0.b",
        ".inst 0xffffffff",
    ],
    ARMV7: [
        "vadd.i8 q0, q1, q2",
        "vmov.f64 d16, #1.0",
        "vfma.f32 s0, s1, s2",
        "vrinta.f32 s0, s1",
        "vsdot.s8 q0, q1, q2",
        "sdiv r0, r1, r2",
        "lda r0, [r1]",
        ".inst 0xffffffff",
    ],
}
NEWEST = {
    AARCH64: ["-march=armv8.6-a+sve+fp16"],
    ARMV7: ["-march=armv8.6-a+i8mm", "-mfpu=neon-fp-armv8"],
}


@pytest.mark.parametrize(
    ("machine", "instruction"),
    [(machine, later) for machine in MACHINES for later in LATER[machine]],
    indirect=["machine"],
    ids=named,
)
def test_audit_sees_what_a_plain_processor_lacks(machine, instruction, cross):
    newest = NEWEST[machine]
    path = cross(PLAIN[machine], "-c", *newest, language="assembler")
    good = disassembly(path, machine)
    assert beyond(machine.baseline, good, machine) == []
    source = f"{machine.dialect}\n{instruction}\nnop\n"
    path = cross(source, "-c", *newest, language="assembler")
    bad = disassembly(path, machine)
    assert len(beyond(machine.baseline, bad, machine)) == 1


@pytest.mark.parametrize(
    ("machine", "march", "instruction", "without"),
    [
        (AARCH64, "armv8.2-a+dotprod", "sdot v0.4s, v1.16b, v2.16b", "armv8.2-a"),
        (ARMV7, "armv7-a+simd", "vmull.s8 q0, d2, d3", "armv7-a+fp"),
    ],
    indirect=["machine"],
    ids=named,
)
def test_audit_lets_a_level_use_what_it_names(
    machine, march, instruction, without, cross
):
    path = cross(f"{instruction}\n", "-c", f"-march={march}", language="assembler")
    code = disassembly(path, machine)
    assert beyond(march, code, machine) == []
    assert len(beyond(without, code, machine)) == 1


@pytest.mark.parametrize(
    ("machine", "instruction"),
    [(AARCH64, "sdot v0.4s, v1.16b, v2.16b"), (ARMV7, "vfma.f32 s0, s1, s2")],
    indirect=["machine"],
    ids=named,
)
def test_audit_sees_which_function_goes_beyond(machine, instruction, cross):
    code = {"n8_low": "nop", "n8_high": instruction}
    source = machine.dialect + "".join(
        f"\n.type {name}, %function\n{name}: {text}\n.size {name}, . - {name}\n"
        for name, text in code.items()
    )
    source += f'{instruction}\n.section .text.more, "ax"\nnop\n{instruction}\n'
    path = cross(source, "-c", *NEWEST[machine], language="assembler")
    for name, count in (("n8_low", 0), ("n8_high", 1)):
        own = kernel(path, name, machine)
        assert [line.code.split()[0] for line in own] == code[name].split()[:1]
        assert len(beyond(machine.baseline, own, machine)) == count
    rest = shared(path, set(code), machine)
    assert len(rest) == 3
    assert len(beyond(machine.baseline, rest, machine)) == 2
