# SPDX-License-Identifier: Apache-2.0
"""The best set of things of which some imply others, by a minimum cut."""

from collections import deque
from collections.abc import Iterable, Sequence


def closure(gains: Sequence[int], implied: Iterable[tuple[int, int]]) -> set[int]:
    """The set with the largest sum of gains; the smallest one of several.

    gains: of thing 0, 1 ..., below 0 where it costs.  implied: pairs of things; with
    the first one of a pair the second one is in the set, too.
    """
    source, sink = len(gains), len(gains) + 1
    flow = _Flow(len(gains) + 2)
    for index, gain in enumerate(gains):
        if gain > 0:
            flow.edge(source, index, gain)
        elif gain < 0:
            flow.edge(index, sink, -gain)
    endless = 1 + sum(gain for gain in gains if gain > 0)
    for first, second in implied:
        flow.edge(first, second, endless)
    return flow.cut(source, sink) - {source}


class _Flow:
    """A network of pipes; Dinic's algorithm.

    Edge 2 i leads from somewhere to `_end[2 i]`, and edge 2 i + 1 back.
    """

    def __init__(self, count: int) -> None:
        self._edges: list[list[int]] = [[] for _ in range(count)]
        self._end: list[int] = []
        self._room: list[int] = []

    def edge(self, first: int, second: int, room: int) -> None:
        """Add a pipe."""
        for here, there, width in ((first, second, room), (second, first, 0)):
            self._edges[here].append(len(self._end))
            self._end.append(there)
            self._room.append(width)

    def cut(self, source: int, sink: int) -> set[int]:
        """What can still be reached from the source when no more flows."""
        while True:
            levels = self._levels(source)
            if levels[sink] < 0:
                return {index for index, level in enumerate(levels) if level >= 0}
            tried = [0] * len(self._edges)
            while self._push(source, sink, levels, tried):
                pass

    def _levels(self, source: int) -> list[int]:
        """How many edges lead from the source to each node, -1 where none do."""
        levels = [-1] * len(self._edges)
        levels[source] = 0
        waiting = deque([source])
        while waiting:
            here = waiting.popleft()
            for edge in self._edges[here]:
                there = self._end[edge]
                if self._room[edge] and levels[there] < 0:
                    levels[there] = levels[here] + 1
                    waiting.append(there)
        return levels

    def _push(
        self, source: int, sink: int, levels: list[int], tried: list[int]
    ) -> bool:
        """Let more flow along one shortest path.  False: there is none left.

        tried: of each node, how many of its edges lead nowhere.
        """
        path: list[int] = []
        here = source
        while here != sink:
            edges = self._edges[here]
            if tried[here] == len(edges):
                if here == source:
                    return False
                here = self._end[path.pop() ^ 1]
                tried[here] += 1
                continue
            edge = edges[tried[here]]
            there = self._end[edge]
            if self._room[edge] and levels[there] == levels[here] + 1:
                path.append(edge)
                here = there
            else:
                tried[here] += 1
        flowing = min(self._room[edge] for edge in path)
        for edge in path:
            self._room[edge] -= flowing
            self._room[edge ^ 1] += flowing
        return True
