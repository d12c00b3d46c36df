# SPDX-License-Identifier: Apache-2.0
"""Conv, and the convolutions that other operators become, in int8 and in float32."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from neon8.arrays import Array, DoubleArray, FloatArray, Int32Array, Int64Array
from neon8.errors import CompileError, TableError
from neon8.ir.graph import Activated, Activation, Graph, Node, Origin, Shape, nchw
from neon8.ir.program import Op, Program, Tensor
from neon8.operators.build import FLOAT, INT8, Build, ratio
from neon8.operators.family import Family
from neon8.operators.floats import append_activation, before
from neon8.operators.movement import append_permute
from neon8.operators.qdq import Nodes, finish
from neon8.operators.reference import Operand, as_float, leaky, one_nan, rounded
from neon8.operators.scales import checked_slopes, clamp_of, slope_of, usable_scale
from neon8.operators.selection import append_gather
from neon8.operators.source import OnnxNode, Source, float32
from neon8.operators.split_weights import split
from neon8.operators.subpixel import Subpixel, repeated, subpixel
from neon8.operators.windows import pad_to_windows, tap, taps, window
from neon8.quant import int16_fit
from neon8.quant.fused import channels_of, nearest_proved
from neon8.quant.lattice import TAPS, quantizer
from neon8.quant.limits import SMALLEST_SCALE
from neon8.quant.proof import int16_depth, prove_sums, winograd_form
from neon8.quant.scale_table import BALANCED, LATTICE, NEAREST, WIDE, ScaleTable
from neon8.quant.weights import (
    LOWEST,
    Integers,
    Sums,
    channel_scales,
    multiplier_ok,
    quantize_weights,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conv2d(Activated):
    """y = activation(conv(inputs[0]) + bias).

    weight: (O, I / groups, kh, kw); bias: (O,); pads: top, left, bottom, right.
    spread: the rows and columns of the input are so far apart, with zeros between them,
    before they are padded: a transposed convolution. Its strides are 1, and its pads
    may be negative, which crops. subpixel() makes a plain one of it.
    pre_activation: the ONNX tensor that holds conv + bias (batch norm included) before
    the activation; equal to `output` where there is none.

    Of a quantized file: weight_scales, (O,), of which the weights are whole multiples;
    exact_bias, (O,), so exact that B of numerics (5) is the integer in the file.
    """

    weight: FloatArray
    bias: FloatArray
    strides: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilations: tuple[int, int] = (1, 1)
    groups: int = 1
    spread: tuple[int, int] = (1, 1)
    pre_activation: str = field()
    weight_scales: FloatArray | None = None
    exact_bias: npt.NDArray[np.float64] | None = None

    @property
    def transposed(self) -> bool:
        """True if it needs subpixel()."""
        return self.spread != (1, 1) or min(self.pads) < 0

    weighted = True
    precedes_activation = True

    def macs(self, graph: Graph) -> int:
        """One for each weight and place where it is applied."""
        name = self.inputs[0] if self.transposed else self.output
        n, _, *places = graph.tensors[name].shape
        return n * math.prod(places) * self.weight.size

    @property
    def finite(self) -> bool:
        """True if weights and biases are."""
        return bool(np.isfinite(self.weight).all() and np.isfinite(self.bias).all())

    @property
    def affine(self) -> bool:
        """True if it scales and shifts each channel, before its activation."""
        return (
            self.weight.shape == (self.groups, 1, 1, 1)
            and self.strides == self.spread == (1, 1)
            and self.pads == (0, 0, 0, 0)
        )

    @property
    def uniform(self) -> bool:
        """True if it scales and shifts all channels alike, and does nothing else."""
        return (
            self.affine
            and self.activation.identity
            and bool((self.weight == self.weight.flat[0]).all())
            and bool((self.bias == self.bias[0]).all())
        )

    @property
    def multiple(self) -> float | None:
        """Its factor, if all channels have it and nothing is added."""
        return float(self.weight.flat[0]) if self.uniform and not self.bias[0] else None

    @property
    def lowest(self) -> float:
        """What it adds, or makes of 1, if it does so for all channels alike."""
        if not self.uniform:
            return 0.0
        return float(min(self.bias[0], self.weight.flat[0] + self.bias[0]))

    @property
    def follows(self) -> bool:
        """True if it only maps values."""
        return self.affine

    @property
    def gives_float(self) -> bool:
        """True without an activation."""
        return self.activation.identity

    def absorbs_factors(self, graph: Graph) -> bool:
        """True, with any."""
        return True

    def with_factors(
        self, read: Sequence[DoubleArray | None], made: DoubleArray | None
    ) -> "Conv2d":
        """With the factors in weights and bias, those of the input first."""
        weight, bias = self.weight, self.bias
        if read[0] is not None:
            by_group = read[0].reshape(self.groups, -1)
            rows = np.repeat(by_group, len(weight) // self.groups, axis=0)
            weight = float32(weight * rows[:, :, None, None])
        if made is not None:
            weight = float32(weight * (1 / made[:, None, None, None]))
            bias = float32(bias * (1 / made))
        return replace(self, weight=weight, bias=bias)

    def renamed(self, output: str) -> Node:
        """The same layer with another output."""
        return replace(self, output=output, pre_activation=output)

    def followed_by(self, node: Node) -> Node | None:
        """One layer, where `node` is affine and nothing stands between the two.

        What is too large for float32 stays in two steps, as in the file.
        """
        if not isinstance(node, Conv2d) or not node.affine:
            return None
        if not self.activation.identity:
            return None
        factor = node.weight[:, 0, 0, 0].astype(np.float64)
        weight = float32(self.weight * factor.reshape(-1, 1, 1, 1))
        bias = float32(self.bias * factor + node.bias)
        scales = self.weight_scales
        if scales is not None:
            # Their integers stay or change their sign.  Where the factor is 0 all of
            # them become 0, and any scale will do.
            scales = float32(scales * np.where(factor == 0, 1.0, np.abs(factor)))
        made = replace(
            self,
            output=node.output,
            pre_activation=node.output,
            activation=node.activation,
            weight=weight,
            bias=bias,
            weight_scales=scales,
            exact_bias=None,
        )
        return made if made.finite else None

    def unflattened(self, shape: Shape) -> Node | None:
        """With a kernel of image size, if it is a matrix times vectors.

        A kernel of one tap may be dilated, which this one must not be.
        """
        one_tap = self.weight.shape[2:] == (1, 1) and self.pads == (0, 0, 0, 0)
        fits = self.weight.shape[1] == math.prod(shape[1:])
        if self.groups > 1 or self.transposed or not (one_tap and fits):
            return None
        weight = self.weight.reshape(len(self.weight), *shape[1:])
        return replace(self, weight=weight, dilations=(1, 1))

    def on_rearranged(
        self, origin: Origin, dims: tuple[int, ...], moved: tuple[int, ...]
    ) -> Node | None:
        """The same factor and shift for as many channels as there are."""
        if not self.uniform:
            return None
        channels = nchw(moved)[1]
        factor = np.full(channels, self.weight.flat[0], np.float64)
        return affine_layer(self, factor, np.full(channels, self.bias[0], np.float64))


def convolutions(graph: Graph) -> tuple[Conv2d, ...]:
    """The layers with weights, in order of execution."""
    return tuple(node for node in graph.nodes if isinstance(node, Conv2d))


def with_convolutions(graph: Graph, change: Callable[[Conv2d], Node]) -> Graph:
    """`graph` with what `change` makes of each layer with weights."""
    nodes = (change(n) if isinstance(n, Conv2d) else n for n in graph.nodes)
    return replace(graph, nodes=tuple(nodes))


def int8_layers(program: Program) -> tuple["Conv2dOp", ...]:
    """The steps with weights in int8, in order of execution."""
    return tuple(op for op in program.ops if isinstance(op, Conv2dOp))


@dataclass(frozen=True, slots=True, kw_only=True)
class Conv2dOp(Op):
    """Convolution with its fused epilogue; inputs[1], if any, is the residual.

    weights: (O, kh, kw, I / groups) int8 in [-127, 127], or int16  (25).
    Input, residual and output may be int16  (24).
    Quantized output: bias is B and multiplier M of (5), slopes of (5b) or None,
    residual_scale R of (6), lo and hi the clamp with the activation in it.
    float32 output: bias is -zero_point * sum(w), multiplier S, bias_f32 the float bias
    (4).
    acc_bound: max over channels of sum|w| * 128 + |bias|, below 2**31  (12); of int16
    the largest |q| of the input stands for 128  (24).
    int16_depth: products of a channel that fit int16, whichever they are  (11).
    winograd: "whole" or "half", the form of (23) that its weights serve, or "".
    """

    weights: Integers
    bias: Int32Array
    multiplier: FloatArray
    bias_f32: FloatArray | None = None
    slopes: FloatArray | None = None
    residual_scale: np.float32 = np.float32(0)
    strides: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilations: tuple[int, int] = (1, 1)
    groups: int = 1
    lo: int = -128
    hi: int = 127
    acc_bound: int = 0
    int16_depth: int = 2
    winograd: str = ""

    @property
    def kernel(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.weights.shape[1], self.weights.shape[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conv2dF32Op(Op):
    """Convolution in float32  (20).

    bias_f32: (O,).  values: the weights, (O, kh, kw, I / groups).
    """

    bias_f32: FloatArray
    values: FloatArray
    kernel: tuple[int, int]
    strides: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilations: tuple[int, int] = (1, 1)
    groups: int = 1


def import_conv(source: Source, node: OnnxNode) -> Node:
    """Conv, of one or two spatial dimensions."""
    shape = source.shape_of(node, node.inputs[0])
    out = source.shape_of(node, node.outputs[0])
    weight = source.required(node, 1)
    if weight.ndim != len(shape) or len(shape) < 3:
        text = f"weights of {weight.ndim} dimensions for an input of {len(shape)}"
        raise source.failure(node, text)
    if weight.ndim == 3:
        weight = weight[:, :, :, np.newaxis]
    kernel = weight.shape[2 : len(shape)]
    if node.integers("kernel_shape") not in (None, kernel):
        raise source.failure(node, "kernel_shape is not that of the weights")
    groups = node.integer("group", 1)
    channels = weight.shape[0]
    if groups < 1 or channels % groups or weight.shape[1] * groups != shape[1]:
        text = f"weights {list(weight.shape)} in {groups} groups do not fit"
        raise source.failure(node, f"{text} {shape[1]} input channels")
    bias = source.weights(node, 2)
    if bias is not None and bias.shape != (channels,):
        raise source.failure(node, f"bias {list(bias.shape)} is not ({channels},)")
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
    weight: FloatArray | DoubleArray,
    bias: FloatArray | DoubleArray,
    **fields: Any,
) -> Conv2d:
    """The Conv2d that stands for `node`, as OnnxNode.made()."""
    return node.made(
        Conv2d,
        weight=float32(weight),
        bias=float32(bias),
        pre_activation=node.outputs[0],
        **fields,
    )


def affine_layer(node: Node, factor: DoubleArray, shift: DoubleArray) -> Conv2d:
    """factor * x + shift for each channel, in place of `node`."""
    return Conv2d(
        name=node.name,
        inputs=node.inputs,
        output=node.output,
        operator=node.operator,
        weight=float32(factor.reshape(-1, 1, 1, 1)),
        bias=float32(shift),
        groups=len(factor),
        pre_activation=node.output,
    )


def make_affine(
    source: Source, node: OnnxNode, data: int, factor: DoubleArray, shift: DoubleArray
) -> Node:
    """factor * x + shift of input number `data`, one of each per channel: (C,).

    A depthwise 1x1 convolution, which the pass fold_affine merges into the convolution
    before it.
    """
    source.shape_of(node, node.outputs[0])
    return make_conv(
        node,
        factor.reshape(-1, 1, 1, 1),
        shift,
        groups=len(factor),
        data=data,
    )


def lower_conv(b: Build, node: Conv2d) -> None:
    """(4) or (5), with what follows and the kernel takes in: (6), slopes of (5b)."""
    source = b.own(node.inputs[0])
    if node.transposed:
        lower_transposed(b, node, source)
        return
    add = residual_add(b, node)
    last = node if add is None else add
    prelu = slopes_after(b, last)
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
            residual_scale=np.float32(add.sign) * scale,
        )
    if prelu is not None and prelu.leaky_slopes is not None:
        slopes = checked_slopes(prelu.name, prelu.leaky_slopes)
        op = replace(op, slopes=slopes)
    b.ops.append(with_proved(op, b.tensors))


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
        b.ops.append(with_proved(op, b.tensors))
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
        append_permute(b, node.name, inner, wide, (view, (0, 1, 4, 5, 2, 6, 3)))
    if wide is not out:
        n, channels, height, width = out.shape
        rows, columns = range(top, top + height), range(left, left + width)
        lists = (range(n), range(channels), rows, columns)
        append_gather(b, node.name, wide, out, lists)


def residual_add(b: Build, node: Conv2d) -> Node | None:
    """The Add that this convolution computes as well (6), or None.

    Where both operands are convolutions it is the later one, since the other operand
    must be there already. Depthwise kernels have no residual. Of a difference the
    convolution must be the first operand.
    """
    add = only_reader(b, node)
    if add is None or not add.sign or not takes_in(b.graph, node, add):
        return None
    return add if b.has(other_operand(node, add)) else None


def only_reader(b: Build, node: Node) -> Node | None:
    """What alone reads `node`, in int8, so that one step may compute both; or None."""
    readers = b.consumers[node.output]
    if len(readers) != 1 or node.output in b.graph.outputs:
        return None
    if b.graph.quantized and node.output in b.table.tensors:  # it is rounded there
        return None
    free = node.activation.identity and b.type_of(readers[0]) != FLOAT
    return readers[0] if free else None


def takes_in(graph: Graph, node: Conv2d, add: Node) -> bool:
    """True if the kernel of `node` can do a sum of its output and another tensor."""
    if add.sign < 0 and add.inputs[0] != node.output:
        return False
    dims = graph.tensors[add.output].dims
    if any(graph.tensors[name].dims != dims for name in add.inputs):
        return False
    return not node.transposed and not is_depthwise(graph, node)


def other_operand(node: Conv2d, add: Node) -> str:
    """What a residual sum adds to the convolution."""
    return add.inputs[1] if add.inputs[0] == node.output else add.inputs[0]


def slopes_after(b: Build, node: Node) -> Node | None:
    """The PRelu in int8 that alone reads `node`, or None."""
    only = only_reader(b, node)
    return None if only is None or only.leaky_slopes is None else only


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
) -> Conv2dOp:
    """(5), to int8 or int16, with slopes (5b).  phases: see weight_scales()."""
    source, node = held(b, node, source, phases=phases)
    bias = node.bias if node.exact_bias is None else node.exact_bias
    bias = bias.astype(np.float64)
    sums, scales = proved(b, node, source, bias, phases=phases)
    real = np.float64(source.scale) * scales / np.float64(out.scale)
    slope = slope_of(node.name, activation)
    slopes = None if slope == 1 else np.full(scales.shape, slope)
    lo, hi = clamp_of(activation, out)
    return int8_step(
        node,
        source,
        out,
        sums,
        multiplier=multipliers(node.name, real),
        slopes=slopes,
        lo=lo,
        hi=hi,
    )


def to_float(
    b: Build, node: Conv2d, source: Tensor, out: Tensor, *, phases: int = 1
) -> Conv2dOp:
    """(4): the bias stays in float, so the sum only loses its zero point."""
    source, node = held(b, node, source, phases=phases)
    bias = np.zeros(node.bias.shape)
    sums, scales = proved(b, node, source, bias, phases=phases)
    multiplier = multipliers(node.name, np.float64(source.scale) * scales)
    bias_f32 = float_biases(node.bias)
    return int8_step(node, source, out, sums, multiplier=multiplier, bias_f32=bias_f32)


def int8_step(
    node: Conv2d, source: Tensor, out: Tensor, sums: Sums, **fields: Any
) -> Conv2dOp:
    """The step source -> out with these integers, and with what they prove."""
    return Conv2dOp(
        name=node.name,
        inputs=(source.name,),
        output=out.name,
        weights=channels_last(sums),
        bias=sums.bias.astype(np.int32),
        **_geometry(node),
        acc_bound=int(sums.bound.max()),
        int16_depth=int16_depth(sums.weights, source.dtype),
        winograd=form_of(node, sums, source),
        **fields,
    )


def float_biases(bias: FloatArray) -> FloatArray:
    """(4), in float32, of which (C,) what is denormal is 0."""
    single = bias.astype(np.float32)
    return np.where(np.abs(single) < np.finfo(np.float32).tiny, np.float32(0), single)


def form_of(node: Conv2d, sums: Sums, source: Tensor) -> str:
    """The form of (23) that the weights prove; "" unless all is int8."""
    if source.dtype != INT8:
        return ""
    stride, dilation = node.strides[1], node.dilations[1]
    return winograd_form(sums.weights, stride=stride, dilation=dilation)


def weight_scales(table: ScaleTable, node: Conv2d, *, phases: int = 1) -> DoubleArray:
    """The weight scales of a convolution, (O,), float32 values; one serves all.

    phases: of a subpixel() convolution, which has each channel of a group so many
    times, and the table once.
    """
    entry = table.layers.get(node.name)
    if entry is None:
        raise CompileError(
            f"layer {node.name!r} has no weight scales in the table; calibrate again"
        )
    for channel, scale in enumerate(entry.weight_scales):
        usable_scale(scale, f"layer {node.name!r}: weight scale {channel}")
    scales = channel_scales(node.name, entry, len(node.weight) // phases)
    result: DoubleArray = repeated(scales, node.groups, phases)
    return result


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
    if not node.finite:
        raise CompileError(f"layer {node.name!r}: a weight or bias is not finite")
    scales = weight_scales(b.table, node, phases=phases)
    entry = b.table.layers[node.name]
    rounding, wide = entry.rounding, entry.bits == WIDE
    lattice = rounding == LATTICE
    if lattice and (node.weight_scales is not None or node.weight.shape[-1] != TAPS):
        text = (
            "its weights cannot be rounded to the lattice, which is for rows of three "
        )
        text += 'float weights; delete "rounding" of the layer in the table'
        raise CompileError(f"layer {node.name!r}: {text}")
    if wide and node.weight_scales is not None:
        text = "its file has the weights as integers of 8 bits"
        raise CompileError(f'layer {node.name!r}: {text}; delete "bits" in the table')
    free = node.weight_scales is None and source.dtype == INT8 and not wide
    free = free and rounding in (NEAREST, BALANCED)
    if b.max_sqnr_loss is not None and free:
        limit = b.max_sqnr_loss
        scales, fit = int16_fit.fit(node.name, node.weight, scales, limit=limit)
        b.fits += [] if fit is None else [fit]
        # What is proved of the nearest integers need not hold of others.
        rounding = NEAREST if fit is None or fit.applied else rounding
    rounds = quantizer(rounding, entry.bits)
    if node.weight_scales is not None:
        rounds = partial(quantize_weights, lowest=LOWEST)
    sums, scales, grown = prove_sums(
        node.name,
        node.weight,
        bias,
        scales,
        scale_in=float(source.scale),
        zero_point_in=source.zero_point,
        reach=source.reach,
        quantize=rounds,
    )
    b.enlarged += grown
    return sums, scales


def channels_last(sums: Sums) -> Integers:
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


def with_proved(op: Conv2dOp, tensors: Mapping[str, Tensor]) -> Conv2dOp:
    """The step with M of (5) as near as can be to its own that serves (5d).

    Nothing changes where (5d) is not for such steps.
    """
    source, out = (tensors[name] for name in (op.inputs[0], op.output))
    alone = len(op.inputs) == 1 and op.slopes is None
    if not alone or not source.dtype == out.dtype == op.weights.dtype == INT8:
        return op
    weights = op.weights.view(np.int8)
    channels = channels_of(
        weights, op.bias, lo=op.lo, hi=op.hi, zero_point=out.zero_point
    )
    return replace(op, multiplier=nearest_proved(op.multiplier, channels))


def lower_conv_float(b: Build, node: Conv2d) -> None:
    """(20); of a transposed one the plain convolution that subpixel() makes."""
    source = b.float32(node.inputs[0])
    out = b.declare(node.output, FLOAT)
    result = before(b, node.activation, out)
    if node.transposed:
        parts = subpixel(node)
        inner, wide = transposed_tensors(b, parts, source, result)
        b.ops.append(float_step(node.name, parts.conv, source, inner))
        finish_transposed(b, node, parts, inner, wide, result)
    else:
        b.ops.append(float_step(node.name, node, source, result))
    append_activation(b, node.name, node.activation, out)


def float_step(layer: str, node: Conv2d, source: Tensor, out: Tensor) -> Conv2dF32Op:
    """The step source -> out without an activation."""
    return Conv2dF32Op(
        name=layer,
        inputs=(source.name,),
        output=out.name,
        bias_f32=node.bias.astype(np.float32),
        values=np.ascontiguousarray(node.weight.transpose(0, 2, 3, 1), np.float32),
        kernel=(node.weight.shape[2], node.weight.shape[3]),
        **_geometry(node),
    )


def _geometry(node: Conv2d) -> dict[str, Any]:
    """The fields of a step that say where its windows are, and of what channels."""
    names = ("strides", "pads", "dilations", "groups")
    return {name: getattr(node, name) for name in names}


def compute_conv(
    op: Conv2dOp, out: Tensor, x: Operand, residual: Operand | None = None
) -> Array:
    """(4), (5), (5b), (6)."""
    acc = conv_sums(op, out, x.tensor, x.values)
    acc += op.bias.astype(np.int64)[:, None, None]
    v = as_float(acc) * op.multiplier[:, None, None]
    if out.dtype == "float32":
        bias = np.zeros_like(op.multiplier) if op.bias_f32 is None else op.bias_f32
        return v + bias[:, None, None]
    if residual is not None:
        v = v + residual.centred * np.float32(op.residual_scale)
    if op.slopes is not None:
        v = leaky(v, op.slopes[:, None, None])
    return rounded(v, out, op.lo, op.hi)


def conv_sums(op: Conv2dOp, out: Tensor, source: Tensor, q: Array) -> Int64Array:
    """(3): sum of w * q over taps and channels, padding being zp; N O H W.

    One matrix product for each tap, in double: |sum| is below 2**31 (12), and the sum
    of the sizes, too, so BLAS is exact in whatever order it adds.
    """
    batch, channels, height, width = out.shape
    padded = pad_to_windows(op, out, q, source.zero_point)
    groups = op.groups
    acc = np.zeros((batch, groups, channels // groups, height * width))
    weights = op.weights.astype(np.float64)
    for y in range(op.weights.shape[1]):
        for x in range(op.weights.shape[2]):
            taps = tap(op, padded, y, x, height, width).astype(np.float64)
            taps = taps.reshape(batch, groups, -1, height * width)
            acc += weights[:, y, x].reshape(groups, channels // groups, -1) @ taps
    return acc.reshape(out.shape).astype(np.int64)


def compute_conv_float(op: Conv2dF32Op, out: Tensor, operand: Operand) -> Array:
    """(20): bias, then tap after tap, the channels of the group one after another."""
    x = operand.values.astype(np.float32)
    outputs = out.shape[1] // op.groups
    depth = op.values.shape[3]
    group = np.arange(out.shape[1]) // outputs  # of each output channel
    acc = np.broadcast_to(op.bias_f32[:, None, None], out.shape).astype(np.float32)
    with np.errstate(all="ignore"):
        for y_tap in range(op.kernel[0]):
            for x_tap in range(op.kernel[1]):
                seen, inside = taps(op, out, x, y_tap, x_tap)
                for k in range(depth):
                    weights = op.values[:, y_tap, x_tap, k, None, None]
                    product = seen[:, group * depth + k] * weights
                    acc = np.where(inside, acc + product, acc)
    return one_nan(acc)


AnyConv = Conv2dOp | Conv2dF32Op


def convolve(n: Nodes, op: AnyConv, x: str, parameters: tuple[str, str]) -> str:
    """Conv of float value `x`, which is input 0 of the step, with weights and bias.

    Gemm between vectors, where the weights are (O, I).
    """
    source, out = n.tensors[op.inputs[0]], n.tensors[op.output]
    if between_vectors(n, op):
        return n.node("Gemm", [x, *parameters], name=op.name, transB=1)
    if source.rank != 4:
        x = n.reshape(x, source.shape)
    value = n.node(
        "Conv",
        [x, *parameters],
        name=op.name,
        kernel_shape=list(op.kernel),
        strides=list(op.strides),
        pads=list(op.pads),
        dilations=list(op.dilations),
        group=op.groups,
    )
    return value if out.rank == 4 else n.reshape(value, out.dims)


def between_vectors(n: Nodes, op: AnyConv) -> bool:
    """True of a fully connected layer."""
    source, out = n.tensors[op.inputs[0]], n.tensors[op.output]
    return source.rank == out.rank == 2 and op.kernel == (1, 1) and op.groups == 1


def table_scales(n: Nodes, op: Conv2dOp) -> FloatArray:
    """(O,), of the table; TableError where the compiler could not take them."""
    scales = np.array(n.table.layers[op.name].weight_scales, np.float32)
    if len(scales) > 1:  # a transposed convolution has each channel several times
        phases = len(op.bias) // len(scales)
        scales = np.repeat(scales.reshape(op.groups, 1, -1), phases, axis=1).reshape(-1)
    scales = np.broadcast_to(scales, op.bias.shape)
    product = np.float64(n.tensors[op.inputs[0]].scale) * scales
    out = n.tensors[op.output]
    if out.dtype == "int8":
        product = product / np.float64(out.scale)
    # Where a scale was enlarged, accumulators are too large for (5d).
    own = with_proved(replace(op, multiplier=product.astype(np.float32)), n.tensors)
    changed = np.flatnonzero(own.multiplier != op.multiplier)
    if changed.size:
        text = f"layer {op.name!r}: weight scale {changed[0]} is too small for int32"
        raise TableError(f"{n.table.model_name}: {text} sums; enlarge it in the table")
    return scales


def write_conv(n: Nodes, op: Conv2dOp) -> None:
    """Conv, or Gemm between vectors, on int8 weights; the bias is int32, or float."""
    if op.name not in n.table.layers:  # a PRelu alone
        finish(n, n.real(op.inputs[0]), op)
        return
    weight_scale = table_scales(n, op)
    source = n.tensors[op.inputs[0]]
    weights = op.weights.transpose(0, 3, 1, 2)
    if between_vectors(n, op):
        weights = weights[:, :, 0, 0]
    w = n.constant(f"{op.name}_weight", weights, weight_scale)
    if op.bias_f32 is not None:
        b = n.array(f"{op.name}_bias", op.bias_f32)
        n.named(convolve(n, op, n.real(op.inputs[0]), (w, b)), op.output)
        return
    scale = np.float32(source.scale) * weight_scale
    b = n.constant(f"{op.name}_bias", int32_bias(op, source, scale), scale)
    value = convolve(n, op, n.real(op.inputs[0]), (w, b))
    if len(op.inputs) > 1:
        operator = "Sub" if op.residual_scale < 0 else "Add"
        value = n.node(operator, [value, n.real(op.inputs[1])])
    finish(n, value, op)


def int32_bias(
    op: Conv2dOp, source: Tensor, scale: FloatArray
) -> npt.NDArray[np.int32]:
    """rne(bias / scale), (O,): what the program has without its zero point  (5)."""
    sums = op.weights.astype(np.int64).sum(axis=(1, 2, 3))
    whole = op.bias.astype(np.int64) + source.zero_point * sums
    bad = np.flatnonzero(np.abs(whole) >= 2**31)
    if bad.size:
        raise CompileError(
            f"layer {op.name!r}: channel {bad[0]}: its bias does not fit int32 with "
            f"scale {scale[bad[0]]:.4g}; enlarge its weight scale in the table"
        )
    result: npt.NDArray[np.int32] = whole.astype(np.int32)
    return result


def write_conv_float(n: Nodes, op: Conv2dF32Op) -> None:
    """A Conv with float weights."""
    w = n.array(f"{op.name}_weight", op.values.transpose(0, 3, 1, 2))
    b = n.array(f"{op.name}_bias", op.bias_f32)
    n.named(convolve(n, op, op.inputs[0], (w, b)), op.output)


FAMILY = Family(
    imports={"Conv": import_conv},
    lower={Conv2d: lower_conv},
    lower_float={Conv2d: lower_conv_float},
    steps={Conv2dOp: compute_conv, Conv2dF32Op: compute_conv_float},
    qdq={Conv2dOp: write_conv, Conv2dF32Op: write_conv_float},
)
