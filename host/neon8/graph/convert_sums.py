# SPDX-License-Identifier: Apache-2.0
"""Operators that are sums of products: each becomes a Conv2d, or an Add of two tensors.

Arithmetic with constants and a lone BatchNormalization become depthwise 1x1
convolutions; passes_fold merges them into the convolution before them.
"""

import numpy as np

from neon8.graph.graph import Add, Conv2d, FloatArray, Node
from neon8.graph.source import (
    Float64Array,
    OnnxNode,
    Source,
    failure,
    float32,
    integer,
    integers,
    real,
    required,
    shape_of,
    weights,
)
from neon8.graph.windows import window


def conv(source: Source, node: OnnxNode) -> Node:
    """Conv, of one or two spatial dimensions."""
    shape = shape_of(source, node, node.inputs[0])
    out = shape_of(source, node, node.outputs[0])
    weight = required(source, node, 1)
    if weight.ndim != len(shape) or len(shape) < 3:
        text = f"weights of {weight.ndim} dimensions for an input of {len(shape)}"
        raise failure(source, node, text)
    if weight.ndim == 3:
        weight = weight[:, :, :, np.newaxis]
    kernel = weight.shape[2 : len(shape)]
    if integers(node, "kernel_shape") not in (None, kernel):
        raise failure(source, node, "kernel_shape is not that of the weights")
    groups = integer(node, "group", 1)
    channels = weight.shape[0]
    if groups < 1 or channels % groups or weight.shape[1] * groups != shape[1]:
        text = f"weights {list(weight.shape)} in {groups} groups do not fit"
        raise failure(source, node, f"{text} {shape[1]} input channels")
    bias = weights(source, node, 2)
    if bias is not None and bias.shape != (channels,):
        raise failure(source, node, f"bias {list(bias.shape)} is not ({channels},)")
    geometry = window(source, node, kernel=kernel, image=shape[2:], out=out[2:])
    return make_conv(
        node,
        weight,
        np.zeros(channels) if bias is None else bias,
        strides=geometry.strides,
        pads=geometry.pads,
        dilations=geometry.dilations,
        groups=groups,
    )


def make_conv(
    node: OnnxNode,
    weight: FloatArray | Float64Array,
    bias: FloatArray | Float64Array,
    *,
    strides: tuple[int, int] = (1, 1),
    pads: tuple[int, int, int, int] = (0, 0, 0, 0),
    dilations: tuple[int, int] = (1, 1),
    groups: int = 1,
    data: int = 0,
) -> Conv2d:
    """The Conv2d that stands for `node`, which reads input number `data`."""
    return Conv2d(
        name=node.name,
        inputs=(node.inputs[data],),
        output=node.outputs[0],
        weight=float32(weight),
        bias=float32(bias),
        strides=strides,
        pads=pads,
        dilations=dilations,
        groups=groups,
        pre_activation=node.outputs[0],
    )


def gemm(source: Source, node: OnnxNode) -> Node:
    """Gemm with constant B and C: a 1x1 convolution."""
    _rank2(source, node)
    if integer(node, "transA", 0):
        raise failure(source, node, "transA is not supported: A is the activation")
    weight: FloatArray | Float64Array = required(source, node, 1)
    alpha = real(node, "alpha", 1.0)
    if alpha != 1:
        weight = weight.astype(np.float64) * alpha
    if not integer(node, "transB", 0):
        weight = weight.T
    c = weights(source, node, 2)
    beta = real(node, "beta", 1.0)
    bias = np.zeros(len(weight)) if c is None else c.astype(np.float64) * beta
    rows, columns = (1, 1, *bias.shape)[-2:]
    if bias.ndim > 2 or rows != 1 or columns not in (1, len(weight)):
        raise failure(source, node, f"C {list(bias.shape)} is not one value per output")
    bias = np.broadcast_to(bias.reshape(-1), (len(weight),))
    return make_conv(node, weight[:, :, np.newaxis, np.newaxis], bias)


def matmul(source: Source, node: OnnxNode) -> Node:
    """MatMul of (N, K) with a constant (K, M): a 1x1 convolution."""
    _rank2(source, node)
    weight = required(source, node, 1)
    if weight.ndim != 2:
        text = f"weights {list(weight.shape)} must have two dimensions"
        raise failure(source, node, text)
    return make_conv(
        node, weight.T[:, :, np.newaxis, np.newaxis], np.zeros(weight.shape[1])
    )


def _rank2(source: Source, node: OnnxNode) -> None:
    shape = shape_of(source, node, node.inputs[0])
    if len(shape) != 2:
        text = f"input {node.inputs[0]!r} has shape {list(shape)}, not (N, K)"
        raise failure(source, node, f"{text}; put a Flatten before it")


def batch_normalization(source: Source, node: OnnxNode) -> Node:
    """BatchNormalization with the statistics of training."""
    shape = shape_of(source, node, node.inputs[0])
    if integer(node, "training_mode", 0) or not integer(node, "spatial", 1):
        text = "training_mode and spatial=0 are not supported; export for inference"
        raise failure(source, node, text)
    scale, shift, mean, variance = (
        required(source, node, index).astype(np.float64) for index in (1, 2, 3, 4)
    )
    channels = shape[1] if len(shape) > 1 else 1
    if any(value.shape != (channels,) for value in (scale, shift, mean, variance)):
        raise failure(source, node, f"its constants are not ({channels},)")
    deviation = variance + real(node, "epsilon", 1e-5)
    if deviation.min() <= 0:
        raise failure(source, node, "variance + epsilon is not positive")
    factor = scale / np.sqrt(deviation)
    return _affine(source, node, 0, factor, shift - mean * factor)


def add(source: Source, node: OnnxNode) -> Node:
    """Add of two tensors of one shape, or of a tensor and a constant."""
    side = _constant_side(source, node)
    if side is None:
        first, second = (shape_of(source, node, name) for name in node.inputs[:2])
        if first != second:
            text = f"shapes {list(first)} and {list(second)} differ; only constants"
            raise failure(source, node, f"{text} are broadcast")
        return Add(name=node.name, inputs=node.inputs[:2], output=node.outputs[0])
    value = _per_channel(source, node, side)
    return _affine(source, node, 1 - side, np.ones_like(value), value)


def subtract(source: Source, node: OnnxNode) -> Node:
    """Sub with one constant."""
    side = _needs_constant(source, node)
    value = _per_channel(source, node, side)
    sign = 1.0 if side == 1 else -1.0
    return _affine(source, node, 1 - side, np.full_like(value, sign), -sign * value)


def multiply(source: Source, node: OnnxNode) -> Node:
    """Mul with one constant."""
    side = _needs_constant(source, node)
    value = _per_channel(source, node, side)
    return _affine(source, node, 1 - side, value, np.zeros_like(value))


def divide(source: Source, node: OnnxNode) -> Node:
    """Div by a constant."""
    side = _needs_constant(source, node)
    value = _per_channel(source, node, side)
    if side == 0:
        raise failure(source, node, "the divisor must be the constant")
    if not value.all():
        raise failure(source, node, f"divisor {node.inputs[1]!r} contains a zero")
    return _affine(source, node, 0, 1.0 / value, np.zeros_like(value))


def _constant_side(source: Source, node: OnnxNode) -> int | None:
    sides = [i for i in (0, 1) if node.inputs[i] in source.constants]
    return sides[0] if sides else None


def _needs_constant(source: Source, node: OnnxNode) -> int:
    side = _constant_side(source, node)
    if side is None:
        raise failure(source, node, "is supported only with a constant on one side")
    return side


def _per_channel(source: Source, node: OnnxNode, side: int) -> Float64Array:
    """The constant input `side` as one value per channel of the other input."""
    shape = shape_of(source, node, node.inputs[1 - side])
    value = required(source, node, side)
    channels = shape[1] if len(shape) > 1 else 1
    full = (1,) * (len(shape) - value.ndim) + value.shape
    wanted = tuple(channels if axis == 1 else 1 for axis in range(len(shape)))
    if len(full) != len(shape) or any(
        have not in (1, want) for have, want in zip(full, wanted, strict=True)
    ):
        text = f"constant {node.inputs[side]!r} of shape {list(value.shape)} is not one"
        raise failure(
            source, node, f"{text} value, or one per channel of {list(shape)}"
        )
    return np.full(channels, value.reshape(-1), dtype=np.float64)


def _affine(
    source: Source, node: OnnxNode, data: int, factor: Float64Array, shift: Float64Array
) -> Node:
    shape_of(source, node, node.outputs[0])
    return make_conv(
        node,
        factor.reshape(-1, 1, 1, 1),
        shift,
        groups=len(factor),
        data=data,
    )
