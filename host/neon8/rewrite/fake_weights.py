# SPDX-License-Identifier: Apache-2.0
"""Weights as the int8 network has them, in float: rounded, and multiplied out again."""

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from neon8.ir.graph import Graph
from neon8.operators.convolution import Conv2d, convolutions
from neon8.quant.lattice import quantizer
from neon8.quant.scale_table import ScaleTable
from neon8.quant.weights import channel_scales


def rounded_layers(
    graph: Graph, table: ScaleTable, names: Collection[str]
) -> tuple[Conv2d, ...]:
    """The layers `names` of `graph` with weights that are multiples of their scales.

    graph: with what `table` has done to weights and biases, such as factors. Layers of
    which the table has not one scale for each channel, or one for all, are left out.
    """
    found = []
    for node in convolutions(graph):
        entry = table.layers.get(node.name)
        if entry is None or node.name not in names:
            continue
        count = len(node.weight)
        if len(entry.weight_scales) not in (1, count):
            continue
        scales = channel_scales(node.name, entry, count)
        levels = quantizer(entry.rounding, entry.bits)(node.weight, scales)
        weight = levels.astype(np.float32)
        for channel, scale in enumerate(scales):
            weight[channel] *= np.float32(scale)
        found.append(replace(node, weight=weight))
    return tuple(found)
