# SPDX-License-Identifier: Apache-2.0
"""Conv2d: the residual that it can take in, its integers and their proof."""

import math
from dataclasses import replace
from functools import partial

import numpy as np

from neon8.compile import int16_fit, program
from neon8.compile.build import FLOAT, INT8, Build, Lower, ratio
from neon8.compile.operators.movement import gather, permute
from neon8.compile.program import Tensor
from neon8.compile.proof import int16_depth, prove_sums, winograd_form
from neon8.compile.scales import (
    checked_slopes,
    clamp_of,
    slope_of,
    weight_scales,
)
from neon8.compile.wide_weights import split
from neon8.errors import CompileError
from neon8.graph.graph import (
    Activation,
    Add,
    Conv2d,
    FloatArray,
    Graph,
    Node,
    Prelu,
    Subtract,
)
from neon8.graph.subpixel import Subpixel, subpixel
from neon8.quant.lattice import TAPS, on_lattice
from neon8.quant.limits import SMALLEST_SCALE
from neon8.quant.scale_table import LATTICE, NEAREST
from neon8.quant.weights import (
    HIGHEST,
    LOWEST,
    DoubleArray,
    Sums,
    multiplier_ok,
    quantize_weights,
)

MOST_SHIFT = 31
"""(10): n is in -31 .. 31."""


def lower_conv(b: Build, node: Conv2d) -> None:
    """(4) or (5), with what follows and the kernel takes in: (6), slopes of (5b)."""
    source = b.own(node.inputs[0])
    if node.transposed:
        lower_transposed(b, node, source)
        return
    add = residual_add(b, node)
    last = node if add is None else add
    prelu = prelu_behind(b, last)
    alone = last is node and prelu is None and node.activation.identity
    if alone and b.wants_float(node.output):
        out = b.declare(node.output, FLOAT)
        b.ops.append(to_float(b, node, source, out))
        return
    residual = None if add is None else b.own(other_operand(node, add))
    out = b.result((last if prelu is None else prelu).output)
    if prelu is not None:
        b.inside.add(last.output)
    op = to_integers(b, node, source, out, last.activation)
    if add is not None and residual is not None:
        scale = ratio(node.name, residual, out)
        op = replace(
            op,
            inputs=(source.name, residual.name),
            residual_scale=-scale if isinstance(add, Subtract) else scale,
        )
    b.ops.append(op if prelu is None else replace(op, slopes=checked_slopes(prelu)))


def lower_transposed(b: Build, node: Conv2d, source: Tensor) -> None:
    """A plain convolution; then its channels become pixels, and some are cut off."""
    parts = subpixel(node)
    real = node.activation.identity and b.wants_float(node.output)
    out = b.declare(node.output, FLOAT) if real else b.result(node.output)
    inner, wide = transposed_tensors(b, parts, source, out)
    phases = math.prod(parts.phases)
    if real:
        b.ops.append(to_float(b, parts.conv, source, inner, phases=phases))
    else:
        activation = node.activation
        op = to_integers(b, parts.conv, source, inner, activation, phases=phases)
        b.ops.append(op)
    finish_transposed(b, node, parts, inner, wide, out)


def transposed_tensors(
    b: Build, parts: Subpixel, source: Tensor, out: Tensor
) -> tuple[Tensor, Tensor]:
    """What the plain convolution makes, and that with the pixels in their places."""
    n, c, h, w = parts.shape(source.shape)
    (up, across), phases = parts.phases, math.prod(parts.phases)
    whole = n, c // phases, h * up, w * across
    wide = out
    if whole != out.shape:
        wide = b.temporary(replace(out, dims=whole), "wide")
    inner = wide
    if phases > 1:
        inner = b.temporary(replace(out, dims=(n, c, h, w)), "phases")
    return inner, wide


def finish_transposed(
    b: Build, node: Conv2d, parts: Subpixel, inner: Tensor, wide: Tensor, out: Tensor
) -> None:
    """Appends inner -> wide -> out, as far as they are not the same."""
    (up, across), (top, left) = parts.phases, parts.crop
    if inner is not wide:
        n, _, h, w = inner.shape
        view = n, node.groups, up, across, wide.shape[1] // node.groups, h, w
        permute(b, node.name, inner, wide, (view, (0, 1, 4, 5, 2, 6, 3)))
    if wide is not out:
        n, channels, height, width = out.shape
        begins = (0, n), (0, channels), (top, top + height), (left, left + width)
        lists = [np.arange(*pair, dtype=np.int32) for pair in begins]
        gather(b, node.name, wide, out, lists, fill=0.0)


def residual_add(b: Build, node: Conv2d) -> Add | Subtract | None:
    """The Add that this convolution computes as well (6), or None.

    Where both operands are convolutions it is the later one, since the other operand
    must be there already. Depthwise kernels have no residual. Of a difference the
    convolution must be the first operand.
    """
    readers = b.consumers[node.output]
    if len(readers) != 1 or node.output in b.graph.outputs or b.fixed:
        return None
    if b.graph.quantized and node.output in b.table.tensors:  # it is rounded there
        return None
    add = readers[0]
    if not isinstance(add, Add | Subtract) or not node.activation.identity:
        return None
    if b.type_of(add) == FLOAT or not takes_in(b.graph, node, add):
        return None
    return add if b.has(other_operand(node, add)) else None


def takes_in(graph: Graph, node: Conv2d, add: Add | Subtract) -> bool:
    """True if the kernel of `node` can do a sum of its output and another tensor."""
    if isinstance(add, Subtract) and add.inputs[0] != node.output:
        return False
    dims = graph.tensors[add.output].dims
    if any(graph.tensors[name].dims != dims for name in add.inputs):
        return False
    return not node.transposed and not is_depthwise(graph, node)


def other_operand(node: Conv2d, add: Add | Subtract) -> str:
    """What a residual sum adds to the convolution."""
    return add.inputs[1] if add.inputs[0] == node.output else add.inputs[0]


def prelu_behind(b: Build, node: Conv2d | Add | Subtract) -> Prelu | None:
    """The PRelu in int8 that alone reads `node`, or None."""
    readers = b.consumers[node.output]
    if len(readers) != 1 or node.output in b.graph.outputs or b.fixed:
        return None
    if b.graph.quantized and node.output in b.table.tensors:  # it is rounded there
        return None
    only = readers[0]
    if not isinstance(only, Prelu) or b.type_of(only) == FLOAT:
        return None
    return only if node.activation.identity else None


def is_depthwise(graph: Graph, node: Conv2d) -> bool:
    """One input and one output channel in every group."""
    in_channels = graph.tensors[node.inputs[0]].shape[1]
    return node.groups == in_channels and len(node.weight) == in_channels


def to_integers(
    b: Build,
    node: Conv2d,
    source: Tensor,
    out: Tensor,
    activation: Activation,
    *,
    phases: int = 1,
) -> program.Conv2d:
    """(5), to int8 or int16, with slopes (5b).  phases: see weight_scales()."""
    source, node = held(b, node, source, phases=phases)
    bias = node.bias if node.exact_bias is None else node.exact_bias
    bias = bias.astype(np.float64)
    sums, scales = proved(b, node, source, bias, phases=phases)
    real = np.float64(source.scale) * scales / np.float64(out.scale)
    slope = slope_of(node.name, activation)
    slopes = None if slope == 1 else np.full(scales.shape, slope)
    if b.fixed and slopes is not None:
        text = "a leaky activation cannot be requantized in integers"
        raise CompileError(f"layer {node.name!r}: {text}; compile with float")
    lo, hi = clamp_of(activation, out)
    return program.Conv2d(
        name=node.name,
        inputs=(source.name,),
        output=out.name,
        weights=channels_last(sums),
        bias=sums.bias.astype(np.int32),
        multiplier=None if b.fixed else multipliers(node.name, real),
        indices=fixed_point(node.name, real) if b.fixed else None,
        slopes=slopes,
        strides=node.strides,
        pads=node.pads,
        dilations=node.dilations,
        groups=node.groups,
        lo=lo,
        hi=hi,
        acc_bound=int(sums.bound.max()),
        int16_depth=int16_depth(sums.weights, source.dtype),
        winograd=form_of(node, sums, source),
    )


def to_float(
    b: Build, node: Conv2d, source: Tensor, out: Tensor, *, phases: int = 1
) -> program.Conv2d:
    """(4): the bias stays in float, so the sum only loses its zero point."""
    source, node = held(b, node, source, phases=phases)
    bias = np.zeros(node.bias.shape)
    sums, scales = proved(b, node, source, bias, phases=phases)
    return program.Conv2d(
        name=node.name,
        inputs=(source.name,),
        output=out.name,
        weights=channels_last(sums),
        bias=sums.bias.astype(np.int32),
        multiplier=multipliers(node.name, np.float64(source.scale) * scales),
        bias_f32=float_biases(node.bias),
        strides=node.strides,
        pads=node.pads,
        dilations=node.dilations,
        groups=node.groups,
        acc_bound=int(sums.bound.max()),
        int16_depth=int16_depth(sums.weights, source.dtype),
        winograd=form_of(node, sums, source),
    )


def float_biases(bias: FloatArray) -> FloatArray:
    """(4), in float32, of which (C,) what is denormal is 0."""
    single = bias.astype(np.float32)
    return np.where(np.abs(single) < np.finfo(np.float32).tiny, np.float32(0), single)


def form_of(node: Conv2d, sums: Sums, source: Tensor) -> str:
    """Of (23), which the weights prove; it is for int8."""
    if source.dtype != INT8:
        return ""
    stride, dilation = node.strides[1], node.dilations[1]
    return winograd_form(sums.weights, stride=stride, dilation=dilation)


def held(
    b: Build, node: Conv2d, source: Tensor, *, phases: int
) -> tuple[Tensor, Conv2d]:
    """A layer with the integers of a quantized file, so that int8 holds them."""
    if node.weight_scales is None or not np.isfinite(node.weight).all():
        return source, node
    return split(b, node, source, weight_scales(b.table, node, phases=phases))


def proved(
    b: Build, node: Conv2d, source: Tensor, bias: DoubleArray, *, phases: int
) -> tuple[Sums, DoubleArray]:
    """The integers of `node` and the weight scales that they belong to."""
    if not np.isfinite(node.weight).all() or not np.isfinite(node.bias).all():
        raise CompileError(f"layer {node.name!r}: a weight or bias is not finite")
    scales = weight_scales(b.table, node, phases=phases)
    rounding = b.table.layers[node.name].rounding
    lattice = rounding == LATTICE
    if lattice and (node.weight_scales is not None or node.weight.shape[-1] != TAPS):
        text = (
            "its weights cannot be rounded to the lattice, which is for rows of three "
        )
        text += 'float weights; delete "rounding" of the layer in the table'
        raise CompileError(f"layer {node.name!r}: {text}")
    free = node.weight_scales is None and rounding == NEAREST and source.dtype == INT8
    if b.max_sqnr_loss is not None and free:
        limit = b.max_sqnr_loss
        scales, fit = int16_fit.fit(node.name, node.weight, scales, limit=limit)
        b.fits += [] if fit is None else [fit]
    lowest = -HIGHEST if node.weight_scales is None else LOWEST
    nearest = partial(quantize_weights, lowest=lowest)
    sums, scales, grown = prove_sums(
        node.name,
        node.weight,
        bias,
        scales,
        scale_in=float(source.scale),
        zero_point_in=source.zero_point,
        reach=source.reach,
        quantize=on_lattice if lattice else nearest,
    )
    b.enlarged += grown
    return sums, scales


def channels_last(sums: Sums) -> program.Int8Array:
    """(O, I / groups, kh, kw) to (O, kh, kw, I / groups)."""
    return np.ascontiguousarray(sums.weights.transpose(0, 2, 3, 1))


def fixed_point(layer: str, real: DoubleArray) -> program.Int32Array:
    """M0 and n of (10), (O, 2): the nearest Q31, halves to even; CompileError beyond.

    Below 2^-32 no sum gives a level but 0, and so M0 is 0.
    """
    fraction, exponent = np.frexp(real)
    m0 = np.rint(fraction * 2.0**31)
    n = -exponent.astype(np.int64)
    n = np.where(m0 == 2**31, n - 1, n)
    m0 = np.where(m0 == 2**31, 2.0**30, m0)
    small = n > MOST_SHIFT
    bad = np.flatnonzero((n < -MOST_SHIFT) | ~np.isfinite(real))
    if bad.size:
        raise CompileError(
            f"layer {layer!r}: channel {bad[0]}: multiplier {real[bad[0]]:.4g} is "
            "beyond 2^31; correct the scales in the table"
        )
    pairs = np.stack([np.where(small, 0, m0), np.where(small, 0, n)], axis=1)
    result: program.Int32Array = pairs.astype(np.int32)
    return result


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
