# SPDX-License-Identifier: Apache-2.0
"""Counts of blocks as a sum of cycles."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.kernels import flow
from bench.kernels.flow import OUTSIDE, Block, Cycle

HEAD, INNER, TAIL = (Block(0x1000 + 0x100 * i, 5 + i) for i in range(3))


def nested(rows: int, columns: int) -> flow.Edges:
    """A loop in a loop, entered and left once."""
    return {
        (OUTSIDE, HEAD): 1,
        (HEAD, INNER): rows,
        (INNER, INNER): rows * (columns - 1),
        (INNER, TAIL): rows,
        (TAIL, HEAD): rows - 1,
        (TAIL, OUTSIDE): 1,
    }


def edges_of(cycles: list[Cycle]) -> Counter:
    """The edges that these cycles go along."""
    counted: Counter = Counter()
    for cycle in cycles:
        for pair in zip(cycle.blocks, cycle.blocks[1:] + cycle.blocks[:1], strict=True):
            counted[pair] += cycle.count
    return counted


def test_inner_loops_come_off_outer_ones():
    assert flow.cycles(nested(10, 7)) == [
        Cycle((INNER,), 60),
        Cycle((HEAD, INNER, TAIL), 9),
        Cycle((OUTSIDE, HEAD, INNER, TAIL), 1),
    ]


def test_instructions_are_those_of_the_blocks():
    edges = nested(10, 7)
    assert flow.runs(edges) == {HEAD: 10, INNER: 70, TAIL: 10}
    assert flow.instructions(edges) == 10 * 5 + 70 * 6 + 10 * 7


@given(st.lists(st.integers(1, 6), min_size=1, max_size=60))
def test_the_sum_of_cycles_is_what_was_counted(way):
    blocks = [Block(0x40 * number, number) for number in way]
    pairs = zip([OUTSIDE, *blocks], [*blocks, OUTSIDE], strict=True)
    edges = dict(Counter(pairs))
    cycles = flow.cycles(edges)
    assert edges_of(cycles) == edges
    assert sum(cycle.instructions for cycle in cycles) == sum(way)
    assert all(len(set(cycle.blocks)) == len(cycle.blocks) for cycle in cycles)
    assert flow.cycles(dict(reversed(edges.items()))) == cycles


def test_what_is_no_circulation_is_refused():
    edges = nested(10, 7)
    edges[INNER, TAIL] += 1
    with pytest.raises(ValueError, match="block 0x1100 is not left as often"):
        flow.cycles(edges)
    assert flow.unbalanced(edges) == [INNER, TAIL]


def test_the_file_of_the_plugin(tmp_path):
    (tmp_path / "counts").write_text("0 0 4096 5 1\n4096 5 0 0 1\n")
    one = Block(4096, 5)
    assert flow.read(tmp_path / "counts") == {(OUTSIDE, one): 1, (one, OUTSIDE): 1}
