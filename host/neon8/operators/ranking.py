# SPDX-License-Identifier: Apache-2.0
"""Which values along an axis are the largest: ArgMax, ArgMin, TopK  (36)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from neon8.arrays import Array
from neon8.ir.graph import Node
from neon8.ir.program import Bounds, Op, Tensor
from neon8.operators.build import FLOAT, INT32, Build
from neon8.operators.family import Family
from neon8.operators.indexed import Places, Take
from neon8.operators.movement import append_permute, append_reshape, axis_of, reshaped
from neon8.operators.reference import Operand
from neon8.operators.source import OnnxNode, Source
from neon8.operators.windows import MAX_EXTENT


@dataclass(frozen=True, slots=True, kw_only=True)
class Top(Node):
    """The places, as integers, of the largest values along one axis, in order.

    view: the values before that axis, along it, and after it.  count: how many are
    wanted.  smallest: of the smallest values.  reverse: of equal ones the last comes
    first, not the first.
    """

    view: tuple[int, int, int]
    count: int = 1
    smallest: bool = False
    reverse: bool = False

    follows = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TopOp(Op):
    """The first channels of each pixel by rank, as many as the output has.

    function: "maximum" or "minimum".
    """

    function: str
    reverse: bool = False

    def bounds(self, given: Sequence[Bounds]) -> Bounds:
        """The first and the last place."""
        return 0, MAX_EXTENT - 1


def import_arg(source: Source, node: OnnxNode) -> Node:
    """ArgMax, ArgMin."""
    shape = source.dims_of(node, node.inputs[0])
    source.dims_of(node, node.outputs[0])
    axis = axis_of(source, node, len(shape), default=0)
    return node.made(
        Top,
        view=_view(shape, axis),
        smallest=node.operator == "ArgMin",
        reverse=bool(node.integer("select_last_index", 0)),
    )


def _view(shape: tuple[int, ...], axis: int) -> tuple[int, int, int]:
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


def import_top_k(source: Source, node: OnnxNode) -> tuple[Node, ...]:
    """TopK: the places, and the values that are taken from there."""
    shape = source.dims_of(node, node.inputs[0])
    axis = axis_of(source, node, len(shape), default=-1)
    count = node.integer("k", 0)
    if source.opset >= 10:
        given = source.constant(node, 1)
        if given is None or given.size != 1:
            raise source.failure(node, "its K is not one number")
        count = int(given.reshape(-1)[0])
    view = outer, size, inner = _view(shape, axis)
    if not 1 <= count <= size:
        raise source.failure(node, f"{count} of {size} values are none to choose")
    values, places = node.outputs[0], (*node.outputs[1:2], "")[0]
    if not places:
        raise source.failure(node, "its second output has no name")
    top = Top(
        name=f"{node.name}:{places}",
        inputs=node.inputs[:1],
        output=places,
        view=view,
        count=count,
        smallest=not node.integer("largest", 1),
    )
    if not values:
        return (top,)
    taken = Take(
        name=node.name,
        inputs=(node.inputs[0], places),
        output=values,
        places=Places(
            outer=outer,
            count=count,
            inner=inner,
            sizes=(size,),
            by_outer=outer > 1,
            by_inner=inner > 1,
        ),
    )
    return top, taken


def lower_top(b: Build, node: Top) -> None:
    """Along the channels, to which another axis is moved."""
    (name,), (outer, _, inner) = node.inputs, node.view
    source = b.float32(name) if b.type_of(node) == FLOAT else b.own(name)
    out = b.declare(node.output, INT32)
    n, c, h, w = source.shape
    dims = (n, node.count, h, w)
    if (n, c, h * w) != node.view:
        dims = (outer * inner, node.count, 1, 1)
        source = _last(b, node.name, source, node.view)
    places = out if out.shape == dims else b.temporary(replace(out, dims=dims), "top")
    function = "minimum" if node.smallest else "maximum"
    fields = {"function": function, "reverse": node.reverse}
    b.step(TopOp, node.name, (source,), places, **fields)
    if dims[0] == outer or inner == 1:
        append_reshape(b, node.name, places, out)
    else:
        turn = ((outer, inner, node.count), (0, 2, 1))
        append_permute(b, node.name, places, out, turn)


def _last(b: Build, layer: str, source: Tensor, view: tuple[int, int, int]) -> Tensor:
    """The values as (outer * inner, size)."""
    outer, size, inner = view
    dims = (outer * inner, size)
    if inner == 1:
        return reshaped(b, layer, source, dims)
    turned = b.temporary(replace(source, dims=dims), "turned")
    append_permute(b, layer, source, turned, (view, (0, 2, 1)))
    return turned


def compute_top(op: TopOp, out: Tensor, x: Operand) -> Array:
    """(36)."""
    values = np.moveaxis(x.values, 1, -1).astype(np.float64)  # which has all int32
    key = values if op.function == "minimum" else -values
    place = np.arange(values.shape[-1])
    place = np.broadcast_to(-place if op.reverse else place, values.shape)
    order = np.lexsort((place, np.nan_to_num(key, nan=0), np.isnan(key)), axis=-1)
    best = np.moveaxis(order, -1, 1)[:, : out.shape[1]]
    return best.astype(np.int32)


FAMILY = Family(
    imports={"ArgMax": import_arg, "ArgMin": import_arg, "TopK": import_top_k},
    lower={Top: lower_top},
    lower_float={Top: lower_top},
    steps={TopOp: compute_top},
)
