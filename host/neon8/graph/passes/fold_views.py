# SPDX-License-Identifier: Apache-2.0
"""Products of tensors read and write where the moves around them would."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from neon8.ir.graph import Graph, Node
from neon8.ir.rewrite import drop_dead, rebuild
from neon8.ir.strided import Strided, whole
from neon8.operators.matmul import MatMul, along_channels

Nodes = Mapping[str, Node]


@dataclass(frozen=True, slots=True)
class End:
    """Where a product reads or writes.

    factor: of the multiplications on the way.  left: values that are still moved.
    """

    name: str
    view: Strided
    factor: float
    left: int


def fold_views(graph: Graph) -> Graph:
    """Each product takes in Reshapes, Transposes and Slices around it, and factors.

    It is computed as that of the transposed matrices where fewer moves remain then.
    """
    nodes = {node.output: node for node in graph.nodes}
    for node in graph.nodes:
        if isinstance(node, MatMul) and node.output in nodes:
            readers: dict[str, list[Node]] = {}
            for each in nodes.values():
                for name in each.inputs:
                    readers.setdefault(name, []).append(each)
            made = [
                found
                for product in (node, node.turned)
                if (found := _folded(graph, nodes, readers, product)) is not None
            ]
            best, _ = min(made, key=lambda pair: pair[1])
            nodes = {
                name: best if name == node.output else each
                for name, each in nodes.items()
                if name != best.output or name == node.output
            }
    return drop_dead(rebuild(graph, nodes.values()))


def _folded(
    graph: Graph, nodes: Nodes, readers: Mapping[str, list[Node]], node: MatMul
) -> tuple[MatMul, int] | None:
    """The product with the best ends, and how many values are moved before and after.

    None if rows of an operand or of the result would not lie along channels.
    """
    views = [node.first, node.second]
    if node.constant is not None:
        del views[node.side]
    strict = node.side if node.constant is not None else 1
    ends = [
        _source(graph, nodes, name, view, rows=at < strict)
        for at, (name, view) in enumerate(zip(node.inputs, views, strict=True))
    ]
    result = _sink(graph, readers, node)
    sources = [end for end in ends if end is not None]
    if len(sources) < len(ends) or result is None:
        return None
    found = [end.view for end in sources]
    if node.constant is not None:
        found.insert(node.side, (node.first, node.second)[node.side])
    factors = (end.factor for end in (*sources, result))
    made = replace(
        node,
        inputs=tuple(end.name for end in sources),
        output=result.name,
        first=found[0],
        second=found[1],
        result=result.view,
        factor=math.prod(factors, start=node.factor),
    )
    return made, sum(end.left for end in (*sources, result))


def _source(
    graph: Graph, nodes: Nodes, name: str, view: Strided, *, rows: bool
) -> End | None:
    """The furthest tensor that an operand can be read from."""
    best: End | None = None
    factor = 1.0
    found: Strided | None = view
    while True:
        if found is not None and (not rows or along_channels(found)):
            best = End(name, found, factor, 0)
        maker = nodes.get(name)
        source = maker.inputs[0] if maker is not None and maker.inputs else ""
        if maker is None or not (_scales(graph, maker) or maker.moves):
            return best
        if not maker.moves:
            factor *= maker.multiple or 1.0
        elif found is not None:
            inner = maker.viewed(whole(graph.tensors[source].shape))
            shape = graph.tensors[name].shape
            found = None if inner is None else found.of(shape, inner)
            found = found if found and _even(graph, source, found) else None
        if best is not None and maker.moves and not maker.only_reshapes:
            best = replace(best, left=best.left + _size(graph, name))
        name = source


def _sink(graph: Graph, readers: Mapping[str, list[Node]], node: MatMul) -> End | None:
    """The furthest tensor that a product can write."""
    best: End | None = None
    factor = 1.0
    name = node.output
    found: Strided | None = node.result
    while True:
        if found is not None and along_channels(found):
            best = End(name, found, factor, 0)
        near: Sequence[Node] = readers.get(name, ())
        if len(near) != 1 or name in graph.outputs:
            return best
        (reader,) = near
        if not (_scales(graph, reader) or reader.permutes):
            return best
        if not reader.permutes:
            factor *= reader.multiple or 1.0
        elif found is not None:
            inner = reader.unviewed(whole(graph.tensors[reader.output].shape))
            shape = graph.tensors[name].shape
            found = None if inner is None else found.of(shape, inner)
            found = found if found and _even(graph, reader.output, found) else None
        if best is not None and reader.permutes and not reader.only_reshapes:
            best = replace(best, left=best.left + _size(graph, name))
        name = reader.output


def _scales(graph: Graph, node: Node) -> bool:
    """True if it multiplies all values by one number above 0."""
    if node.multiple is None or not node.multiple > 0:
        return False
    source, out = (graph.tensors[name] for name in (node.inputs[0], node.output))
    return source.dims == out.dims


def _even(graph: Graph, name: str, view: Strided) -> bool:
    return view.boxes(graph.tensors[name].shape) is not None


def _size(graph: Graph, name: str) -> int:
    return math.prod(graph.tensors[name].dims)
