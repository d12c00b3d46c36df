# SPDX-License-Identifier: Apache-2.0
"""Biases with the corrections of a scale table."""

from dataclasses import replace

import numpy as np

from neon8.errors import CompileError
from neon8.ir.graph import Graph
from neon8.operators.convolution import Conv2d, with_convolutions
from neon8.operators.source import float32
from neon8.quant.scale_table import ScaleTable


def corrected(
    graph: Graph, table: ScaleTable, exact: frozenset[str] = frozenset()
) -> Graph:
    """`graph`, which is equalized(), with the bias corrections of `table`.

    exact: names of layers whose weights are not rounded, and which so have nothing to
    correct.  CompileError: a layer has not as many as output channels, or comes from a
    file that has its bias as integers.
    """
    if not any(layer.bias_correction for layer in table.layers.values()):
        return graph
    return with_convolutions(
        graph, lambda n: n if n.name in exact else _corrected(n, table)
    )


def _corrected(node: Conv2d, table: ScaleTable) -> Conv2d:
    entry = table.layers.get(node.name)
    if entry is None or not entry.bias_correction:
        return node
    if node.exact_bias is not None:
        text = "its file has the bias as integers, which cannot be corrected"
        raise CompileError(f"layer {node.name!r}: {text}; correct the table")
    count = len(entry.bias_correction)
    if count != len(node.bias):
        text = f"has {count} bias corrections in the table, expected {len(node.bias)}"
        raise CompileError(f"layer {node.name!r} {text}")
    sums = node.bias.astype(np.float64) + entry.bias_correction
    return replace(node, bias=float32(sums))  # the compiler refuses what is not finite
