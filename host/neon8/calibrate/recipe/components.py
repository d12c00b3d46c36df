# SPDX-License-Identifier: Apache-2.0
"""Components: sets of tensors that must share their equalization factors.

Factors pass unchanged through nodes that treat each channel alone
(rewrite/equalization.py), so all tensors that such nodes connect share one set.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from neon8.arrays import Int64Array
from neon8.ir.graph import Graph, Node
from neon8.operators.convolution import Conv2d
from neon8.operators.pointwise import function_of
from neon8.rewrite.equalization import CHANNELS, absorbs, homogeneous, links, makes

Member = TypeVar("Member")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Component:
    """Tensors that share `count` factors.

    channels: for each tensor the index of every channel's factor, (C,).  bounds: upper
    bounds of activations, by tensor.  readers: what reads the tensors and absorbs their
    factors, in order of execution.  tabled: a function reads or makes one of them.
    """

    channels: dict[str, Int64Array]
    count: int
    bounds: dict[str, float]
    readers: tuple[Node, ...]
    tabled: bool


def components(graph: Graph, closed: Collection[str]) -> list[Component]:
    """All components that can have factors and whose readers absorb them.

    closed: tensors that must stay as they are.
    """
    fixed = {*closed, *graph.inputs, *graph.outputs}
    names: _Sets[str] = _Sets()
    for node in graph.nodes:
        found = links(graph, node)
        if found is not None:
            for link in found:
                names.join(link.source, node.output)
        elif not isinstance(node, Conv2d):
            if not absorbs(graph, node):
                fixed.update(node.inputs)
                fixed.update(() if makes(node) else node.outputs)
            if node.activation.hi <= 0:
                fixed.add(node.output)
        elif not ordinary(node):
            fixed.update((*node.inputs, node.output))
        elif not (homogeneous(node.activation) and node.activation.hi > 0):
            fixed.add(node.output)
    shut = {names.first(name) for name in fixed}
    members: dict[str, dict[str, None]] = {}
    for node in graph.nodes:
        first = names.first(node.output)
        if first not in shut:
            members.setdefault(first, {})[node.output] = None
    parts = (_component(graph, tuple(each)) for each in members.values())
    return [part for part in parts if part.readers]


def ordinary(node: Conv2d) -> bool:
    """True if weights and bias are finite floats, not quantized already."""
    return node.weight_scales is None and node.finite


def _component(graph: Graph, tensors: tuple[str, ...]) -> Component:
    """Number the channels; those that must share a factor get the same number."""
    sets: _Sets[tuple[str, int]] = _Sets()
    inside = set(tensors)
    free = [node for node in graph.nodes if node.absorbs_factors(graph)]
    for node in graph.nodes:
        if node.output in inside:
            for link in links(graph, node) or ():
                pairs = zip(link.read.tolist(), link.made.tolist(), strict=True)
                for read, made in pairs:
                    sets.join((link.source, read), (node.output, made))
    numbers: dict[tuple[str, int], int] = {}
    channels = {
        name: np.array(
            [
                numbers.setdefault(sets.first((name, channel)), len(numbers))
                for channel in range(_channels(graph, name))
            ]
        )
        for name in tensors
    }
    return Component(
        channels=channels,
        count=len(numbers),
        bounds={
            node.output: node.activation.hi
            for node in graph.nodes
            if (node.absorbs_factors(graph) or makes(node))
            and node.output in inside
            and node.activation.hi < np.inf
        },
        readers=tuple(node for node in free if not inside.isdisjoint(node.inputs)),
        tabled=any(
            not inside.isdisjoint((*node.inputs, node.output))
            for node in free
            if not node.weighted and function_of(node) is not None
        ),
    )


def _channels(graph: Graph, name: str) -> int:
    return graph.tensors[name].shape[CHANNELS]


class _Sets(Generic[Member]):
    """Disjoint sets; each is named by one of its members."""

    def __init__(self) -> None:
        self._parent: dict[Member, Member] = {}

    def first(self, member: Member) -> Member:
        parent = self._parent
        while member in parent:
            above = parent[member]
            if above in parent:
                parent[member] = parent[above]
            member = above
        return member

    def join(self, one: Member, other: Member) -> None:
        one, other = self.first(one), self.first(other)
        if one != other:
            self._parent[other] = one
