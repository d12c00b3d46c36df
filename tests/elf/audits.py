# SPDX-License-Identifier: Apache-2.0
"""Audits of a shared library: each returns what is wrong as a list of lines."""

from pathlib import Path

from elftools.elf.constants import P_FLAGS
from elftools.elf.elffile import ELFFile
from machines import Machine
from pycparser import c_ast, c_parser

NEEDED = {"libc.so.6", "libm.so.6", "libpthread.so.0"}  # and the machine's loader
DF_TEXTREL = 4
TYPES = "size_t ptrdiff_t int8_t int32_t int64_t uint8_t uint32_t uint64_t"


def wrong_machine(path: Path, machine: Machine) -> list[str]:
    with path.open("rb") as file:
        elf = ELFFile(file)
        have = (elf["e_machine"], elf.elfclass, elf.little_endian, elf["e_type"])
    want = (machine.elf, machine.bits, True, "ET_DYN")
    return [] if have == want else [f"{have}, expected {want}"]


def declared(cdef: Path) -> set[str]:
    """Names of the functions that the public headers declare."""
    text = "".join(f"typedef int {name};\n" for name in TYPES.split())
    tree = c_parser.CParser().parse(text + cdef.read_text())
    return {
        node.name
        for node in tree.ext
        if isinstance(node, c_ast.Decl) and isinstance(node.type, c_ast.FuncDecl)
    }


def wrong_exports(path: Path, functions: set[str]) -> list[str]:
    with path.open("rb") as file:
        symbols = ELFFile(file).get_section_by_name(".dynsym").iter_symbols()
        exported = {
            symbol.name
            for symbol in symbols
            if symbol["st_shndx"] != "SHN_UNDEF"
            and symbol["st_info"]["bind"] in ("STB_GLOBAL", "STB_WEAK")
        }
    return [f"{name} is exported" for name in sorted(exported - functions)] + [
        f"{name} is missing" for name in sorted(functions - exported)
    ]


def foreign_libraries(path: Path, machine: Machine) -> list[str]:
    with path.open("rb") as file:
        tags = ELFFile(file).get_section_by_name(".dynamic").iter_tags("DT_NEEDED")
        return sorted({tag.needed for tag in tags} - NEEDED - {machine.loader})


def text_relocations(path: Path, _: Machine) -> list[str]:
    with path.open("rb") as file:
        tags = ELFFile(file).get_section_by_name(".dynamic").iter_tags()
        return [
            tag["d_tag"]
            for tag in tags
            if tag["d_tag"] == "DT_TEXTREL"
            or (tag["d_tag"] == "DT_FLAGS" and tag["d_val"] & DF_TEXTREL)
        ]


def executable_stack(path: Path, _: Machine) -> list[str]:
    with path.open("rb") as file:
        stacks = list(ELFFile(file).iter_segments("PT_GNU_STACK"))
        if not stacks:
            return ["no PT_GNU_STACK"]
        return ["executable" for s in stacks if s["p_flags"] & P_FLAGS.PF_X]


def small_pages(path: Path, machine: Machine) -> list[str]:
    with path.open("rb") as file:
        return [
            f"LOAD {segment['p_vaddr']:#x} is aligned to {segment['p_align']:#x}"
            for segment in ELFFile(file).iter_segments("PT_LOAD")
            if segment["p_align"] < machine.page
            or (segment["p_vaddr"] - segment["p_offset"]) % machine.page
        ]


def too_large(path: Path, machine: Machine) -> list[str]:
    with path.open("rb") as file:
        size = sum(
            segment["p_filesz"] for segment in ELFFile(file).iter_segments("PT_LOAD")
        )
    return [f"{size} bytes"] if size > machine.loaded else []
