# SPDX-License-Identifier: Apache-2.0
"""What modelled cycles rest on: loops whose speed others have published."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

from bench.kernels import cores
from bench.kernels.assembly import Step
from bench.kernels.cores import CORES, IN_ORDER


def loop(*texts: str) -> list[Step]:
    """Instructions in a row, the last one's successor the first."""
    *most, last = texts
    return [*map(Step, most), Step(last, taken=True)]


def spread(work: list[str], loads: list[str]) -> list[Step]:
    """A loop with the loads at even distances.  loads: instructions, by semicolons."""
    ends = [len(work) * i // len(loads) for i in range(len(loads) + 1)]
    texts = [
        text
        for (start, end), load in zip(pairwise(ends), loads, strict=True)
        for text in (*work[start:end], *load.split("; "))
    ]
    return loop(*texts, "b.ne 0x400000")


def pairs(products: tuple[str, ...], sums: int) -> list[str]:
    """Products of 8 bits in four registers and their pairwise sums, four by four."""
    return [
        text
        for first in range(8, 8 + sums, 4)
        for text in (
            *[
                f"{name} v{i}.8h, v6.{half}, v7.{half}"
                for name in products
                for half in ("16b" if name.endswith("2") else "8b",)
                for i in range(4)
            ],
            *[f"uadalp v{first + i}.4s, v{i}.8h" for i in range(4)],
        )
    ]


def lanes(name: str, operands: str) -> list[str]:
    """24 products by a lane, each with sums of its own."""
    return [f"{name} v{i}.4s, v0.{operands}" for i in range(8, 32)]


QUADS = ["ld1 { v5.16b }, [x0], #16"] * 10
HALVES = ["ldr x6, [x0]", "ldr d5, [x0]; mov v4.d[1], x7"] * 5
UMLAL = spread(
    [f"uxtl v{i}.8h, v{i}.8b" for i in range(5)] + lanes("umlal", "4h, v0.h[0]") * 2,
    ["ld1 { v5.8b }, [x0], #8"] * 5,
)
UADALP = spread(pairs(("umull",), 20) * 2, QUADS[:9])
SADALP = spread(pairs(("smull", "smlal2"), 16), QUADS[:8])
SADALP_BETWEEN = spread(
    [
        text
        for first in range(8, 24, 4)
        for text in (
            *(f"sadalp v{first}.4s, v0.8h", "smull v0.8h, v6.8b, v7.8b"),
            *(f"sadalp v{first + i}.4s, v{i}.8h" for i in (1, 2)),
            *("smull v1.8h, v6.8b, v7.8b", f"sadalp v{first + 3}.4s, v3.8h"),
            *(f"smull v{i}.8h, v6.8b, v7.8b" for i in (2, 3)),
            *(f"smlal2 v{i}.8h, v6.16b, v7.16b" for i in range(4)),
        )
    ],
    [*QUADS[:8], *["prfm pldl1keep, [x1, #192]"] * 2],
)
MLA = spread(lanes("mla", "4s, v1.s[0]"), QUADS[:5])
FMLA = spread(lanes("fmla", "4s, v1.s[0]"), QUADS[:5])
FMLA_HALVES = spread(lanes("fmla", "4s, v1.s[0]"), HALVES)
DUP = spread(
    [
        text
        for row in range(8)
        for text in (
            f"dup v5.4s, v{row // 4}.s[{row % 4}]",
            *[f"fmla v{8 + 3 * row + i}.4s, v{2 + i}.4s, v5.4s" for i in range(3)],
        )
    ],
    ["ld1 { v6.16b }, [x0], #16"] * 5,
)
SDOT = spread(lanes("sdot", "16b, v1.4b[0]"), QUADS[:5])
SDOT_HALVES = spread(lanes("sdot", "16b, v1.4b[0]"), HALVES)
SMMLA = spread(lanes("smmla", "16b, v1.16b"), QUADS)


# The loops have as many products and loads as theirs, and where there are orders for a
# core, those. First, google/gemmlowp at 16e8662c3491, of a Nexus 5X: what
# standalone/neon-gemm-kernel-benchmark.cc multiplies, by the sheet of results that it
# names. Then, ARM-software/kleidiai at 495f6524d981: what get_performance_parameters()
# of experimental/ops/kai/ops/gemm/kernels/*.hpp answers. `short` says how many times as
# long a loop takes as is modelled, where that is known to be more than 15 % off: on the
# A53 32-bit products by a lane, on the A57, for which the A72 stands, nearly all.
@pytest.mark.parametrize(
    ("theirs", "core", "steps", "products", "rate", "short"),
    [
        ("Uint8Operands_Uint32Accumulators", "a53", UMLAL, 192, 3.25, 1),
        ("Uint8Operands_Uint32Accumulators", "a72", UMLAL, 192, 3.68, 1),
        ("Uint8..._noexpand_A57", "a53", UADALP, 320, 2.22, 1),
        ("Uint8..._noexpand_A57", "a72", UADALP, 320, 4.99, 1.6),
        ("Int8Operands_AccumTwoWithin16Bits", "a53", SADALP, 256, 3.08, 1),
        ("Int8Operands_AccumTwoWithin16Bits", "a72", SADALP, 256, 6.21, 1.3),
        ("Int32_WithScalar", "a53", MLA, 96, 2.24, 1.25),
        ("Int32_WithScalar", "a72", MLA, 96, 1.87, 1),
        ("Float32_WithVectorDuplicatingScalar", "a53", DUP, 96, 1.46, 1.2),
        ("Float32_WithVectorDuplicatingScalar", "a72", DUP, 96, 2.63, 1.3),
        ("Float32_WithScalar", "a53", FMLA, 96, 2.09, 1.35),
        ("Float32_WithScalar", "a72", FMLA, 96, 3.38, 1.2),
        ("a64_sgemm_8x12", "a53", FMLA_HALVES, 96, 2.777, 1),
        ("a64_sgemm_8x12", "a55", FMLA_HALVES, 96, 3.954, 1),
        ("a64_sgemm_8x12", "a76", FMLA, 96, 7.2307, 1),
        ("a64_gemm_s8_4x4", "a55", SADALP_BETWEEN, 256, 3.12, 1),
        ("a64_gemm_s8_4x4", "a76", SADALP_BETWEEN, 256, 7.97, 1),
        ("a64_gemm_s8_8x12", "a55", SDOT_HALVES, 384, 15.361, 1),
        ("a64_gemm_s8_8x12", "a76", SDOT, 384, 31.82, 1),
        ("a64_interleaved_s8s32_mmla_8x12", "n2", SMMLA, 768, 62.57, 1),
    ],
)
def test_loops_that_others_have_measured(theirs, core, steps, products, rate, short):
    (found,) = cores.cycles("llvm-mca-19", [steps], core)
    assert short * found == pytest.approx(products / rate, rel=0.15), theirs


def test_the_runtime_takes_each_core_for_what_it_is():
    """In order or not, by its part number in MIDR_EL1."""
    root = Path(__file__).resolve().parents[3]
    source = (root / "runtime" / "cpu" / "cpu.c").read_text()
    in_order = {int(part, 16) for part in re.findall(r"0x(d[0-9a-f]{2}), //", source)}
    assert len(in_order) == 6
    parts = {key: core.midr >> 4 & 0xFFF for key, core in CORES.items() if core.midr}
    found = {key for key, part in parts.items() if part in in_order}
    assert found == set(IN_ORDER)
