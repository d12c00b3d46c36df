# SPDX-License-Identifier: Apache-2.0
"""Convolutions and pools of three spatial dimensions, D H W, by those of two  (33).

A convolution of kd slices is one of an image whose channels are those of the kd slices,
one image for each slice of the result. A pool is one over rows and columns, and then
one over the depth.
"""

import math
from typing import Any

import numpy as np

from neon8.arrays import Array
from neon8.operators.composition import MAX_ELEMENTS, Parts
from neon8.operators.family import Family
from neon8.operators.pooling import with_indices
from neon8.operators.windows import MAX_EXTENT, positive, steps_of

RANK = 5
"""Dimensions of N C D H W."""


def conv(p: Parts) -> bool:
    """Conv: the slices that the windows of one slice of the result see are channels."""
    source, node = p.source, p.node
    shape = source.shape_of(node, node.inputs[0])
    if len(shape) != RANK:
        return False
    out = source.shape_of(node, node.outputs[0])
    weight = source.required(node, 1)
    if weight.ndim != RANK:
        return False
    kernel = weight.shape[2:]
    strides, dilations, begins, ends = steps_of(source, node, kernel, shape[2:])
    first = np.arange(out[2]) * strides[0] - begins[0]
    at = first[:, np.newaxis] + np.arange(kernel[0]) * dilations[0]
    at = np.where((at >= 0) & (at < shape[2]), at, shape[2])
    flat = weight.reshape(len(weight), -1, *kernel[1:])
    pads = (*begins[1:], *ends[1:])
    steps = {"strides": strides[1:], "dilations": dilations[1:]}
    return over_slices(p, at, flat, out, pads=pads, **steps)


def conv_transpose(p: Parts) -> bool:
    """ConvTranspose: along the depth a convolution, with zeros between slices."""
    source, node = p.source, p.node
    shape = source.shape_of(node, node.inputs[0])
    if len(shape) != RANK:
        return False
    out = source.shape_of(node, node.outputs[0])
    weight = source.required(node, 1)
    if weight.ndim != RANK or node.text("auto_pad", "NOTSET") != "NOTSET":
        return False
    if node.integers("output_shape") is not None:
        raise source.failure(node, "output_shape is not supported; export with pads")
    kernel = weight.shape[2:]
    strides = positive(source, node, "strides", (1,) * 3)
    dilations = positive(source, node, "dilations", (1,) * 3)
    pads = node.integers("pads") or (0,) * 6
    extra = node.integers("output_padding") or (0,) * 3
    if len(pads) != 6 or len(extra) != 3:
        return False
    if not all(0 <= pad <= MAX_EXTENT for pad in (*pads, *extra)):
        return False
    # Slice `at` of the result is made of slice (at + pad - tap * dilation) / stride.
    taps = np.arange(kernel[0]) * dilations[0]
    at, rest = np.divmod(np.arange(out[2])[:, np.newaxis] + pads[0] - taps, strides[0])
    at = np.where((rest == 0) & (at >= 0) & (at < shape[2]), at, shape[2])
    flat = weight.swapaxes(1, 2).reshape(-1, weight.shape[1], *kernel[1:])
    return over_slices(
        p,
        at,
        np.ascontiguousarray(flat),
        out,
        strides=strides[1:],
        dilations=dilations[1:],
        pads=(*pads[1:3], *pads[4:]),
        output_padding=extra[1:],
    )


def over_slices(
    p: Parts, at: Array, weight: Array, out: tuple[int, ...], **attributes: Any
) -> bool:
    """The operator of the node over rows and columns, which makes `out`.

    at: (D', kd), the slices whose channels are those of a slice of the result; the
    depth itself where there is none.
    """
    node = p.node
    made = p.add(
        node.operator,
        stacked(p, at),
        weight,
        *node.inputs[2:3],
        layer=True,
        kernel_shape=weight.shape[2:],
        group=node.integer("group", 1),
        **attributes,
    )
    n, channels, depth, height, width = out
    apart = p.add("Reshape", made, (n, depth, channels, height, width))
    p.add("Transpose", apart, output=node.outputs[0], perm=(0, 2, 1, 3, 4))
    return True


def stacked(p: Parts, at: Array) -> str:
    """(N * D', C * kd, H, W), the slices `at` of an input (N, C, D, H, W)."""
    n, channels, depth, height, width = p.shape_of(p.node.inputs[0])
    slices, kernel = at.shape
    if n * slices * channels * kernel * height * width > MAX_ELEMENTS:
        raise p.failure("makes images too large for this")
    value = p.node.inputs[0]
    if (at == depth).any():
        pads = np.zeros((2, RANK), np.int64)
        pads[1, 2] = 1
        value = p.add("Pad", value, pads.reshape(-1))
    value = p.add("Gather", value, at.astype(np.int64), axis=2)
    value = p.add("Transpose", value, perm=(0, 2, 1, 3, 4, 5))
    dims = (n * slices, channels * kernel, height, width)
    return p.add("Reshape", value, dims)


def pool(p: Parts) -> bool:
    """MaxPool, LpPool, and AveragePool, whose counts are products of two counts."""
    source, node = p.source, p.node
    if any(node.outputs[1:]) and node.outputs[0]:
        return with_indices(p)
    shape = source.shape_of(node, node.inputs[0])
    kernel = node.integers("kernel_shape") or ()
    if len(shape) != RANK or len(kernel) != 3 or node.integer("storage_order", 0):
        return False
    out = source.shape_of(node, node.outputs[0])
    strides, dilations, begins, ends = steps_of(source, node, kernel, shape[2:])
    n, channels, depth, height, width = shape
    value = p.add("Reshape", node.inputs[0], (n, channels * depth, height, width))
    more: dict[str, Any] = {
        name: node.integer(name, 0)
        for name in ("ceil_mode", "count_include_pad", "p")
        if name in node.attributes
    }
    flat = n, channels, depth, math.prod(out[3:])
    for axes, dims in ((slice(1, 3), flat), (slice(0, 1), out)):
        fill: tuple[int, ...] = () if axes.start else (1,)
        if "dilations" in node.attributes:
            more["dilations"] = (*dilations[axes], *fill)
        none = tuple(0 for _ in fill)
        value = p.add(
            node.operator,
            value,
            kernel_shape=(*tuple(kernel)[axes], *fill),
            strides=(*strides[axes], *fill),
            pads=(*begins[axes], *none, *ends[axes], *none),
            **more,
        )
        output = "" if axes.start else node.outputs[0]
        value = p.add("Reshape", value, dims, output=output)
    return True


FAMILY = Family(
    compositions={
        "AveragePool": pool,
        "Conv": conv,
        "ConvTranspose": conv_transpose,
        "LpPool": pool,
        "MaxPool": pool,
    }
)
