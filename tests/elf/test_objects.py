# SPDX-License-Identifier: Apache-2.0
"""Audit of the objects in libneon8.a for aarch64: branch protection and kernels.

As in test_shared_library.py, each audit has to complain about a bad object first.
"""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from elftools.elf.elffile import ELFFile

ROOT = Path(__file__).resolve().parents[2]
FEATURES = 0xC0000000  # GNU_PROPERTY_AARCH64_FEATURE_1_AND
BTI_AND_PAC = 3
BASELINE = "armv8-a"  # what compilers may use, and every Armv8-A processor runs
# Hints: they do nothing where they are not known, but gas wants a newer -march.
HINTS = {"bti", "paciasp", "autiasp"}


class Row(NamedTuple):
    """A row of kernels.inc."""

    slot: str
    level: str
    variant: str

    @property
    def symbol(self) -> str:
        return f"n8_{self.slot}_{self.level}{self.variant}"


def run(*command: str | Path, **options) -> str:
    return subprocess.run(
        command, check=True, capture_output=True, text=True, **options
    ).stdout


def table(name: str, pattern: str) -> list[tuple[str, ...]]:
    """The rows of a table in runtime/ that an aarch64 build has."""
    text = run(
        "aarch64-linux-gnu-gcc", "-E", "-P", "-x", "c", ROOT / "runtime" / name,
        *("-DN8_GEMM=N8_GEMM", "-DN8_DEPTHWISE=N8_DEPTHWISE"),
        *("-DN8_WINOGRAD=N8_WINOGRAD", "-DN8_PART=N8_PART"),
    )  # fmt: skip
    return re.findall(pattern, text)


def rows() -> list[Row]:
    pattern = r"N8_\w+\((\w+), (\w+)(?:, (\w*),[^)]*)?\)"
    return [Row(*row) for row in table("kernels.inc", pattern)]


def levels() -> dict[str, str]:
    """Level -> the architecture that its kernels may use."""
    found = table("levels.inc", r'N8_LEVEL\((\w+), \w+, "([^"]*)"')
    return {level: march or BASELINE for level, march in found}


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


def instructions(path: Path) -> list[str]:
    """The object's instructions as assembly, every branch going to itself."""
    listing = run("aarch64-linux-gnu-objdump", "-d", "--no-show-raw-insn", path)
    lines = re.findall(r"^ +[0-9a-f]+:\t(.*)$", listing, re.MULTILINE)
    code = [re.sub(r"\s*//.*|\s*;.*", "", line).strip() for line in lines]
    return [re.sub(r"\b[0-9a-f]+ <[^>]*>", ".", line) for line in code]


def beyond(march: str, path: Path) -> list[str]:
    """Instructions that the assembler refuses for `march`: it knows them all."""
    code = [line for line in instructions(path) if line.split()[0] not in HINTS]
    words = [line for line in code if line.startswith(".inst")]
    done = subprocess.run(
        ["aarch64-linux-gnu-as", f"-march={march}", "-o", "/dev/null", "-"],
        input="\n".join(code) + "\n",
        capture_output=True,
        text=True,
        check=False,
    )
    return words + [line for line in done.stderr.splitlines() if "Error" in line]


def platform_register(path: Path) -> list[str]:
    """Uses of x18: Android keeps a pointer there, so assembly stays away from it."""
    return [line for line in instructions(path) if re.search(r"\b[wx]18\b", line)]


@pytest.fixture(scope="session")
def objects(build, tmp_path_factory) -> list[Path]:
    folder = tmp_path_factory.mktemp("objects")
    archive = build / "libneon8.a"
    run("aarch64-linux-gnu-ar", "x", archive, cwd=folder)
    names = run("aarch64-linux-gnu-ar", "t", archive).split()
    found = sorted(folder.iterdir())
    assert len(found) == len(names), "two objects of one name"
    return found


def test_every_object_is_protected(objects):
    assert [line for path in objects for line in unprotected(path)] == []


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.symbol)
def test_kernel(row, objects):
    stem = row.slot if row.level == "c" else row.symbol.removeprefix("n8_")
    (path,) = (path for path in objects if path.name.split(".")[0] == stem)
    assert wrong_kernel(path, row.symbol) == []
    assert beyond(levels()[row.level], path) == []
    if row.level != "c":
        assert platform_register(path) == []


def test_the_tables_were_read():
    assert list(levels()) == sorted(levels(), key=[row.level for row in rows()].index)
    assert {"c", "neon"} <= set(levels())
    text = (ROOT / "runtime" / "kernels.inc").read_text()
    assert len(rows()) == len(re.findall(r"^N8_\w+\(", text, re.MULTILINE))
    assert len({row.symbol for row in rows()}) == len(rows())


def test_audit_sees_an_unprotected_object(cross):
    source = "int n8_x(void) { return 1; }"
    assert unprotected(cross(source, "-c"))
    assert unprotected(cross(source, "-c", "-mbranch-protection=bti"))
    assert unprotected(cross(source, "-c", "-mbranch-protection=standard")) == []


FUNCTION = """
.hidden n8_x
.globl n8_x
.type n8_x, %function
n8_x: ret
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


@pytest.mark.parametrize(
    "instruction",
    [
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
)
def test_audit_sees_what_a_plain_armv8_lacks(instruction, cross):
    good = cross(
        "f: cbz x0, f\nsmull v0.8h, v1.8b, v2.8b\nret\n", "-c", language="assembler"
    )
    assert beyond(BASELINE, good) == []
    source = f"{instruction}\nret\n"
    bad = cross(source, "-c", "-march=armv8.6-a+sve+fp16", language="assembler")
    assert len(beyond(BASELINE, bad)) == 1


def test_audit_lets_a_level_use_what_it_names(cross):
    source = "sdot v0.4s, v1.16b, v2.16b\nret\n"
    path = cross(source, "-c", "-march=armv8.2-a+dotprod", language="assembler")
    assert beyond("armv8.2-a+dotprod", path) == []
    assert len(beyond("armv8.2-a", path)) == 1


@pytest.mark.parametrize("instruction", ["mov x18, #0", "ldr w0, [x18, #4]"])
def test_audit_sees_the_platform_register(instruction, cross):
    good = cross("mov x8, #18\nret\n", "-c", language="assembler")
    assert platform_register(good) == []
    bad = cross(f"{instruction}\nret\n", "-c", language="assembler")
    assert len(platform_register(bad)) == 1
