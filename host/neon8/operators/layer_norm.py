# SPDX-License-Identifier: Apache-2.0
"""LayerNormalization, RMSNormalization and GroupNormalization.

What is normalized together are the channels of a pixel, or groups of channels of all
pixels of an image. Last axes, as ONNX has them, are made channels by a move before and
one after, as for a MatMul (matrices.py), so that none is left between the two.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from neon8.arrays import Array, DoubleArray, FloatArray
from neon8.ir import graph
from neon8.ir.graph import Node
from neon8.ir.program import Finished, Tensor
from neon8.operators import rearranged
from neon8.operators.build import FLOAT, Build
from neon8.operators.family import Family
from neon8.operators.floats import in_dims_of
from neon8.operators.layout import Converted, Layout, with_attributes
from neon8.operators.movement import append_reshape
from neon8.operators.normalization import Normalized, append_gain, mean_of, standardized
from neon8.operators.qdq import Nodes, finish
from neon8.operators.reference import Operand, leaky, rounded
from neon8.operators.scales import finish_of
from neon8.operators.source import OnnxNode, Source

Made = Node | tuple[Node | graph.Tensor, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Normalization(Normalized):
    """Mean and variance are those of each of `groups` groups of channels.

    They are those of a pixel, or of all pixels of an image.  centred: False where 0 is
    the mean, as RMSNormalization has it.
    """

    groups: int = 1
    image: bool = False
    centred: bool = True

    makes_factors = True

    def with_factors(
        self, read: Sequence[DoubleArray | None], made: DoubleArray | None
    ) -> Node:
        """With the factors of the output in gamma and beta."""
        if made is None:
            return self
        gamma, beta = (
            (each.astype(np.float64) / made).astype(np.float32)
            for each in (self.gamma, self.beta)
        )
        return replace(self, gamma=gamma, beta=beta)


PIXEL, IMAGE = 1, 3
"""The last axis of N C H W that is normalized."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalizationOp(Finished):
    """(31).

    values: gamma of all channels, beta of all channels, epsilon.  axis: PIXEL or IMAGE.
    function: "subtract" if the mean is subtracted, else "none".
    """

    values: FloatArray
    groups: int
    axis: int
    function: str


LARGEST = 1e30
"""A limit of gamma, beta and epsilon, which is not below the inverse, either."""


def layer_normalization(source: Source, node: OnnxNode) -> Made:
    """LayerNormalization over last axes, with constant scale and bias."""
    return _over_axes(source, node, centred=True)


def rms_normalization(source: Source, node: OnnxNode) -> Made:
    """RMSNormalization over last axes, with a constant scale."""
    return _over_axes(source, node, centred=False)


def _over_axes(source: Source, node: OnnxNode, *, centred: bool) -> Made:
    """Over the last axes from `axis` on, or over `axes`, which are the channels.

    axes: what a pattern or another layout made of the node, see graph/normalized.py.
    """
    name, out = node.inputs[0], node.outputs[0]
    dims = source.shape_of(node, name)
    if node.integers("axes") is not None:
        values = _values(source, node, (dims[1],))
        return _node(source, node, values, centred=centred)
    axis = node.integer("axis", -1)
    axis += len(dims) if axis < 0 else 0
    if not 0 <= axis < len(dims):
        raise source.failure(node, f"axis {axis} is none of {list(dims)}")
    count = math.prod(dims[axis:])
    values = _values(source, node, dims[axis:])
    layer = _node(source, node, values, centred=centred)
    if (len(dims), axis) == (2, 1):
        return layer
    view = (*(dims[:axis] or (1,)), count)
    inner, result = (rearranged.channels_first(each, view) for each in (name, out))
    layer = replace(layer, inputs=(inner.name,), output=result.name)
    move, back = rearranged.there(node.name, inner), rearranged.back(node.name, result)
    return inner, move, result, layer, back


def group_normalization(source: Source, node: OnnxNode) -> Node:
    """GroupNormalization, with a constant scale and bias for each channel."""
    dims = source.shape_of(node, node.inputs[0])
    groups = node.integer("num_groups", 0)
    if len(dims) < 3 or groups < 1 or dims[1] % groups:
        text = f"num_groups {groups} does not divide the channels of {list(dims)}"
        raise source.failure(node, text)
    values = _values(source, node, dims[1:2])
    return _node(source, node, values, groups=groups, image=True)


def _values(
    source: Source, node: OnnxNode, dims: tuple[int, ...]
) -> tuple[FloatArray, FloatArray]:
    """Scale and bias of `dims`, flat; a bias that is left out is 0."""
    found = []
    for index in (1, 2):
        value = source.required(node, 1) if index == 1 else source.weights(node, 2)
        value = np.zeros(1, np.float32) if value is None else value
        wide = (1,) * max(value.ndim - len(dims), 0) + dims
        fits = value.ndim <= len(wide) and all(
            have in (1, want)
            for have, want in zip(value.shape[::-1], wide[::-1], strict=False)
        )
        if not fits:
            text = f"input {index} {list(value.shape)} does not fit {list(dims)}"
            raise source.failure(node, text)
        full = np.broadcast_to(value, wide).reshape(-1)
        if not (np.abs(full) <= LARGEST).all():
            text = f"input {index} has values beyond +-{LARGEST:g}"
            raise source.failure(node, text)
        found.append(full.astype(np.float32))
    return found[0], found[1]


def _node(
    source: Source,
    node: OnnxNode,
    values: tuple[FloatArray, FloatArray],
    *,
    groups: int = 1,
    image: bool = False,
    centred: bool = True,
) -> Normalization:
    epsilon = node.real("epsilon", 1e-5)
    if not 1 / LARGEST <= epsilon <= LARGEST:
        raise source.failure(node, f"epsilon {epsilon:.4g} is outside 1e-30 .. 1e30")
    return node.made(
        Normalization,
        gamma=values[0],
        beta=values[1],
        epsilon=epsilon,
        groups=groups,
        image=image,
        centred=centred,
    )


def lower_normalization(b: Build, node: Normalization) -> None:
    """(31)."""
    source, out = b.own(node.inputs[0]), b.result(node.output)
    values = np.concatenate((node.gamma, node.beta, [node.epsilon]))
    b.step(
        NormalizationOp,
        node.name,
        (source,),
        out,
        values=values.astype(np.float32),
        groups=node.groups,
        axis=IMAGE if node.image else PIXEL,
        function="subtract" if node.centred else "none",
        **finish_of(node.name, node.activation, out),
    )


def lower_normalization_float(b: Build, node: Normalization) -> None:
    """x less its mean, times 1 / sqrt(mean of its square + epsilon), gamma, + beta."""
    out = b.declare(node.output, FLOAT)
    source = in_dims_of(b, node.name, b.float32(node.inputs[0]), out)
    batch, channels, height, width = source.shape
    dims = (batch, node.groups, channels // node.groups, height * width)
    values = b.temporary(replace(source, dims=dims), "groups")
    append_reshape(b, node.name, source, values)
    kernel = (dims[2], dims[3] if node.image else 1)
    left = (batch, node.groups, 1, 1 if node.image else dims[3])

    def mean(values: Tensor, label: str) -> Tensor:
        return mean_of(b, node.name, values, label, left, kernel)

    scaled = standardized(b, node, values, mean, centred=node.centred)
    whole = b.temporary(source, "whole")
    append_reshape(b, node.name, scaled, whole)
    append_gain(b, node, whole, source, out)


SMALLEST = 1e-30
"""What is below it counts as 0, as ARMv7 flushes denormals."""


def compute_normalization(op: NormalizationOp, out: Tensor, x: Operand) -> Array:
    """(31)."""
    batch, channels, height, width = x.values.shape
    rows = x.moved.reshape(batch, op.groups, channels // op.groups, height * width)
    axes = (2, 3) if op.axis == IMAGE else (2,)
    count = math.prod(rows.shape[axis] for axis in axes)
    total = rows.sum(axis=axes, keepdims=True)
    variance = (rows * rows).sum(axis=axes, keepdims=True).astype(np.float64) / count
    scale, size = np.float64(x.tensor.scale), np.float64(1)
    if op.function == "subtract":
        mean = total.astype(np.float64) / count
        variance = np.maximum(variance - mean * mean, 0.0)
        rows, size = rows * count - total, np.float64(count)
    values = op.values.astype(np.float64)
    gamma, beta, epsilon = values[:channels], values[channels:-1], values[-1]
    with np.errstate(over="ignore", invalid="ignore"):
        deviation = np.sqrt(variance * (scale * scale) + epsilon)
        rate = _without_small(scale / (deviation * size))
        gain = _without_small(gamma / np.float64(out.scale)).reshape(-1, 1, 1)
        shift = (beta / np.float64(out.scale)).astype(np.float32).reshape(-1, 1, 1)
        v = (rows.astype(np.float32) * rate).reshape(x.values.shape)
        v = leaky(v * gain + shift, op.slope)
    return rounded(v, out, op.lo, op.hi)


def _without_small(values: DoubleArray) -> FloatArray:
    """As float32, 0 where that is below SMALLEST."""
    single = values.astype(np.float32)
    return np.where(np.abs(single) < np.float32(SMALLEST), np.float32(0), single)


def write_normalization(n: Nodes, op: NormalizationOp) -> None:
    """What a LayerNormalization consists of, as older opsets have none of any axes."""
    dims = n.tensors[op.inputs[0]].dims
    batch, channels, *rest = dims
    grouped = (batch, op.groups, channels // op.groups, math.prod(rest))
    axes = [2, 3] if op.axis == IMAGE else [2]
    shape = np.array([0, *grouped[1:]], np.int64)
    name = op.name
    rows = n.node("Reshape", [n.real(op.inputs[0]), n.array(f"{name}_groups", shape)])
    if op.function == "subtract":
        rows = n.node("Sub", [rows, n.node("ReduceMean", [rows], axes=axes)])
    squares = n.node("Mul", [rows, rows])
    mean = n.node("ReduceMean", [squares], axes=axes)
    epsilon = n.array(f"{name}_epsilon", op.values[-1:].reshape(()))
    root = n.node("Sqrt", [n.node("Add", [mean, epsilon])])
    value = n.node("Div", [rows, root])
    whole = np.array([0, *dims[1:]], np.int64)
    value = n.node("Reshape", [value, n.array(f"{name}_whole", whole)])
    gamma, beta = (
        n.array(f"{name}_{what}", each.reshape(-1, *(1,) * len(rest)))
        for what, each in zip(
            ("scale", "bias"), np.split(op.values[:-1], 2), strict=True
        )
    )
    value = n.node("Mul", [value, gamma])
    finish(n, n.node("Add", [value, beta], name=name), op)


def last_axis_layout(
    source: Source, node: OnnxNode, layout: Layout
) -> Converted | None:
    """Over the last axis alone, which are the channels in the other order."""
    dims = source.shapes.get(node.inputs[0], ())
    last = node.integer("axis", -1) in (-1, len(dims) - 1)
    if not last or node.integers("axes") is not None or layout.axis(-1) != 1:
        return None
    return Converted(with_attributes(node, axes=(1,)), {})


FAMILY = Family(
    imports={
        "GroupNormalization": group_normalization,
        "LayerNormalization": layer_normalization,
        "RMSNormalization": rms_normalization,
    },
    lower={Normalization: lower_normalization},
    lower_float={Normalization: lower_normalization_float},
    steps={NormalizationOp: compute_normalization},
    qdq={NormalizationOp: write_normalization},
    layouts=dict.fromkeys(("LayerNormalization", "RMSNormalization"), last_axis_layout),
)
