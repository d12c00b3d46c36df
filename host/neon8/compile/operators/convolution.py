# SPDX-License-Identifier: Apache-2.0
"""Conv2d: the residual that it can take in, its integers and their proof."""

import numpy as np

from neon8.compile import program
from neon8.compile.build import FLOAT, INT8, Build, Lower, ratio
from neon8.compile.program import Tensor
from neon8.compile.proof import prove_sums
from neon8.compile.scales import clamp_of, slope_of, weight_scales
from neon8.errors import CompileError
from neon8.graph.graph import Activation, Add, Conv2d, FloatArray, Node
from neon8.quant.limits import SMALLEST_SCALE
from neon8.quant.weights import DoubleArray, Sums, multiplier_ok


def lower_conv(b: Build, node: Conv2d) -> None:
    """(4) or (5), (6) with the Add that follows where the kernel can take it in."""
    source = b.int8(node.inputs[0])
    add = residual_add(b, node)
    if add is not None:
        other = add.inputs[1] if add.inputs[0] == node.output else add.inputs[0]
        residual = b.int8(other)
        out = b.declare(add.output, INT8)
        b.ops.append(to_int8(b, node, source, out, add.activation, residual))
    elif node.activation.identity and b.wants_float(node.output):
        out = b.declare(node.output, FLOAT)
        b.ops.append(to_float(b, node, source, out))
    else:
        out = b.declare(node.output, INT8)
        b.ops.append(to_int8(b, node, source, out, node.activation))


def residual_add(b: Build, node: Conv2d) -> Add | None:
    """The Add that this convolution computes as well (6), or None.

    Where both operands are convolutions it is the later one, since the other operand
    must be there already. Depthwise kernels have no residual.
    """
    readers = b.consumers[node.output]
    if len(readers) != 1 or node.output in b.graph.outputs:
        return None
    add = readers[0]
    if not isinstance(add, Add) or not node.activation.identity:
        return None
    if is_depthwise(b, node) or b.type_of(add) == FLOAT:
        return None
    other = add.inputs[1] if add.inputs[0] == node.output else add.inputs[0]
    return add if b.has(other) else None


def is_depthwise(b: Build, node: Conv2d) -> bool:
    """One input and one output channel in every group."""
    in_channels = b.graph.tensors[node.inputs[0]].shape[1]
    return node.groups == in_channels and len(node.weight) == in_channels


def to_int8(
    b: Build,
    node: Conv2d,
    source: Tensor,
    out: Tensor,
    activation: Activation,
    residual: Tensor | None = None,
) -> program.Conv2d:
    """(5), with slopes (5b) and a residual (6)."""
    sums, scales = proved(b, node, source, node.bias.astype(np.float64))
    real = np.float64(source.scale) * scales / np.float64(out.scale)
    slope = slope_of(node.name, activation)
    slopes = None if slope == 1 else np.full(scales.shape, slope)
    lo, hi = clamp_of(activation, out)
    return program.Conv2d(
        name=node.name,
        inputs=(source.name,) if residual is None else (source.name, residual.name),
        output=out.name,
        weights=channels_last(sums),
        bias=sums.bias.astype(np.int32),
        multiplier=multipliers(node.name, real),
        slopes=slopes,
        residual_scale=(
            np.float32(0) if residual is None else ratio(node.name, residual, out)
        ),
        strides=node.strides,
        pads=node.pads,
        dilations=node.dilations,
        groups=node.groups,
        lo=lo,
        hi=hi,
        acc_bound=int(sums.bound.max()),
    )


def to_float(b: Build, node: Conv2d, source: Tensor, out: Tensor) -> program.Conv2d:
    """(4): the bias stays in float, so the sum only loses its zero point."""
    sums, scales = proved(b, node, source, np.zeros(node.bias.shape))
    return program.Conv2d(
        name=node.name,
        inputs=(source.name,),
        output=out.name,
        weights=channels_last(sums),
        bias=sums.bias.astype(np.int32),
        multiplier=multipliers(node.name, np.float64(source.scale) * scales),
        bias_f32=node.bias.astype(np.float32),
        strides=node.strides,
        pads=node.pads,
        dilations=node.dilations,
        groups=node.groups,
        acc_bound=int(sums.bound.max()),
    )


def proved(
    b: Build, node: Conv2d, source: Tensor, bias: DoubleArray
) -> tuple[Sums, DoubleArray]:
    """The integers of `node` and the weight scales that they belong to."""
    if not np.isfinite(node.weight).all() or not np.isfinite(node.bias).all():
        raise CompileError(f"layer {node.name!r}: a weight or bias is not finite")
    return prove_sums(
        node.name,
        node.weight,
        bias,
        weight_scales(b.table, node),
        scale_in=float(source.scale),
        zero_point_in=source.zero_point,
    )


def channels_last(sums: Sums) -> program.Int8Array:
    """(O, I / groups, kh, kw) to (O, kh, kw, I / groups)."""
    return np.ascontiguousarray(sums.weights.transpose(0, 2, 3, 1))


def multipliers(layer: str, real: DoubleArray) -> FloatArray:
    """M or S as float32, (O,); CompileError names a channel that is out of range."""
    with np.errstate(over="ignore", under="ignore"):
        result = real.astype(np.float32)
    bad = np.flatnonzero(~multiplier_ok(result))
    if bad.size:
        channel = bad[0]
        raise CompileError(
            f"layer {layer!r}: channel {channel}: multiplier {real[channel]:.4g} is "
            f"outside {SMALLEST_SCALE} .. 1.8e19; correct the scales in the table"
        )
    return result


LOWER: dict[type[Node], Lower] = {Conv2d: lower_conv}
