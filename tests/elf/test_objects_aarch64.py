# SPDX-License-Identifier: Apache-2.0
"""What only objects for AArch64 have: branch protection, and a register to avoid."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from disassembly import disassembly
from elftools.elf.elffile import ELFFile
from machines import AARCH64

FEATURES = 0xC0000000  # GNU_PROPERTY_AARCH64_FEATURE_1_AND
BTI_AND_PAC = 3

pytestmark = pytest.mark.parametrize(
    "machine", [AARCH64], indirect=True, ids=lambda machine: machine.name
)


def features(path: Path) -> Iterator[int]:
    """The AArch64 feature words in the object's property notes."""
    with path.open("rb") as file:
        section = ELFFile(file).get_section_by_name(".note.gnu.property")
        if section is None:
            return
        for note in section.iter_notes():
            for item in note["n_desc"]:
                if item["pr_type"] in (FEATURES, "GNU_PROPERTY_AARCH64_FEATURE_1_AND"):
                    yield int(item["pr_data"])


def unprotected(path: Path) -> list[str]:
    if any(word & BTI_AND_PAC == BTI_AND_PAC for word in features(path)):
        return []
    return [f"{path.name}: no BTI and PAC in a property note"]


def platform_register(path: Path) -> list[str]:
    """Uses of x18: Android keeps a pointer there, so assembly stays away from it."""
    code = (line.code for line in disassembly(path, AARCH64))
    return [line for line in code if re.search(r"\b[wx]18\b", line)]


def test_every_object_is_protected(objects):
    assert [line for path in objects for line in unprotected(path)] == []


def test_assembly_avoids_the_platform_register(objects):
    assembly = [path for path in objects if path.name.endswith(".S.o")]
    assert assembly
    assert [line for path in assembly for line in platform_register(path)] == []


def test_audit_sees_an_unprotected_object(cross):
    source = "int n8_x(void) { return 1; }"
    assert unprotected(cross(source, "-c"))
    assert unprotected(cross(source, "-c", "-mbranch-protection=bti"))
    assert unprotected(cross(source, "-c", "-mbranch-protection=standard")) == []


@pytest.mark.parametrize("instruction", ["mov x18, #0", "ldr w0, [x18, #4]"])
def test_audit_sees_the_platform_register(instruction, cross):
    good = cross("mov x8, #18\nret\n", "-c", language="assembler")
    assert platform_register(good) == []
    bad = cross(f"{instruction}\nret\n", "-c", language="assembler")
    assert len(platform_register(bad)) == 1
