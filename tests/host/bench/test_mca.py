# SPDX-License-Identifier: Apache-2.0
"""What llvm-mca is asked, and what its answers are taken for."""

import stat
import sys

import pytest

from bench.kernels import mca
from bench.kernels.assembly import Step
from bench.kernels.tools import BenchError, Tools, run

ANSWERS = """\
#!{python}
import json, sys
passes = next(int(o.partition("=")[2]) for o in sys.argv if "iterations" in o)
loops = sys.stdin.read().split("# LLVM-MCA-BEGIN")[1:]
views = [{{"TotalCycles": 7 + passes * loop.count("add")}} for loop in loops{some}]
print(json.dumps({{"CodeRegions": [{{"SummaryView": view}} for view in views]}}))
"""


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
def test_rewritten(text, seen):
    assert mca.rewritten([text]) == seen


def test_without_a_free_register_loads_into_lanes_stay():
    loop = [f"add v{i}.4s, v{i}.4s, v{i}.4s" for i in range(32)]
    loop.append("ld1 { v0.s }[1], [x0]")
    assert mca.rewritten(loop) == loop


@pytest.fixture
def llvm_mca(tmp_path):
    """A program that answers: 7 cycles and one for each addition."""

    def make(some: str = "") -> str:
        file = tmp_path / "llvm-mca"
        file.write_text(ANSWERS.format(python=sys.executable, some=some))
        file.chmod(file.stat().st_mode | stat.S_IXUSR)
        return str(file)

    return make


def test_a_pass_costs_what_more_passes_cost_more(llvm_mca):
    loops = [[Step("add x0, x0, #1")], [Step("add x0, x0, #1"), Step("add x1, x1, #1")]]
    assert mca.cycles(llvm_mca(), loops, "n2") == [1, 2]
    assert mca.cycles("never-run", [], "n2") == []


def test_an_answer_too_few(llvm_mca):
    with pytest.raises(BenchError, match="llvm-mca: 1 answers to 2 loops"):
        mca.cycles(llvm_mca("[1:]"), [[Step("nop")], [Step("nop")]], "a76")


def test_tools_that_are_missing_or_fail():
    with pytest.raises(BenchError, match="no-such-tool is missing; `make bench-ker"):
        run("no-such-tool")
    with pytest.raises(BenchError, match=r"sys\.exit.*\nwhy$"):
        run(sys.executable, "-c", "import sys; sys.exit('why')")


@pytest.mark.parametrize(("version", "said"), [("19.1.7", False), ("22.1.0", True)])
def test_another_llvm_is_named(version, said):
    versions = {"LLVM": version}
    tools = Tools(llvm_mca="", llvm_objdump="", versions=versions)
    assert (version in tools.other_llvm) == said
