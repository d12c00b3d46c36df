# SPDX-License-Identifier: Apache-2.0
"""Products of two tensors, as in attention  (29).

Operands and result are views of tensors (ir/strided.py): what exporters write around
a product, to part and to join heads, mostly is no more than other steps of them. The
rows of the first operand lie along channels, so do those of the result.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from neon8.arrays import Array, FloatArray, Int32Array
from neon8.ir.graph import Activated, Activation, Graph, Node, Shape, nchw
from neon8.ir.graph import Tensor as GraphTensor
from neon8.ir.program import Op, Tensor
from neon8.ir.strided import Axis, Strided, whole
from neon8.ir.views import View, inverse
from neon8.operators import rearranged
from neon8.operators.build import FLOAT, Build, in_range
from neon8.operators.constants import append_constant
from neon8.operators.factors import multiplier
from neon8.operators.family import Family
from neon8.operators.qdq import Nodes, clamp, end, reshaped
from neon8.operators.reference import Operand, as_float, rounded
from neon8.operators.scales import SCALE_MAX, clamp_of
from neon8.operators.source import OnnxNode, Source
from neon8.quant.limits import SMALLEST_SCALE

BATCHES = 6
"""Axes of matrices in the file: those of MAX_RANK but two."""
MOST_PRODUCTS = (2**31 - 1) // (127 * 256)
"""In a sum: |a b| is 128 * 127 at most, and what the zero point adds as well."""
LOWEST = -127
"""The second operand's lowest value; what is below is that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatMul(Activated):
    """y = activation(factor * a b), for each of a batch of matrices.

    first, second, result: where the values are, the last two axes being (rows, depth),
    (depth, columns) and (rows, columns), those before them the batch.
    constant: (pixels, channels), which operand number `side` is a view of; the other
    one is the only input then.
    """

    first: Strided
    second: Strided
    result: Strided
    factor: float = 1.0
    constant: FloatArray | None = None
    side: int = 1

    precedes_activation = True

    def macs(self, graph: Graph) -> int:
        """The depth of the matrices, for each value of the product."""
        values = math.prod(graph.tensors[self.output].dims)
        return values * self.first.axes[-1].size

    @property
    def gives_float(self) -> bool:
        """True without an activation."""
        return self.activation.identity

    @property
    def symmetric(self) -> tuple[str, ...]:
        """The second operand."""
        return () if self.constant is not None and self.side == 1 else self.inputs[-1:]

    @property
    def turned(self) -> "MatMul":
        """The same as a product of the transposed matrices."""
        return replace(
            self,
            inputs=self.inputs[::-1],
            first=turned(self.second),
            second=turned(self.first),
            result=turned(self.result),
            side=1 - self.side,
        )

    def fused(self, then: Activation) -> Node | None:
        """With an activation after its own, unless it has a slope."""
        return Activated.fused(self, then) if then.slope == 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class MatmulOp(Op):
    """clamp(rne(fmul((float) sum of (a - zp_a) b, scale)) + zp), or float32  (29).

    indices: (63,), sizes of 6 axes of matrices, rows, columns, depth; then of both
    operands and the output pixel and channel of the first value, and how many of each
    are from one to the next along those 6 axes and the two of the matrix.
    """

    indices: Int32Array
    scale: np.float32
    lo: int = -128
    hi: int = 127


def turned(view: Strided) -> Strided:
    """With the last two axes in each other's place."""
    *batch, rows, columns = view.axes
    return replace(view, axes=(*batch, columns, rows))


def along_channels(view: Strided) -> bool:
    """True if the last axis is of neighbouring channels."""
    last = view.axes[-1]
    return last.size == 1 or (last.pixels, last.channels) == (0, 1)


def import_product(
    source: Source,
    node: OnnxNode,
    turns: tuple[bool, bool] = (False, False),
    factor: float = 1.0,
    constant: FloatArray | None = None,
    side: int = 1,
) -> tuple[Node | GraphTensor, ...]:
    """The product of the first two inputs, with moves where rows are not of channels.

    turns: which of them are transposed first.  constant: input number `side`.
    """
    shapes = [
        constant.shape
        if constant is not None and at == side
        else source.shape_of(node, node.inputs[at])
        for at in (0, 1)
    ]
    if not all(shapes):
        raise source.failure(node, "of a tensor that has no dimensions")
    out = source.shape_of(node, node.outputs[0])
    batch = np.broadcast_shapes(shapes[0][:-2], shapes[1][:-2])
    views = [
        natural(shape, batch, turn=turn, row=at == 0)
        for at, (shape, turn) in enumerate(zip(shapes, turns, strict=True))
    ]
    depth, second_depth = views[0].sizes[-1], views[1].sizes[-2]
    if depth != second_depth:
        text = f"rows of {depth} values by columns of {second_depth}"
        raise source.failure(node, text)
    if depth > MOST_PRODUCTS:
        text = f"adds up {depth} products; int32 is proved to hold {MOST_PRODUCTS}"
        raise source.failure(node, text)
    vectors = tuple(-1 - at for at in (0, 1) if len(shapes[1 - at]) == 1)
    sizes = (*batch, views[0].sizes[-2], views[1].sizes[-1])
    if out != tuple(n for at, n in enumerate(sizes, -len(sizes)) if at not in vectors):
        raise source.failure(node, f"its output is {list(out)}, not {list(sizes)}")
    result = whole(nchw(out)).along(sizes)
    if result is None:
        raise ValueError(out)
    inputs = list(node.inputs[:2])
    before: list[Node | GraphTensor] = []
    if constant is not None:
        views[side], constant = stored(constant, views[side], row=side == 0)
        del inputs[side]
    if not along_channels(views[0]):
        inner = by_rows(inputs[0], shapes[0], turn=turns[0])
        views[0] = inside(views[0], nchw(shapes[0]), inner)
        before = [inner, rearranged.there(node.name, inner)]
        inputs[0] = inner.name
    after: list[Node | GraphTensor] = []
    output = node.outputs[0]
    if not along_channels(result):
        inner = rearranged.channels_first(output, out)
        result = inside(result, nchw(out), inner)
        before.append(inner)
        after = [rearranged.back(node.name, inner)]
        output = inner.name
    made = MatMul(
        name=node.name,
        inputs=tuple(inputs),
        output=output,
        first=views[0],
        second=views[1],
        result=result,
        factor=factor,
        constant=constant,
        side=side,
    )
    return (*before, made, *after)


def natural(dims: View, batch: View, *, turn: bool, row: bool) -> Strided:
    """A tensor of `dims` as an operand.  row: what a vector is."""
    view = whole(nchw(dims)).along(dims)
    if view is None:
        raise ValueError(dims)
    axes = view.axes
    if len(dims) == 1:
        axes = (Axis(1), *axes) if row else (*axes, Axis(1))
    *lead, rows, columns = axes
    lead = [Axis(1)] * (len(batch) - len(lead)) + lead
    spread = (
        axis if axis.size == size else Axis(size)
        for axis, size in zip(lead, batch, strict=True)
    )
    view = replace(view, axes=(*spread, rows, columns))
    return turned(view) if turn else view


def by_rows(name: str, dims: View, *, turn: bool) -> GraphTensor:
    """Tensor `name` with the rows of its matrices along channels."""
    if len(dims) == 1:
        return rearranged.reshaped(name, (1, *dims), "matrix")
    if turn:
        return rearranged.rearranged(name, dims[::-1], "turned", dims, (1, 0))
    return rearranged.channels_first(name, dims)


def inside(view: Strided, shape: Shape, inner: GraphTensor) -> Strided:
    """A view of the origin of `inner`, of this shape, as one of `inner`."""
    if inner.origin is None:
        raise ValueError(inner.name)
    undone = inverse(inner.origin.view, inner.origin.order)
    source = whole(inner.shape).permuted(*undone)
    found = None if source is None else view.of(shape, source)
    if found is None:
        raise ValueError(inner.name)
    return found


def stored(
    constant: FloatArray, view: Strided, *, row: bool
) -> tuple[Strided, FloatArray]:
    """A constant operand as (pixels, depth), and the view of that."""
    depth = view.sizes[-1 if row else -2]
    values = taken(
        constant.reshape(nchw(constant.shape)), replace(view, axes=only_steps(view))
    )
    matrix = values if row else np.swapaxes(values, -1, -2)
    axes = []
    pixels = 1
    for axis, size in reversed(list(zip(view.axes, matrix.shape, strict=True))[:-2]):
        axes.append(Axis(axis.size, pixels * matrix.shape[-2] if size > 1 else 0))
        pixels *= size
    other = Axis(matrix.shape[-2], 1 if matrix.shape[-2] > 1 else 0)
    along = Axis(depth, 0, 1 if depth > 1 else 0)
    pair = (other, along) if row else (along, other)
    return Strided((*reversed(axes), *pair)), np.ascontiguousarray(
        matrix.reshape(-1, depth)
    )


def only_steps(view: Strided) -> tuple[Axis, ...]:
    """Its axes, of one value where all are the same."""
    return tuple(a if a.pixels or a.channels else Axis(1) for a in view.axes)


def lower_matmul(b: Build, node: MatMul) -> None:
    """(29), of the second operand on a grid with zero point 0."""
    operands = [b.int8(name) for name in node.inputs]
    if node.constant is not None:
        operands.insert(node.side, constant_of(b, node, node.constant))
    first, second = operands[0], centred(b, node, operands[1])
    indices = np.array(listed(node), np.int32)
    if node.activation.identity and b.wants_float(node.output):
        out = b.declare(node.output, FLOAT)
        exact = np.float64(first.scale) * np.float64(second.scale) * node.factor
        text = f"the product of the scales of its inputs, {exact:.4g}, is out of range"
        scale = in_range(node.name, exact, text)
        lo, hi = -128, 127
    else:
        out = b.result(node.output)
        scale = multiplier(node.name, "multiply", (first, second), out, node.factor)
        lo, hi = clamp_of(node.activation, out)
    b.step(
        MatmulOp,
        node.name,
        (first, second),
        out,
        indices=indices,
        scale=scale,
        lo=lo,
        hi=hi,
    )


def centred(b: Build, node: MatMul, source: Tensor) -> Tensor:
    """`source`, or a copy with zero point 0."""
    if source.zero_point == 0:
        return source
    reach = max(source.hi - source.zero_point, source.zero_point - source.lo)
    scale = np.float32(np.float64(source.scale) * reach / 127)
    out = replace(source, scale=scale, zero_point=0, lo=-127, hi=127)
    out = b.temporary(out, "centred")
    b.requantize(node.name, source, out, clamp=(out.lo, out.hi))
    return out


def constant_of(b: Build, node: MatMul, values: FloatArray) -> Tensor:
    """The constant operand as integers with zero point 0."""
    scale = min(max(float(np.abs(values).max()) / 127, SMALLEST_SCALE), SCALE_MAX)
    grid = Tensor(name=node.name, dims=(), scale=np.float32(scale), lo=-127)
    return append_constant(b, node.name, values, grid)


def listed(node: MatMul) -> list[int]:
    """The views as the file has them."""
    fill = [Axis(1)] * (BATCHES + 2 - len(node.result.axes))
    rows, columns = node.result.sizes[-2:]
    batch = (1,) * len(fill) + node.result.sizes[:-2]
    numbers = [*batch, rows, columns, node.first.sizes[-1]]
    for view in (node.first, node.second, node.result):
        numbers += [view.pixel, view.channel]
        for axis in (*fill, *view.axes):
            numbers += [axis.pixels, axis.channels]
    return numbers


def views_of(op: MatmulOp) -> tuple[Strided, Strided, Strided]:
    """The views as values: first, second, result."""
    numbers = op.indices.tolist()
    *batch, rows, columns, depth = numbers[: BATCHES + 3]
    sizes = ((rows, depth), (depth, columns), (rows, columns))
    views = []
    for at, matrix in enumerate(sizes):
        pixel, channel, *steps = numbers[BATCHES + 3 + 18 * at :][:18]
        pairs = zip(steps[::2], steps[1::2], strict=True)
        axes = zip((*batch, *matrix), pairs, strict=True)
        views.append(Strided(tuple(Axis(n, *s) for n, s in axes), pixel, channel))
    first, second, result = views
    return first, second, result


def places(view: Strided) -> tuple[Array, Array]:
    """Pixels and channels of all values of a view."""
    pixel, channel = np.array(view.pixel), np.array(view.channel)
    for axis in view.axes:
        along = np.arange(axis.size)
        pixel = pixel[..., np.newaxis] + along * axis.pixels
        channel = channel[..., np.newaxis] + along * axis.channels
    return pixel, channel


def taken(values: Array, view: Strided) -> Array:
    """Those of the values of a tensor, N C H W, that a view has, in its order."""
    pixels: Array = values.transpose(0, 2, 3, 1).reshape(-1, values.shape[1])
    found: Array = pixels[places(view)]
    return found


def given(values: Array, view: Strided, shape: Shape) -> Array:
    """The tensor of `shape` of which a view has all values: these."""
    n, c, h, w = shape
    pixels = np.empty((n * h * w, c), values.dtype)
    pixels[places(view)] = values
    placed: Array = np.moveaxis(pixels.reshape(n, h, w, c), -1, 1)
    return placed


def compute_matmul(op: MatmulOp, out: Tensor, a: Operand, b: Operand) -> Array:
    """(29): exact sums, which a double holds."""
    first, second, result = views_of(op)
    rows = taken(a.values, first).astype(np.float64) - a.tensor.zero_point
    columns = np.maximum(taken(b.values, second), LOWEST).astype(np.float64)
    v = as_float((rows @ columns).astype(np.int64)) * np.float32(op.scale)
    y = v if out.dtype == FLOAT else rounded(v, out, op.lo, op.hi)
    return given(y, result, out.shape)


def write_matmul(n: Nodes, op: MatmulOp) -> None:
    """MatMul of what Reshape, Slice and Transpose make of the operands."""
    out, layer = n.tensors[op.output], n.layers[op.name]
    first, second, result = views_of(op)
    values = [
        write_view(n, n.real(name), n.tensors[name], view)
        for name, view in zip(op.inputs, (first, second), strict=True)
    ]
    value = n.node("MatMul", values, name=op.name)
    if layer.factor != 1:
        factor = n.array(f"{op.name}_factor", np.array(layer.factor, np.float32))
        value = n.node("Mul", [value, factor])
    boxes = result.boxes(out.shape)
    if boxes is None:
        raise ValueError(op.name)
    size, channels, height, width = out.shape
    axes = sorted(boxes.order, key=lambda at: boxes.order[at])
    rest = [at for at in range(len(result.axes)) if at not in boxes.order]
    value = n.node("Transpose", [value], perm=[*rest, *axes])
    value = reshaped(n, value, (size, height, width, channels))
    value = n.node("Transpose", [value], perm=[0, 3, 1, 2])
    value = reshaped(n, value, out.dims)
    if out.dtype != FLOAT:
        value = clamp(n, value, op.output, op.lo, op.hi)
    end(n, value, out)


def write_view(n: Nodes, value: str, tensor: Tensor, view: Strided) -> str:
    """Those of the values of a tensor that a view has, in its order."""
    boxes = view.boxes(tensor.shape)
    if boxes is None:
        raise ValueError(tensor.name)
    value = reshaped(n, value, tensor.shape)
    value = n.node("Transpose", [value], perm=[0, 2, 3, 1])
    value = reshaped(n, value, boxes.view)
    pairs = zip(boxes.ranges, boxes.view, strict=True)
    cut = [at for at, (each, size) in enumerate(pairs) if len(each) < size]
    if cut:
        bounds = [
            [boxes.ranges[at].start for at in cut],
            [boxes.ranges[at].stop for at in cut],
            cut,
        ]
        arrays = [n.array(f"{value}_slice", np.array(each)) for each in bounds]
        value = n.node("Slice", [value, *arrays])
    order = [boxes.order[at] for at in sorted(boxes.order)]
    rest = [at for at in range(len(boxes.view)) if at not in order]
    value = n.node("Transpose", [value], perm=[*rest, *order])
    sizes = (a.size if at in boxes.order else 1 for at, a in enumerate(view.axes))
    return reshaped(n, value, tuple(sizes))


FAMILY = Family(
    lower={MatMul: lower_matmul},
    steps={MatmulOp: compute_matmul},
    qdq={MatmulOp: write_matmul},
)
