# SPDX-License-Identifier: Apache-2.0
"""Add, Sub, Mul, Div and BatchNormalization.

Arithmetic with constants becomes a depthwise 1x1 convolution, which the pass
fold_affine merges into the convolution before it.
"""

import numpy as np

from neon8.graph.graph import Add, Node
from neon8.graph.operators.convolution import make_conv
from neon8.graph.source import (
    Convert,
    Float64Array,
    OnnxNode,
    Source,
    failure,
    integer,
    real,
    required,
    shape_of,
)


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


OPERATORS: dict[str, Convert] = {
    "Add": add,
    "BatchNormalization": batch_normalization,
    "Div": divide,
    "Mul": multiply,
    "Sub": subtract,
}
