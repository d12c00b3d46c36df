# SPDX-License-Identifier: Apache-2.0
"""Operators that keep all values: Reshape and its likes, Transpose, Concat."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from neon8.arrays import Array, Int32Array
from neon8.ir.graph import MAX_RANK, Node, Shape, nchw
from neon8.ir.graph import Tensor as GraphTensor
from neon8.ir.program import Op, Tensor
from neon8.ir.strided import Strided
from neon8.ir.views import View, inverse, squeezed, then
from neon8.operators.build import FLOAT, INT32, Build
from neon8.operators.composition import Parts
from neon8.operators.constants import Mixed, append_constant
from neon8.operators.family import Family, Lower
from neon8.operators.layout import Converted, Layout, along_axis, by_value
from neon8.operators.qdq import Nodes, end, shaped, value_of
from neon8.operators.reference import Operand
from neon8.operators.source import OnnxNode, Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Concat(Mixed):
    """Joins along `axis` of N C H W, 0 to 3.

    blocks: along W, of how many pieces of equal size each input is; the first pieces
    are joined, then the second ones, and so on.  A part may be the same in every run,
    as vision transformers have a token.
    """

    axis: int
    blocks: int = 1

    keeps_values = True
    follows = True

    @property
    def puts_values(self) -> bool:
        """True if a constant is not 0."""
        return any(part.any() for part in self.values)

    @property
    def joins(self) -> bool:
        """True if all parts are tensors."""
        return not self.constants

    @property
    def joins_channels(self) -> bool:
        """True along axis 1."""
        return self.joins and self.axis == 1

    def in_rows(self, made: GraphTensor) -> Node | None:
        """One part after the other, where they are not mixed."""
        before = math.prod(made.shape[: self.axis]) * self.blocks
        whole = self.joins and before == 1
        return replace(self, axis=0, blocks=1) if whole else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reshape(Node):
    """The same values in N C H W order with the output's shape (Flatten ...)."""

    keeps_values = True
    follows = True

    permutes = True
    only_reshapes = True

    def viewed(self, source: Strided) -> Strided:
        """The same values."""
        return source

    def unviewed(self, made: Strided) -> Strided:
        """The same values."""
        return made

    def makes_rows(self, shape: Shape, count: int) -> bool:
        """True if each image is one pixel."""
        return shape[1] % count == 0 and shape[2:] == (1, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Permute(Node):
    """All values in another order: Transpose, and Reshape before and after it.

    The input's values are taken as an array of shape `view`, at most MAX_RANK sizes;
    axis i of the result is axis order[i] of it; its values are those of the output.
    """

    view: tuple[int, ...]
    order: tuple[int, ...]

    keeps_values = True
    follows = True

    permutes = True

    def moved(self, values: Int32Array) -> Int32Array:
        """In the order of the output."""
        turned: Int32Array = values.reshape(self.view).transpose(self.order)
        return turned

    def viewed(self, source: Strided) -> Strided | None:
        """In the order of the output."""
        return source.permuted(self.view, self.order)

    def unviewed(self, made: Strided) -> Strided | None:
        """In the order of the input."""
        return made.permuted(*inverse(self.view, self.order))

    def makes_rows(self, shape: Shape, count: int) -> bool:
        """True if the last axis of the result is of channels."""
        size, *inner = self.view[self.order[-1] :]
        within = math.prod(inner) == shape[2] * shape[3]
        return within and shape[1] % count == 0 and size % count == 0

    def followed_by(self, node: Node) -> Node | None:
        """One Permute, or a Reshape where nothing is left to move."""
        if not isinstance(node, Permute):
            return None
        both = then((self.view, self.order), (node.view, node.order))
        if both is None or len(both[0]) > MAX_RANK:
            return None
        view, order = both
        if order != tuple(range(len(order))):
            return replace(node, inputs=self.inputs, view=view, order=order)
        return Reshape(
            name=node.name,
            inputs=self.inputs,
            output=node.output,
            operator=node.operator,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConcatOp(Op):
    """Moves values; inputs and output share scale and zero point.  axis: 0 to 3."""

    axis: int

    moves = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ReshapeOp(Op):
    """Moves values of one type; their N C H W order is kept."""

    moves = True


@dataclass(frozen=True, slots=True, kw_only=True)
class PermuteOp(Op):
    """Moves values: taken in N C H W order as an array of 8 axes, and these turned.

    indices: (2, 8), the sizes of the axes; then, for each axis of the result, which one
    it is. The values of the result are those of the output in N C H W order.
    """

    indices: Int32Array

    moves = True


def import_reshape(source: Source, node: OnnxNode) -> Node:
    """Flatten, Reshape, Squeeze, Unsqueeze, Identity, Dropout: the same values."""
    have, want = (source.dims_of(node, n[0]) for n in (node.inputs, node.outputs))
    if math.prod(have) != math.prod(want):
        raise source.failure(node, f"{list(have)} cannot be shaped {list(want)}")
    return node.made(Reshape)


BOOL_MASK = 12
"""The first opset whose Dropout gives a mask of bool, and whose Equal takes floats."""


def import_dropout(source: Source, node: OnnxNode) -> Node:
    """Dropout, which does nothing at inference."""
    training = source.constant(node, 2)
    if training is not None and training.any():
        raise source.failure(node, "training_mode is set; export for inference")
    return import_reshape(source, node)


def with_mask(p: Parts) -> bool:
    """Dropout of which the mask is used; without training all of it is true."""
    x, used = p.node.inputs[0], p.node.outputs[1:2]
    training = p.source.constant(p.node, 2)
    dropped = training is not None and training.any()
    if not any(used) or dropped or p.source.opset < BOOL_MASK:
        return False
    p.add("Identity", x, output=p.node.outputs[0], layer=True)
    p.add("Equal", x, x, output=used[0])
    return True


def import_concat(source: Source, node: OnnxNode) -> Node:
    """Concat along any axis."""
    shape = source.dims_of(node, node.outputs[0])
    inputs = [n for n in node.inputs if 0 not in source.shapes.get(n, ())]
    node = replace(node, inputs=tuple(inputs))
    tensors, constants = source.operands(node)
    axis = axis_of(source, node, len(shape), default=1)
    if len(node.inputs) == 1:
        return import_reshape(source, node)
    return Concat(
        name=node.name,
        inputs=tensors,
        output=node.outputs[0],
        constants=constants,
        axis=min(axis, 3),
        blocks=math.prod(shape[3:axis]),
    )


def axis_of(source: Source, node: OnnxNode, rank: int, *, default: int) -> int:
    """The attribute `axis`, counted from the front.  GraphError: there is none such."""
    axis = node.integer("axis", default)
    if not -rank <= axis < rank:
        raise source.failure(node, f"axis {axis} of {rank} dimensions")
    return axis % rank


def import_transpose(source: Source, node: OnnxNode) -> Node:
    """Transpose."""
    shape = source.dims_of(node, node.inputs[0])
    order = node.integers("perm") or tuple(reversed(range(len(shape))))
    if sorted(order) != list(range(len(shape))):
        raise source.failure(node, f"perm {list(order)} of {len(shape)} dimensions")
    return import_permute(source, node, shape, order)


def import_depth_to_space(source: Source, node: OnnxNode) -> Node:
    """DepthToSpace, whose mode says how channels and blocks are nested."""
    n, c, h, w, block = _blocks(source, node)
    if c % (block * block):
        raise source.failure(node, f"{c} channels do not make blocks of {block}")
    mode = node.text("mode", "DCR")
    each = c // (block * block)
    if mode == "DCR":
        return import_permute(
            source, node, (n, block, block, each, h, w), (0, 3, 4, 1, 5, 2)
        )
    if mode == "CRD":
        return import_permute(
            source, node, (n, each, block, block, h, w), (0, 1, 4, 2, 5, 3)
        )
    raise source.failure(node, f"mode {mode!r} is neither DCR nor CRD")


def import_space_to_depth(source: Source, node: OnnxNode) -> Node:
    """SpaceToDepth."""
    n, c, h, w, block = _blocks(source, node)
    if h % block or w % block:
        raise source.failure(node, f"{h} x {w} pixels do not make blocks of {block}")
    view = n, c, h // block, block, w // block, block
    return import_permute(source, node, view, (0, 3, 5, 1, 2, 4))


def _blocks(source: Source, node: OnnxNode) -> tuple[int, int, int, int, int]:
    """The four dimensions of the input, and the size of a block."""
    shape = source.dims_of(node, node.inputs[0])
    block = node.integer("blocksize", 0)
    if len(shape) != 4 or not 1 <= block <= max(shape):
        detail = f"blocks of {block} of an input of shape {list(shape)}"
        raise source.failure(node, detail)
    n, c, h, w = shape
    return n, c, h, w, block


def import_permute(source: Source, node: OnnxNode, view: View, order: View) -> Node:
    """The node for values that are turned around, or only reshaped."""
    source.dims_of(node, node.outputs[0])
    view, order = squeezed(view, order)
    if order == tuple(range(len(order))):
        return import_reshape(source, node)
    return node.made(Permute, view=view, order=order)


def change_concat(source: Source, node: OnnxNode, layout: Layout) -> Converted | None:
    """Along the axis where it comes to stand, with constants in that order."""
    found = along_axis(source, node, layout)
    parts = [source.constants.get(name) for name in node.inputs]
    if found is None or any(p is not None and p.ndim != layout.rank for p in parts):
        return None
    turned = {
        place: part.transpose(layout.order)
        for place, part in enumerate(parts)
        if part is not None
    }
    return replace(found, constants=turned)


def lower_concat(b: Build, node: Concat) -> None:
    """Joins along an axis; blocks of W are first made channels."""
    sources, out = moved(b, node)
    for place, part in sorted(node.constants.items()):
        like = replace(out, name=sources[0].name, dims=part.shape)
        sources.insert(place, append_constant(b, node.name, part, like))
    axis, joined = node.axis, out
    if node.blocks > 1:
        axis = 1
        sources = [reshaped(b, node.name, x, _in_blocks(x, node)) for x in sources]
        joined = b.temporary(replace(out, dims=_in_blocks(out, node)), "joined")
    b.step(ConcatOp, node.name, sources, joined, axis=axis)
    append_reshape(b, node.name, joined, out)


def _in_blocks(tensor: Tensor, node: Concat) -> tuple[int, int]:
    """The values as (blocks, values of a block)."""
    n, c, h, w = tensor.shape
    return n * c * h * node.blocks, w // node.blocks


def lower_reshape(b: Build, node: Reshape) -> None:
    """The same values in another shape, from rows straight to the caller."""
    (source,), out = moved(b, node)
    rows = source.shape != out.shape and source.shape[1:] == (*out.dims[-1:], 1, 1)
    if rows and out.name in b.graph.outputs:
        append_permute(b, node.name, source, out, ((math.prod(out.dims),), (0,)))
    else:
        b.step(ReshapeOp, node.name, (source,), out)


def moved(b: Build, node: Node) -> tuple[list[Tensor], Tensor]:
    """Inputs and output of `node` in the type in which it runs.

    Quantized inputs are on the grid of the output.
    """
    if b.type_of(node) == FLOAT:
        real = [b.float32(name) for name in node.inputs]
        return real, b.declare(node.output, FLOAT)
    sources = [b.own(name) for name in node.inputs]
    out = b.result(node.output)
    return [b.rescaled(node.name, source, out) for source in sources], out


def operands(
    b: Build, node: Mixed, out: Tensor, shapes: Sequence[View] = ()
) -> list[Tensor]:
    """All operands of `node`, values on the grid of `out`, which it makes.

    shapes: in these dimensions.
    """
    names, made = iter(node.inputs), []
    for place in range(len(node.inputs) + len(node.constants)):
        value = node.constants.get(place)
        if value is not None:
            like = out
            if place == node.chooser:
                like = Tensor(name=out.name, dims=(), dtype=INT32)
            value = value.reshape(shapes[place]) if shapes else value
            made.append(append_constant(b, node.name, value, like))
            continue
        name = next(names)
        tensor = b.take(name, b.own_type(name) if out.dtype != FLOAT else FLOAT)
        if place != node.chooser:
            tensor = b.rescaled(node.name, tensor, out)
        if shapes:
            tensor = reshaped(b, node.name, tensor, shapes[place])
        made.append(tensor)
    return made


def lower_permute(b: Build, node: Permute) -> None:
    """The values in another order."""
    (source,), out = moved(b, node)
    append_permute(b, node.name, source, out, (node.view, node.order))


def append_permute(
    b: Build,
    layer: str,
    source: Tensor,
    out: Tensor,
    turn: tuple[View, View],
) -> None:
    """Appends source -> out by (view, order).

    The step wants axes that the borders between the dimensions of its input and its
    output do not cut unevenly; where they do, others are between.
    """
    view, order = turn
    if not _even(source, turn, out):
        source = reshaped(b, layer, source, view)
    turned = out
    if not _even(source, turn, out):
        dims = tuple(view[axis] for axis in order)
        turned = b.temporary(replace(out, dims=dims), "turned")
    rest = range(len(view), MAX_RANK)
    b.step(
        PermuteOp,
        layer,
        (source,),
        turned,
        indices=np.array([[*view, *(1 for _ in rest)], [*order, *rest]], np.int32),
    )
    append_reshape(b, layer, turned, out)


def _even(source: Tensor, turn: tuple[View, View], out: Tensor) -> bool:
    """True if one shape has the axes of the view and all dimensions as its parts."""
    flat = (0, 1, 2, 3)
    fine = then((source.shape, flat), turn, squeeze=False)
    return fine is not None and then(fine, (out.shape, flat)) is not None


def reshaped(b: Build, layer: str, source: Tensor, dims: Sequence[int]) -> Tensor:
    """`source`, or a copy with these dimensions where its N C H W are others."""
    if source.shape == nchw(tuple(dims)):
        return source
    out = b.temporary(replace(source, dims=tuple(dims)), "reshaped")
    append_reshape(b, layer, source, out)
    return out


def append_reshape(b: Build, layer: str, source: Tensor, out: Tensor) -> None:
    """Appends source -> out, unless they are the same tensor."""
    if source.name != out.name:
        b.step(ReshapeOp, layer, (source,), out)


def compute_permute(op: PermuteOp, out: Tensor, x: Operand) -> Array:
    """(9): the same values in another order."""
    view, order = op.indices
    result: Array = x.values.reshape(view).transpose(order).reshape(out.shape)
    return result


def write_reshape(n: Nodes, op: ReshapeOp) -> None:
    """A Reshape."""
    source, out = n.tensors[op.inputs[0]], n.tensors[op.output]
    end(n, shaped(n, value_of(n, source), source.dims, out.dims), out)


def write_concat(n: Nodes, op: ConcatOp) -> None:
    """A Concat, between images where the dimensions are not those that it counts."""
    out = n.tensors[op.output]
    sources = [n.tensors[name] for name in op.inputs]
    direct = all(len(t.dims) == len(out.dims) <= 4 for t in sources)
    direct = direct and op.axis < len(out.dims)
    values = [
        value_of(n, t) if direct else shaped(n, value_of(n, t), t.dims, t.shape)
        for t in sources
    ]
    value = n.node("Concat", values, name=op.name, axis=op.axis)
    end(n, value if direct else shaped(n, value, out.shape, out.dims), out)


def write_permute(n: Nodes, op: PermuteOp) -> None:
    """Reshape, Transpose, Reshape; a batch of one may be any."""
    source, out = n.tensors[op.inputs[0]], n.tensors[op.output]
    view, order = (row.tolist() for row in op.indices)
    kept = [axis for axis in order if view[axis] > 1]
    sizes = [(axis, view[axis]) for axis in sorted(kept)]
    place = {axis: at + 1 for at, (axis, _) in enumerate(sizes)}
    shape = (1, *(size for _, size in sizes))
    turn = [0, *(place[axis] for axis in kept)]
    value = shaped(n, value_of(n, source), source.dims, shape)
    value = n.node("Transpose", [value], name=op.name, perm=turn)
    turned = tuple(shape[axis] for axis in turn)
    end(n, shaped(n, value, turned, out.dims), out)


LOWER: dict[type[Node], Lower] = {
    Concat: lower_concat,
    Permute: lower_permute,
    Reshape: lower_reshape,
}
"""Each serves both types."""

FAMILY = Family(
    compositions={"Dropout": with_mask},
    imports={
        "Concat": import_concat,
        "DepthToSpace": import_depth_to_space,
        "Dropout": import_dropout,
        "Flatten": import_reshape,
        "Identity": import_reshape,
        "Reshape": import_reshape,
        "SpaceToDepth": import_space_to_depth,
        "Squeeze": import_reshape,
        "Transpose": import_transpose,
        "Unsqueeze": import_reshape,
    },
    lower=LOWER,
    lower_float=LOWER,
    steps={
        ConcatOp: lambda op, _out, *parts: np.concatenate(
            [part.values for part in parts], op.axis
        ),
        PermuteOp: compute_permute,
        ReshapeOp: lambda _op, out, x: x.values.reshape(out.shape),
    },
    qdq={
        ConcatOp: write_concat,
        PermuteOp: write_permute,
        ReshapeOp: write_reshape,
    },
    layouts={
        **dict.fromkeys(("Dropout", "Identity"), by_value),
        "Concat": change_concat,
    },
)
