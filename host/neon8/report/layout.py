# SPDX-License-Identifier: Apache-2.0
"""Places for the nodes of a network that is drawn from top to bottom.

Each node stands in the row after the last of those that it reads, below their middle.
What is read further down goes there beside the rows between, one line for all readers
of a node: networks have hundreds of such edges, and few columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 176, 44
"""The size of a node."""
APART = 28
"""Between nodes."""
LANE = 10
"""Between lines that pass rows."""

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Drawing:
    """width, height: of the whole.  nodes: their middles.  edges: points of each."""

    width: float
    height: float
    nodes: tuple[Point, ...]
    edges: tuple[tuple[Point, ...], ...]


def drawing(count: int, pairs: Sequence[tuple[int, int]]) -> Drawing:
    """Place nodes 0 ... count - 1.  pairs: edges, from the first to a later one."""
    sources: list[list[int]] = [[] for _ in range(count)]
    readers: list[list[int]] = [[] for _ in range(count)]
    for first, second in pairs:
        sources[second].append(first)
        readers[first].append(second)
    row = [0] * count
    for node in range(count):
        row[node] = max((row[each] + 1 for each in sources[node]), default=0)
    rows: list[list[int]] = [[] for _ in range(max(row, default=-1) + 1)]
    for node in range(count):
        rows[row[node]].append(node)
    x = [0.0] * count
    for nodes in rows:
        _place(nodes, sources, x)
    lanes = _lanes(rows, row, readers, x)
    left = min((*x, *lanes.values()), default=0.0) - WIDTH / 2 - APART
    right = max((*x, *lanes.values()), default=0.0) + WIDTH / 2 + APART

    def height(at: float) -> float:
        return APART + HEIGHT / 2 + at * (HEIGHT + APART)

    def points(first: int, second: int) -> tuple[Point, ...]:
        ends = [(x[each] - left, height(row[each])) for each in (first, second)]
        if row[second] == row[first] + 1:
            return tuple(ends)
        lane, half = lanes[first] - left, HEIGHT / 2
        above, below = height(row[first] + 1) - half, height(row[second] - 1) + half
        return ends[0], (lane, above), (lane, below), ends[1]

    return Drawing(
        width=right - left,
        height=height(len(rows)) - HEIGHT / 2,
        nodes=tuple((x[node] - left, height(row[node])) for node in range(count)),
        edges=tuple(points(*pair) for pair in pairs),
    )


def _place(nodes: Sequence[int], sources: Sequence[list[int]], x: list[float]) -> None:
    """Set the x of the nodes of a row, each as near as can be to what it reads."""
    wanted = {
        node: sum(x[each] for each in sources[node]) / (len(sources[node]) or 1)
        for node in nodes
    }
    order = sorted(nodes, key=lambda node: wanted[node])
    last = -float("inf")
    for node in order:
        x[node] = last = max(wanted[node], last + WIDTH + APART)
    pushed = sum(x[node] - wanted[node] for node in order) / len(order)
    for node in order:
        x[node] -= pushed


def _lanes(
    rows: Sequence[list[int]],
    row: Sequence[int],
    readers: Sequence[list[int]],
    x: Sequence[float],
) -> dict[int, float]:
    """Node -> the x of the line to those that read it further down."""
    edges = [max(x[node] for node in nodes) + WIDTH / 2 for nodes in rows]
    ends = {
        node: max(row[each] for each in mine)
        for node, mine in enumerate(readers)
        if mine and max(row[each] for each in mine) > row[node] + 1
    }
    lanes: dict[int, float] = {}
    for node in sorted(ends, key=lambda each: ends[each] - row[each]):
        place = max(edges[row[node] + 1 : ends[node]]) + LANE
        taken = sorted(
            lanes[each]
            for each in lanes
            if row[each] < ends[node] and row[node] < ends[each]
        )
        for other in taken:
            if abs(other - place) < LANE:
                place = other + LANE
        lanes[node] = place
    return lanes
