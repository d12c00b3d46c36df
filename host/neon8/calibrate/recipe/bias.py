# SPDX-License-Identifier: Apache-2.0
"""Bias correction: rounding weights must not move the mean of a channel.

A convolution with rounded weights Wq in place of W is off by (W - Wq) * x, and the mean
of that, over all pixels of all samples, is known from the means of the input channels:

    correction[o] = sum over i, y, x of (W - Wq)[o, i, y, x] * E[x_i] * share[y, x]

share[y, x] is the fraction of output pixels for which the tap reads a pixel and not
padding, which is 0. Errors of earlier layers are left out, as in Nagel et al.,
"Data-Free Quantization Through Weight Equalization and Bias Correction", 2019, section
4.2.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from neon8.arrays import DoubleArray
from neon8.ir.graph import Graph
from neon8.operators.convolution import Conv2d, convolutions
from neon8.quant.scale_table import LayerScale, ScaleTable
from neon8.quant.weights import channel_scales
from neon8.rewrite.rounding import integers

CORRECTED = "corrected"
"""Reason code of a layer with a correction."""


def corrections(
    graph: Graph, table: ScaleTable, means: Mapping[str, DoubleArray]
) -> ScaleTable:
    """Add a bias correction to each layer whose means rounding shifts.

    graph: rewritten with the factors and offsets of the table.  means: (I,) channel
    means of each tensor that a layer of it reads.
    """
    layers = dict(table.layers)
    for node in convolutions(graph):
        if node.name in layers:
            source = node.inputs[0]
            size = graph.tensors[source].shape[2:]
            values = correction(node, layers[node.name], means[source], size)
            given = table.tensors[source]
            if given.min is not None and given.min >= 0 and not given.offsets:
                values = _positive(node, values)
            layers[node.name] = _with(layers[node.name], values)
    return replace(table, layers=layers)


def _positive(node: Conv2d, values: DoubleArray) -> DoubleArray:
    """The corrections with which sums of nothing below 0 stay so, as logarithms want.

    Of a positive bias half is left.
    """
    never = node.weight.reshape(len(values), -1).min(axis=1) >= 0
    never &= node.bias >= 0
    result: DoubleArray = np.where(never, np.maximum(values, -node.bias / 2), values)
    return result


def _with(entry: LayerScale, values: DoubleArray) -> LayerScale:
    with np.errstate(over="ignore"):
        found = values.astype(np.float32)
    if not found.any() or not np.isfinite(found).all():
        return entry
    return replace(
        entry,
        bias_correction=tuple(found.tolist()),
        reasons=(CORRECTED, *entry.reasons),
    )


def correction(
    node: Conv2d, entry: LayerScale, means: DoubleArray, size: tuple[int, int]
) -> DoubleArray:
    """What to add to the bias, (O,); NaN if a weight is not finite.

    size: height and width of the input. Products are added from the first weight of a
    channel to the last, so the result is the same on every machine.
    """
    count = len(node.weight)
    if not np.isfinite(node.weight).all():
        return np.full(count, np.nan)
    scales = channel_scales(node.name, entry, count)
    levels = integers(entry, node.weight, scales)
    read = means.reshape(node.groups, -1, 1, 1) * _shares(node, size)
    result = np.empty(count)
    for channel, scale in enumerate(scales):
        lost = node.weight[channel].astype(np.float64) - levels[channel] * scale
        products = lost * read[channel * node.groups // count]
        result[channel] = np.add.accumulate(products.ravel())[-1]
    return result


def _shares(node: Conv2d, size: tuple[int, int]) -> DoubleArray:
    """The fraction of output pixels for which each tap reads a pixel, (kh, kw)."""
    rows, columns = (_shares_along(node, axis, size[axis]) for axis in (0, 1))
    return rows[:, np.newaxis] * columns


def _shares_along(node: Conv2d, axis: int, length: int) -> DoubleArray:
    spread, stride = node.spread[axis], node.strides[axis]
    taps = np.arange(node.weight.shape[2 + axis]) * node.dilations[axis]
    before, after = node.pads[axis], node.pads[2 + axis]
    last = (length - 1) * spread + before + after - int(taps[-1])
    pixels = np.arange(last // stride + 1) * stride
    at = pixels + taps[:, np.newaxis] - before
    inside = (at % spread == 0) & (at >= 0) & (at < length * spread)
    result: DoubleArray = inside.mean(axis=1)
    return result
