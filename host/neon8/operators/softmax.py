# SPDX-License-Identifier: Apache-2.0
"""Softmax, in integers between layers and in float32 at the end; LogSoftmax."""

import math
from dataclasses import dataclass, replace

import numpy as np

from neon8.arrays import Array, FloatArray, Int64Array
from neon8.errors import CompileError
from neon8.ir.graph import Node, Origin
from neon8.ir.program import Op, Tensor
from neon8.operators import rearranged
from neon8.operators.build import FLOAT, INT8, Build
from neon8.operators.family import Family
from neon8.operators.floats import reshaped_like
from neon8.operators.layout import Converted, Layout, with_attributes
from neon8.operators.movement import ReshapeOp
from neon8.operators.qdq import Nodes
from neon8.operators.reference import Operand, one_nan, rounded
from neon8.operators.source import OnnxNode, Source
from neon8.quant import elementary


@dataclass(frozen=True, slots=True, kw_only=True)
class Softmax(Node):
    """Softmax along `axis` of `dims`, 0 and more.

    flattens: over all axes from that one on, taken as one, as before opset 13.
    """

    axis: int = 1
    flattens: bool = False

    unrounded = True
    prefers_float = True

    log = False

    @property
    def ignores_low(self) -> bool:
        """True: they give 0."""
        return not self.log

    def on_rearranged(
        self, origin: Origin, dims: tuple[int, ...], moved: tuple[int, ...]
    ) -> Node | None:
        """Along channels that were the last axis."""
        last = origin.label == rearranged.CHANNELS_FIRST and len(dims) > 1
        if not last or self.axis != len(dims) - 1 or moved[1] != dims[-1]:
            return None
        return replace(self, axis=1, flattens=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSoftmax(Softmax):
    """The logarithm of it, in float32 only."""

    log = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftmaxOp(Op):
    """float32 along `axis` of the dimensions that ONNX knows  (14).

    function: "log" for the logarithm of it, else "none".
    """

    axis: int
    function: str = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftmaxQOp(Op):
    """int8 or int16 along `axis` of the dimensions that ONNX knows  (30)."""

    axis: int


def import_softmax(source: Source, node: OnnxNode) -> Node:
    """Softmax, LogSoftmax along one axis; before opset 13 over all from `axis` on."""
    shape = source.shape_of(node, node.inputs[0])
    flattens = source.opset < 13
    axis = node.integer("axis", 1 if flattens else -1)
    axis += len(shape) if axis < 0 else 0
    if not 0 <= axis < len(shape):
        raise source.failure(node, f"axis {axis} is none of {list(shape)}")
    kind = LogSoftmax if node.operator == "LogSoftmax" else Softmax
    return node.made(kind, axis=axis, flattens=flattens)


STEEPEST = np.float32(2.0**40)
"""Scales of an output in integers are 1 / STEEPEST to STEEPEST."""


def lower_softmax(b: Build, node: Softmax) -> None:
    """(30)."""
    out = b.result(node.output)
    if not 1 / STEEPEST <= out.scale <= STEEPEST:
        text = f"scale {out.scale:.4g} of {out.name!r} is none of a softmax"
        raise CompileError(f"layer {node.name!r}: {text}; correct the table")
    _append(b, node, b.own(node.inputs[0]), out)


def lower_softmax_float(b: Build, node: Softmax) -> None:
    """(14)."""
    _append(b, node, b.float32(node.inputs[0]), b.declare(node.output, FLOAT))


def _append(b: Build, node: Softmax, source: Tensor, out: Tensor) -> None:
    """Appends source -> out.  Several axes become one that a Reshape makes.

    So it is with the dimensions of an input whose own Reshape is gone.
    """
    if source.dims != out.dims:
        source = reshaped_like(b, node.name, source, replace(source, dims=out.dims))
    rest = math.prod(out.dims[node.axis :])
    if node.flattens and rest != out.dims[node.axis]:
        dims = (math.prod(out.dims[: node.axis]), rest)
        flat = b.temporary(replace(source, dims=dims), "flat")
        result = b.temporary(replace(out, dims=dims), "softmax")
        b.step(ReshapeOp, node.name, (source,), flat)
        _append_one(b, node, flat, result, axis=1)
        b.step(ReshapeOp, node.name, (result,), out)
    else:
        _append_one(b, node, source, out, axis=node.axis)


def _append_one(
    b: Build, node: Softmax, source: Tensor, out: Tensor, *, axis: int
) -> None:
    """Appends source -> out along one axis."""
    if out.dtype != FLOAT:
        b.step(SoftmaxQOp, node.name, (source,), out, axis=axis)
        return
    function = "log" if isinstance(node, LogSoftmax) else "none"
    b.step(SoftmaxOp, node.name, (source,), out, axis=axis, function=function)


EXP_LEAST = -104.0
ENTRIES = 256
UNIT = 1 << 30
"""What stands for 1 in the integers of (30)."""


def compute_softmax(op: SoftmaxOp, out: Tensor, x: Operand) -> FloatArray:
    """(14), in double, in the order written there; N C H W."""
    x64 = np.moveaxis(x.values.reshape(out.dims), op.axis, -1).astype(np.float64)
    with np.errstate(invalid="ignore"):  # inf - inf
        d = x64 - x64.max(axis=-1, keepdims=True)
    e = np.where(d < EXP_LEAST, 0.0, elementary.exp(d))
    total = np.add.accumulate(e, axis=-1)[..., -1:]  # left to right; np.sum would pair
    y = d - elementary.log(total) if op.function == "log" else e / total
    return np.moveaxis(one_nan(y), -1, op.axis).reshape(out.shape)


def compute_softmax_q(op: SoftmaxQOp, out: Tensor, x: Operand) -> Array:
    """(30)."""
    q = np.moveaxis(x.values.reshape(out.dims), op.axis, -1).astype(np.int64)
    d = q.max(axis=-1, keepdims=True) - q
    e = powers(x.tensor.scale, 1)[d % ENTRIES]
    if x.tensor.dtype != INT8:
        high = powers(x.tensor.scale, ENTRIES)[d // ENTRIES]
        e = (high * e + UNIT // 2) // UNIT
    total = e.sum(axis=-1, keepdims=True).astype(np.float64)  # exact: below 2^51
    m = np.float32(1 / np.float64(out.scale)) / total.astype(np.float32)
    v = e.astype(np.float32) * m
    y = rounded(v, out, out.lo, out.hi)
    return np.moveaxis(y, -1, op.axis).reshape(out.shape)


def powers(scale: np.float32, step: int) -> Int64Array:
    """(256,) exp(-scale * step * i), in parts of UNIT."""
    x = np.float64(scale) * (step * np.arange(ENTRIES))
    result: Int64Array = np.rint(UNIT * elementary.exp(-x)).astype(np.int64)
    return result


def write_softmax(n: Nodes, op: SoftmaxOp) -> None:
    """Softmax or LogSoftmax."""
    kind = "LogSoftmax" if op.function == "log" else "Softmax"
    n.node(kind, [op.inputs[0]], name=op.name, output=op.output, axis=op.axis)


def write_softmax_q(n: Nodes, op: SoftmaxQOp) -> None:
    """Softmax."""
    value = n.node("Softmax", [n.real(op.inputs[0])], name=op.name, axis=op.axis)
    n.finish(value, op.output)


def softmax_layout(source: Source, node: OnnxNode, layout: Layout) -> Converted | None:
    """Softmax along one axis, as it is since opset 13."""
    axis = layout.axis(node.integer("axis", -1))
    if source.opset < 13 or axis is None:
        return None
    return Converted(with_attributes(node, axis=axis), {})


FAMILY = Family(
    imports={"LogSoftmax": import_softmax, "Softmax": import_softmax},
    lower={Softmax: lower_softmax},
    lower_float={LogSoftmax: lower_softmax_float, Softmax: lower_softmax_float},
    steps={SoftmaxOp: compute_softmax, SoftmaxQOp: compute_softmax_q},
    qdq={SoftmaxOp: write_softmax, SoftmaxQOp: write_softmax_q},
    layouts=dict.fromkeys(("LogSoftmax", "Softmax"), softmax_layout),
)
