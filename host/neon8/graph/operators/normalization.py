# SPDX-License-Identifier: Apache-2.0
"""BatchNormalization, InstanceNormalization and LRN."""

import numpy as np

from neon8.graph.graph import InstanceNorm, Lrn, Node
from neon8.graph.operators.convolution import make_affine
from neon8.graph.source import (
    Convert,
    OnnxNode,
    Source,
    failure,
    integer,
    real,
    required,
    shape_of,
)

LARGEST_SIZE = 1 << 20


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
    return make_affine(source, node, 0, factor, shift - mean * factor)


def instance_normalization(source: Source, node: OnnxNode) -> Node:
    """InstanceNormalization: mean and variance are those of the image itself."""
    shape = shape_of(source, node, node.inputs[0])
    gamma, beta = (required(source, node, index) for index in (1, 2))
    if len(shape) < 3 or any(value.shape != (shape[1],) for value in (gamma, beta)):
        text = f"scale and B are not one value per channel of {list(shape)}"
        raise failure(source, node, text)
    epsilon = real(node, "epsilon", 1e-5)
    if not 1e-30 <= epsilon <= 1e30:
        raise failure(source, node, f"epsilon {epsilon:.4g} is outside 1e-30 .. 1e30")
    return InstanceNorm(
        name=node.name,
        inputs=node.inputs[:1],
        output=node.outputs[0],
        gamma=gamma,
        beta=beta,
        epsilon=epsilon,
    )


def lrn(source: Source, node: OnnxNode) -> Node:
    """LRN, as in AlexNet and GoogLeNet."""
    shape_of(source, node, node.inputs[0])
    size = integer(node, "size", 0)
    alpha, beta = real(node, "alpha", 1e-4), real(node, "beta", 0.75)
    bias = real(node, "bias", 1.0)
    if size % 2 == 0 or not 1 <= size <= LARGEST_SIZE:
        raise failure(source, node, f"size {size} is even or outside 1 .. 2^20")
    if not 0 <= alpha <= 1e30:
        raise failure(source, node, f"alpha {alpha:.4g} is outside 0 .. 1e30")
    if not (0 <= beta <= 16 and 1e-30 <= bias <= 1e30):
        text = f"beta {beta:.4g} is outside 0 .. 16, or bias {bias:.4g} not positive"
        raise failure(source, node, text)
    return Lrn(
        name=node.name,
        inputs=node.inputs[:1],
        output=node.outputs[0],
        size=size,
        alpha=alpha,
        beta=beta,
        bias=bias,
    )


OPERATORS: dict[str, Convert] = {
    "BatchNormalization": batch_normalization,
    "InstanceNormalization": instance_normalization,
    "LRN": lrn,
}
