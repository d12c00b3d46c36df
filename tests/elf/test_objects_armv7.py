# SPDX-License-Identifier: Apache-2.0
"""What only 32-bit ARM has: attributes of the build, and two states, A32 and Thumb.

As in test_shared_library.py, each audit has to complain about a bad object first.
"""

import re
from pathlib import Path

import pytest
from disassembly import disassembly
from elftools.elf.elffile import ELFFile
from machines import ARMV7

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.parametrize(
    "machine", [ARMV7], indirect=True, ids=lambda machine: machine.name
)

# What ARMv7-A with VFPv3 and NEON runs; later values are later extensions.
HARDWARE = {
    "TAG_CPU_ARCH": (10,),  # v7
    "TAG_CPU_ARCH_PROFILE": (ord("A"),),
    "TAG_ARM_ISA_USE": (1,),
    "TAG_THUMB_ISA_USE": (2,),  # Thumb-2
    "TAG_FP_ARCH": (3, 4),  # VFPv3 with 32 or 16 registers
    "TAG_ADVANCED_SIMD_ARCH": (1,),  # without fused products
}
# What it lacks: half floats, division, and what has never come to boards.
LACKING = (
    "TAG_FP_HP_EXTENSION",
    "TAG_DIV_USE",
    "TAG_MPEXTENSION_USE",
    "TAG_VIRTUALIZATION_USE",
    "TAG_T2EE_USE",
    "TAG_WMMX_ARCH",
)
# TAG_ABI_VFP_ARGS: floats are passed in core registers, or in those of VFP.
SOFT_FLOAT, HARD_FLOAT = 0, 1


def attributes(path: Path) -> dict[str, int]:
    with path.open("rb") as file:
        section = ELFFile(file).get_section_by_name(".ARM.attributes")
        return {
            attribute.tag: attribute.value
            for vendor in section.iter_subsections()
            for scope in vendor.iter_subsubsections()
            for attribute in scope.iter_attributes()
        }


def wrong_hardware(path: Path) -> list[str]:
    have = attributes(path)
    allowed = HARDWARE | dict.fromkeys(LACKING, (0,))
    return [
        f"{path.name}: {tag} is {have[tag]}"
        for tag, values in allowed.items()
        if tag in have and have[tag] not in values
    ]


def wrong_convention(path: Path, convention: int) -> list[str]:
    have = attributes(path).get("TAG_ABI_VFP_ARGS", 0)
    return [] if have == convention else [f"{path.name}: floats are passed by {have}"]


def with_vectors(path: Path) -> list[str]:
    """C keeps denormals, which NEON does not."""
    have = attributes(path).get("TAG_ADVANCED_SIMD_ARCH", 0)
    return [f"{path.name}: is compiled for NEON"] if have else []


def functions(path: Path) -> list[tuple[str, int, int, str]]:
    """Name, value, size and the state of its code of each function of an object."""
    with path.open("rb") as file:
        symbols = list(ELFFile(file).get_section_by_name(".symtab").iter_symbols())
    states = sorted(
        (symbol["st_shndx"], symbol["st_value"], symbol.name[1])
        for symbol in symbols
        if re.match(r"\$[at](\.|$)", symbol.name)
    )
    found = []
    for symbol in symbols:
        section, value = symbol["st_shndx"], symbol["st_value"]
        if symbol["st_info"]["type"] != "STT_FUNC" or section == "SHN_UNDEF":
            continue
        before = [s for s in states if s[0] == section and s[1] <= value]
        found.append((symbol.name, value, symbol["st_size"], before[-1][2]))
    return found


def wrong_states(path: Path) -> list[str]:
    """Functions whose lowest bit, by which callers switch, says the other state."""
    return [
        f"{name}: is {'Thumb' if state == 't' else 'A32'} code at {value:#x}"
        for name, value, _, state in functions(path)
        if value % 2 != (state == "t")
    ]


def wrong_returns(path: Path) -> list[str]:
    """Arithmetic on pc, which changes no state before ARMv7, and open ends."""
    lines = disassembly(path, ARMV7)
    code = [line.code for line in lines]
    writes = [text for text in code if re.match(r"(?!ldr)\S+\s+pc\b", text)]
    ends = []
    for name, value, size, _ in functions(path):
        last = [line for line in lines if value <= line.address < value + size][-1]
        if not re.match(r"bx\s+lr|pop\s.*pc}|b\s", last.code):
            ends.append(f"{name}: ends with {last.code}")
    return writes + ends


def wrong_calls(path: Path) -> list[str]:
    """Branches of a library into code of the other state, and blx into its own."""
    lines = disassembly(path, ARMV7)
    states = {line.address: line.state for line in lines}
    return [
        f"{line.address:#x}: {line.code.split()[0]} to {line.target:#x}"
        for line in lines
        if line.target in states
        and (line.state == states[line.target]) == line.code.startswith("blx")
    ]


@pytest.fixture
def assembly(objects) -> list[Path]:
    found = [path for path in objects if path.name.endswith(".S.o")]
    assert found
    return found


@pytest.fixture
def softfp(machine) -> Path:
    """The library as Android calls it."""
    path = ROOT / "build" / f"{machine.name}-softfp" / "libneon8.so"
    assert path.exists(), f"run `make {path.parent.name}` first"
    return path


def test_library(build):
    library = build / "libneon8.so"
    assert wrong_hardware(library) == []
    assert wrong_convention(library, HARD_FLOAT) == []
    assert wrong_calls(library) == []
    have = attributes(library)
    assert {tag: have[tag] for tag in HARDWARE} == {
        tag: values[0] for tag, values in HARDWARE.items()
    }


def test_library_for_android(softfp):
    assert wrong_hardware(softfp) == []
    assert wrong_convention(softfp, SOFT_FLOAT) == []
    assert wrong_calls(softfp) == []


def test_every_object(objects):
    assert [line for path in objects for line in wrong_hardware(path)] == []
    assert [line for path in objects for line in wrong_states(path)] == []


def test_compiled_objects(objects, assembly):
    compiled = [path for path in objects if path not in assembly]
    wrong = [line for path in compiled for line in wrong_convention(path, HARD_FLOAT)]
    assert wrong == []
    assert [line for path in compiled for line in with_vectors(path)] == []


def test_assembly_returns_to_either_state(assembly):
    assert [line for path in assembly for line in wrong_returns(path)] == []
    assert {state for path in assembly for *_, state in functions(path)} == {"a"}


ARM = ".syntax unified\n.arm\n"


@pytest.mark.parametrize(
    ("flags", "instruction", "tags"),
    [
        (
            ["-march=armv7ve", "-mfpu=neon-vfpv4"],
            "vfma.f32 q0, q1, q2\nsdiv r0, r1, r2",
            ["TAG_FP_ARCH", "TAG_ADVANCED_SIMD_ARCH", "TAG_DIV_USE"],
        ),
        (["-march=armv7-a", "-mfpu=neon-fp16"], "nop", ["TAG_FP_HP_EXTENSION"]),
        (["-march=armv8-a"], "nop", ["TAG_CPU_ARCH"]),
        (["-march=armv7-m", "-mthumb"], ".thumb\nnop", ["TAG_CPU_ARCH_PROFILE"]),
    ],
)
def test_audit_sees_what_needs_a_later_processor(flags, instruction, tags, cross):
    good = cross(f"{ARM}nop\n", "-c", "-march=armv7-a+simd", language="assembler")
    assert wrong_hardware(good) == []
    bad = cross(f".syntax unified\n{instruction}\n", "-c", *flags, language="assembler")
    found = [line.split()[1] for line in wrong_hardware(bad)]
    assert set(tags) <= set(found)


def test_audit_sees_the_other_convention(cross):
    path = cross("float n8_x(void) { return 1; }", "-c")
    assert wrong_convention(path, HARD_FLOAT) == []
    assert wrong_convention(path, SOFT_FLOAT) == ["bad: floats are passed by 1"]


def test_audit_sees_what_flushes_denormals(cross):
    source = "float n8_x(float x) { return x + 1; }"
    assert with_vectors(cross(source, "-c", "-mfpu=vfpv3-d16")) == []
    bad = cross(source, "-c", "-mfpu=neon")
    assert with_vectors(bad) == ["bad: is compiled for NEON"]


def test_audit_sees_a_wrong_state(cross):
    source = f"{ARM}.type n8_x, %function\nn8_x: bx lr\n"
    assert wrong_states(cross(source, "-c", language="assembler")) == []
    odd = f"{ARM}.type n8_x, %function\ncode: bx lr\nn8_x = code + 1\n"
    bad = cross(odd, "-c", language="assembler")
    assert wrong_states(bad) == ["n8_x: is A32 code at 0x1"]


@pytest.mark.parametrize(
    ("end", "complaint"),
    [
        ("bx lr", None),
        ("pop {r4, pc}", None),
        ("mov pc, lr", "mov"),
        ("ldr pc, [sp, #4]\nbx lr", None),
        ("add pc, pc, r0\nbx lr", "add"),
        ("nop", "ends with nop"),
        ("bxne lr", "ends with bxne"),
    ],
)
def test_audit_sees_a_wrong_return(end, complaint, cross):
    source = f"{ARM}.type n8_x, %function\nn8_x: {end}\n.size n8_x, . - n8_x\n"
    found = wrong_returns(cross(source, "-c", language="assembler"))
    assert found == [] if complaint is None else complaint in found[0]


@pytest.mark.parametrize("typed", [True, False])
def test_audit_sees_a_call_into_the_other_state(typed, cross):
    declared = ".type callee, %function\n" if typed else ""
    source = f'{ARM}bl callee\n.section .text.far, "ax"\n.thumb\n.global callee\n'
    source += f".hidden callee\n{declared}callee: bx lr\n"
    found = wrong_calls(cross(source, "-shared", "-nostdlib", language="assembler"))
    assert (found == []) == typed
