# SPDX-License-Identifier: Apache-2.0
"""Conv, and the convolutions that other operators become."""

import numpy as np

from neon8.graph.graph import Conv2d, FloatArray, Node
from neon8.graph.operators.windows import window
from neon8.graph.source import (
    Convert,
    Float64Array,
    OnnxNode,
    Source,
    failure,
    float32,
    integer,
    integers,
    required,
    shape_of,
    weights,
)


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


def make_affine(
    source: Source, node: OnnxNode, data: int, factor: Float64Array, shift: Float64Array
) -> Node:
    """factor * x + shift of input number `data`, one of each per channel: (C,).

    A depthwise 1x1 convolution, which the pass fold_affine merges into the convolution
    before it.
    """
    shape_of(source, node, node.outputs[0])
    return make_conv(
        node,
        factor.reshape(-1, 1, 1, 1),
        shift,
        groups=len(factor),
        data=data,
    )


OPERATORS: dict[str, Convert] = {"Conv": conv}
