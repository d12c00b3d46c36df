# SPDX-License-Identifier: Apache-2.0
"""Resize and Upsample: to the nearest value, or to weighted sums of some.

ONNX leaves open in which precision a coordinate is computed, and on a tie it decides
between two pixels. Here it is float32, one operation after another, as in onnxruntime.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from neon8.arrays import Array, DoubleArray, FloatArray, Int32Array, Int64Array
from neon8.ir.graph import Node
from neon8.ir.program import Op, Tensor
from neon8.operators.build import INT8, Build, ratio
from neon8.operators.composition import Parts
from neon8.operators.family import Family
from neon8.operators.qdq import Nodes, end, shaped, value_of
from neon8.operators.reference import Operand, one_nan, rounded
from neon8.operators.selection import extents, select, whole
from neon8.operators.source import Attribute, OnnxNode, Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Resize(Node):
    """Each pixel a weighted sum of some rows and columns of the input.

    rows: (H, K) and columns: (W, K), the indices of these for each row and column of
    the output, K >= 2.  row_weights: (H, K) and column_weights: (W, K), which add up to
    1, or to 0 where the output is 0.
    """

    rows: Int32Array
    columns: Int32Array
    row_weights: FloatArray
    column_weights: FloatArray

    by_channel = True
    follows = True

    @property
    def shares_scale(self) -> bool:
        """True if no weight is negative, so that the output is between the input's."""
        every = self.row_weights, self.column_weights
        return all(bool((each >= 0).all()) for each in every)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResizeOp(Op):
    """Each pixel a weighted sum of some rows and columns  (17).

    groups: K - 1.  indices: (K * H + K * W,), rows for each row of the output, then
    columns for each of its columns.  values: their weights, of the same shape.  scale:
    of the input over that of the output, 1 between floats.
    """

    groups: int = 1
    scale: np.float32
    indices: Int32Array
    values: FloatArray

    listed = (2, 3)


ONE, HALF = np.float32(1), np.float32(0.5)


CROP = "tf_crop_and_resize"


SIMPLE = "simple"
"""Before opset 11: up to the next index when it shrinks, else down."""


MOST_TAPS = 256
"""Rows or columns that one of the output is made of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One axis: its size before and after, and how often the first fits the second.

    crop: where the part of it begins and ends that becomes the output, of 0 .. 1.
    """

    size: int
    out: int
    scale: np.float32
    crop: tuple[np.float32, np.float32] = (np.float32(0), np.float32(1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """What a value is made of: neighbours weighted linearly, or by a cubic.

    antialias: of more where the axis shrinks.  exclude: without those outside.  a: the
    coefficient of a cubic.
    """

    cubic: bool = False
    antialias: bool = False
    exclude: bool = False
    a: float = -0.75


def resize(source: Source, node: OnnxNode) -> Node:
    """Resize, whose scales or sizes are constants; any mode."""
    if source.opset < 11:
        axes = _axes(source, node, _scales(source, node, 1))
        return _resized(source, node, axes, "asymmetric", SIMPLE)
    coordinates = node.text("coordinate_transformation_mode", "half_pixel")
    rounding = node.text("nearest_mode", "round_prefer_floor")
    return _resized(source, node, _all_axes(source, node), coordinates, rounding)


def _all_axes(source: Source, node: OnnxNode) -> list[Axis]:
    """The axes of a Resize since opset 11."""
    scales = _scales(source, node, 2)
    axes = _axes(source, node, scales or _scales_of_sizes(source, node))
    if node.text("coordinate_transformation_mode", "") != CROP:
        return axes
    given = source.required(node, 1).reshape(-1)
    listed = _resized_axes(source, node, len(axes))
    if given.size != 2 * len(listed):
        raise source.failure(
            node, f"roi has no two values for each of {len(listed)} axes"
        )
    for at, *crop in zip(listed, *np.split(given, 2), strict=True):
        axes[at] = replace(axes[at], crop=(crop[0], crop[1]))
        if axes[at].scale == 1 and axes[at].crop != (0, 1):
            raise source.failure(node, f"crops axis {at} to the size that it had")
    return axes


def upsample(source: Source, node: OnnxNode) -> Node:
    """Upsample, whose scales are an attribute before opset 9 and an input since."""
    if source.opset < 9:
        given = node.attributes.get("scales")
        scales = tuple(map(float, given)) if isinstance(given, tuple) else ()
    else:
        scales = _scales(source, node, 1)
    axes = _axes(source, node, scales)
    return _resized(source, node, axes, "asymmetric", SIMPLE)


def _scales(source: Source, node: OnnxNode, index: int) -> tuple[float, ...]:
    """Input `index`, a scale for each axis that is resized; none if it is left out."""
    if index >= len(node.inputs) or not node.inputs[index]:
        return ()
    value = source.constant(node, index)
    if value is None or value.size == 0:
        return ()
    scales = source.weights(node, index)
    return () if scales is None else tuple(map(float, scales.reshape(-1)))


def _scales_of_sizes(source: Source, node: OnnxNode) -> tuple[float, ...]:
    """What the sizes mean, input 3; the aspect ratio may make them one."""
    shape = extents(source, node, node.inputs[0])
    sizes = source.constant(node, 3)
    axes = _resized_axes(source, node, len(shape))
    if sizes is None or sizes.size != len(axes) or sizes.dtype.kind not in "iu":
        raise source.failure(node, f"has no size for each of {len(axes)} axes")
    ratios = [
        np.float32(size) / np.float32(shape[axis])
        for size, axis in zip(sizes.reshape(-1).tolist(), axes, strict=True)
    ]
    policy = node.text("keep_aspect_ratio_policy", "stretch")
    if policy == "not_larger":
        ratios = [min(ratios)] * len(ratios)
    elif policy == "not_smaller":
        ratios = [max(ratios)] * len(ratios)
    elif policy != "stretch":
        raise source.failure(node, f"keep_aspect_ratio_policy {policy!r} is unknown")
    return tuple(map(float, ratios))


def _resized_axes(source: Source, node: OnnxNode, rank: int) -> tuple[int, ...]:
    axes = node.integers("axes")
    if axes is None:
        return tuple(range(rank))
    if not all(-rank <= axis < rank for axis in axes):
        raise source.failure(node, f"axes {list(axes)} of {rank} dimensions")
    return tuple(axis % rank for axis in axes)


def _axes(source: Source, node: OnnxNode, scales: Sequence[float]) -> list[Axis]:
    """All axes of the input; those that are not resized have the scale 1."""
    shape = extents(source, node, node.inputs[0])
    out = extents(source, node, node.outputs[0])
    axes = _resized_axes(source, node, len(shape))
    if len(scales) != len(axes) or not all(0 < scale < np.inf for scale in scales):
        text = f"scales {list(scales)} are not a positive one for each of"
        raise source.failure(node, f"{text} {len(axes)} axes")
    given = dict(zip(axes, scales, strict=True))
    every = [np.float32(given.get(axis, 1.0)) for axis in range(len(shape))]
    for size, wanted, scale in zip(shape, out, every, strict=True):
        # A product near an integer: onnx rounds it down, and in float32 it is one.
        if abs(np.float32(size) * scale - np.float32(wanted)) >= 1:
            text = f"{size} values with scale {scale} are {wanted} or {wanted + 1}"
            raise source.failure(node, f"{text}; export it with sizes")
    return [
        Axis(size=size, out=wanted, scale=scale)
        for size, wanted, scale in zip(shape, out, every, strict=True)
    ]


def _resized(
    source: Source, node: OnnxNode, axes: list[Axis], coordinates: str, rounding: str
) -> Node:
    mode = node.text("mode", "nearest")
    if coordinates not in (*COORDINATES, *OTHERS):
        detail = f"coordinate_transformation_mode {coordinates!r} is not supported"
        raise source.failure(node, f"{detail}; export with half_pixel")
    places = [_coordinates(axis, coordinates) for axis in axes]
    outside = [
        (at < 0) | (at > axis.size - 1)
        if coordinates == CROP
        else np.zeros(at.shape, bool)
        for axis, at in zip(axes, places, strict=True)
    ]
    fill = node.real("extrapolation_value", 0.0)
    if mode == "nearest":
        if rounding not in (*ROUNDINGS, SIMPLE):
            raise source.failure(node, f"nearest_mode {rounding!r} is unknown")
        lists = [
            np.where(out, -1, _nearest(axis, at, rounding)).astype(np.int32)
            for axis, at, out in zip(axes, places, outside, strict=True)
        ]
        return select(source, node, lists, fill=fill)
    if mode not in ("linear", "cubic"):
        raise source.failure(node, f"mode {mode!r} is unknown")
    moved = _moved(axes)
    if len(axes) > 4 or not set(moved) <= {2, 3}:
        raise source.failure(node, f"is {mode} on axes {moved}; neon8 does it on 2, 3")
    if fill and any(map(np.any, outside)):
        raise source.failure(node, "extrapolation_value is not 0")
    how = Filter(
        cubic=mode == "cubic",
        antialias=node.integer("antialias", 0) != 0,
        exclude=node.integer("exclude_outside", 0) != 0,
        a=node.real("cubic_coeff_a", -0.75),
    )
    taps = [
        _taps(axis, at, out, how)
        for axis, at, out in zip(axes, places, outside, strict=True)
    ]
    taps += [(np.zeros((1, 2), np.int32), np.array([[1, 0]], np.float32))] * 2
    (rows, row_weights), (columns, column_weights) = taps[2:4]
    most = max(rows.shape[1], columns.shape[1])
    if most > MOST_TAPS:
        text = f"makes one value of {most}, which is more than {MOST_TAPS}"
        raise source.failure(node, text)
    if not np.isfinite(row_weights).all() or not np.isfinite(column_weights).all():
        raise source.failure(node, "has weights that are not finite")
    rows, row_weights = _filled(rows, row_weights, most)
    columns, column_weights = _filled(columns, column_weights, most)
    return node.made(
        Resize,
        rows=rows,
        columns=columns,
        row_weights=row_weights,
        column_weights=column_weights,
    )


def _moved(axes: Sequence[Axis]) -> list[int]:
    """The axes that are resized."""
    return [at for at, axis in enumerate(axes) if axis.scale != 1]


def _filled(
    indices: Int32Array, weights: FloatArray, most: int
) -> tuple[Int32Array, FloatArray]:
    """As many taps for each; beyond two, those that weigh nothing are value 0."""
    more = ((0, 0), (0, most - indices.shape[1]))
    indices, weights = np.pad(indices, more), np.pad(weights, more)
    nothing = (weights == 0) & (np.arange(most) >= 2)
    return np.where(nothing, np.int32(0), indices), weights


def _taps(
    axis: Axis, at: FloatArray, outside: Array, how: Filter
) -> tuple[Int32Array, FloatArray]:
    """The indices around each coordinate and their weights, (out, K) each.

    outside: where the output is 0.
    """
    cubic, exclude = how.cubic, how.exclude
    shrinks = how.antialias and axis.scale < 1
    if axis.scale == 1 or not (cubic or shrinks):
        indices, weights = _between(axis, at)
    else:
        # In double from the coordinates on, and rounded once.
        reach = 2.0 if cubic else 1.0
        step = float(axis.scale) if shrinks else 1.0
        exact = at.astype(np.float64)[:, None]
        first = np.floor(exact - reach / step) + 1
        places = first + np.arange(int(np.ceil(2 * reach / step)))
        far = np.abs(places - exact) * step
        shares = _cubic(far, how.a) if cubic else np.maximum(1 - far, 0)
        if exclude:
            shares[(places < 0) | (places >= axis.size)] = 0
        if exclude or shrinks:
            shares /= np.add.accumulate(shares, axis=1)[:, -1:]  # one after another
        indices, weights = _inside(axis, places.astype(np.int64), shares)
    weights[outside] = 0
    return indices, weights


def _cubic(far: DoubleArray, a: float) -> DoubleArray:
    """The weight of what is so far away."""
    near = ((a + 2) * far - (a + 3)) * far * far + 1
    beyond = ((a * far - 5 * a) * far + 8 * a) * far - 4 * a
    weights: DoubleArray = np.where(far <= 1, near, np.where(far < 2, beyond, 0))
    return weights


def _inside(
    axis: Axis, places: Int64Array, shares: DoubleArray
) -> tuple[Int32Array, FloatArray]:
    """Indices that there are: what is beyond an end has the value of that end."""
    indices = np.clip(places, 0, axis.size - 1)
    first = indices[:, :1]
    weights = np.zeros(shares.shape)
    np.add.at(weights, (np.arange(axis.out)[:, None], indices - first), shares)
    taken = np.minimum(first + np.arange(shares.shape[1]), axis.size - 1)
    return taken.astype(np.int32), weights.astype(np.float32)


COORDINATES = ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel")
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
"""What exporters write."""
OTHERS = ("half_pixel_symmetric", "tf_half_pixel_for_nn", CROP)
"""What else there is of coordinates."""


def tapped(
    size: int, out: int, scale: np.float32, mode: str, how: Filter, taps: int
) -> tuple[Int32Array, FloatArray] | None:
    """The values that each of the output is made of, and their weights.

    mode: of COORDINATES.  Both results: (out, taps); None: they are more than that.
    """
    axis = Axis(size=size, out=out, scale=scale)
    at = _coordinates(axis, mode)
    indices, weights = _taps(axis, at, np.zeros(at.shape, bool), how)
    if indices.shape[1] > taps:
        return None
    return _filled(indices, weights, taps)


def nearest(
    size: int, out: int, scale: np.float32, mode: str, rounding: str
) -> Int32Array:
    """The value that each of the output is, (out,).

    mode: of COORDINATES.  rounding: of ROUNDINGS.
    """
    axis = Axis(size=size, out=out, scale=scale)
    return _nearest(axis, _coordinates(axis, mode), rounding)


def _coordinates(axis: Axis, mode: str) -> FloatArray:
    """Where each value of the output is in the input, (out,)."""
    x: FloatArray = np.arange(axis.out, dtype=np.float32)
    size, out = np.float32(axis.size), np.float32(axis.out)
    at = x
    if axis.scale == 1:
        pass
    elif mode == "half_pixel" or (mode == "pytorch_half_pixel" and axis.out > 1):
        at = (x + HALF) / axis.scale - HALF
    elif mode == "pytorch_half_pixel" or (mode == "align_corners" and axis.out == 1):
        at = np.zeros_like(x)
    elif mode == "asymmetric":
        at = np.divide(x, axis.scale, dtype=np.float32)
    elif mode == "align_corners":
        at = x * (size - ONE) / (out - ONE)
    elif mode == "half_pixel_symmetric":
        adjustment = out / (axis.scale * size)
        offset = size * HALF * (ONE - adjustment)
        at = offset + (x + HALF) / axis.scale - HALF
    elif mode == "tf_half_pixel_for_nn":
        at = (x + HALF) / axis.scale
    elif mode == CROP:
        begin, end = axis.crop
        at = np.full_like(x, HALF * (begin + end) * (size - ONE))
        if axis.out > 1:
            part = x * (end - begin) * (size - ONE)
            at = begin * (size - ONE) + part / (out - ONE)
    else:
        raise ValueError(mode)
    return at


def _nearest(axis: Axis, at: FloatArray, mode: str) -> Int32Array:
    """The index that is taken for each coordinate, (out,)."""
    if axis.scale == 1:
        return whole(axis.out)
    down = np.floor(at)
    if mode == SIMPLE:
        taken = np.ceil(at) if axis.scale < 1 else np.trunc(at)
    elif mode == "round_prefer_floor":
        taken = np.where(at - down <= HALF, down, down + ONE)
    elif mode == "round_prefer_ceil":
        taken = np.where(at - down < HALF, down, down + ONE)
    elif mode == "floor":
        taken = down
    elif mode == "ceil":
        taken = np.ceil(at)
    else:
        raise ValueError(mode)
    return np.clip(taken, 0, axis.size - 1).astype(np.int32)


def _between(axis: Axis, at: FloatArray) -> tuple[Int32Array, FloatArray]:
    """The two indices around each coordinate and their weights, (out, 2) each."""
    inside = np.clip(at, np.float32(0), np.float32(axis.size - 1))
    low = np.trunc(inside).astype(np.int32)
    high = np.minimum(low + 1, axis.size - 1).astype(np.int32)
    share = (inside - low.astype(np.float32)).astype(np.float32)
    share = np.where(low == high, np.float32(0), share)
    return np.stack([low, high], axis=1), np.stack([ONE - share, share], axis=1)


def parts(p: Parts) -> bool:
    """Resize of axes that are not the last two of four, one or two after the other."""
    source, node = p.source, p.node
    mode = node.text("mode", "nearest")
    if source.opset < 11 or mode == "nearest":
        return False
    fill = node.real("extrapolation_value", 0.0)
    crops = node.text("coordinate_transformation_mode", "") == CROP
    if crops and fill:
        return _around(p, fill)
    axes = _all_axes(source, node)
    moved = _moved(axes)
    plain = len(axes) == 4 or (len(axes) < 4 and mode == "linear")
    if crops or not moved or (plain and set(moved) <= {2, 3}):
        return False
    by_sizes = not _scales(source, node, 2)
    if by_sizes and node.text("keep_aspect_ratio_policy", "stretch") != "stretch":
        return False
    attributes = {
        key: value
        for key, value in node.attributes.items()
        if key not in ("axes", "keep_aspect_ratio_policy")
    }
    value, dims = node.inputs[0], [axis.size for axis in axes]
    while moved:
        both = moved[-2:] == [len(dims) - 2, len(dims) - 1]
        at = moved[-2:] if both else moved[-1:]
        del moved[-len(at) :]
        first, rest = at[0], dims[at[-1] + 1 :]
        ends = [] if both else [math.prod(rest)]
        shape = [1, math.prod(dims[:first]), *dims[first : at[-1] + 1], *ends]
        value = p.add("Reshape", value, shape)
        sizes = [axes[axis].out for axis in at]
        wanted: Array = np.array([*shape[:2], *sizes, *ends], np.int64)
        if by_sizes:
            value = _part(p, (value, "", "", p.constant(wanted)), attributes)
        else:
            scales = [*(axes[axis].scale for axis in at), *[1] * len(ends)]
            given = np.array([1, 1, *scales], np.float32)
            value = _part(p, (value, "", p.constant(given)), attributes)
        dims[first : at[-1] + 1] = sizes
    p.add("Reshape", value, dims, output=node.outputs[0])
    return True


def _part(p: Parts, inputs: Sequence[str], attributes: Mapping[str, Attribute]) -> str:
    made = p.result("Resize")
    p.append("Resize", inputs, (made,), attributes)
    return made


def _around(p: Parts, fill: float) -> bool:
    """Resize where 0 stands outside, of what is less by `fill` and then more."""
    node = p.node
    attributes = {**node.attributes, "extrapolation_value": 0.0}
    value = p.add("Sub", node.inputs[0], fill)
    value = _part(p, (value, *node.inputs[1:]), attributes)
    p.add("Add", value, fill, output=node.outputs[0])
    return True


def lower_resize(b: Build, node: Resize) -> None:
    """(17), from one scale to another where the table has two."""
    dtype = b.type_of(node)
    source = b.take(node.inputs[0], dtype)
    out = b.declare(node.output, dtype)
    scale = np.float32(1) if dtype != INT8 else ratio(node.name, source, out)
    b.step(
        ResizeOp,
        node.name,
        (source,),
        out,
        groups=node.rows.shape[1] - 1,
        scale=scale,
        indices=np.concatenate([node.rows, node.columns]).reshape(-1),
        values=np.concatenate([node.row_weights, node.column_weights]).reshape(-1),
    )


def _arrays(
    op: ResizeOp, height: int
) -> tuple[Int32Array, FloatArray, Int32Array, FloatArray]:
    """Rows and their weights, columns and theirs."""
    rows, columns = np.split(op.indices.reshape(-1, op.groups + 1), [height])
    row_weights, column_weights = np.split(
        op.values.reshape(-1, op.groups + 1), [height]
    )
    return rows, row_weights, columns, column_weights


def compute_resize(op: ResizeOp, out: Tensor, operand: Operand) -> Array:
    """(17): columns first, then rows."""
    rows, row_weights, columns, column_weights = _arrays(op, out.shape[2])
    floats = out.dtype == "float32"
    x = operand.values.astype(np.float32) if floats else operand.centred
    across = [x[..., at] for at in columns.T]
    v = _sum(across, [*column_weights.T])
    v = _sum([v[:, :, at] for at in rows.T], [w[:, None] for w in row_weights.T])
    return one_nan(v) if floats else rounded(v * op.scale, out, out.lo, out.hi)


def _sum(values: Sequence[FloatArray], weights: Sequence[FloatArray]) -> FloatArray:
    """From the first to the last; beyond the second, a weight of 0 is none."""
    total: FloatArray = values[0] * weights[0]
    for at, (value, weight) in enumerate(zip(values[1:], weights[1:], strict=True)):
        more = np.add(total, value * weight, dtype=np.float32)
        total = np.where((weight != 0) | (at == 0), more, total)
    return total


def write_resize(n: Nodes, op: ResizeOp) -> None:
    """A Resize, or weighted sums of columns, then of rows  (17)."""
    source, out = n.tensors[op.inputs[0]], n.tensors[op.output]
    value = shaped(n, value_of(n, source), source.dims, source.shape)
    wanted = _arrays(op, out.shape[2])
    rows, row_weights, columns, column_weights = wanted
    mode = _mode_of(source, out, wanted)
    if mode is None:
        # Sums as products of matrices, in which most is 0.
        across = _matrix(columns, column_weights, source.shape[3])
        down = _matrix(rows, row_weights, source.shape[2])
        value = n.node("MatMul", [value, n.array(f"{value}_columns", across.T)])
        value = n.node("MatMul", [n.array(f"{value}_rows", down), value])
    else:
        scales = _ratios(source, out)
        if np.array_equal(
            np.floor(source.shape * scales.astype(np.float64)), out.shape
        ):
            size = ["", n.array(f"{op.output}_scales", scales)]
        else:
            size = [
                "",
                "",
                n.array(f"{op.output}_sizes", np.array(out.shape, np.int64)),
            ]
        value = n.node(
            "Resize",
            [value, *size],
            name=op.name,
            mode="linear",
            coordinate_transformation_mode=mode,
        )
    end(n, shaped(n, value, out.shape, out.dims), out)


def _ratios(source: Tensor, out: Tensor) -> FloatArray:
    """The scales of a Resize, (4,)."""
    before, after = (np.array(t.shape, np.float32) for t in (source, out))
    scales: FloatArray = after / before
    return scales


def _mode_of(source: Tensor, out: Tensor, wanted: tuple[Array, ...]) -> str | None:
    """The mode of a Resize that has these places and weights; None: there is none."""
    scales = _ratios(source, out)
    for mode in COORDINATES:
        found = [
            tapped(source.shape[axis], out.shape[axis], scales[axis], mode, Filter(), 2)
            for axis in (2, 3)
        ]
        made = [array for axis in found if axis is not None for array in axis]
        if all(map(np.array_equal, made, wanted)):
            return mode
    return None


def _matrix(indices: Int32Array, weights: FloatArray, size: int) -> FloatArray:
    """The weights of all values of an axis, (out, size)."""
    matrix = np.zeros((len(indices), size), np.float32)
    np.add.at(matrix, (np.arange(len(indices))[:, None], indices), weights)
    return matrix


FAMILY = Family(
    imports={"Resize": resize, "Upsample": upsample},
    compositions={"Resize": parts},
    lower={Resize: lower_resize},
    lower_float={Resize: lower_resize},
    steps={ResizeOp: compute_resize},
    qdq={ResizeOp: write_resize},
)
