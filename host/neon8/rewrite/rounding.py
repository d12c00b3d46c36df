# SPDX-License-Identifier: Apache-2.0
"""Weights whose levels were chosen, one by one, and stand in the scale table.

Of each weight one bit says which of two neighbours its level is: 0 for the nearest
multiple of the scale, 1 for the one on the other side. So weights stay within one step
of what they were, whatever a table says, and a table without the bits is one of weights
rounded to the nearest. Those of a layer on the lattice (23) are rounded to that once
more, which leaves them where they are on it.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from neon8.arrays import DoubleArray, FloatArray, Int64Array
from neon8.errors import CompileError
from neon8.ir.graph import Graph
from neon8.operators.convolution import Conv2d, with_convolutions
from neon8.quant.lattice import HALF_REACH, lattice_scales, quantizer, reaches
from neon8.quant.scale_table import CHOSEN, LayerScale, ScaleTable
from neon8.quant.weights import Integers, neighbours

BoolArray = npt.NDArray[np.bool_]

EVEN_MOVES = np.array([[0, 0, 0], [1, 1, 0], [1, 0, 1], [0, 1, 1]], bool)
ODD_MOVES = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]], bool)
"""Which weights of a row take the other neighbour: the sum of the row is even then."""
WAYS = len(EVEN_MOVES)


def packed(chosen: BoolArray) -> bytes:
    """The bits of LayerScale.levels.  chosen: (O, ...), True for the other neighbour.

    The first weight is the highest bit of the first byte; what is left of the last byte
    is 0.
    """
    return np.packbits(chosen.reshape(-1)).tobytes()


def on_lattice_scales(node: Conv2d, entry: LayerScale) -> LayerScale:
    """Round the layer to the lattice, with scales that keep its rows in range."""
    scales = np.array(entry.weight_scales)
    enlarged = lattice_scales(node.weight, scales)
    return replace(entry, weight_scales=tuple(enlarged.tolist()), rounding="lattice")


def balanced(node: Conv2d, entry: LayerScale) -> Iterator[LayerScale]:
    """The layer with the points of the lattice whose errors cancel over a kernel.

    What its nine taps read is nearly alike, so Σ e^2 + (Σ e)^2 of their errors e is
    least, with two neighbours for each weight. Nothing where there is no such point.
    """
    chosen = np.empty(node.weight.shape, bool)
    for channel, scale in enumerate(entry.weight_scales):
        weight, scales = node.weight[channel], np.full(len(node.weight[0]), scale)
        nearest, other, real = neighbours(weight, scales)
        # Each row has four ways to move weights that leave its sum even.
        odd = nearest.sum(axis=-1, keepdims=True) % 2 == 1
        ways = np.where(odd, ODD_MOVES[:, None, None], EVEN_MOVES[:, None, None])
        levels = np.where(ways, other, nearest).astype(np.int16)
        errors = real - levels
        sums = errors[..., 0] + errors[..., 1] + errors[..., 2]
        squares = np.square(errors)
        prices = squares[..., 0] + squares[..., 1] + squares[..., 2]
        off = (levels.sum(axis=-1) % 2 == 1) | (reaches(levels) > HALF_REACH)
        prices[off] = np.inf
        # One way for each of three rows: 4 x 4 x 4 of them, for each input channel.
        total, price = (
            each[:, None, None, :, 0] + each[:, None, :, 1] + each[..., 2]
            for each in (sums, prices)
        )
        price = (price + np.square(total)).reshape(-1, len(weight))
        best = price.argmin(axis=0)
        inputs = np.arange(len(weight))
        if np.isinf(price[best, inputs]).any():
            return
        rows = np.stack(np.unravel_index(best, (WAYS,) * 3), axis=1)
        chosen[channel] = ways[rows, inputs[:, None], np.arange(3)]
    yield replace(entry, levels=packed(chosen))


def moved(entry: LayerScale) -> int:
    """How many weights of a layer have not the nearest level."""
    return sum(map(int.bit_count, entry.levels))


def rounded(
    graph: Graph, table: ScaleTable, exact: frozenset[str] = frozenset()
) -> Graph:
    """`graph`, which is equalized(), with the weights that `table` chose.

    Weights that were chosen are whole multiples of their scales, as near as float32 has
    them, so that rounding to the nearest gives their levels.  exact: names of layers
    whose weights are not rounded.  CompileError: the bits of a layer are not as many as
    its weights, or come from a file that has integers.
    """
    if not any(map(_is_chosen, table.layers.values())):
        return graph
    return with_convolutions(
        graph, lambda n: n if n.name in exact else _rounded(n, table)
    )


def _rounded(node: Conv2d, table: ScaleTable) -> Conv2d:
    entry = table.layers.get(node.name)
    if entry is None or not _is_chosen(entry):
        return node
    if node.weight_scales is not None:
        text = "its file has the weights as integers, which cannot be chosen"
        raise CompileError(f"layer {node.name!r}: {text}; correct the table")
    shape, scales = node.weight.shape, np.array(entry.weight_scales)
    if len(entry.levels) != -(-node.weight.size // 8):
        text = f"has bits for {8 * len(entry.levels)} levels in the table"
        raise CompileError(
            f"layer {node.name!r} {text}, but {node.weight.size} weights; delete "
            '"rounding" and "levels" of the layer'
        )
    if len(scales) not in (1, shape[0]) or not np.isfinite(node.weight).all():
        return node  # which the compiler refuses
    scales = np.broadcast_to(scales, shape[:1])
    return replace(node, weight=_multiples(node.weight, scales, entry.levels))


def integers(
    entry: LayerScale,
    weight: FloatArray,
    scales: DoubleArray,
    channels: Int64Array | slice = slice(None),
) -> Integers:
    """What the weights of a layer, or some channels, are rounded to.  scales: (O,)."""
    if entry.levels:
        weight = _multiples(weight, scales, entry.levels)
    rounds = quantizer(entry.rounding, entry.bits)
    return rounds(weight[channels], scales[channels])


def _is_chosen(entry: LayerScale) -> bool:
    return entry.rounding == CHOSEN or bool(entry.levels)


def _multiples(weight: FloatArray, scales: DoubleArray, levels: bytes) -> FloatArray:
    """The levels that were chosen, times the scales, (O,)."""
    bits = np.frombuffer(levels, np.uint8)
    chosen = np.unpackbits(bits, count=weight.size).reshape(weight.shape)
    result = np.empty_like(weight)
    for channel, scale in enumerate(scales):  # a layer in double is eight of it
        at = slice(channel, channel + 1)
        nearest, other, _ = neighbours(weight[at], scales[at])
        result[at] = np.where(chosen[at], other, nearest) * scale
    return result
