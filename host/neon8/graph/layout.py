# SPDX-License-Identifier: Apache-2.0
"""Layout conversion: networks that lie channels last are computed channels first.

TensorFlow has N H W C, and ONNX convolves N C H W, so its exporters put a Transpose
before each convolution and one after it. Where those meet they cancel; but what stands
between keeps them apart: a Pad, a sum, a Mul and an Add that were a BatchNormalization.
Here such nodes get another layout (Family.layouts), and the Transposes around them go,
but not where that would cost more moves than it saves.

It is done before the operators become nodes of a Graph, so that what is N C H W then is
seen as in any other network: a Mul and an Add after a convolution go into its weights.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from neon8.ir.graph import FLOATS, MAX_RANK, Tensor
from neon8.ir.names import claimed
from neon8.ir.views import squeezed
from neon8.operators import rearranged
from neon8.operators.layout import Converted, Layout, Order
from neon8.operators.registry import LAYOUTS
from neon8.operators.source import OnnxNode, Source

MOVES = ("Reshape", "Squeeze", "Transpose", "Unsqueeze")
"""Operators that may move channels: all but Transpose if that moves no value."""

SWEEPS = 8
"""So often every node is asked if it should not be converted after all."""

Supported = Callable[[Source, OnnxNode], bool]


def channels_first(source: Source, supported: Supported) -> Source:
    """The same network, of which nodes between Transposes are N C H W.

    supported: False for a node that cannot be run; it must read and make the tensors
    of the file.
    """
    excluded: set[str] = set()
    while True:
        plan = _Plan(source, excluded)
        plan.choose()
        if not plan.converted:
            return source
        made = plan.rewritten()
        wrong = {
            node.name
            for node in made.nodes
            if node.name in plan.converted and not supported(made, node)
        }
        if not wrong:
            return made
        excluded |= wrong


def _first(rank: int) -> Layout:
    """From (N, ..., C) to (N, C, ...)."""
    return Layout((0, rank - 1, *range(1, rank - 1)))


def _moves(source: Source, node: OnnxNode, *, back: bool) -> bool:
    """True if the node moves the file's (N, ..., C) to (N, C, ...), or back."""
    if node.operator not in MOVES or node.fault:
        return False
    read, made = (source.shapes.get(n[0]) for n in (node.inputs, node.outputs))
    if read is None or made is None or not 3 <= len(read) <= MAX_RANK:
        return False
    if source.types.get(node.inputs[0]) not in FLOATS:
        return False
    layout = _first(len(read))
    order = layout.back if back else layout.order
    if node.operator == "Transpose":
        return node.integers("perm") == order
    return made == tuple(read[axis] for axis in order) and _work(read, order) == 1


def _work(shape: Order, order: Order) -> int:
    """How many values such a Transpose moves; 1 if it moves none, but is there."""
    _, axes = squeezed(shape, order)
    return 1 if axes == tuple(range(len(axes))) else math.prod(shape)


@dataclass(slots=True)
class _Uses:
    """Who makes and reads a tensor of the file; indices of nodes.

    converted: how many of the readers are.  twins: the nodes that only move it to
    channels first, which are not among the readers.  given: the tensor of which it is
    the one converted to channels last, by its maker.
    """

    maker: int | None = None
    readers: list[int] = field(default_factory=list)
    converted: int = 0
    twins: list[int] = field(default_factory=list)
    given: str = ""
    kept: bool = False
    """An output of the network, or read inside a branch or loop."""

    @property
    def wanted(self) -> bool:
        """True if somebody reads it as it is in the file."""
        return self.kept or self.converted < len(self.readers)


class _Plan:
    """Which nodes are converted; `converted` has them by name."""

    def __init__(self, source: Source, excluded: Iterable[str]) -> None:
        self._source = source
        self._uses: dict[str, _Uses] = {}
        self.converted: dict[str, Converted] = {}
        skip = set(excluded)
        self._able: dict[int, Converted] = {}
        for index, node in enumerate(source.nodes):
            found = None if node.name in skip else self._ability(node)
            if found is not None:
                self._able[index] = found
            for name in node.outputs:
                self._of(name).maker = index
            if _moves(source, node, back=True):
                self._of(node.outputs[0]).given = node.inputs[0]
            if _moves(source, node, back=False):
                self._of(node.inputs[0]).twins.append(index)
            else:
                for name in dict.fromkeys(node.inputs):
                    self._of(name).readers.append(index)
            for name in node.captures:
                self._of(name).kept = True
        for name in source.outputs:
            self._of(name).kept = True
        self._inside: set[int] = set()

    def _of(self, name: str) -> _Uses:
        return self._uses.setdefault(name, _Uses())

    def _ability(self, node: OnnxNode) -> Converted | None:
        """How the node is converted, None if it cannot be."""
        source = self._source
        change = LAYOUTS.get(node.operator)
        if change is None or node.fault or node.captures:
            return None
        tensors = [n for n in node.inputs if n and n not in source.constants]
        ranks = {len(source.shapes.get(name, ())) for name in tensors}
        if len(ranks) != 1 or not 3 <= max(ranks) <= MAX_RANK:
            return None
        made = [name for name in node.outputs if name]
        if any(source.types.get(name) not in FLOATS for name in (*tensors, *made)):
            return None
        (rank,) = ranks
        found = change(source, node, _first(rank))
        if found is None or any(name not in source.shapes for name in made):
            return None
        if found.whole and any(len(source.shapes[name]) != rank for name in made):
            return None
        return found

    def choose(self) -> None:
        """Decide, one set of connected nodes after another."""
        for group in self._groups():
            self._set(group, inside=True)
            for _ in range(SWEEPS):
                before = len(self._inside)
                for index in (*sorted(group), *sorted(group, reverse=True)):
                    self._leave_if_cheaper(index)
                if len(self._inside) == before:
                    break
            mine = group & self._inside
            inner = self._touched(group)
            moves, more = self._cost(group, inner)
            self._set(mine, inside=False)
            old_moves, old_more = self._cost(group, inner)
            if moves <= old_moves and moves + more < old_moves + old_more:
                self._set(mine, inside=True)
        for index in sorted(self._inside):
            self.converted[self._source.nodes[index].name] = self._able[index]

    def _groups(self) -> list[set[int]]:
        """The nodes that can be converted, those that share a tensor together."""
        parent = {index: index for index in self._able}

        def find(index: int) -> int:
            while parent[index] != index:
                parent[index] = parent[parent[index]]
                index = parent[index]
            return index

        for name, uses in self._uses.items():
            if name in self._source.constants:
                continue
            able = [i for i in (uses.maker, *uses.readers) if i in self._able]
            for one in able[1:]:
                if one is not None and able[0] is not None:
                    parent[find(one)] = find(able[0])
        groups: dict[int, set[int]] = {}
        for index in self._able:
            groups.setdefault(find(index), set()).add(index)
        return list(groups.values())

    def _touched(self, group: Iterable[int]) -> dict[str, None]:
        """The tensors that these nodes read and make."""
        nodes = (self._source.nodes[index] for index in group)
        names = (name for node in nodes for name in (*node.inputs, *node.outputs))
        constants = self._source.constants
        return dict.fromkeys(n for n in names if n and n not in constants)

    def _leave_if_cheaper(self, index: int) -> None:
        if index not in self._inside:
            return
        inner = self._touched([index])
        now = sum(self._cost([index], inner))
        self._set({index}, inside=False)
        if sum(self._cost([index], inner)) >= now:
            self._set({index}, inside=True)

    def _set(self, indices: set[int], *, inside: bool) -> None:
        """Layout these nodes, or do not; they are not so yet."""
        for index in indices:
            for name in dict.fromkeys(self._source.nodes[index].inputs):
                self._of(name).converted += 1 if inside else -1
        if inside:
            self._inside |= indices
        else:
            self._inside -= indices

    def _cost(self, group: Iterable[int], names: Iterable[str]) -> tuple[int, int]:
        """Values moved by Transposes of `names`, and computed apart by `group`.

        Arithmetic with a constant for each channel costs nothing only after a
        convolution, channels first.
        """
        moved = 0
        for name in names:
            last, first = self._needs(name)
            uses = self._of(name)
            maker = uses.maker
            inside = maker is not None and maker in self._inside
            whole = inside and maker is not None and self._able[maker].whole
            made = last if whole or uses.given else first
            if made:
                shape = self._source.shapes[name]
                moved += _work(shape, _first(len(shape)).order) if len(shape) > 2 else 0
        apart = 0
        for index in group:
            if index not in self._inside and self._able[index].channels:
                node = self._source.nodes[index]
                apart += math.prod(self._source.shapes[node.outputs[0]])
        return moved, apart

    def _needs(self, name: str) -> tuple[bool, bool]:
        """If the tensor is read as in the file, and if channels first."""
        uses = self._of(name)
        return uses.wanted, bool(uses.twins) or uses.converted > 0

    def rewritten(self) -> Source:
        """The network with these nodes converted."""
        return _Rewriting(self._source, self._uses, self._able, self._inside).result()


class _Rewriting:
    """Makes the new Source.  inside: the nodes that are converted."""

    def __init__(
        self,
        source: Source,
        uses: dict[str, _Uses],
        able: dict[int, Converted],
        inside: set[int],
    ) -> None:
        self._source, self._uses = source, uses
        self._able, self._inside = able, inside
        self._constants = dict(source.constants)
        self._shapes, self._types = dict(source.shapes), dict(source.types)
        self._rearranged: dict[str, Tensor] = {}
        self._names = {n for node in source.nodes for n in node.outputs}
        self._names |= {*source.inputs, *source.constants, *source.types}
        self._taken = {node.name for node in source.nodes}
        self._first: dict[str, str] = {}  # tensor of the file -> its converted twin
        self._dropped: set[int] = set()
        self._nodes: list[OnnxNode] = []

    def result(self) -> Source:
        """Nodes in order of execution; what nobody reads any more is among them."""
        for name in self._source.inputs:
            self._made_as_in_the_file(name)
        for index, node in enumerate(self._source.nodes):
            if index in self._inside:
                self._convert(index, node)
            elif index not in self._dropped:
                self._nodes.append(node)
            if index not in self._inside or not self._able[index].whole:
                for name in filter(None, node.outputs):
                    self._made_as_in_the_file(name)
        return replace(
            self._source,
            nodes=tuple(self._nodes),
            constants=self._constants,
            shapes=self._shapes,
            types=self._types,
            rearranged=self._rearranged,
        )

    def _made_as_in_the_file(self, name: str) -> None:
        """A tensor stands there; converted nodes may want to read it converted."""
        if name not in self._uses or not self._uses[name].converted:
            return
        self._first[name] = self._uses[name].given
        if not self._first[name]:
            self._first[name] = self._twin(name)
            order = _first(len(self._shapes[name])).order
            self._move(name, self._first[name], order)
        self._twins(name)

    def _convert(self, index: int, node: OnnxNode) -> None:
        """Add the node in its new order, and what gives others the old one."""
        able = self._able[index]
        inputs = [self._first.get(name, name) for name in able.node.inputs]
        for place, value in able.constants.items():
            inputs[place] = claimed(f"{node.name}_{place}", self._names)
            self._constants[inputs[place]] = value
        if not able.whole:
            self._nodes.append(replace(able.node, inputs=tuple(inputs)))
            return
        outputs = []
        for name in node.outputs:
            outputs.append(self._twin(name) if name else "")
            self._first[name] = outputs[-1]
        self._nodes.append(
            replace(able.node, inputs=tuple(inputs), outputs=tuple(outputs))
        )
        for name, made in zip(node.outputs, outputs, strict=True):
            if name:
                self._twins(name)
                if name != made and self._uses[name].wanted:
                    shape = self._source.shapes[name]
                    self._move(made, name, _first(len(shape)).back)

    def _twin(self, name: str) -> str:
        """The name of the converted tensor; that of the file if it is there."""
        uses = self._uses[name]
        if uses.twins:
            self._dropped.add(uses.twins[0])
            return self._source.nodes[uses.twins[0]].outputs[0]
        made = rearranged.nchw(name, self._source.shapes[name])
        inside = uses.maker is not None and uses.maker in self._inside
        if inside and not uses.wanted:
            made = replace(made, name=name)  # by which other tools know it
        else:
            made = replace(made, name=claimed(made.name, self._names))
        self._shapes[made.name] = made.dims
        self._types[made.name] = self._source.types[name]
        self._rearranged[made.name] = made
        return made.name

    def _twins(self, name: str) -> None:
        """Transposes of a tensor that is there converted have nothing to do."""
        for index in self._uses[name].twins:
            if index not in self._dropped:
                self._dropped.add(index)
                twin = self._source.nodes[index]
                self._nodes.append(
                    OnnxNode(
                        name=twin.name,
                        operator="Identity",
                        inputs=(self._first[name],),
                        outputs=twin.outputs,
                        attributes={},
                    )
                )

    def _move(self, name: str, to: str, order: Order) -> None:
        """A Transpose more."""
        self._nodes.append(
            OnnxNode(
                name=claimed(f"Transpose_{to}", self._taken),
                operator="Transpose",
                inputs=(name,),
                outputs=(to,),
                attributes={"perm": order},
            )
        )
