# SPDX-License-Identifier: Apache-2.0
"""Activations, and Softmax."""

import math

import numpy as np

from neon8.graph.graph import Activate, Activation, Node, Prelu, Softmax
from neon8.graph.source import (
    Convert,
    OnnxNode,
    Source,
    constant,
    failure,
    float32,
    integer,
    per_channel,
    real,
    required,
    shape_of,
)

LARGEST = float(np.finfo(np.float32).max)


def relu(source: Source, node: OnnxNode) -> Node:
    """Relu."""
    return _activate(source, node, Activation(lo=0.0))


def leaky_relu(source: Source, node: OnnxNode) -> Node:
    """LeakyRelu."""
    return _activate(source, node, Activation(slope=real(node, "alpha", 0.01)))


def prelu(source: Source, node: OnnxNode) -> Node:
    """PRelu with one slope for all channels, or one for each."""
    slopes = per_channel(source, node, 1)
    if (slopes == slopes[0]).all():
        return _activate(source, node, Activation(slope=float(slopes[0])))
    return Prelu(
        name=node.name,
        inputs=node.inputs[:1],
        output=node.outputs[0],
        slopes=float32(slopes),
    )


def clip(source: Source, node: OnnxNode) -> Node:
    """Clip; its bounds are attributes before opset 11 and inputs since."""
    bounds = []
    for index, name, default in ((1, "min", -np.inf), (2, "max", np.inf)):
        value = constant(source, node, index)
        if value is None:
            bounds.append(real(node, name, default))
        elif value.size == 1:
            bounds.append(float(value.reshape(-1)[0]))
        else:
            raise failure(source, node, f"bound {node.inputs[index]!r} is not a scalar")
    lo = -np.inf if bounds[0] <= -LARGEST else bounds[0]
    hi = np.inf if bounds[1] >= LARGEST else bounds[1]
    if np.isposinf(lo) or np.isneginf(hi):
        raise failure(source, node, "makes every value infinite")
    # Where min is above max, ONNX makes every value max.
    return _activate(source, node, Activation(lo=min(lo, hi), hi=hi))


def bound(source: Source, node: OnnxNode, *, upper: bool) -> Node:
    """Min and Max of one tensor and of single constants: an upper or lower bound."""
    data = next(i for i, name in enumerate(node.inputs) if name not in source.constants)
    limits = [
        float(required(source, node, index).reshape(-1)[0])
        for index in range(len(node.inputs))
        if index != data
    ]
    activation = Activation()
    if limits and upper:
        activation = Activation(hi=min(limits))
    elif limits:
        activation = Activation(lo=max(limits))
    return _activate(source, node, activation, data=data)


def softmax(source: Source, node: OnnxNode) -> Node:
    """Softmax, LogSoftmax along one axis; before opset 13 over all from `axis` on."""
    shape = shape_of(source, node, node.inputs[0])
    flattens = source.opset < 13
    axis = integer(node, "axis", 1 if flattens else -1)
    axis += len(shape) if axis < 0 else 0
    if not 0 <= axis < len(shape):
        raise failure(source, node, f"axis {axis} is none of {list(shape)}")
    return Softmax(
        name=node.name,
        inputs=node.inputs[:1],
        output=node.outputs[0],
        axis=axis,
        flattens=flattens,
        log=node.operator == "LogSoftmax",
    )


def _activate(
    source: Source, node: OnnxNode, activation: Activation, *, data: int = 0
) -> Node:
    shape_of(source, node, node.inputs[data])
    values = (activation.lo, activation.hi, activation.slope)
    if any(math.isnan(value) for value in values) or math.isinf(activation.slope):
        raise failure(source, node, "a bound or a slope is not a number")
    return Activate(
        name=node.name,
        inputs=(node.inputs[data],),
        output=node.outputs[0],
        activation=activation,
    )


OPERATORS: dict[str, Convert] = {
    "Clip": clip,
    "LeakyRelu": leaky_relu,
    "LogSoftmax": softmax,
    "PRelu": prelu,
    "Relu": relu,
    "Softmax": softmax,
}
