# SPDX-License-Identifier: Apache-2.0
"""A few inputs of each layer, so that a threshold can be judged by the layer's output.

From every sample, sampler.py draws two output pixels of each convolution by a hash of
sample and layer. What the layer reads there is a row, with a 64-bit key from the hash.
The 64 rows with the smallest keys are kept: a uniform draw from all rows, whatever the
order of the samples and however they were divided.
"""

from dataclasses import dataclass, replace

import numpy as np

from neon8.arrays import DoubleArray, FloatArray, Int64Array, UInt64Array
from neon8.ir.graph import Activation
from neon8.operators.convolution import Conv2d

ROWS = 64
CHANNELS = 16


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Patches:
    """n rows of one layer: C chosen output channels from G groups, K taps.

    keys: (n,), ascending.  rows: (n, G, K), what the chosen groups read, 0.0 where the
    layer pads.  weights, bias: (C, K) and (C,), float as in the network.  groups: (C,),
    the index into G of the group that a channel reads.
    """

    keys: UInt64Array
    rows: FloatArray
    weights: FloatArray
    bias: FloatArray
    groups: Int64Array
    activation: Activation


def empty(node: Conv2d) -> Patches:
    """No rows yet, for evenly spaced output channels."""
    channels, known = chosen_channels(node), chosen_groups(node)
    groups = np.searchsorted(known, channels // (len(node.weight) // node.groups))
    weights = node.weight[channels].reshape(len(channels), -1)
    return Patches(
        keys=np.zeros(0, np.uint64),
        rows=np.zeros((0, len(known), weights.shape[1]), np.float32),
        weights=np.ascontiguousarray(weights, np.float32),
        bias=np.ascontiguousarray(node.bias[channels], np.float32),
        groups=groups.astype(np.int64),
        activation=node.activation,
    )


def merge(first: Patches, second: Patches) -> Patches:
    """Merge the rows of two sets of samples of one layer."""
    return smallest(
        replace(
            first,
            keys=np.concatenate([first.keys, second.keys]),
            rows=np.concatenate([first.rows, second.rows]),
        )
    )


def outputs(patches: Patches, rows: DoubleArray | None = None) -> DoubleArray:
    """The layer's outputs for its rows, (n, C), activation included, in double.

    rows: of the same shape, instead of those observed.
    """
    taken = patches.rows.astype(np.float64) if rows is None else rows
    result = np.empty((len(taken), len(patches.groups)))
    for group in range(taken.shape[1]):
        own = patches.groups == group
        result[:, own] = taken[:, group] @ patches.weights[own].astype(np.float64).T
    result += patches.bias
    activation = patches.activation
    if activation.slope != 1.0:
        result = np.where(result < 0, result * activation.slope, result)
    return np.clip(result, activation.lo, activation.hi)


def chosen_groups(node: Conv2d) -> list[int]:
    """The groups that the chosen output channels read, in order."""
    groups = chosen_channels(node) // (len(node.weight) // node.groups)
    return sorted(set(groups.tolist()))


def chosen_channels(node: Conv2d) -> Int64Array:
    """At most CHANNELS output channels, evenly spaced."""
    out = len(node.weight)
    return np.arange(min(out, CHANNELS)) * out // min(out, CHANNELS)


def smallest(patches: Patches) -> Patches:
    """Keep the ROWS rows with the smallest keys; bytes decide between equal keys."""
    order = sorted(
        range(len(patches.keys)),
        key=lambda i: (int(patches.keys[i]), patches.rows[i].tobytes()),
    )[:ROWS]
    return replace(patches, keys=patches.keys[order], rows=patches.rows[order])
