# SPDX-License-Identifier: Apache-2.0
"""Offsets in the structs of arguments: assembler and compiler agree on each.

kernel.h lists each field once. Both readings of that list are compiled here, with
64-bit and with 32-bit pointers, and compared.
"""

import re
import struct
import subprocess
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from processes import ran

RUNTIME = Path(__file__).resolve().parents[2] / "runtime"
TEXT = (RUNTIME / "kernel.h").read_text()
FIELDS = {
    "n8_igemm_args": re.findall(r"\((IG_\w+), .*, (\w+)\)", TEXT),
    "n8_windows_args": re.findall(r"\((WN_\w+), .*, (\w+)\)", TEXT),
    "n8_depthwise_args": re.findall(r"\((DW_\w+), .*, (\w+)\)", TEXT),
    "n8_winograd_args": re.findall(r"\((WG_\w+), .*, (\w+)\)", TEXT),
    "n8_winograd_gemm_args": re.findall(r"\((WS_\w+), .*, (\w+)\)", TEXT),
    "n8_winograd_output_args": re.findall(r"\((WO_\w+), .*, (\w+)\)", TEXT),
    "n8_pointwise_args": re.findall(r"\((PW_\w+), .*, (\w+)\)", TEXT),
    "n8_add_s16_args": re.findall(r"\((AW_\w+), .*, (\w+)\)", TEXT),
    "n8_output_args": re.findall(r"\((OW_\w+), .*, (\w+)\)", TEXT),
    "n8_depthwise_s16_args": re.findall(r"\((DS_\w+), .*, (\w+)\)", TEXT),
    "n8_interpolate_args": re.findall(r"\((IP_\w+), .*, (\w+)\)", TEXT),
    "n8_normalize_args": re.findall(r"\((NO_\w+), .*, (\w+)\)", TEXT),
    "n8_lrn_args": re.findall(r"\((LR_\w+), .*, (\w+)\)", TEXT),
    "n8_pool_args": re.findall(r"\((PL_\w+), .*, (\w+)\)", TEXT),
    "n8_blend_args": re.findall(r"\((BL_\w+), .*, (\w+)\)", TEXT),
}
COMPILERS = {
    "aarch64": ["aarch64-linux-gnu-gcc"],
    "64-bit": ["gcc", "-m64"],
    "armv7": ["arm-linux-gnueabihf-gcc"],
    "32-bit": ["gcc", "-m32", "-ffreestanding"],  # of which no headers are installed
}


def compiled(compiler: list[str], language: str, source: str, path: Path) -> list[int]:
    """The 32-bit numbers in the section .data of the compiled source."""
    command = [*compiler, "-std=c11", "-I", RUNTIME, "-c", "-x", language, "-"]
    subprocess.run([*command, "-o", path], input=source, text=True, check=True)
    with path.open("rb") as file:
        data = ELFFile(file).get_section_by_name(".data").data()
    return [number for (number,) in struct.iter_unpack("<i", data)]


def by_c(compiler: list[str], path: Path) -> list[int]:
    offsets = ", ".join(
        f"offsetof(struct {tag}, {member})"
        for tag, fields in FIELDS.items()
        for _, member in fields
    )
    source = f'#include "kernel.h"\nint n8_offsets[] = {{{offsets}}};\n'
    return compiled(compiler, "c", source, path)


def by_assembler(compiler: list[str], path: Path) -> list[int]:
    names = [name for fields in FIELDS.values() for name, _ in fields]
    lines = "".join(f".long N8_OFF_{name}\n" for name in names)
    source = f'#include "kernel.h"\n.data\n{lines}'
    return compiled(compiler, "assembler-with-cpp", source, path)


@pytest.mark.parametrize("machine", COMPILERS)
def test_assembler_and_compiler_agree(machine, tmp_path):
    offsets = by_c(COMPILERS[machine], tmp_path / "c.o")
    assert offsets == by_assembler(COMPILERS[machine], tmp_path / "s.o")
    assert len(offsets) == sum(map(len, FIELDS.values())) > 30
    assert (
        offsets[:4] == [0, 4, 8, 12]
        if machine in ("armv7", "32-bit")
        else [0, 8, 16, 24]
    )


def test_every_field_was_read():
    lines = re.findall(r"^    (?:WORD|INT32)\(", TEXT, re.MULTILINE)
    assert len(lines) == sum(map(len, FIELDS.values()))


def test_a_field_that_needs_padding_is_refused(tmp_path):
    # 64-bit: a word after a single int32 has a gap before it, which sums do not see.
    ahead = "    WORD(IG_TILE, const struct n8_tile *, tile)"
    assert ahead in TEXT
    moved = TEXT.replace(ahead, "    INT32(IG_ODD, int32_t, odd)" + ahead)
    (tmp_path / "kernel.h").write_text(moved)
    command = ["gcc", "-m64", "-std=c11", "-fsyntax-only", "-I", RUNTIME]
    for header, refused in (
        (RUNTIME / "kernel.h", False),
        (tmp_path / "kernel.h", True),
    ):
        done = ran(*command, "-x", "c", header)
        assert (done.returncode != 0) == refused, done.stderr
    assert 'static assertion failed: "tile"' in done.stderr
