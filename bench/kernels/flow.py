# SPDX-License-Identifier: Apache-2.0
"""From counts of blocks to loops: what ran, as cycles through the blocks.

A region that was counted enters every block as often as it leaves it, so its counts are
a circulation, and every circulation is a sum of cycles, each run some number of times:
the body of an inner loop, the way around an outer one with one pass through the inner,
and so on out to the whole region. The sum has all instructions, no more and no less,
and a cycle is what a model of a core can judge: instructions that repeat.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple


class Block(NamedTuple):
    """Instructions that run one after the other; the first one's address."""

    address: int
    instructions: int


OUTSIDE = Block(0, 0)
"""What is before the region and after it."""

Edges = dict[tuple[Block, Block], int]
"""How often a block followed another."""


@dataclass(frozen=True, slots=True)
class Cycle:
    """Blocks that follow one another, the first one after the last; how often."""

    blocks: tuple[Block, ...]
    count: int

    @property
    def instructions(self) -> int:
        """How many all its passes execute."""
        return self.count * sum(block.instructions for block in self.blocks)


def read(path: Path) -> list[Edges]:
    """The file that count.c writes: of each part."""
    parts: dict[int, Edges] = defaultdict(dict)
    for line in path.read_text().splitlines():
        part, a, n, b, m, count = map(int, line.split())
        parts[part][Block(a, n), Block(b, m)] = count
    return [parts[number] for number in range(max(parts, default=-1) + 1)]


def whole(parts: Iterable[Edges]) -> Edges:
    edges: Edges = defaultdict(int)
    for part in parts:
        for edge, count in part.items():
            edges[edge] += count
    return dict(edges)


def runs(edges: Edges) -> dict[Block, int]:
    found: dict[Block, int] = defaultdict(int)
    for (_, block), count in edges.items():
        if block != OUTSIDE:
            found[block] += count
    return found


def instructions(edges: Edges) -> int:
    """How many were executed."""
    return sum(block.instructions * count for block, count in runs(edges).items())


def unbalanced(edges: Edges) -> list[Block]:
    """Blocks that are not entered as often as left."""
    balance: dict[Block, int] = defaultdict(int)
    for (source, target), count in edges.items():
        balance[source] -= count
        balance[target] += count
    return sorted(block for block, more in balance.items() if more)


def cycles(edges: Edges) -> list[Cycle]:
    """A circulation as a sum of cycles, those with most instructions first.

    Again and again from the edge that is left with the highest count, along the most
    frequent way until a block occurs again: so inner loops come off before outer ones.
    ValueError: it is no circulation.
    """
    if blocks := unbalanced(edges):
        raise ValueError(
            f"block {blocks[0].address:#x} is not left as often as entered"
        )
    left: dict[Block, dict[Block, int]] = defaultdict(dict)
    for (source, target), count in edges.items():
        left[source][target] = count
    best = {source: busiest(targets) for source, targets in left.items()}
    found: dict[tuple[Block, ...], int] = defaultdict(int)
    while best:
        block = max(best, key=lambda source: (left[source][best[source]], source))
        cycle = closed_way(best, block)
        count = min(left[source][best[source]] for source in cycle)
        for source in cycle:
            targets = left[source]
            targets[best[source]] -= count
            if not targets[best[source]]:
                del targets[best[source]]
            if targets:
                best[source] = busiest(targets)
            else:
                del best[source]
        found[rotated(cycle)] += count
    made = [Cycle(cycle, count) for cycle, count in found.items()]
    return sorted(made, key=lambda each: (-each.instructions, each.blocks))


def most(edges: Edges, share: float) -> list[Cycle]:
    """The first of cycles(), as many as have a share of all instructions."""
    needed, chosen = share * instructions(edges), []
    for cycle in cycles(edges):
        if needed <= 0:
            break
        chosen.append(cycle)
        needed -= cycle.instructions
    return chosen


def busiest(targets: Mapping[Block, int]) -> Block:
    """The most frequent one; of equals the one at the highest address."""
    return max(targets, key=lambda block: (targets[block], block))


def closed_way(following: Mapping[Block, Block], block: Block) -> list[Block]:
    """The cycle into which one gets from a block."""
    way: dict[Block, int] = {}
    while block not in way:
        way[block] = len(way)
        block = following[block]
    return list(way)[way[block] :]


def rotated(cycle: list[Block]) -> tuple[Block, ...]:
    """The same cycle from its lowest address on."""
    first = cycle.index(min(cycle))
    return tuple(cycle[first:] + cycle[:first])
