# SPDX-License-Identifier: Apache-2.0
"""Counted instructions: of qemu's plugin, and as a sum of loops."""

import re
from collections import Counter
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from bench.kernels import emulation, flow, tools
from bench.kernels.cores import CORES, IN_ORDER
from bench.kernels.flow import OUTSIDE, Block

COMPILER = ("aarch64-linux-gnu-gcc", "-static", "-no-pie")
PROGRAM = """\
#include <stdio.h>
__attribute__((noipa)) static void measure_begin(void) {{ __asm__ volatile(""); }}
__attribute__((noipa)) static void measure_part(void) {{ __asm__ volatile(""); }}
__attribute__((noipa)) static void measure_end(void) {{ __asm__ volatile(""); }}
int main(int argc, char **argv) {{
    (void)argv;
    measure_begin();
    if (argc == 9) {{
        measure_part();
    }}
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


def test_instructions_are_counted_exactly(tmp_path):
    emulation.build_counter(tools.version("qemu-aarch64"), tmp_path)
    count = partial(emulation.count, tmp_path, CORES["a53"])

    def built(body):
        source, program = tmp_path / "program.c", tmp_path / "program"
        source.write_text(PROGRAM.format(body=body))
        tools.run(*COMPILER, source, "-o", program)
        return program

    (edges,) = count(built(NESTED))
    (nothing,) = count(built(""))
    around = flow.instructions(nothing)
    assert flow.instructions(edges) - around == 1 + 10 * (1 + 7 * 3 + 2)
    parts = count(built(f"{NESTED} measure_part(); {NESTED}"))
    assert len(parts) == 2
    assert all(flow.instructions(part) >= 10 * (1 + 7 * 3 + 2) for part in parts)
    inner, outer, *_ = flow.cycles(edges)
    assert (inner.count, inner.instructions) == (10 * 6 - 10, 50 * 3)
    assert outer.count in {9, 10}


def test_the_runtime_takes_each_core_for_what_it_is():
    """In order or not, by its part number in MIDR_EL1."""
    source = (emulation.ROOT / "runtime" / "cpu" / "cpu.c").read_text()
    in_order = {int(part, 16) for part in re.findall(r"0x(d[0-9a-f]{2}), //", source)}
    assert len(in_order) == 6
    parts = {key: core.midr >> 4 & 0xFFF for key, core in CORES.items() if core.midr}
    found = {key for key, part in parts.items() if part in in_order}
    assert found == set(IN_ORDER)


@given(st.lists(st.integers(1, 6), min_size=1, max_size=60))
def test_the_sum_of_cycles_is_what_was_counted(path):
    blocks = [Block(0x40 * number, number) for number in path]
    pairs = zip([OUTSIDE, *blocks], [*blocks, OUTSIDE], strict=True)
    edges = dict(Counter(pairs))
    cycles = flow.cycles(edges)
    counted: Counter = Counter()
    for cycle in cycles:
        for pair in zip(cycle.blocks, cycle.blocks[1:] + cycle.blocks[:1], strict=True):
            counted[pair] += cycle.count
    assert counted == edges
    assert sum(cycle.instructions for cycle in cycles) == sum(path)
    assert all(len(set(cycle.blocks)) == len(cycle.blocks) for cycle in cycles)
    assert flow.cycles(dict(reversed(edges.items()))) == cycles
