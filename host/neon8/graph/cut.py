# SPDX-License-Identifier: Apache-2.0
"""A network in three parts: the one that neon8 runs, and what stands before and after.

The nodes inside are convex: no path leaves them and comes back. So what does not run
in neon8 stands before all of them or after all of them, and of all ways to say which,
the one that leaves most inside is found by a minimum cut.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from neon8.graph.closure import closure
from neon8.graph.onnx_file import OnnxFile
from neon8.graph.part import Part, Parts
from neon8.ir.graph import Graph
from neon8.ir.rewrite import drop_dead

BEFORE, INSIDE, AFTER = range(3)
NAMES = ("before", "inside", "after")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cut:
    """inside: the nodes that neon8 runs, as a network.  before, after: None if empty.

    where: of each node of the whole network, by its output, BEFORE, INSIDE or AFTER.
    counts, macs: nodes and multiply-accumulates of each of the three.
    """

    inside: Graph
    before: Part | None
    after: Part | None
    where: Mapping[str, int]
    counts: tuple[int, ...]
    macs: tuple[int, ...]

    @property
    def crossing(self) -> dict[str, tuple[str, str]]:
        """The tensors that parts hand on: whence, "input" for the network's, and to."""
        before = self.before.outputs if self.before else ()
        taken = self.after.inputs if self.after else ()
        found = {}
        for name in dict.fromkeys((*self.inside.inputs, *taken)):
            source = "before" if name in before else "input"
            source = "inside" if name in self.inside.outputs else source
            to = [
                part
                for part, names in (("inside", self.inside.inputs), ("after", taken))
                if name in names
            ]
            if source != "input" or "after" in to:
                found[name] = source, ", ".join(to)
        return found


def cut(
    file: OnnxFile, graph: Graph, *, sealed: Callable[[str], bool] = lambda _: False
) -> Cut | None:
    """The network of `file` around the largest part that runs, None if nothing does.

    graph: what was imported from it.  sealed: True of a tensor that the parts must not
    hand on.  What counts is multiply-accumulates, then nodes.  GraphError.
    """
    parts = Parts(file)

    def passes(name: str) -> bool:
        """True if what is inside may take a tensor, or give it."""
        tensor = graph.tensors[name]
        return parts.has(tensor) and not tensor.hidden and not sealed(name)

    where = _where(graph, passes)
    rows = [
        tuple(n for n in graph.nodes if where[n.output] == part)
        for part in range(len(NAMES))
    ]
    nodes = rows[INSIDE]
    if not nodes:
        return None
    made = {name: where[n.output] for n in graph.nodes for name in n.outputs}
    known = dict.fromkeys(graph.inputs) | dict.fromkeys(
        name
        for name, part in made.items()
        if (part == BEFORE and parts.typed(name)) or (part == INSIDE and passes(name))
    )
    outputs = dict.fromkeys(graph.outputs)
    after = parts.part([n for n in outputs if made.get(n) == AFTER], known)
    read = dict.fromkeys(name for node in nodes for name in node.inputs)
    wanted = {**outputs, **dict.fromkeys(after.inputs if after else ())}
    entering = [n for n in (*graph.inputs, *made) if n in read]
    entering = [n for n in entering if made.get(n) != INSIDE]
    needed = {*wanted, *entering}
    before = parts.part(
        [n for n, part in made.items() if part == BEFORE and n in needed], graph.inputs
    )
    inside = replace(
        graph,
        nodes=nodes,
        inputs=tuple(entering),
        outputs=tuple(n for n in wanted if made.get(n) == INSIDE),
    )
    return Cut(
        inside=drop_dead(inside),
        before=before,
        after=after,
        where=where,
        counts=tuple(map(len, rows)),
        macs=tuple(sum(n.macs(graph) for n in row) for row in rows),
    )


def _where(graph: Graph, passes: Callable[[str], bool]) -> dict[str, int]:
    """The part of each node, by its output.

    Of a node two things may be chosen: that it is not before, and that it is after.
    """
    number = {name: at for at, n in enumerate(graph.nodes) for name in n.outputs}
    gains: list[int] = []
    implied: list[tuple[int, int]] = []
    for at, node in enumerate(graph.nodes):
        gain = node.macs(graph) * (len(graph.nodes) + 1) + 1 if node.runs else 0
        gains += (gain, -gain)
        later, after = 2 * at, 2 * at + 1
        implied.append((after, later))
        if not node.runs:
            implied.append((later, after))
        for name in node.inputs:
            if name not in number:
                continue
            first = 2 * number[name]
            implied += ((first, later), (first + 1, after))
            between = node.runs or graph.nodes[number[name]].runs
            if between and not passes(name):  # both are in the same part
                implied += ((later, first), (after, first + 1))
    chosen = closure(gains, implied)
    return {
        node.output: (2 * at in chosen) + (2 * at + 1 in chosen)
        for at, node in enumerate(graph.nodes)
    }
