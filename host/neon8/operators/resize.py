# SPDX-License-Identifier: Apache-2.0
"""Resize and Upsample: to the nearest value, or linear between two.

ONNX leaves open in which precision a coordinate is computed, and on a tie it decides
between two pixels. Here it is float32, one operation after another, as in onnxruntime.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from neon8.arrays import Array
from neon8.ir.graph import FloatArray, IndexArray, Node
from neon8.ir.program import Int32Array, Op, Tensor
from neon8.operators.build import INT8, Build, ratio
from neon8.operators.family import Family
from neon8.operators.qdq import Nodes, end, shaped, value_of
from neon8.operators.reference import Operand, one_nan, rounded
from neon8.operators.selection import extents, select, whole
from neon8.operators.source import (
    OnnxNode,
    Source,
    constant,
    failure,
    integer,
    integers,
    made,
    text,
    weights,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResizeLinear(Node):
    """Each pixel between two rows and two columns of the input.

    rows: (H, 2) and columns: (W, 2), the indices of these for each row and column of
    the output.  row_weights: (H, 2) and column_weights: (W, 2), their shares, which add
    up to 1 and are not negative.
    """

    rows: IndexArray
    columns: IndexArray
    row_weights: FloatArray
    column_weights: FloatArray

    shares_scale = True
    by_channel = True
    follows = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ResizeLinearOp(Op):
    """Each pixel between two rows and two columns  (17).

    indices: (2 * H + 2 * W,), two rows for each row of the output, then two columns for
    each of its columns.  values: their weights, of the same shape.  scale: of the input
    over that of the output, 1 between floats.
    """

    scale: np.float32
    indices: Int32Array
    values: FloatArray


ONE, HALF = np.float32(1), np.float32(0.5)


SIMPLE = "simple"
"""Before opset 11: up to the next index when it shrinks, else down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One axis: its size before and after, and how often the first fits the second."""

    size: int
    out: int
    scale: np.float32


def resize(source: Source, node: OnnxNode) -> Node:
    """Resize, whose scales or sizes are constants."""
    if source.opset < 11:
        axes = _axes(source, node, _scales(source, node, 1))
        return _resized(source, node, axes, "asymmetric", SIMPLE)
    for name in ("antialias", "exclude_outside"):
        if integer(node, name, 0):
            raise failure(source, node, f"{name} is not supported; export without it")
    scales = _scales(source, node, 2)
    if not scales:
        scales = _scales_of_sizes(source, node)
    coordinates = text(node, "coordinate_transformation_mode", "half_pixel")
    rounding = text(node, "nearest_mode", "round_prefer_floor")
    axes = _axes(source, node, scales)
    return _resized(source, node, axes, coordinates, rounding)


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
    value = constant(source, node, index)
    if value is None or value.size == 0:
        return ()
    scales = weights(source, node, index)
    return () if scales is None else tuple(map(float, scales.reshape(-1)))


def _scales_of_sizes(source: Source, node: OnnxNode) -> tuple[float, ...]:
    """What the sizes mean, input 3; the aspect ratio may make them one."""
    shape = extents(source, node, node.inputs[0])
    sizes = constant(source, node, 3)
    axes = _resized_axes(source, node, len(shape))
    if sizes is None or sizes.size != len(axes) or sizes.dtype.kind not in "iu":
        raise failure(source, node, f"has no size for each of {len(axes)} axes")
    ratios = [
        np.float32(size) / np.float32(shape[axis])
        for size, axis in zip(sizes.reshape(-1).tolist(), axes, strict=True)
    ]
    policy = text(node, "keep_aspect_ratio_policy", "stretch")
    if policy == "not_larger":
        ratios = [min(ratios)] * len(ratios)
    elif policy == "not_smaller":
        ratios = [max(ratios)] * len(ratios)
    elif policy != "stretch":
        raise failure(source, node, f"keep_aspect_ratio_policy {policy!r} is unknown")
    return tuple(map(float, ratios))


def _resized_axes(source: Source, node: OnnxNode, rank: int) -> tuple[int, ...]:
    axes = integers(node, "axes")
    if axes is None:
        return tuple(range(rank))
    if not all(-rank <= axis < rank for axis in axes):
        raise failure(source, node, f"axes {list(axes)} of {rank} dimensions")
    return tuple(axis % rank for axis in axes)


def _axes(source: Source, node: OnnxNode, scales: Sequence[float]) -> list[Axis]:
    """All axes of the input; those that are not resized have the scale 1."""
    shape = extents(source, node, node.inputs[0])
    out = extents(source, node, node.outputs[0])
    axes = _resized_axes(source, node, len(shape))
    if len(scales) != len(axes) or not all(0 < scale < np.inf for scale in scales):
        text = f"scales {list(scales)} are not a positive one for each of"
        raise failure(source, node, f"{text} {len(axes)} axes")
    given = dict(zip(axes, scales, strict=True))
    every = [np.float32(given.get(axis, 1.0)) for axis in range(len(shape))]
    for size, wanted, scale in zip(shape, out, every, strict=True):
        # A product near an integer: onnx rounds it down, and in float32 it is one.
        if abs(np.float32(size) * scale - np.float32(wanted)) >= 1:
            text = f"{size} values with scale {scale} are {wanted} or {wanted + 1}"
            raise failure(source, node, f"{text}; export it with sizes")
    return [
        Axis(size=size, out=wanted, scale=scale)
        for size, wanted, scale in zip(shape, out, every, strict=True)
    ]


def _resized(
    source: Source, node: OnnxNode, axes: list[Axis], coordinates: str, rounding: str
) -> Node:
    mode = text(node, "mode", "nearest")
    places = []
    for axis in axes:
        at = _coordinates(axis, coordinates)
        if at is None:
            detail = f"coordinate_transformation_mode {coordinates!r} is not supported"
            raise failure(source, node, f"{detail}; export with half_pixel")
        places.append(at)
    if mode == "nearest":
        lists = [
            _nearest(axis, at, rounding) for axis, at in zip(axes, places, strict=True)
        ]
        if any(taken is None for taken in lists):
            raise failure(source, node, f"nearest_mode {rounding!r} is unknown")
        return select(source, node, [each for each in lists if each is not None])
    if mode != "linear":
        raise failure(source, node, f"mode {mode!r} is not supported; export as linear")
    moved = [at for at, axis in enumerate(axes) if axis.scale != 1]
    if len(axes) > 4 or not set(moved) <= {2, 3}:
        raise failure(source, node, f"is linear on axes {moved}; neon8 does it on 2, 3")
    pairs = [_between(axis, at) for axis, at in zip(axes, places, strict=True)]
    while len(pairs) < 4:
        pairs.append((np.zeros((1, 2), np.int32), np.array([[1, 0]], np.float32)))
    return made(
        node,
        ResizeLinear,
        rows=pairs[2][0],
        columns=pairs[3][0],
        row_weights=pairs[2][1],
        column_weights=pairs[3][1],
    )


COORDINATES = ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel")
"""What exporters write."""


def between(
    size: int, out: int, scale: np.float32, mode: str
) -> tuple[IndexArray, FloatArray]:
    """The two values that each of the output is between, and their weights.

    mode: of COORDINATES.  Both results: (out, 2).
    """
    axis = Axis(size=size, out=out, scale=scale)
    at = _coordinates(axis, mode)
    if at is None:
        raise ValueError(mode)
    return _between(axis, at)


def _coordinates(axis: Axis, mode: str) -> FloatArray | None:
    """Where each value of the output is in the input, (out,); None for another mode."""
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
    else:
        return None
    return at


def _nearest(axis: Axis, at: FloatArray, mode: str) -> IndexArray | None:
    """The index that is taken for each coordinate, (out,); None for another mode."""
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
        return None
    return np.clip(taken, 0, axis.size - 1).astype(np.int32)


def _between(axis: Axis, at: FloatArray) -> tuple[IndexArray, FloatArray]:
    """The two indices around each coordinate and their weights, (out, 2) each."""
    inside = np.clip(at, np.float32(0), np.float32(axis.size - 1))
    low = np.trunc(inside).astype(np.int32)
    high = np.minimum(low + 1, axis.size - 1).astype(np.int32)
    share = (inside - low.astype(np.float32)).astype(np.float32)
    share = np.where(low == high, np.float32(0), share)
    return np.stack([low, high], axis=1), np.stack([ONE - share, share], axis=1)


def lower_resize(b: Build, node: ResizeLinear) -> None:
    """(17), from one scale to another where the table has two."""
    dtype = b.type_of(node)
    source = b.take(node.inputs[0], dtype)
    out = b.declare(node.output, dtype)
    scale = np.float32(1) if dtype != INT8 else ratio(node.name, source, out)
    b.step(
        ResizeLinearOp,
        node.name,
        (source,),
        out,
        scale=scale,
        indices=np.concatenate([node.rows, node.columns]).reshape(-1),
        values=np.concatenate([node.row_weights, node.column_weights]).reshape(-1),
    )


def compute_resize(op: ResizeLinearOp, out: Tensor, operand: Operand) -> Array:
    """(17): columns first, then rows."""
    height = out.shape[2]
    (top, bottom), (left, right) = (
        (pairs[:, 0], pairs[:, 1])
        for pairs in np.split(op.indices.reshape(-1, 2), [height])
    )
    (above, below), (before, after) = (
        (pairs[:, 0], pairs[:, 1])
        for pairs in np.split(op.values.reshape(-1, 2), [height])
    )
    real = out.dtype == "float32"
    x = operand.values.astype(np.float32) if real else operand.centred
    across = x[..., left] * before + x[..., right] * after
    up, down = across[:, :, top] * above[:, None], across[:, :, bottom] * below[:, None]
    v: FloatArray = np.add(up, down, dtype=np.float32)
    return one_nan(v) if real else rounded(v * op.scale, out, out.lo, out.hi)


def write_resize(n: Nodes, op: ResizeLinearOp) -> None:
    """A Resize, or weighted sums of two columns, then of two rows  (17)."""
    source, out = n.tensors[op.inputs[0]], n.tensors[op.output]
    value = shaped(n, value_of(n, source), source.dims, source.shape)
    height = out.shape[2]
    rows, columns = np.split(op.indices.reshape(-1, 2), [height])
    row_weights, column_weights = np.split(op.values.reshape(-1, 2), [height])
    wanted = rows, row_weights, columns, column_weights
    mode = _mode_of(source, out, wanted)
    if mode is None:
        value = _weighted(n, value, 3, columns, column_weights)
        value = _weighted(n, value, 2, rows, row_weights.reshape(-1, 2, 1))
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
        rows, columns = (
            between(source.shape[axis], out.shape[axis], scales[axis], mode)
            for axis in (2, 3)
        )
        if all(map(np.array_equal, (*rows, *columns), wanted)):
            return mode
    return None


def _weighted(
    n: Nodes, value: str, axis: int, pairs: Int32Array, weights: FloatArray
) -> str:
    terms = []
    for side in (0, 1):
        at = n.array(f"{value}_at", pairs[:, side].astype(np.int64))
        share = n.array(f"{value}_share", weights[:, side])
        terms.append(n.node("Mul", [n.node("Gather", [value, at], axis=axis), share]))
    return n.node("Add", terms)


FAMILY = Family(
    imports={"Resize": resize, "Upsample": upsample},
    lower={ResizeLinear: lower_resize},
    lower_float={ResizeLinear: lower_resize},
    steps={ResizeLinearOp: compute_resize},
    qdq={ResizeLinearOp: write_resize},
)
