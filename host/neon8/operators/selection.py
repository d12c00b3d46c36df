# SPDX-License-Identifier: Apache-2.0
"""Operators that take some values, or take values more than once, axis by axis.

Each makes a list of indices for every axis of its input, -1 where a constant stands;
select() makes a Gather of them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from neon8.arrays import AnyArray, Array, Int32Array
from neon8.ir.graph import INTEGERS, Node, Shape
from neon8.ir.program import Bounds, Op, Tensor
from neon8.ir.strided import Strided
from neon8.operators import indexed
from neon8.operators.build import Build
from neon8.operators.family import Family
from neon8.operators.layout import Converted, Layout, along_axis, with_attributes
from neon8.operators.movement import Reshape, append_reshape, axis_of, moved, reshaped
from neon8.operators.qdq import QUANTIZED, Nodes, shaped, value_of
from neon8.operators.qdq import end as become
from neon8.operators.reference import Operand
from neon8.operators.source import OnnxNode, Source
from neon8.operators.windows import MAX_EXTENT

ENDLESS = 5000.0
"""A fill from here on stands for infinity, of which no scale is made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gather(Node):
    """Some of the values, some more than once: Slice, Split, Pad, Expand and others.

    The input's values are taken as an array of shape `view`, N C H W. `indices` has a
    list for each of its axes: the value at (n, c, h, w) of the result is that at
    (indices[0][n], indices[1][c], indices[2][h], indices[3][w]), or `fill` where one
    of them is -1. The values of the result are those of the output, in this order.
    """

    view: Shape
    indices: tuple[Int32Array, Int32Array, Int32Array, Int32Array]
    fill: float = 0.0

    moves = True
    keeps_values = True
    follows = True

    @property
    def shares_scale(self) -> bool:
        """False if it fills in what the range of the others may lack."""
        return self.fill == 0 or abs(self.fill) >= ENDLESS

    @property
    def keeps_sign(self) -> bool:
        """True unless it fills in something negative."""
        return self.fill >= 0

    def moved(self, values: Int32Array) -> Int32Array:
        """Those that the lists name, -1 where one of them is."""
        taken: Int32Array = values.reshape(self.view)[np.ix_(*self.indices)]
        for axis, each in enumerate(self.indices):
            np.moveaxis(taken, axis, 0)[each == FILL] = FILL
        return taken

    def viewed(self, source: Strided) -> Strided | None:
        """Those that the lists name, if they are neighbours."""
        return source.taken(self.view, self.indices)

    def within(self, start: int, whole: Shape, part: Shape) -> Node | None:
        """The list of channels counts from there, if it has no others."""
        n, c, h, w = self.indices
        if self.view != whole or c.min() < start or c.max() >= start + part[1]:
            return None
        indices = (n, c - np.int32(start), h, w)
        if all(map(np.array_equal, indices, map(np.arange, part))):
            return Reshape(name=self.name, inputs=self.inputs, output=self.output)
        return replace(self, view=part, indices=indices)

    def followed_by(self, node: Node) -> Node | None:
        """Indices of indices, if both have the same axes and one constant at most."""
        if not isinstance(node, Gather):
            return None
        filled = [(each.indices, each.fill) for each in (self, node)]
        fills = {
            fill for indices, fill in filled if any((i < 0).any() for i in indices)
        }
        if tuple(map(len, self.indices)) != node.view or len(fills) > 1:
            return None
        n, c, h, w = map(_through, self.indices, node.indices)
        whole = (np.arange(size) for size in self.view)
        if all(map(np.array_equal, (n, c, h, w), whole)):
            return Reshape(name=node.name, inputs=self.inputs, output=node.output)
        return replace(
            node,
            inputs=self.inputs,
            view=self.view,
            indices=(n, c, h, w),
            fill=next(iter(fills), 0.0),
        )


def _through(first: Int32Array, second: Int32Array) -> Int32Array:
    taken: Int32Array = np.where(second < 0, np.int32(-1), first[second])
    return taken


@dataclass(frozen=True, slots=True, kw_only=True)
class GatherOp(Op):
    """Moves values: for each axis of the output, where in the input they are.

    indices: (N + C + H + W,) of the output, one list after another. Where one of the
    four is -1 the value is `fill`: a level q of the output, or a float.
    """

    indices: Int32Array
    fill: np.float32 = np.float32(0)

    listed = (0, 1, 2, 3)

    def bounds(self, given: Sequence[Bounds]) -> Bounds:
        """With what it fills in."""
        ((low, high),), fill = given, int(self.fill)
        return min(low, fill), max(high, fill)


MOST_EXACT = 1 << 24
"""Whole numbers up to this one are floats."""

FILL = -1
"""The index of what no value of the input is."""


def whole(size: int) -> Int32Array:
    """The list that takes everything as it is."""
    return np.arange(size, dtype=np.int32)


def select(
    source: Source,
    node: OnnxNode,
    lists: Sequence[Int32Array],
    *,
    output: str | None = None,
    fill: float = 0.0,
    view: Sequence[int] | None = None,
) -> Node:
    """The node that takes `lists` from the axes of its input, of the shape `view`.

    A Reshape where that takes all.  view: that of the input unless given.
    """
    output = node.outputs[0] if output is None else output
    name = node.name if output == node.outputs[0] else f"{node.name}:{output}"
    shape = tuple(extents(source, node, node.inputs[0]) if view is None else view)
    same = map(np.array_equal, lists, map(whole, shape))
    if all(same):
        return Reshape(name=name, inputs=node.inputs[:1], output=output)
    sizes, lists = _four(shape, lists)
    return Gather(
        name=name,
        inputs=node.inputs[:1],
        output=output,
        view=(sizes[0], sizes[1], sizes[2], sizes[3]),
        indices=(lists[0], lists[1], lists[2], lists[3]),
        fill=fill,
    )


def _four(
    shape: Sequence[int], lists: Sequence[Int32Array]
) -> tuple[list[int], list[Int32Array]]:
    """Four axes: more on the right, or the last ones as one."""
    while len(shape) > 4:
        *first, high, low = lists
        both = high[:, np.newaxis].astype(np.int64) * shape[-1] + low
        both[(high[:, np.newaxis] == FILL) | (low == FILL)] = FILL
        lists = [*first, both.astype(np.int32).reshape(-1)]
        shape = [*shape[:-2], shape[-2] * shape[-1]]
    missing = 4 - len(shape)
    return [*shape, *(1,) * missing], [*lists, *(whole(1),) * missing]


def extents(source: Source, node: OnnxNode, tensor: str) -> tuple[int, ...]:
    """As dims_of(); GraphError if lists of its indices would be too long."""
    shape = source.dims_of(node, tensor)
    if max((*shape, math.prod(shape[3:]))) > MAX_EXTENT:
        text = f"tensor {tensor!r} of shape {list(shape)} is too large"
        raise source.failure(node, text)
    return shape


def slices(source: Source, node: OnnxNode) -> Node:
    """Slice; its bounds are attributes before opset 10 and inputs since."""
    shape = extents(source, node, node.inputs[0])
    if source.opset < 10:
        starts, ends = node.integers("starts"), node.integers("ends")
        axes, steps = node.integers("axes"), None
    else:
        starts, ends, axes, steps = (numbers(source, node, i) for i in (1, 2, 3, 4))
    if starts is None or ends is None:
        raise source.failure(node, "has no starts or no ends")
    axes = tuple(range(len(starts))) if axes is None else axes
    steps = (1,) * len(starts) if steps is None else steps
    if len({len(starts), len(ends), len(axes), len(steps)}) > 1:
        raise source.failure(node, "starts, ends, axes and steps differ in number")
    lists = [whole(size) for size in shape]
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        if not -len(shape) <= axis < len(shape) or step == 0:
            detail = f"axis {axis} with step {step} of {len(shape)} dimensions"
            raise source.failure(node, detail)
        # A backward slice that ends before the first value has an end below -size.
        size = shape[axis]
        last = None if step < 0 and end < -size else end
        lists[axis] = whole(size)[slice(start, last, step)]
    source.dims_of(node, node.outputs[0])
    return select(source, node, lists)


def numbers(source: Source, node: OnnxNode, index: int) -> tuple[int, ...] | None:
    """Input `index`, a constant list of integers; None if it is left out."""
    value = source.constant(node, index)
    if value is None:
        return None
    if value.dtype.kind not in "iu" or value.ndim > 1:
        text = f"input {node.inputs[index]!r} is no list of integers"
        raise source.failure(node, text)
    return tuple(int(item) for item in value.reshape(-1))


def split(source: Source, node: OnnxNode) -> tuple[Node, ...]:
    """Split: a Gather for each output, which is as long as ONNX infers."""
    shape = extents(source, node, node.inputs[0])
    axis = axis_of(source, node, len(shape), default=0)
    lengths = node.integers("split") if source.opset < 13 else None
    if lengths is None and source.opset >= 13:
        lengths = numbers(source, node, 1)
    if lengths is None:
        each = -(-shape[axis] // len(node.outputs))
        starts = range(0, each * len(node.outputs), each)
        lengths = tuple(min(each, shape[axis] - start) for start in starts)
    if len(lengths) != len(node.outputs) or sum(lengths) != shape[axis]:
        text = f"{list(lengths)} do not divide {shape[axis]} values on axis {axis}"
        raise source.failure(node, text)
    nodes = []
    start = 0
    for output, length in zip(node.outputs, lengths, strict=True):
        if output and length > 0:
            lists = [whole(size) for size in shape]
            lists[axis] = lists[axis][start : start + length]
            nodes.append(select(source, node, lists, output=output))
        start += length
    return tuple(nodes)


def pad(source: Source, node: OnnxNode) -> Node:
    """Pad; negative pads crop, before the others repeat what is left."""
    shape = extents(source, node, node.inputs[0])
    extents(source, node, node.outputs[0])
    axes = numbers(source, node, 3) or tuple(range(len(shape)))
    amounts = node.integers("pads")
    if source.opset >= 11:
        amounts = numbers(source, node, 1)
    if amounts is None or len(amounts) != 2 * len(axes):
        raise source.failure(node, f"has no two pads for each of {len(axes)} axes")
    mode = node.text("mode", "constant")
    lists = [whole(size) for size in shape]
    for at, axis in enumerate(axes):
        if not -len(shape) <= axis < len(shape):
            raise source.failure(node, f"axis {axis} of {len(shape)} dimensions")
        pads = amounts[at], amounts[at + len(axes)]
        lists[axis] = _padded(source, node, lists[axis], pads, mode)
    fill = _fill(source, node) if mode == "constant" else 0.0
    return select(source, node, lists, fill=fill)


def _padded(
    source: Source, node: OnnxNode, taken: Int32Array, pads: tuple[int, int], mode: str
) -> Int32Array:
    """The list with more before and after it."""
    before, after = pads
    end = len(taken) + min(after, 0)
    cropped = taken[max(-before, 0) : max(end, 0)]
    widths = max(before, 0), max(after, 0)
    if mode == "constant":
        return np.pad(cropped, widths, constant_values=FILL)
    if mode not in ("reflect", "edge", "wrap"):
        raise source.failure(node, f"mode {mode!r} is unknown")
    most = {"reflect": len(cropped) - 1, "wrap": len(cropped)}.get(mode, MAX_EXTENT)
    if not len(cropped) or max(widths) > most:
        text = f"pads {list(widths)} of {len(cropped)} values by mode {mode}"
        raise source.failure(node, f"{text}; only what is there can be repeated")
    return np.pad(cropped, widths, mode=mode)  # type: ignore[call-overload,no-any-return]


def _fill(source: Source, node: OnnxNode) -> float:
    """The value that Pad puts in."""
    if source.opset < 11:
        value = node.real("value", 0.0)
    else:
        given = source.constant(node, 2)
        if given is not None and given.size != 1:
            raise source.failure(node, "its constant is not one value")
        value = 0.0 if given is None else float(given.reshape(-1)[0])
    if math.isnan(value):
        raise source.failure(node, "pads with NaN")
    if source.types[node.inputs[0]] in INTEGERS and abs(value) > MOST_EXACT:
        raise source.failure(node, f"pads integers with {value:.0f}, beyond +-2**24")
    return value


def import_gather(source: Source, node: OnnxNode) -> Node:
    """Gather."""
    if node.inputs[0] in source.constants or node.inputs[1] not in source.constants:
        return indexed.import_gather(source, node)
    shape = extents(source, node, node.inputs[0])
    extents(source, node, node.outputs[0])
    axis = axis_of(source, node, len(shape), default=0)
    taken = source.constant(node, 1)
    if taken is None or taken.dtype.kind not in "iu":
        raise source.failure(node, "has no indices that are constant integers")
    size = shape[axis]
    if taken.size > MAX_EXTENT or taken.min() < -size or taken.max() >= size:
        text = f"an index is outside {size} values, or there are too many"
        raise source.failure(node, text)
    lists = [whole(each) for each in shape]
    lists[axis] = (taken.reshape(-1).astype(np.int64) % size).astype(np.int32)
    return select(source, node, lists)


def expand(source: Source, node: OnnxNode) -> Node:
    """Expand: axes of one become as long as the constant shape wants."""
    shape = extents(source, node, node.inputs[0])
    out = extents(source, node, node.outputs[0])
    view = (*(1,) * (len(out) - len(shape)), *shape)
    lists = [
        whole(have) if have == want else np.zeros(want, np.int32)
        for have, want in zip(view, out, strict=True)
    ]
    return select(source, node, lists, view=view)


def tile(source: Source, node: OnnxNode) -> Node:
    """Tile with constant repeats."""
    shape = extents(source, node, node.inputs[0])
    out = extents(source, node, node.outputs[0])
    lists = [
        np.resize(whole(have), want).astype(np.int32)
        for have, want in zip(shape, out, strict=True)
    ]
    return select(source, node, lists)


def lower_gather(b: Build, node: Gather) -> None:
    """The values that its lists name, in the output's shape."""
    (source,), out = moved(b, node)
    source = reshaped(b, node.name, source, node.view)
    append_gather(b, node.name, source, out, node.indices, fill=node.fill)


def append_gather(
    b: Build,
    layer: str,
    source: Tensor,
    out: Tensor,
    indices: Sequence[AnyArray | range],
    *,
    fill: float = 0.0,
) -> None:
    """Appends source -> out, where a step of its own reshapes what was gathered."""
    n, c, h, w = (len(each) for each in indices)
    taken = out
    if out.shape != (n, c, h, w):
        taken = b.temporary(replace(out, dims=(n, c, h, w)), "gathered")
    b.step(
        GatherOp,
        layer,
        (source,),
        taken,
        indices=np.concatenate(indices, dtype=np.int32),
        fill=level(fill, out),
    )
    append_reshape(b, layer, taken, out)


def level(real: float, out: Tensor) -> np.float32:
    """The value that stands for `real` in `out`: the nearest q in its range, or itself.

    Where no index is -1 nothing reads it.
    """
    if out.dtype not in QUANTIZED:
        value: np.float32 = np.float32(real)
    elif math.isinf(real):
        value = np.float32(out.lo if real < 0 else out.hi)
    else:
        q = np.rint(real / float(out.scale)) + out.zero_point
        value = np.float32(np.clip(q, out.lo, out.hi))
    return value


def compute_gather(op: GatherOp, out: Tensor, x: Operand) -> Array:
    """(9): what the lists name, or the fill where one of them says -1."""
    ends = np.cumsum(out.shape)[:-1]
    taken = np.ix_(*np.split(op.indices, ends))
    holes = (taken[0] < 0) | (taken[1] < 0) | (taken[2] < 0) | (taken[3] < 0)
    fill = np.array(op.fill).astype(x.values.dtype)
    result: Array = np.where(holes, fill, x.values[taken])
    return result


def write_gather(n: Nodes, op: GatherOp) -> None:
    """A Gather along each axis, of what is padded first where a constant is taken."""
    source, out = n.tensors[op.inputs[0]], n.tensors[op.output]
    value = shaped(n, value_of(n, source), source.dims, source.shape)
    ends = np.cumsum(out.shape)[:-1]
    for axis, taken in enumerate(np.split(op.indices, ends)):
        size = source.shape[axis]
        if np.array_equal(taken, np.arange(size)):
            continue
        if (taken < 0).any():
            value = _with_constant(n, value, axis, _real(op.fill, out))
            taken = np.where(taken < 0, size, taken)  # noqa: PLW2901
        indices = n.array(f"{op.output}_indices", taken.astype(np.int64))
        value = n.node("Gather", [value, indices], axis=axis)
    become(n, shaped(n, value, out.shape, out.dims), out)


def _with_constant(n: Nodes, value: str, axis: int, fill: Array) -> str:
    """One more place at the end of the axis, of four, with a constant in it."""
    pads = np.zeros(8, np.int64)
    pads[4 + axis] = 1
    constant = n.array(f"{value}_fill", fill)
    return n.node("Pad", [value, n.array(f"{value}_pads", pads), constant])


def _real(fill: np.float32, out: Tensor) -> Array:
    value, kind = np.float64(fill), np.dtype(out.dtype)
    if out.dtype in QUANTIZED:
        value, kind = (value - out.zero_point) * np.float64(out.scale), np.dtype("<f4")
    return np.array(value, kind)


def pad_layout(source: Source, node: OnnxNode, layout: Layout) -> Converted | None:
    """Pad of all axes."""
    if any(node.inputs[3:]):
        return None
    given = source.constants.get(node.inputs[1]) if node.inputs[1:] else None
    pads = node.integers("pads")
    if given is not None:
        pads = tuple(int(pad) for pad in given.reshape(-1))
    if pads is None or len(pads) != 2 * layout.rank:
        return None
    places = layout.list(pads[: layout.rank]) + layout.list(pads[layout.rank :])
    if given is None:
        return Converted(with_attributes(node, pads=places), {})
    return Converted(node, {1: np.array(places, np.int64)})


def slice_layout(source: Source, node: OnnxNode, layout: Layout) -> Converted | None:
    """Slice, whose axes are an attribute before opset 10 and an input since."""
    if source.opset < 10:
        starts = node.integers("starts") or ()
        axes = node.integers("axes") or tuple(range(len(starts)))
    else:
        begin = source.constants.get(node.inputs[1])
        given = source.constants.get(node.inputs[3]) if node.inputs[3:] else None
        if begin is None or (given is None and any(node.inputs[3:4])):
            return None
        listed = np.arange(begin.size) if given is None else given.reshape(-1)
        axes = tuple(int(axis) for axis in listed)
    places = [layout.axis(axis) for axis in axes]
    if None in places:
        return None
    turned = tuple(axis for axis in places if axis is not None)
    if source.opset < 10:
        return Converted(with_attributes(node, axes=turned), {})
    room = (*node.inputs, *("",) * (4 - len(node.inputs)))
    return Converted(replace(node, inputs=room), {3: np.array(turned, np.int64)})


FAMILY = Family(
    imports={
        "Expand": expand,
        "Gather": import_gather,
        "Pad": pad,
        "Slice": slices,
        "Split": split,
        "Tile": tile,
    },
    lower={Gather: lower_gather},
    lower_float={Gather: lower_gather},
    steps={GatherOp: compute_gather},
    qdq={GatherOp: write_gather},
    layouts={"Pad": pad_layout, "Slice": slice_layout, "Split": along_axis},
)
