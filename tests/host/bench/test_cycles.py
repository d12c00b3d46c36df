# SPDX-License-Identifier: Apache-2.0
"""What modelled cycles rest on: A53 and A55, and what llvm-mca is shown of others."""

import pytest

from bench.kernels import inorder, mca
from bench.kernels.assembly import Step
from bench.kernels.inorder import A53, A55

SMULL = "smull v0.8h, v1.8b, v2.8b"
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
        # A load of 64 bits goes beside a multiplication; of 128 it issues alone.
        ((SMULL, "ldr d3, [x0]"), 1, 1),
        ((SMULL, "ldr q3, [x0]"), 2, 2),
        (("ldr q3, [x9]", *ADDS, "add x2, x2, #1"), 3, 3),
        (("ldr d3, [x9]", *ADDS, "add x2, x2, #1"), 2, 2),
        (("ldr d3, [x0]", "ldr d4, [x0, #8]"), 2, 2),
        (("ldp d3, d4, [x0]",), 2, 2),
        (("ldp q3, q4, [x0]",), 4, 4),
        (("ld1 { v3.16b, v4.16b }, [x0]",), 4, 4),
        ((SMULL, "ld1r { v3.4s }, [x0]"), 1, 1),
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
        ("bti c", ["nop"]),
        ("mrs x0, TPIDR_EL0", ["nop"]),
    ],
)
def test_what_llvm_mca_is_shown(text, seen):
    assert mca.rewritten([text]) == seen
