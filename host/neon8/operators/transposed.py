# SPDX-License-Identifier: Apache-2.0
"""ConvTranspose: a convolution of an input with zeros between its pixels."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from neon8.arrays import FloatArray
from neon8.ir.graph import Node
from neon8.operators.convolution import Conv2d
from neon8.operators.family import Family
from neon8.operators.source import OnnxNode, Source
from neon8.operators.subpixel import taps_of
from neon8.operators.windows import MAX_EXTENT, positive

MAX_GROWTH, SPARE = 16, 1 << 24
"""A kernel whose taps the stride meets seldom is mostly zeros when it is made plain: so
many times as many weights, or so many at least, are allowed."""


def conv_transpose(source: Source, node: OnnxNode) -> Node:
    """ConvTranspose, of one or two spatial dimensions."""
    shape = source.shape_of(node, node.inputs[0])
    out = source.shape_of(node, node.outputs[0])
    weight = source.required(node, 1)
    rank = len(shape) - 2
    if weight.ndim != len(shape) or rank not in (1, 2):
        detail = f"weights of {weight.ndim} dimensions for an input of {len(shape)}"
        raise source.failure(node, f"{detail}; neon8 takes 3 or 4")
    if node.integers("kernel_shape") not in (None, weight.shape[2:]):
        raise source.failure(node, "kernel_shape is not that of the weights")
    groups = node.integer("group", 1)
    if groups < 1 or shape[1] % groups or len(weight) != shape[1]:
        detail = f"weights {list(weight.shape)} in {groups} groups do not fit"
        raise source.failure(node, f"{detail} {shape[1]} input channels")
    weight = turned(weight, groups)
    bias = source.weights(node, 2)
    if bias is not None and bias.shape != (len(weight),):
        raise source.failure(node, f"bias {list(bias.shape)} is not ({len(weight)},)")
    axes = [
        _Axis(kernel=kernel, size=size, out=wanted, stride=stride, dilation=dilation)
        for kernel, size, wanted, stride, dilation in zip(
            weight.shape[2 : 2 + rank],
            shape[2:],
            out[2:],
            positive(source, node, "strides", (1,) * rank),
            positive(source, node, "dilations", (1,) * rank),
            strict=True,
        )
    ]
    _check_growth(source, node, weight, axes)
    before = _before(source, node, axes)
    begins = [axis.reach - pad for axis, pad in zip(axes, before, strict=True)]
    ends = [
        axis.out + axis.reach - (axis.size - 1) * axis.stride - 1 - begin
        for axis, begin in zip(axes, begins, strict=True)
    ]
    if rank == 1:  # a line is an image that is one pixel wide
        axes.append(_Axis(kernel=1, size=1, out=1, stride=1, dilation=1))
        begins.append(0)
        ends.append(0)
    height, width = axes
    return node.made(
        Conv2d,
        weight=weight,
        bias=np.zeros(len(weight), np.float32) if bias is None else bias,
        pads=(begins[0], begins[1], ends[0], ends[1]),
        dilations=(height.dilation, width.dilation),
        groups=groups,
        spread=(height.stride, width.stride),
        pre_activation=node.outputs[0],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Axis:
    kernel: int
    size: int
    out: int
    stride: int
    dilation: int

    @property
    def reach(self) -> int:
        """From the first tap of the kernel to its last."""
        return (self.kernel - 1) * self.dilation


def turned(weight: FloatArray, groups: int) -> FloatArray:
    """(I, O / groups, kh, kw), or without kw, to (O, I / groups, kh, kw) mirrored."""
    if weight.ndim == 3:
        weight = weight[..., np.newaxis]
    inputs, outputs, *kernel = weight.shape
    grouped = weight.reshape(groups, inputs // groups, outputs, *kernel)
    whole = grouped.swapaxes(1, 2).reshape(-1, inputs // groups, *kernel)
    return np.ascontiguousarray(whole[:, :, ::-1, ::-1])


def _check_growth(
    source: Source, node: OnnxNode, weight: FloatArray, axes: Sequence[_Axis]
) -> None:
    """GraphError where a plain convolution with the same result would be absurd."""
    taps = [
        axis.stride * taps_of(axis.kernel, axis.dilation, axis.stride) for axis in axes
    ]
    size = math.prod(weight.shape[:2]) * math.prod(taps)
    if size > max(MAX_GROWTH * weight.size, SPARE):
        strides = [axis.stride for axis in axes]
        dilations = [axis.dilation for axis in axes]
        detail = f"strides {strides} with dilations {dilations} make {size} weights"
        raise source.failure(node, f"{detail} of {weight.size}")


def _before(source: Source, node: OnnxNode, axes: Sequence[_Axis]) -> list[int]:
    """How many pixels ONNX cuts off at the front of each axis."""
    rank = len(axes)
    mode = node.text("auto_pad", "NOTSET")
    extra = node.integers("output_padding") or (0,) * rank
    pads = node.integers("pads") or (0,) * (2 * rank)
    if mode not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        raise source.failure(node, f"auto_pad {mode!r} is unknown")
    if len(extra) != rank or len(pads) != 2 * rank:
        raise source.failure(node, f"pads or output_padding are not for {rank} axes")
    if not all(0 <= pad <= MAX_EXTENT for pad in (*pads, *extra)):
        raise source.failure(node, "a pad or output_padding is negative")
    pads = (0,) * (2 * rank) if mode == "VALID" else pads
    natural = [
        (axis.size - 1) * axis.stride + axis.reach + 1 + more
        for axis, more in zip(axes, extra, strict=True)
    ]
    if mode.startswith("SAME") or node.integers("output_shape") is not None:
        # onnxruntime: what is too much is cut off on both sides.
        total = [max(n - axis.out, 0) for n, axis in zip(natural, axes, strict=True)]
        return [n // 2 if mode == "SAME_UPPER" else n - n // 2 for n in total]
    before, after = pads[:rank], pads[rank:]
    for axis, whole, pair in zip(
        axes, natural, zip(before, after, strict=True), strict=True
    ):
        if whole - sum(pair) != axis.out:
            detail = f"pads {list(pads)} do not give {axis.out} pixels of {whole}"
            raise source.failure(node, detail)
    return list(before)


FAMILY = Family(imports={"ConvTranspose": conv_transpose})
