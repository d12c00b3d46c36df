# SPDX-License-Identifier: Apache-2.0
"""Max, min and average pooling, over windows or over the whole image."""

import math
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from neon8.arrays import Array, Int64Array
from neon8.errors import CompileError
from neon8.ir.graph import Activated, Activation, Node, Shape, nchw
from neon8.ir.graph import Tensor as GraphTensor
from neon8.ir.program import Op, Tensor
from neon8.operators.activation import activate
from neon8.operators.build import FLOAT, INT8, INT16, Build, levels_mean_the_same, ratio
from neon8.operators.composition import MAX_ELEMENTS, Parts
from neon8.operators.family import Family
from neon8.operators.floats import append_activation, append_unary, before, larger
from neon8.operators.functions import affine
from neon8.operators.integer import ToFloat, ToInteger
from neon8.operators.movement import append_reshape
from neon8.operators.pointwise import TableOp
from neon8.operators.qdq import Nodes, clamp
from neon8.operators.reference import Levels, Operand, as_float, one_nan, rounded
from neon8.operators.scales import clamp_of
from neon8.operators.source import OnnxNode, Source
from neon8.operators.windows import pad_to_windows, steps_of, tap, taps, window


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool(Activated):
    """Max, min or average pooling.  pads: top, left, bottom, right.

    ceil_mode shows only in the output's shape: a last window may reach beyond `pads`.
    count_pad: padding counts as taps (average only). Taps beyond `pads` never count.
    """

    kind: str
    """"max", "min" or "average"."""
    kernel: tuple[int, int]
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    count_pad: bool = False

    @property
    def keeps_values(self) -> bool:
        """True of the largest and the least."""
        return self.kind != "average"

    def windows(self, source: Shape, out: Shape) -> Shape:
        """N C H W of the windows over `source`.

        It is `out`, the output's own, but where that leaves out an axis that a window
        has reduced to 1: the values and their order are the same then.
        """
        plain = self.strides == self.dilations == (1, 1) and not any(self.pads)
        if not plain:
            return out
        height, width = (source[2 + a] - self.kernel[a] + 1 for a in (0, 1))
        return source[0], source[1], height, width

    by_channel = True
    precedes_activation = True

    @property
    def averaged(self) -> int:
        """The taps of an average."""
        return self.kernel[0] * self.kernel[1] if self.kind == "average" else 1

    @property
    def gives_float(self) -> bool:
        """True of an average that nothing clamps."""
        return self.kind == "average" and self.activation.identity

    def fused(self, then: Activation) -> Node | None:
        """With an activation that is no slope."""
        return None if then.slope != 1 else Activated.fused(self, then)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolOp(Op):
    """(9).  Max: an exact move of values. Average: over the taps that count.

    From int8 to int8 or from int16 to int16; an average from either to float32, too.
    """

    kind: str
    """"max" or "average"."""
    kernel: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    pads: tuple[int, int, int, int]
    count_pad: bool = False
    lo: int = -128
    hi: int = 127

    @property
    def operation(self) -> str:
        """MAX_POOL or AVERAGE_POOL."""
        return f"{self.kind.upper()}_POOL"


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolF32Op(Op):
    """Pool in float32  (20)."""

    kind: str
    """"max" or "average"."""
    kernel: tuple[int, int]
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    count_pad: bool = False

    @property
    def operation(self) -> str:
        """MAX_POOL_F32 or AVERAGE_POOL_F32."""
        return f"{self.kind.upper()}_POOL_F32"


def import_pool(source: Source, node: OnnxNode, *, kind: str) -> Node:
    """MaxPool and AveragePool; kind: "max" or "average"."""
    if node.integer("storage_order", 0):
        raise source.failure(node, "storage_order is not supported")
    shape = source.shape_of(node, node.inputs[0])
    out = source.shape_of(node, node.outputs[0])
    geometry = window(
        source,
        node,
        kernel=node.integers("kernel_shape") or (),
        image=shape[2:],
        out=out[2:],
        ceil=bool(node.integer("ceil_mode", 0)),
    )
    pairs = zip(geometry.pads, geometry.kernel * 2, strict=True)
    if any(pad >= kernel for pad, kernel in pairs):
        text = f"pads {list(geometry.pads)} must be smaller than the kernel"
        raise source.failure(node, text)
    return node.made(
        Pool,
        kind=kind,
        **asdict(geometry),
        count_pad=kind == "average" and bool(node.integer("count_include_pad", 0)),
    )


def global_pool(source: Source, node: OnnxNode, *, kind: str) -> Node:
    """GlobalMaxPool and GlobalAveragePool: one window of the size of the image."""
    shape = source.shape_of(node, node.inputs[0])
    if len(shape) < 3:
        raise source.failure(node, f"input of shape {list(shape)} is no image")
    height, width = nchw(shape)[2:]
    return node.made(Pool, kind=kind, kernel=(height, width))


def integer_pool(source: Source, node: OnnxNode) -> tuple[GraphTensor | Node, ...]:
    """MaxPool of integers of 8 bits, which float32 has all."""
    given, wanted = node.inputs[0], node.outputs[0]
    before, after = (
        GraphTensor(f"{name}_real", source.dims_of(node, name), hidden=True)
        for name in (given, wanted)
    )
    types = {**source.types, given: before.dtype, wanted: after.dtype}
    pool = import_pool(replace(source, types=types), node, kind="max")
    first = ToFloat(
        name=f"{node.name}:{before.name}", inputs=(given,), output=before.name
    )
    inner = replace(pool, inputs=(before.name,), output=after.name)
    last = ToInteger(name=f"{node.name}:{wanted}", inputs=(after.name,), output=wanted)
    return before, after, first, inner, last


def with_indices(p: Parts) -> bool:
    """MaxPool that tells where the largest value of each window lies.

    What a window has beyond an edge is its value next to that, once more, which is
    neither larger nor the first of equal ones.
    """
    source, node = p.source, p.node
    shape = source.shape_of(node, node.inputs[0])
    out = source.shape_of(node, node.outputs[0])
    kernel = tuple(node.integers("kernel_shape") or ())
    if not 1 <= len(kernel) == len(shape) - 2 <= MOST_AXES:
        return False
    strides, dilations, begins, _ = steps_of(source, node, kernel, shape[2:])
    if math.prod(out) * math.prod(kernel) > MAX_ELEMENTS:
        return False
    value, place = node.inputs[0], np.zeros((), np.int64)
    steps = np.cumprod((1, *shape[:2:-1]))[::-1]
    if node.integer("storage_order", 0):
        steps = np.cumprod((1, *shape[2:-1]))
    for axis, size in enumerate(shape[2:]):
        start = np.arange(out[2 + axis]) * strides[axis] - begins[axis]
        at = start[:, np.newaxis] + np.arange(kernel[axis]) * dilations[axis]
        inside = (at >= 0) & (at < size)
        if not inside.any(axis=1).all():
            return False
        least = np.where(inside, at, size).min(axis=1, keepdims=True)
        at = np.clip(at, least, np.where(inside, at, -1).max(axis=1, keepdims=True))
        value = p.add("Gather", value, at.reshape(-1), axis=2 + axis)
        place = np.add.outer(place, at * steps[axis])
    apart = [n for pair in zip(out[2:], kernel, strict=True) for n in pair]
    order = (*range(0, len(apart), 2), *range(1, len(apart), 2))
    value = p.add("Reshape", value, (*shape[:2], *apart))
    value = p.add("Transpose", value, perm=(0, 1, *(2 + each for each in order)))
    taps = math.prod(kernel)
    value = p.add("Reshape", value, (*out, taps))
    tap = p.add("ArgMax", value, axis=len(out), keepdims=0)
    windows = np.arange(math.prod(out[2:])).reshape(out[2:])
    row = p.add("Add", tap, windows * taps)
    where = p.add("Gather", place.transpose(order).reshape(-1), row, axis=0)
    images = np.arange(math.prod(shape[:2])).reshape(*shape[:2], *(1 for _ in kernel))
    first = images * math.prod(shape[2:])
    p.add("Add", where, first, output=node.outputs[1])
    attributes = {k: v for k, v in node.attributes.items() if k != "storage_order"}
    p.append("MaxPool", node.inputs, node.outputs[:1], attributes, layer=True)
    return True


MOST_AXES = 3
"""A limit for images; each axis is two of its windows."""


MAX_TAPS = 2**23
"""2**23 * 255 < 2**31: the sum of an average pool fits int32."""


MAX_INT16_TAPS = 2**15
"""2**15 * 65535 < 2**31: and so it does of int16."""


def lower_pool(b: Build, node: Pool) -> None:
    """(9).  A scale changed under max and a leaky slope need a step of their own.

    An average that nothing reads as integers is float32.
    """
    source, out = ends(b, node)
    windows = node.windows(source.shape, out.shape)
    check_windows(b, node, windows)
    whole = out
    if windows != out.shape:
        whole = b.temporary(replace(out, dims=windows), "windows")
    if node.kind == "min":
        lower_min(b, node, source, whole)
        append_reshape(b, node.name, whole, out)
        return
    if node.kind == "average" and out.dtype == INT16:
        source = as_int16(b, node.name, source)
    narrows = source.dtype == INT16 and out.dtype == INT8
    rescales = node.kind == "max" and not levels_mean_the_same(source, out)
    if narrows or rescales or node.activation.slope != 1.0:
        pooled = b.temporary(replace(source, dims=whole.dims), "pooled")
        append_pool(b, node, source, pooled, (pooled.lo, pooled.hi))
        activate(b, node, pooled, whole)
    else:
        append_pool(b, node, source, whole, clamp_of(node.activation, out))
    append_reshape(b, node.name, whole, out)


def ends(b: Build, node: Pool) -> tuple[Tensor, Tensor]:
    """What the pool reads and what it gives."""
    name = node.inputs[0]
    average = node.kind == "average"
    narrow = node.kind == "min"  # a table flips it
    narrow |= average and node.kernel[0] * node.kernel[1] > MAX_INT16_TAPS
    source = b.int8(name) if narrow else b.own(name)
    if average and node.activation.identity and b.wants_float(node.output):
        return source, b.declare(node.output, FLOAT)
    return source, b.declare(node.output, INT8) if narrow else b.result(node.output)


def as_int16(b: Build, layer: str, source: Tensor) -> Tensor:
    """`source` as int16, exactly: with the same scale and zero point."""
    if source.dtype == INT16:
        return source
    out = replace(source, dtype=INT16, lo=-(2**15), hi=2**15 - 1)
    out = b.temporary(out, "wide")
    b.requantize(layer, source, out, clamp=(out.lo, out.hi))
    return out


def lower_min(b: Build, node: Pool, source: Tensor, out: Tensor) -> None:
    """The largest of -1 - q, which is a level as well, is -1 - the least q."""
    flipped = replace(source, zero_point=-1 - source.zero_point, lo=-128, hi=127)
    flipped = b.temporary(flipped, "flipped")
    largest = b.temporary(replace(flipped, dims=out.dims), "largest")
    flip(b, node.name, source, flipped, (-128, 127))
    append_pool(b, replace(node, kind="max"), flipped, largest, (-128, 127))
    if levels_mean_the_same(source, out) and node.activation.slope == 1.0:
        flip(b, node.name, largest, out, clamp_of(node.activation, out))
    else:
        least = b.temporary(replace(source, dims=out.dims), "least")
        flip(b, node.name, largest, least, (least.lo, least.hi))
        activate(b, node, least, out)


def flip(
    b: Build,
    layer: str,
    source: Tensor,
    out: Tensor,
    clamp: tuple[int, int],
) -> None:
    """Appends -1 - q within the clamp."""
    table = np.clip(np.arange(127, -129, -1), *clamp).astype(np.int8)
    b.step(TableOp, layer, (source,), out, table=table)


def append_pool(
    b: Build,
    node: Pool,
    source: Tensor,
    out: Tensor,
    clamp: tuple[int, int],
) -> None:
    """One pooling op; the runtime derives an average's multiplier from the scales."""
    if node.kind == "average":
        for count in (1, node.kernel[0] * node.kernel[1]):
            ratio(node.name, source, out, count=count)  # the scale of a float is 1
    b.step(
        PoolOp,
        node.name,
        (source,),
        out,
        kind=node.kind,
        **window_of(node),
        lo=clamp[0],
        hi=clamp[1],
    )


def window_of(node: Pool) -> dict[str, Any]:
    """The fields of a step that say where its windows are, and what counts."""
    names = ("kernel", "strides", "dilations", "pads", "count_pad")
    return {name: getattr(node, name) for name in names}


def check_windows(b: Build, node: Pool, windows: Shape) -> None:
    """CompileError for a window without a single tap, or with too many for int32."""
    in_shape = b.graph.tensors[node.inputs[0]].shape
    if node.kernel[0] * node.kernel[1] > MAX_TAPS:
        raise CompileError(
            f"layer {node.name!r}: a window of {node.kernel} overflows int32"
        )
    for axis in (0, 1):
        out = np.arange(windows[2 + axis])[:, np.newaxis]
        taps = np.arange(node.kernel[axis]) * node.dilations[axis]
        at = out * node.strides[axis] - node.pads[axis] + taps
        inside = (at >= 0) & (at < in_shape[2 + axis])
        if not inside.any(axis=1).all():
            raise CompileError(
                f"layer {node.name!r}: a pooling window lies outside its input"
            )


def lower_pool_float(b: Build, node: Pool) -> None:
    """(20); the least is minus the largest of -x."""
    source = b.float32(node.inputs[0])
    out = b.declare(node.output, FLOAT)
    result = pooled = before(b, node.activation, out)
    if node.kind == "min":
        source = negative(b, node.name, source, b.temporary(source, "negative"))
        pooled = b.temporary(result, "largest")
    b.step(
        PoolF32Op,
        node.name,
        (source,),
        pooled,
        kind="max" if node.kind == "min" else node.kind,
        **window_of(node),
    )
    if node.kind == "min":
        negative(b, node.name, pooled, result)
    append_activation(b, node.name, node.activation, out)


def negative(b: Build, layer: str, source: Tensor, out: Tensor) -> Tensor:
    """Appends -x; `out`."""
    append_unary(b, layer, affine(-1.0, 0.0), source, out)
    return out


def max_pool(op: PoolOp, out: Tensor, q: Array) -> Levels:
    """(9): the largest of the taps inside the input, within the clamp."""
    least = int(np.iinfo(out.dtype).min)
    padded = pad_to_windows(op, out, q, least)
    best = np.full(out.shape, least, q.dtype)
    for y in range(op.kernel[0]):
        for x in range(op.kernel[1]):
            best = np.maximum(best, tap(op, padded, y, x, *out.shape[2:]))
    result: Levels = np.clip(best, op.lo, op.hi)
    return result


def average_pool(op: PoolOp, out: Tensor, operand: Operand) -> Array:
    """(9): M = scale_in / (scale_out * count), count being the taps that count.

    To float32 scale_out is 1, and nothing is rounded to levels.
    """
    padded = pad_to_windows(op, out, operand.moved, 0)
    acc = np.zeros(out.shape, np.int64)
    for y in range(op.kernel[0]):
        for x in range(op.kernel[1]):
            acc += tap(op, padded, y, x, *out.shape[2:]).astype(np.int64)
    rows, columns = (
        counted(op, axis, operand.values.shape, out.shape) for axis in (0, 1)
    )
    count = rows[:, None] * columns[None, :]
    scale = np.float64(out.scale) * count
    multiplier = (np.float64(operand.tensor.scale) / scale).astype(np.float32)
    v = as_float(acc) * multiplier
    return v if out.dtype == "float32" else rounded(v, out, op.lo, op.hi)


def compute_pool(op: PoolOp, out: Tensor, x: Operand) -> Array:
    """(9)."""
    if op.kind == "max":
        return max_pool(op, out, x.values)
    return average_pool(op, out, x)


def counted(
    op: PoolOp | PoolF32Op,
    axis: int,
    in_shape: tuple[int, ...],
    out_shape: tuple[int, ...],
) -> Int64Array:
    """Along one axis: how many taps of each window count, (out,)."""
    size = in_shape[2 + axis]
    before, after = (op.pads[axis], op.pads[2 + axis]) if op.count_pad else (0, 0)
    start = np.arange(out_shape[2 + axis]) * op.strides[axis] - op.pads[axis]
    at = start[:, None] + np.arange(op.kernel[axis]) * op.dilations[axis]
    counts: Int64Array = ((at >= -before) & (at < size + after)).sum(axis=1)
    return counts


def compute_pool_float(op: PoolF32Op, out: Tensor, operand: Operand) -> Array:
    """(20): the largest tap, or their sum one after another by their number."""
    x = operand.values.astype(np.float32)
    acc = np.full(out.shape, -np.inf if op.kind == "max" else 0.0, np.float32)
    with np.errstate(all="ignore"):
        for y_tap in range(op.kernel[0]):
            for x_tap in range(op.kernel[1]):
                seen, inside = taps(op, out, x, y_tap, x_tap)
                new = larger(acc, seen) if op.kind == "max" else acc + seen
                acc = np.where(inside, new, acc)
        if op.kind == "average":
            rows, columns = (counted(op, axis, x.shape, out.shape) for axis in (0, 1))
            count = (rows[:, None] * columns[None, :]).astype(np.float32)
            acc = np.divide(acc, count, dtype=np.float32)
    return one_nan(acc)


AnyPool = PoolOp | PoolF32Op


DILATED = 19
"""The first opset whose average pools have dilations."""


def pool_opset(op: AnyPool, _layer: Node) -> int:
    """The first opset that has a node for the step."""
    return DILATED if op.kind == "average" and op.dilations != (1, 1) else 0


def pool_node(n: Nodes, op: AnyPool, x: str) -> str:
    """The pool of float value `x`, which is input 0 of the step."""
    source, out = n.tensors[op.inputs[0]], n.tensors[op.output]
    if source.rank != 4:
        x = n.reshape(x, source.shape)
    if op.kind == "min":  # ONNX has no such pool
        x = n.node("Neg", [x])
    kind = "Average" if op.kind == "average" else "Max"
    whole = op.kernel == source.shape[2:] and out.shape[2:] == (1, 1)
    if whole and op.pads == (0, 0, 0, 0) and op.dilations == (1, 1):
        value = n.node(f"Global{kind}Pool", [x], name=op.name)
    else:
        extra: dict[str, int | list[int]] = {}
        if op.kind == "average":
            extra["count_include_pad"] = int(op.count_pad)
        if op.kind != "average" or op.dilations != (1, 1):
            extra["dilations"] = list(op.dilations)
        value = n.node(
            f"{kind}Pool",
            [x],
            name=op.name,
            kernel_shape=list(op.kernel),
            strides=list(op.strides),
            pads=list(op.pads),
            ceil_mode=int(_ceils(op, source, out)),
            **extra,  # type: ignore[arg-type]
        )
    if op.kind == "min":
        value = n.node("Neg", [value])
    return value if out.rank == 4 else n.reshape(value, out.dims)


def _ceils(op: AnyPool, source: Tensor, out: Tensor) -> bool:
    """True if the output has a window that rounding down would leave out."""
    for axis in (0, 1):
        reach = op.dilations[axis] * (op.kernel[axis] - 1) + 1
        room = source.shape[2 + axis] + op.pads[axis] + op.pads[2 + axis] - reach
        if room // op.strides[axis] + 1 != out.shape[2 + axis]:
            return True
    return False


def write_pool_float(n: Nodes, op: PoolF32Op) -> None:
    """A pool."""
    n.named(pool_node(n, op, op.inputs[0]), op.output)


def write_pool(n: Nodes, op: PoolOp) -> None:
    """A pool of int8, which may give float32."""
    value = pool_node(n, op, n.real(op.inputs[0]))
    if n.tensors[op.output].dtype == "float32":
        n.named(value, op.output)
    else:
        n.finish(clamp(n, value, op.output, op.lo, op.hi), op.output)


FAMILY = Family(
    imports={
        "AveragePool": partial(import_pool, kind="average"),
        "GlobalAveragePool": partial(global_pool, kind="average"),
        "GlobalMaxPool": partial(global_pool, kind="max"),
        "MaxPool": partial(import_pool, kind="max"),
    },
    lower={Pool: lower_pool},
    lower_float={Pool: lower_pool_float},
    steps={PoolOp: compute_pool, PoolF32Op: compute_pool_float},
    qdq={PoolOp: write_pool, PoolF32Op: write_pool_float},
    integers={"MaxPool": integer_pool},
    opsets={PoolOp: pool_opset, PoolF32Op: pool_opset},
)
