# SPDX-License-Identifier: Apache-2.0
"""What qemu counts, and on which core a program believes to run."""

import re

import pytest

from bench.kernels import emulation, flow, tools
from bench.kernels.cases import ROWS, make
from bench.kernels.cores import CORES, IN_ORDER, MACHINES
from bench.kernels.tools import BenchError

COMPILER = ("aarch64-linux-gnu-gcc", "-static", "-no-pie")
PROGRAM = """\
#include <stdio.h>
__attribute__((noipa)) static void measure_begin(void) {{ __asm__ volatile(""); }}
__attribute__((noipa)) static void measure_end(void) {{ __asm__ volatile(""); }}
int main(void) {{
    measure_begin();
    {body}
    measure_end();
    return 0;
}}
"""
NESTED = """\
__asm__ volatile("mov x0, #10\\n1: mov x1, #7\\n"
                 "2: nop\\n subs x1, x1, #1\\n b.ne 2b\\n"
                 "subs x0, x0, #1\\n b.ne 1b" ::: "x0", "x1", "cc");
"""


@pytest.fixture(scope="module")
def counter(tmp_path_factory):
    folder = tmp_path_factory.mktemp("counter")
    return emulation.build_counter(tools.version("qemu-aarch64"), folder)


@pytest.fixture
def built(tmp_path):
    def build(body):
        source, program = tmp_path / "program.c", tmp_path / "program"
        source.write_text(PROGRAM.format(body=body))
        tools.run(*COMPILER, source, "-o", program)
        return program

    return build


def test_instructions_are_counted_exactly(counter, built):
    edges = counter.count(CORES["a53"], built(NESTED))
    around = flow.instructions(counter.count(CORES["a53"], built("")))
    assert flow.instructions(edges) - around == 1 + 10 * (1 + 7 * 3 + 2)
    inner, outer, *_ = flow.cycles(edges)
    assert (inner.count, inner.instructions) == (10 * 6 - 10, 50 * 3)
    assert outer.count in {9, 10}


@pytest.mark.parametrize("core", [key for key in CORES if CORES[key].midr])
def test_the_system_has_one_processor_of_that_kind(counter, built, core):
    """Where runtime/cpu.c looks for it; the program fails where it finds another."""
    body = f"""
    FILE *file = fopen("/{emulation.MIDR}", "r");
    unsigned long midr;
    if (file == NULL || fscanf(file, "%lx", &midr) != 1) return 1;
    if (midr != {CORES[core].midr}) return 1;"""
    assert counter.count(CORES[core], built(body))


def test_the_runtime_takes_each_core_for_what_it_is():
    """In order or not, by its part number in MIDR_EL1."""
    source = (emulation.ROOT / "runtime" / "cpu.c").read_text()
    in_order = {int(part, 16) for part in re.findall(r"0x(d[0-9a-f]{2}), //", source)}
    assert len(in_order) == 6
    parts = {key: core.midr >> 4 & 0xFFF for key, core in CORES.items() if core.midr}
    found = {key for key, part in parts.items() if part in in_order}
    assert found == set(IN_ORDER)


def test_a_program_that_never_gets_to_the_end(counter, built):
    with pytest.raises(BenchError, match="does not get from measure_begin"):
        counter.count(CORES["a53"], built("return 0;"))


def test_a_program_that_fails(counter, built):
    with pytest.raises(BenchError, match="-plugin"):
        counter.count(CORES["a53"], built("return 1;"))


def test_a_layer_gives_the_bytes_of_this_machine(counter, tmp_path):
    """And takes the same instructions each time."""
    guests = {each: emulation.build_guest(each, tmp_path) for each in MACHINES}
    case = make("fc2048-1000", tmp_path)
    result = tmp_path / "result"
    counts = []
    for core in ("a55", "n2", "a55", "a9"):
        guest = guests[CORES[core].machine]
        edges = counter.count(CORES[core], guest, (*case.arguments, result))
        assert result.read_bytes() == case.expected
        result.unlink()
        counts.append(edges)
    assert counts[0] == counts[2]


def test_macs_are_those_of_the_shapes():
    assert {key: row.draw().macs for key, row in ROWS.items()} == {
        "pw64-256": 64 * 256 * 56 * 56,
        "pw256-64": 64 * 256 * 56 * 56,
        "pw256-64-aware": 64 * 256 * 56 * 56,
        "pw512-2048": 512 * 2048 * 7 * 7,
        "c3-64": 64 * 64 * 9 * 56 * 56,
        "c3-256": 256 * 256 * 9 * 14 * 14,
        "c3s2-128": 128 * 128 * 9 * 28 * 28,
        "c7s2-3": 3 * 64 * 49 * 112 * 112,
        "dw3-144": 144 * 9 * 56 * 56,
        "dw3s2-144": 144 * 9 * 28 * 28,
        "fc2048-1000": 2048 * 1000,
        "net": 26_361_344,
        "net-fast": 26_361_344,
    }
