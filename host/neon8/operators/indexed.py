# SPDX-License-Identifier: Apache-2.0
"""Values taken from, and put to, places that a run computes  (37).

GatherElements, GatherND and Gather by indices that are no constants take; ScatterND and
ScatterElements put.
"""

import math
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from neon8.arrays import AnyArray, Array, Int32Array, Int64Array
from neon8.ir.graph import Node
from neon8.ir.program import Op, Tensor
from neon8.operators.build import Build
from neon8.operators.composition import Parts
from neon8.operators.constants import Mixed
from neon8.operators.family import Family
from neon8.operators.floats import TWO_VALUES
from neon8.operators.movement import append_reshape, axis_of, operands
from neon8.operators.reference import Operand, one_nan
from neon8.operators.source import OnnxNode, Source
from neon8.operators.windows import MAX_EXTENT

MOST_PARTS = 8
N = TypeVar("N", bound="Indexed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """How indices name rows of `inner` values, of which `outer` blocks consist.

    count: indices, of a block if `by_outer`, of each value of a row if `by_inner`.
    Rows are pixels, or channels where they are of one value.
    sizes: of the axes along which an index has a number each; their product is the
    rows of a block.
    """

    outer: int
    count: int
    inner: int
    sizes: tuple[int, ...]
    by_outer: bool = False
    by_inner: bool = False

    @property
    def data(self) -> tuple[int, ...]:
        """The dimensions of a tensor of rows that are named."""
        return self._dims(self.outer, math.prod(self.sizes), self.inner)

    @property
    def others(self) -> tuple[int, ...]:
        """... of one with a row for each index."""
        return self._dims(self.outer, self.count, self.inner)

    @property
    def indices(self) -> tuple[int, ...]:
        """... of the indices."""
        outer = self.outer if self.by_outer else 1
        inner = self.inner if self.by_inner else 1
        return self._dims(outer, self.count * len(self.sizes), inner)

    @staticmethod
    def _dims(outer: int, rows: int, inner: int) -> tuple[int, ...]:
        return (outer, rows) if inner == 1 else (outer * rows, inner)

    def listed(self) -> Int32Array:
        """As the file has it."""
        sizes = (*self.sizes, *(1,) * (MOST_PARTS - len(self.sizes)))
        own = int(self.by_outer), int(self.by_inner)
        numbers = (self.outer, self.count, self.inner, *own, len(self.sizes), *sizes)
        return np.array(numbers, np.int32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexed(Mixed):
    """Base of both.  Operands: the values, the indices, and what is put."""

    places: Places

    chooser = 1
    follows = True

    @property
    def keeps_values(self) -> bool:
        """True unless all of them are constants."""
        return len(self.inputs) > (1 not in self.constants)

    @property
    def keeps_sign(self) -> bool:
        """True if no constant is below 0."""
        return self.keeps_values and all(value.min() >= 0 for value in self.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Take(Indexed):
    """The rows that indices name.  Operands: the values, and the indices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Put(Indexed):
    """Values with other ones at the rows that indices name.

    Operands: the values, the indices, and a row for each of these.  function: "none",
    "minimum" or "maximum", of what is there and what is put.
    """

    function: str = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Accumulate(Put):
    """... with "add" or "multiply", of real numbers or integers."""

    keeps_values = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeOp(Op):
    """Moves values.  indices: Places.listed()."""

    indices: Int32Array

    moves = True


@dataclass(frozen=True, slots=True, kw_only=True)
class PutOp(Op):
    """Moves values, or computes.  indices: Places.listed().  function: of Put."""

    indices: Int32Array
    function: str


def import_gather(source: Source, node: OnnxNode) -> Node:
    """Gather, of constants or by indices that a run computes."""
    shape = shape_of(source, node, node.inputs[0])
    axis = axis_of(source, node, len(shape), default=0)
    places = Places(
        outer=math.prod(shape[:axis]),
        count=math.prod(shape_of(source, node, node.inputs[1])),
        inner=math.prod(shape[axis + 1 :]),
        sizes=(shape[axis],),
    )
    return indexed(source, node, Take, places)


def import_gather_elements(source: Source, node: OnnxNode) -> Node:
    """GatherElements; where other axes are shorter, gather_elements() cut them."""
    return indexed(source, node, Take, _elements(source, node))


def _elements(source: Source, node: OnnxNode) -> Places:
    shape, taken = (shape_of(source, node, name) for name in node.inputs[:2])
    axis = axis_of(source, node, len(shape), default=0)
    if len(shape) != len(taken) or _others(shape, axis) != _others(taken, axis):
        detail = f"indices of shape {list(taken)} of values of shape {list(shape)}"
        raise source.failure(node, f"{detail} are not supported")
    return Places(
        outer=math.prod(shape[:axis]),
        count=taken[axis],
        inner=math.prod(shape[axis + 1 :]),
        sizes=(shape[axis],),
        by_outer=True,
        by_inner=True,
    )


def _others(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return shape[:axis] + shape[axis + 1 :]


def gather_elements(p: Parts) -> bool:
    """GatherElements of fewer values along other axes: of a Slice."""
    x, indices = p.node.inputs[:2]
    shape = p.source.shapes.get(x)
    value = p.source.constants.get(indices)
    taken = p.source.shapes.get(indices) if value is None else value.shape
    if shape is None or taken is None or len(shape) != len(taken) or not shape:
        return False
    axis = axis_of(p.source, p.node, len(shape), default=0)
    axes = [a for a, n in enumerate(taken) if a != axis and n < shape[a]]
    if not axes:
        return False
    ends = [taken[a] for a in axes]
    cut = p.add("Slice", x, [0] * len(axes), ends, axes)
    output = p.node.outputs[0]
    p.add("GatherElements", cut, indices, output=output, layer=True, axis=axis)
    return True


def import_gather_nd(source: Source, node: OnnxNode) -> Node:
    """GatherND."""
    return indexed(source, node, Take, _tuples(source, node))


def _tuples(source: Source, node: OnnxNode) -> Places:
    """The last axis of the indices has a number for each of the first axes."""
    shape, taken = (shape_of(source, node, name) for name in node.inputs[:2])
    batch = node.integer("batch_dims", 0)
    parts = taken[-1] if taken else 0
    if not 0 <= batch < len(taken) or not 0 < parts <= len(shape) - batch:
        detail = f"indices of shape {list(taken)} of values of shape {list(shape)}"
        raise source.failure(node, f"{detail} with batch_dims {batch} name nothing")
    return Places(
        outer=math.prod(shape[:batch]),
        count=math.prod(taken[batch:-1]),
        inner=math.prod(shape[batch + parts :]),
        sizes=shape[batch : batch + parts],
        by_outer=True,
    )


FUNCTIONS = {
    "none": "none",
    "add": "add",
    "mul": "multiply",
    "min": "minimum",
    "max": "maximum",
}


def import_scatter_nd(source: Source, node: OnnxNode) -> Node:
    """ScatterND."""
    return _scatter(source, node, _tuples(source, node))


def import_scatter_elements(source: Source, node: OnnxNode) -> Node:
    """ScatterElements, which was Scatter once."""
    return _scatter(source, node, _elements(source, node))


def _scatter(source: Source, node: OnnxNode, places: Places) -> Node:
    reduction = node.text("reduction", "none")
    if reduction not in FUNCTIONS:
        raise source.failure(node, f"reduction {reduction!r} is unknown")
    function = FUNCTIONS[reduction]
    given = shape_of(source, node, node.inputs[2])
    if math.prod(given) != math.prod(places.others):
        detail = f"updates of shape {list(given)} are not as many as its indices name"
        raise source.failure(node, detail)
    kind: type[Put] = Accumulate if function in ("add", "multiply") else Put
    made = indexed(source, node, kind, places)
    return replace(made, function=function)


def shape_of(source: Source, node: OnnxNode, name: str) -> tuple[int, ...]:
    """The dimensions of an operand, which may be a constant."""
    value = source.constants.get(name)
    if value is None:
        return source.dims_of(node, name)
    if value.size == 0:
        raise source.failure(node, f"constant {name!r} is empty")
    return value.shape


def indexed(source: Source, node: OnnxNode, kind: type[N], places: Places) -> N:
    """The node of the Graph."""
    source.dims_of(node, node.outputs[0])
    tensors, constants = source.operands(node)
    sizes = math.prod(shape_of(source, node, node.inputs[0]))
    if sizes != math.prod((places.outer, *places.sizes, places.inner)):
        raise source.failure(node, "its indices and its values do not fit")
    places = replace(
        places,
        by_outer=places.by_outer and places.outer > 1,
        by_inner=places.by_inner and places.inner > 1,
    )
    if 1 in constants:
        places, rows = _runs(places, _rows(source, node, places, constants[1]))
        constants[1] = rows
    if max(*places.data, *places.others, *places.indices) > MAX_EXTENT:
        raise source.failure(node, "its tensors have too many rows")
    return kind(
        name=node.name,
        inputs=tensors,
        output=node.outputs[0],
        places=places,
        constants=constants,
    )


def _rows(
    source: Source, node: OnnxNode, places: Places, indices: AnyArray
) -> Int64Array:
    """Constant indices as one number each.  GraphError: one is outside."""
    given = np.moveaxis(_shaped(places, indices), -1, 0).astype(np.int64)
    rows = np.zeros(given.shape[1:], np.int64)
    for at, size in zip(given, places.sizes, strict=True):
        if at.min() < -size or at.max() >= size:
            raise source.failure(node, f"an index is outside {size} values")
        rows = rows * size + at % size
    return rows


def _runs(places: Places, rows: Int64Array) -> tuple[Places, Int32Array]:
    """With one index for neighbours, as many as all indices allow."""
    total = math.prod(places.sizes)
    run = 1
    if not places.by_inner:
        each = rows.reshape(-1, places.count)
        first = np.ones(each.shape, bool)
        first[:, 1:] = np.diff(each) != 1
        starts = np.flatnonzero(first.any(axis=0))
        run = int(np.gcd.reduce([places.count, total, *starts, *each[first]]))
        rows = each[:, ::run] // run
    places = replace(
        places,
        count=places.count // run,
        inner=places.inner * run,
        sizes=(total // run,),
    )
    return places, rows.astype(np.int32)


def _shaped(places: Places, indices: Array) -> Array:
    """As (outer or 1, count, inner or 1, parts)."""
    outer = places.outer if places.by_outer else 1
    inner = places.inner if places.by_inner else 1
    shaped: Array = indices.reshape(outer, places.count, inner, len(places.sizes))
    return shaped


def lower_take(b: Build, node: Take) -> None:
    """The rows that indices name."""
    out = b.made_by(node)
    places = node.places
    sources = operands(b, node, out, (places.data, places.indices))
    taken = out
    if out.shape != (*places.others, 1, 1):
        taken = b.temporary(replace(out, dims=places.others), "taken")
    b.step(TakeOp, node.name, sources, taken, indices=places.listed())
    append_reshape(b, node.name, taken, out)


def lower_put(b: Build, node: Put) -> None:
    """The values with others at the rows that indices name."""
    out = b.made_by(node)
    places = node.places
    shapes = places.data, places.indices, places.others
    sources = operands(b, node, out, shapes)
    put = out
    if out.shape != (*places.data, 1, 1):
        put = b.temporary(replace(out, dims=places.data), "put")
    listed = places.listed()
    b.step(PutOp, node.name, sources, put, indices=listed, function=node.function)
    append_reshape(b, node.name, put, out)


def _named(op: TakeOp | PutOp, index: Operand) -> tuple[Places, Int64Array]:
    """What the file says, and the rows: (outer, count, inner)."""
    outer, count, inner, by_outer, by_inner, parts = op.indices[:6].tolist()
    places = Places(
        outer=outer,
        count=count,
        inner=inner,
        sizes=tuple(op.indices[6 : 6 + parts].tolist()),
        by_outer=bool(by_outer),
        by_inner=bool(by_inner),
    )
    rows: Int64Array = np.zeros((), np.int64)
    shaped = np.moveaxis(_shaped(places, _pixels(index)), -1, 0).astype(np.int64)
    for at, size in zip(shaped, places.sizes, strict=True):
        rows = rows * size + np.clip(np.where(at < 0, at + size, at), 0, size - 1)
    return places, np.broadcast_to(rows, (outer, count, inner))


def _pixels(x: Operand) -> Array:
    """N H W C."""
    return np.moveaxis(x.values, 1, -1)


def _made(values: Array, out: Tensor) -> Array:
    """N C H W of values in the order of pixels."""
    n, c, h, w = out.shape
    return np.moveaxis(values.reshape(n, h, w, c), -1, 1)


def compute_take(op: TakeOp, out: Tensor, values: Operand, index: Operand) -> Array:
    """(37)."""
    places, rows = _named(op, index)
    given = _pixels(values).reshape(places.outer, -1, places.inner)
    return _made(np.take_along_axis(given, rows, axis=1), out)


def compute_put(
    op: PutOp, out: Tensor, values: Operand, index: Operand, others: Operand
) -> Array:
    """(37), one index after the other."""
    places, rows = _named(op, index)
    made = _pixels(values).reshape(places.outer, -1, places.inner).copy()
    put = _pixels(others).reshape(places.outer, places.count, places.inner)
    block, column = np.ogrid[: places.outer, : places.inner]
    for at in range(places.count):
        place = (block, rows[:, at], column)
        made[place] = _together(op.function, made[place], put[:, at])
    return _made(made, out)


def _together(function: str, a: Array, b: Array) -> Array:
    if function == "none":
        return b
    with np.errstate(all="ignore"):
        y = TWO_VALUES[function](a, b)
    computes = function in ("add", "multiply") and y.dtype == np.float32
    return one_nan(y) if computes else y


FAMILY = Family(
    imports={
        "GatherElements": import_gather_elements,
        "GatherND": import_gather_nd,
        "Scatter": import_scatter_elements,
        "ScatterElements": import_scatter_elements,
        "ScatterND": import_scatter_nd,
    },
    compositions={"GatherElements": gather_elements},
    lower={Put: lower_put, Take: lower_take},
    lower_float={Accumulate: lower_put, Put: lower_put, Take: lower_take},
    steps={PutOp: compute_put, TakeOp: compute_take},
)
