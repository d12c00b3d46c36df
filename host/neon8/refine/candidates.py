# SPDX-License-Identifier: Apache-2.0
"""What a search may give more bits, and about how much that costs.

A candidate is a scale group, the weights of a layer, or the two groups of what a
function reads and of what it gives: the error of one hides that of the other, so that
neither gains much alone.
"""

import math
from collections.abc import Collection, Iterator, Mapping

from neon8.ir.graph import Graph, Node
from neon8.operators.convolution import Conv2d
from neon8.quant.scale_table import PRECISIONS, WEIGHTS16

INT16, FLOAT = PRECISIONS
INT8 = "int8"
INT16_BITS = 16
"""What an int16 tensor has, unless accumulators allow only fewer."""

Candidate = tuple[str, ...]
"""Scale groups, or weights_of() a layer, that get more bits together."""

Chosen = Mapping[str, str]
"""Scale group -> INT16 or FLOAT, or weights_of() a layer -> WEIGHTS16, in the order in
which they were chosen."""

BYTES = {INT8: 1, INT16: 2, FLOAT: 4}
"""The size of a value."""
MAC_COSTS = {INT8: 1, INT16: 2, FLOAT: 8}
"""The cost of a product in a convolution, by what it reads."""
BYTE_COST = 4
"""A byte that is read or written, in MACs of int8; all three as libneon8 reckons."""


def weights_of(layer: str) -> str:
    """What the weights of a layer are called, beside the groups of tensors."""
    return f"{WEIGHTS16}:{layer}"


def both_ends(
    graph: Graph, groups: Mapping[str, str], able: Collection[str]
) -> Iterator[Candidate]:
    """What functions read and what they give, for groups in `able`.

    groups: tensor -> its group.
    """
    found: dict[Candidate, None] = {}
    for node in graph.nodes:
        if node.by_value and len(node.inputs) == 1:
            both = tuple(groups.get(name, "") for name in (*node.inputs, node.output))
            if both[0] != both[1] and all(group in able for group in both):
                found[both] = None
    yield from found


class Costs:
    """Estimates of what more bits cost, in MACs of int8.

    Close to what libneon8 says of the compiled network, but for steps that convert.
    """

    def __init__(self, graph: Graph, groups: Mapping[str, str]) -> None:
        """groups: tensor -> its group."""
        self._graph, self._groups = graph, groups
        self._near: dict[str, list[Node]] = {}
        for node in graph.nodes:
            near = {groups.get(name, "") for name in (*node.inputs, *node.outputs)}
            for key in {*near, weights_of(node.name)} - {""}:
                self._near.setdefault(key, []).append(node)

    def more(self, chosen: Chosen, added: Chosen) -> int:
        """What `added` costs beside what was chosen, 1 or more."""
        after = {**chosen, **added}
        nodes = {node.name: node for key in added for node in self._near.get(key, ())}
        steps = (
            self._step(node, after) - self._step(node, chosen)
            for node in nodes.values()
        )
        return max(1, sum(steps))

    def _step(self, node: Node, chosen: Chosen) -> int:
        kinds = {
            name: chosen.get(self._groups.get(name, ""), INT8)
            for name in (*node.inputs, *node.outputs)
        }
        sizes = {name: math.prod(self._graph.tensors[name].dims) for name in kinds}
        cost = BYTE_COST * sum(sizes[name] * BYTES[kinds[name]] for name in kinds)
        if isinstance(node, Conv2d):
            each = MAC_COSTS[kinds[node.inputs[0]]]
            if weights_of(node.name) in chosen:
                each = max(each, MAC_COSTS[INT16])
            cost += each * sizes[node.output] * node.weight[0].size
        return cost
