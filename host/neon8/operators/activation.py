# SPDX-License-Identifier: Apache-2.0
"""Activations that no node took in, and PRelu with a slope for each channel."""

import math
from dataclasses import dataclass

import numpy as np

from neon8.arrays import FloatArray
from neon8.ir.graph import Activated, Activation, Node
from neon8.ir.program import Tensor
from neon8.operators.build import FLOAT, Build, ratio
from neon8.operators.composition import Parts
from neon8.operators.constants import append_constant
from neon8.operators.convolution import Conv2dOp
from neon8.operators.family import Family
from neon8.operators.floats import append_binary, append_unary, reshaped_like
from neon8.operators.functions import activation_function
from neon8.operators.layout import by_value, with_constants
from neon8.operators.scales import checked_slopes, clamp_of, slope_of
from neon8.operators.source import OnnxNode, Source, float32
from neon8.quant.proof import int16_depth


@dataclass(frozen=True, slots=True, kw_only=True)
class Activate(Activated):
    """y = activation(x): one that no node could take in."""

    follows = True
    by_value = True
    only_activates = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Prelu(Node):
    """y = x < 0 ? slope * x : x with one slope for each channel.  slopes: (C,)."""

    slopes: FloatArray

    follows = True
    by_channel = True

    @property
    def leaky_slopes(self) -> FloatArray:
        """(C,)."""
        return self.slopes


LARGEST = float(np.finfo(np.float32).max)


def relu(source: Source, node: OnnxNode) -> Node:
    """Relu."""
    return _activate(source, node, Activation(lo=0.0))


def leaky_relu(source: Source, node: OnnxNode) -> Node:
    """LeakyRelu."""
    return _activate(source, node, Activation(slope=node.real("alpha", 0.01)))


def prelu(source: Source, node: OnnxNode) -> Node:
    """PRelu with one slope for all channels, or one for each."""
    slopes = source.per_channel(node, 1)
    if (slopes == slopes[0]).all():
        return _activate(source, node, Activation(slope=float(slopes[0])))
    return node.made(Prelu, slopes=float32(slopes))


def prelu_of_any(p: Parts) -> bool:
    """PRelu with slopes that are not those of channels: max(x, 0) + slope min(x, 0)."""
    x, slope = p.node.inputs
    if slope in p.source.constants and p.source.fits_channels(p.node, 1):
        return False
    if not p.broadcasts(slope, p.shape_of(x)):
        return False
    below = p.add("Mul", p.add("Min", x, 0.0), slope)
    p.add("Add", p.add("Relu", x), below, output=p.node.outputs[0])
    return True


def import_clip(source: Source, node: OnnxNode) -> Node:
    """Clip; its bounds are attributes before opset 11 and inputs since."""
    bounds = []
    for index, name, default in ((1, "min", -np.inf), (2, "max", np.inf)):
        value = source.constant(node, index)
        if value is None:
            bounds.append(node.real(name, default))
        elif value.size == 1:
            bounds.append(float(value.reshape(-1)[0]))
        else:
            raise source.failure(node, f"bound {node.inputs[index]!r} is not a scalar")
    lo = -np.inf if bounds[0] <= -LARGEST else bounds[0]
    hi = np.inf if bounds[1] >= LARGEST else bounds[1]
    if np.isposinf(lo) or np.isneginf(hi):
        raise source.failure(node, "makes every value infinite")
    # Where min is above max, ONNX makes every value max.
    return _activate(source, node, Activation(lo=min(lo, hi), hi=hi))


def bound(source: Source, node: OnnxNode, *, upper: bool) -> Node:
    """Min and Max of one tensor and of single constants: an upper or lower bound."""
    data = next(i for i, name in enumerate(node.inputs) if name not in source.constants)
    limits = [
        float(source.required(node, index).reshape(-1)[0])
        for index in range(len(node.inputs))
        if index != data
    ]
    activation = Activation()
    if limits and upper:
        activation = Activation(hi=min(limits))
    elif limits:
        activation = Activation(lo=max(limits))
    return _activate(source, node, activation, data=data)


def _activate(
    source: Source, node: OnnxNode, activation: Activation, *, data: int = 0
) -> Node:
    source.shape_of(node, node.inputs[data])
    values = (activation.lo, activation.hi, activation.slope)
    if any(math.isnan(value) for value in values) or math.isinf(activation.slope):
        raise source.failure(node, "a bound or a slope is not a number")
    return node.made(Activate, data=data, activation=activation)


def lower_activate(b: Build, node: Activate) -> None:
    """A requantization with the activation in its clamp and slope."""
    source = b.own(node.inputs[0])
    activate(b, node, source, b.result(node.output))


def activate(
    b: Build,
    node: Node,
    source: Tensor,
    out: Tensor,
) -> None:
    """source -> out with the activation of `node` and the scale of `out`."""
    b.requantize(
        node.name,
        source,
        out,
        clamp=clamp_of(node.activation, out),
        slope=float(slope_of(node.name, node.activation)),
    )


def lower_prelu(b: Build, node: Prelu) -> None:
    """A depthwise convolution with one tap that is 1, for its slopes  (5b)."""
    source, out = b.own(node.inputs[0]), b.result(node.output)
    channels = len(node.slopes)
    weights = np.ones((channels, 1, 1, 1), np.int8)
    b.step(
        Conv2dOp,
        node.name,
        (source,),
        out,
        weights=weights,
        bias=np.full(channels, -source.zero_point, np.int32),
        multiplier=np.full(channels, ratio(node.name, source, out)),
        slopes=checked_slopes(node.name, node.slopes),
        groups=channels,
        lo=out.lo,
        hi=out.hi,
        acc_bound=source.reach + abs(source.zero_point),
        int16_depth=int16_depth(weights, source.dtype),
    )


def lower_activate_float(b: Build, node: Activate) -> None:
    """(22)."""
    source = b.float32(node.inputs[0])
    out = b.declare(node.output, FLOAT)
    append_unary(b, node.name, activation_function(node.activation), source, out)


def lower_prelu_float(b: Build, node: Prelu) -> None:
    """(22): the slopes are a constant along C."""
    source = b.float32(node.inputs[0])
    out = b.declare(node.output, FLOAT)
    if source.dims != out.dims:
        source = reshaped_like(b, node.name, source, out)
    slopes = checked_slopes(node.name, node.slopes)
    shape = (len(slopes), *(1,) * max(out.rank - 2, 0))
    value = append_constant(b, node.name, slopes.reshape(shape), source)
    append_binary(b, node.name, "prelu", (source.name, value.name), out)


FAMILY = Family(
    imports={
        "Clip": import_clip,
        "LeakyRelu": leaky_relu,
        "PRelu": prelu,
        "Relu": relu,
    },
    compositions={"PRelu": prelu_of_any},
    lower={Activate: lower_activate, Prelu: lower_prelu},
    lower_float={Activate: lower_activate_float, Prelu: lower_prelu_float},
    layouts={
        **dict.fromkeys(("Clip", "LeakyRelu", "Relu"), by_value),
        "PRelu": with_constants,
    },
)
