# SPDX-License-Identifier: Apache-2.0
"""Places for the nodes of a network that is drawn from top to bottom."""

from collections.abc import Sequence
from dataclasses import dataclass

from grandalf.graphs import Edge, Graph, Vertex
from grandalf.layouts import SugiyamaLayout

WIDTH, HEIGHT = 176, 44
"""Of a node."""
APART = 24
"""Between nodes."""
ROUNDS = 2
"""Passes that order the nodes of each row for fewer crossings."""

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Drawing:
    """width, height: of the whole.  nodes: their middles.  edges: points of each."""

    width: float
    height: float
    nodes: tuple[Point, ...]
    edges: tuple[tuple[Point, ...], ...]


class _Place:
    """What grandalf asks of a node, and tells it."""

    def __init__(self) -> None:
        self.w, self.h = WIDTH, HEIGHT
        self.xy: Point = (0.0, 0.0)


class _Path:
    """What grandalf tells an edge."""

    def __init__(self) -> None:
        self.points: list[Point] = []

    def setpath(self, points: list[Point]) -> None:
        """Take the points."""
        self.points = points


def drawing(count: int, pairs: Sequence[tuple[int, int]]) -> Drawing:
    """Place nodes 0 ... count - 1.  pairs: edges, from the first to the second."""
    places, paths = [_Place() for _ in range(count)], [_Path() for _ in pairs]
    nodes = [Vertex(number) for number in range(count)]
    for node, place in zip(nodes, places, strict=True):
        node.view = place
    edges = [Edge(nodes[a], nodes[b]) for a, b in pairs]
    for edge, path in zip(edges, paths, strict=True):
        edge.view = path
    left = height = 0.0
    for part in Graph(nodes, edges).C:
        layout = SugiyamaLayout(part)
        layout.xspace, layout.yspace = APART, APART
        layout.init_all()
        layout.draw(ROUNDS)
        mine = {node.data for node in part.sV}
        edge_points = [
            paths[at] for at, (source, _) in enumerate(pairs) if source in mine
        ]
        xs = [places[each].xy[0] for each in mine]
        xs += [x for path in edge_points for x, _ in path.points]
        ys = [places[each].xy[1] for each in mine]
        right = left - min(xs) + WIDTH / 2 + APART
        down = HEIGHT / 2 + APART - min(ys)
        for each in mine:
            x, y = places[each].xy
            places[each].xy = x + right, y + down
        for path in edge_points:
            path.points = [(x + right, y + down) for x, y in path.points]
        left = max(xs) + right + WIDTH / 2
        height = max(height, max(ys) + down + HEIGHT / 2 + APART)
    return Drawing(
        width=left + APART,
        height=height,
        nodes=tuple(place.xy for place in places),
        edges=tuple(tuple(path.points) for path in paths),
    )
