# SPDX-License-Identifier: Apache-2.0
"""Operators without weights: activations, pools, moves, softmax."""

import math

import numpy as np

from neon8.graph.graph import Activate, Activation, Concat, Node, Pool, Reshape, Softmax
from neon8.graph.source import (
    OnnxNode,
    Source,
    constant,
    failure,
    integer,
    integers,
    nchw,
    real,
    required,
    shape_of,
)
from neon8.graph.windows import window

LARGEST = float(np.finfo(np.float32).max)


def _activate(source: Source, node: OnnxNode, activation: Activation) -> Node:
    shape_of(source, node, node.inputs[0])
    values = (activation.lo, activation.hi, activation.slope)
    if any(math.isnan(value) for value in values) or math.isinf(activation.slope):
        raise failure(source, node, "a bound or a slope is not a number")
    return Activate(
        name=node.name,
        inputs=node.inputs[:1],
        output=node.outputs[0],
        activation=activation,
    )


def relu(source: Source, node: OnnxNode) -> Node:
    """Relu."""
    return _activate(source, node, Activation(lo=0.0))


def leaky_relu(source: Source, node: OnnxNode) -> Node:
    """LeakyRelu."""
    return _activate(source, node, Activation(slope=real(node, "alpha", 0.01)))


def prelu(source: Source, node: OnnxNode) -> Node:
    """PRelu with one slope for all channels."""
    slope = required(source, node, 1)
    if slope.size != 1:
        text = f"has {slope.size} slopes; neon8 takes one, or use LeakyRelu"
        raise failure(source, node, text)
    return _activate(source, node, Activation(slope=float(slope.reshape(-1)[0])))


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
    return _activate(source, node, Activation(lo=lo, hi=hi))


def max_pool(source: Source, node: OnnxNode) -> Node:
    """MaxPool."""
    if integer(node, "storage_order", 0):
        raise failure(source, node, "storage_order is not supported")
    return _pool(source, node, "max")


def average_pool(source: Source, node: OnnxNode) -> Node:
    """AveragePool."""
    return _pool(source, node, "average")


def _pool(source: Source, node: OnnxNode, kind: str) -> Node:
    shape = shape_of(source, node, node.inputs[0])
    out = shape_of(source, node, node.outputs[0])
    geometry = window(
        source,
        node,
        kernel=integers(node, "kernel_shape") or (),
        image=shape[2:],
        out=out[2:],
        ceil=bool(integer(node, "ceil_mode", 0)),
    )
    pairs = zip(geometry.pads, geometry.kernel * 2, strict=True)
    if any(pad >= kernel for pad, kernel in pairs):
        text = f"pads {list(geometry.pads)} must be smaller than the kernel"
        raise failure(source, node, text)
    return Pool(
        name=node.name,
        inputs=node.inputs[:1],
        output=node.outputs[0],
        kind=kind,
        kernel=geometry.kernel,
        strides=geometry.strides,
        dilations=geometry.dilations,
        pads=geometry.pads,
        count_pad=kind == "average" and bool(integer(node, "count_include_pad", 0)),
    )


def global_max_pool(source: Source, node: OnnxNode) -> Node:
    """GlobalMaxPool."""
    return _global_pool(source, node, "max")


def global_average_pool(source: Source, node: OnnxNode) -> Node:
    """GlobalAveragePool."""
    return _global_pool(source, node, "average")


def _global_pool(source: Source, node: OnnxNode, kind: str) -> Node:
    shape = shape_of(source, node, node.inputs[0])
    if len(shape) < 3:
        raise failure(source, node, f"input of shape {list(shape)} is no image")
    height, width = nchw(shape)[2:]
    return Pool(
        name=node.name,
        inputs=node.inputs[:1],
        output=node.outputs[0],
        kind=kind,
        kernel=(height, width),
    )


def move(source: Source, node: OnnxNode) -> Node:
    """Flatten, Reshape, Squeeze, Unsqueeze, Identity, Dropout: the same values."""
    for name in (node.inputs[0], node.outputs[0]):
        shape_of(source, node, name)
    return Reshape(name=node.name, inputs=node.inputs[:1], output=node.outputs[0])


def dropout(source: Source, node: OnnxNode) -> Node:
    """Dropout, which does nothing at inference."""
    training = constant(source, node, 2)
    if training is not None and training.any():
        raise failure(source, node, "training_mode is set; export for inference")
    return move(source, node)


def concat(source: Source, node: OnnxNode) -> Node:
    """Concat along C, H or W."""
    rank = len(shape_of(source, node, node.outputs[0]))
    for name in node.inputs:
        shape_of(source, node, name)
    axis = integer(node, "axis", 1)
    axis += rank if axis < 0 else 0
    if axis == 0:
        raise failure(source, node, "cannot join along the batch")
    if len(node.inputs) == 1:
        return move(source, node)
    return Concat(name=node.name, inputs=node.inputs, output=node.outputs[0], axis=axis)


def softmax(source: Source, node: OnnxNode) -> Node:
    """Softmax over C of (N, C) or (N, C, 1, 1).

    Since opset 13 it runs along `axis`; before, over all axes from `axis` on.
    """
    shape = shape_of(source, node, node.inputs[0])
    flattens = source.opset < 13
    axis = integer(node, "axis", 1 if flattens else -1)
    axis += len(shape) if axis < 0 else 0
    channels = axis == 1 or (flattens and axis == 0)
    if not channels or math.prod(shape) != nchw(shape)[1]:
        text = f"runs along axis {axis} of {list(shape)}; neon8 does it over the"
        text += " channels of one pixel: remove it, the largest value stays the same"
        raise failure(source, node, text)
    return Softmax(name=node.name, inputs=node.inputs[:1], output=node.outputs[0])
