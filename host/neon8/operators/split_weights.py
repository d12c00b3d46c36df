# SPDX-License-Identifier: Apache-2.0
"""Weights of a quantized file that int8 does not hold, as sums of some that it does.

uint8 less a zero point may be anything from -255 to 255, and several -128 in a channel
could overflow int16 (11). A weight beyond -127 .. 127 is split in two, or in three, and
the input channel that it multiplies is there once for each part:

    w * q = 127 * q + (w - 127) * q

The sums are the same integers, so nothing is lost. Few weights of a layer are so large,
and only the channels that these read are copied.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from neon8.arrays import DoubleArray, Int16Array, Int64Array
from neon8.ir.program import Tensor
from neon8.operators.build import Build
from neon8.operators.selection import append_gather
from neon8.quant.weights import HIGHEST, LOWEST, WIDEST, weight_levels

if TYPE_CHECKING:  # which is made of this
    from neon8.operators.convolution import Conv2d


def split(
    b: Build, node: "Conv2d", source: Tensor, scales: DoubleArray
) -> tuple[Tensor, "Conv2d"]:
    """`source` with channels copied, appended here, and `node` that reads it so.

    Both are as they were where int8 holds all weights. scales: (O,), of the weights,
    which are whole multiples of them up to WIDEST; a channel with larger ones is left.
    """
    levels = weight_levels(node.weight, scales)
    beyond = _beyond(levels)
    if not beyond.any():
        return source, node
    grouped = levels.reshape(node.groups, -1, *levels.shape[1:])
    parts = [grouped - beyond.reshape(grouped.shape)]
    depth = levels.shape[1]
    channels = [np.tile(np.arange(depth), (node.groups, 1))]
    for chosen, part in _pieces(beyond.reshape(grouped.shape)):
        channels.append(chosen)
        parts.append(part)
    whole = np.concatenate(parts, axis=2).reshape(len(levels), -1, *levels.shape[2:])
    firsts = np.arange(node.groups)[:, np.newaxis] * depth
    copied = (np.concatenate(channels, axis=1) + firsts).reshape(-1)
    weight = whole * scales.reshape(-1, 1, 1, 1)
    node = replace(node, weight=weight.astype(np.float32))
    return _with_channels(b, node.name, source, copied), node


def _beyond(levels: Int16Array) -> Int16Array:
    """What is to be taken from each level so that int8 holds the rest."""
    beyond = levels - np.clip(levels, -HIGHEST, HIGHEST)
    for channel, row in enumerate(levels):
        alone = np.count_nonzero(beyond[channel]) == 1 and row.min() == LOWEST
        if alone or np.abs(row).max() > WIDEST:
            beyond[channel] = 0
    return beyond


def _pieces(beyond: Int16Array) -> Iterator[tuple[Int64Array, Int16Array]]:
    """The channels of each group, (groups, n), and their weights, until all are there.

    beyond: (groups, O / groups, I / groups, kh, kw).
    """
    while beyond.any():
        read = beyond.any(axis=(1, 3, 4))
        most = read.sum(axis=1).max()
        # A group that needs fewer than another takes some whose weights are 0.
        chosen = np.argsort(~read, axis=1, kind="stable")[:, :most]
        at = chosen[:, np.newaxis, :, np.newaxis, np.newaxis]
        part = np.clip(np.take_along_axis(beyond, at, axis=2), -HIGHEST, HIGHEST)
        yield chosen, part
        rest = beyond.copy()
        left = np.take_along_axis(beyond, at, axis=2) - part
        np.put_along_axis(rest, at, left, axis=2)
        beyond = rest


def _with_channels(
    b: Build, layer: str, source: Tensor, channels: Int64Array
) -> Tensor:
    n, _, h, w = source.shape
    dims = (n, len(channels), *(source.dims[2:] if source.rank > 1 else ()))
    out = b.temporary(replace(source, dims=dims), "channels")
    append_gather(b, layer, source, out, (range(n), channels, range(h), range(w)))
    return out
