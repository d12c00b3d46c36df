# SPDX-License-Identifier: Apache-2.0
"""What modelled cycles rest on: A53 and A55, and what llvm-mca is shown of others."""

from itertools import pairwise

import pytest

from bench.kernels import cores, inorder, mca
from bench.kernels.assembly import Step
from bench.kernels.inorder import A53, A55

SMULL = "smull v0.8h, v1.8b, v2.8b"
INSERT = "mov v4.d[1], x5"
ADDS = ("add x0, x0, #1", "add x1, x1, #1")


def loop(*texts: str) -> list[Step]:
    """Instructions in a row, the last one's successor the first."""
    *most, last = texts
    return [*map(Step, most), Step(last, taken=True)]


@pytest.mark.parametrize(
    ("texts", "a53", "a55"),
    [
        # Two a cycle, unless one needs the other or both the same unit.
        (ADDS, 1, 1),
        (("add x0, x0, #1", "add x0, x0, #2"), 2, 2),
        ((*ADDS, "add x2, x2, #1"), 2, 2),
        ((SMULL, "add x0, x0, #1"), 1, 1),
        ((SMULL, "smull v3.8h, v1.8b, v2.8b"), 2, 2),
        (("add v0.8b, v1.8b, v2.8b", "add v3.8b, v1.8b, v2.8b"), 1, 1),
        (("add v0.8b, v1.8b, v2.8b", SMULL), 2, 2),
        (("mul x0, x1, x2", "mul x3, x1, x2"), 2, 2),
        # On the A55 a load of 64 bits goes beside a multiplication; of 128, alone.
        ((SMULL, "ldr d3, [x0]"), 2, 1),
        ((SMULL, "ldr x3, [x0]"), 1, 1),
        ((SMULL, "ldr q3, [x0]"), 3, 2),
        (("ldr q3, [x9]", *ADDS, "add x2, x2, #1"), 3, 3),
        (("ldr d3, [x9]", *ADDS, "add x2, x2, #1"), 2, 2),
        (("ldr d3, [x0]", "ldr d4, [x0, #8]"), 2, 2),
        (("ldp d3, d4, [x0]",), 2, 2),
        (("ldp q3, q4, [x0]",), 4, 4),
        (("ld1 { v3.16b, v4.16b }, [x0]",), 4, 4),
        ((SMULL, "ld1r { v3.4s }, [x0]"), 2, 1),
        # Another half goes in beside a load, or beside anything on the A55.
        (("ldr d3, [x0]", "fmov d4, x5"), 1, 1),
        ((SMULL, "fmov d4, x5"), 2, 1),
        ((*[SMULL, "ldr x6, [x1]"] * 4, "ldr d3, [x0]", INSERT), 5, 5),
        # 128 bits of pairwise sums take two cycles.
        ([f"sadalp v{i}.4s, v31.8h" for i in range(8)], 16, 16),
        ([f"sadalp v{i}.2s, v31.4h" for i in range(8)], 4, 4),
        # Stores have a unit of their own on the A55, and one of 128 bits.
        (("ldr d3, [x0]", "str d4, [x1]"), 2, 1),
        (("str q4, [x1]",), 2, 1),
        (("stp x4, x5, [x1]", "add x0, x0, #1"), 1, 1),
        (("str xzr, [x1]", "add x0, x0, #1"), 1, 1),
        # Latencies: a chain from one pass to the next.
        (("smlal v0.8h, v1.8b, v2.8b",), 4, 4),
        (("sdot v0.4s, v1.16b, v2.4b[1]",), 4, 4),
        (("add v0.16b, v0.16b, v1.16b",), 3, 2),
        (("sqxtn2 v0.16b, v1.8h",), 3, 3),
        (("fmla v0.4s, v1.4s, v2.4s",), 5, 4),
        (("scvtf v0.4s, v0.4s",), 4, 4),
        (("mul x0, x0, x1",), 3, 3),
        (("ldr x0, [x0]",), 3, 3),
        (("ld1 { v0.s }[1], [x0]",), 4, 4),
        (("umov w0, v1.b[0]", "dup v1.8b, w0"), 8, 6),
        (("tbl v0.8b, { v1.16b, v2.16b }, v3.8b",), 2, 2),
        (("fdiv v0.4s, v1.4s, v2.4s",), 10, 10),
        (("udiv x0, x1, x2",), 8, 8),
        # An address that is written back is there in the next cycle.
        (("ldr d0, [x0], #8",), 1, 1),
        (("ldr d0, [x0, #8]!",), 1, 1),
        (("ldr d0, [x0], #8", "add x1, x0, #1"), 2, 2),
        # Flags are a result like others.
        (("subs x0, x0, #1", "b.ne 0x400000"), 2, 2),
        (("cbnz x0, 0x400000", "add x1, x1, #1"), 1, 1),
        (("nop", "nop"), 1, 1),
    ],
)
def test_cycles_of_a_pass(texts, a53, a55):
    assert inorder.cycles(loop(*texts), A53) == a53
    assert inorder.cycles(loop(*texts), A55) == a55


def test_nothing_issues_after_a_taken_branch():
    straight = [Step(text) for text in ("b 0x400008", *ADDS[:1], "b 0x400000", ADDS[1])]
    assert inorder.cycles(straight, A55) == 2
    bent = [step._replace(taken=step.text.startswith("b ")) for step in straight]
    assert inorder.cycles(bent, A55) == 2
    assert inorder.cycles([*bent, Step("nop")], A55) == 3


def test_issue_is_in_order():
    """What waits holds up what follows it, needed or not."""
    waits = ("ldr x0, [x0]", "add x1, x0, #1", "add x2, x2, #1", "add x3, x3, #1")
    assert inorder.cycles(loop(*waits), A55) == 5


def test_multiplications_hide_each_others_latency():
    sums = [f"smlal v{i}.8h, v30.8b, v31.8b" for i in range(8)]
    assert inorder.cycles(loop(*sums), A53) == 8
    assert inorder.cycles(loop(*sums[:3]), A53) == 4


def test_long_loops_cost_what_short_ones_do():
    assert inorder.cycles(loop(*[SMULL, "ldr d3, [x0]"] * 150), A55) == 150


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


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("smmla v0.4s, v1.16b, v2.16b", ["smmla v0.4s, v1.16b, v2.16b"]),
        ("ldr q0, [x1, #0x20]", ["ldr q0, [x1, #0x20]"]),
        ("ldr q0, [x1], #0x20", ["ldr q0, [x1]", "add x1, x1, #0x20"]),
        ("ldr q0, [x1], #-0x20", ["ldr q0, [x1]", "sub x1, x1, #0x20"]),
        ("ld1 { v0.16b }, [x1], x2", ["ld1 { v0.16b }, [x1]", "add x1, x1, x2"]),
        (
            "stp x29, x30, [sp, #-0x10]!",
            ["sub sp, sp, #0x10", "stp x29, x30, [sp]"],
        ),
        (
            "ld1 { v31.s }[2], [x1], #0x4",
            ["ldr s30, [x1]", "mov v31.s[2], v30.s[0]", "add x1, x1, #0x4"],
        ),
        (
            "ld2 { v0.h, v1.h }[3], [x1]",
            ["ldr q31, [x1]", "mov v0.h[3], v31.h[0]", "mov v1.h[3], v31.h[0]"],
        ),
        ("b.ne 0x400280", ["b.ne #4"]),
        ("cbnz w3, 0x400280", ["cbnz w3, #4"]),
        ("tbz x3, #0x1f, 0x400280", ["tbz x3, #0x1f, #4"]),
        ("bl 0x400280", ["b #4"]),
        ("ret", ["b #4"]),
        ("blr x8", ["b #4"]),
        ("bic x0, x1, x2", ["bic x0, x1, x2"]),
        ("adrp x16, 0x4d0000", ["adrp x16, #0"]),
        ("adr x0, 0x4e33c", ["adr x0, #0"]),
        ("bti c", ["nop"]),
        ("mrs x0, TPIDR_EL0", ["nop"]),
    ],
)
def test_what_llvm_mca_is_shown(text, seen):
    assert mca.rewritten([text]) == seen
