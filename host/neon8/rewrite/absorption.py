# SPDX-License-Identifier: Apache-2.0
"""Bias absorption: a network with the offsets of a scale table in it  (5c).

An offset of a channel says that its values are those of the int8 network and the
offset. The convolution that makes the channel has it taken from its bias, those that
read it have what it adds up to in theirs: the network computes the same function, and
channels with means far apart share the range of one scale better. There is no
activation between the two, and no padding, which would have to be what 0 becomes.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import NoReturn

import numpy as np

from neon8.arrays import DoubleArray
from neon8.errors import CompileError
from neon8.ir.graph import Graph, Node
from neon8.operators.convolution import Conv2d, convolutions, with_convolutions
from neon8.operators.source import float32


def with_offsets(graph: Graph, offsets: Mapping[str, DoubleArray]) -> Graph:
    """`graph` with offsets, (C,), of tensors that are not seen from outside.

    CompileError: what makes or reads one of them cannot take them.
    """
    layers = convolutions(graph)
    readers = {node.name for node in layers if reads(node)}
    makers = {node.name for node in layers if makes(node)}
    for node in graph.nodes:
        read = [name for name in node.inputs if name in offsets]
        made = [name for name in node.outputs if name in offsets]
        if read and node.name not in readers:
            _refuse(node, read[0], "reads")
        if made and node.name not in makers:
            _refuse(node, made[0], "makes")
    return with_convolutions(graph, lambda node: _rewritten(node, offsets))


def makes(node: Conv2d) -> bool:
    """True if what the node makes may have offsets."""
    return not node.transposed and node.activation.identity


def reads(node: Conv2d) -> bool:
    """True if what the node reads may have offsets."""
    return not node.transposed and not any(node.pads)


def _refuse(node: Node, name: str, does: str) -> NoReturn:
    raise CompileError(
        f"tensor {name!r}: layer {node.name!r} {does} it, and is no convolution "
        "that can have offsets there; delete them in the table"
    )


def _rewritten(node: Conv2d, offsets: Mapping[str, DoubleArray]) -> Conv2d:
    read, made = offsets.get(node.inputs[0]), offsets.get(node.output)
    if read is None and made is None:
        return node
    bias = node.bias.astype(np.float64)
    if read is not None:
        bias = bias + constant(node, read)
    if made is not None:
        bias = bias - made
    return replace(node, bias=float32(bias))  # the compiler refuses what is not finite


def constant(node: Conv2d, values: DoubleArray) -> DoubleArray:
    """(O,) the sums where each input channel has the same value, (I,), everywhere.

    Added up from the first weight of a channel to the last, so that the result is the
    same everywhere.
    """
    count = len(node.weight)
    by_group = values.reshape(node.groups, -1)
    rows = np.repeat(by_group, count // node.groups, axis=0)[:, :, None, None]
    products = (node.weight.astype(np.float64) * rows).reshape(count, -1)
    result: DoubleArray = np.add.accumulate(products, axis=1)[:, -1]
    return result
