# SPDX-License-Identifier: Apache-2.0
"""Which layers have their weights rounded so that errors cancel over taps.

It pays where what the taps read is alike, as it is in images, which the observed rows
of a layer tell: by how much the noise of some output channels falls, mean left out, as
the bias corrects that.
"""

import math

import numpy as np

from neon8.arrays import DoubleArray
from neon8.calibrate.statistics.patches import Patches, chosen_channels
from neon8.operators.convolution import Conv2d
from neon8.quant.lattice import quantizer
from neon8.quant.scale_table import BALANCED, NEAREST

LEAST_DB = 0.5
"""A smaller gain counts as none."""


def rounding_of(node: Conv2d, patches: Patches, scales: DoubleArray) -> str:
    """BALANCED where it pays, else NEAREST.

    patches: what the layer was seen to read.  scales: of its weights, (O,).
    """
    few = len(patches.rows) < 2 or math.prod(node.weight.shape[2:]) == 1
    if few or node.transposed or not node.finite:
        return NEAREST
    nearest, balanced = (_noise(node, patches, scales, r) for r in (NEAREST, BALANCED))
    if not nearest > 0 or not math.isfinite(nearest):
        return NEAREST
    gain = math.inf if balanced == 0 else 10 * math.log10(nearest / balanced)
    return BALANCED if round(gain, 1) >= LEAST_DB else NEAREST


def _noise(node: Conv2d, patches: Patches, scales: DoubleArray, rounding: str) -> float:
    """The variances that rounding adds to the chosen output channels, added up."""
    channels = chosen_channels(node)
    weight, own = node.weight[channels], scales[channels]
    levels = quantizer(rounding)(weight, own).reshape(len(channels), -1)
    errors = weight.reshape(levels.shape) - levels * own[:, np.newaxis]
    rows = patches.rows.astype(np.float64)
    rows -= rows.mean(axis=0)
    noise = [
        float(np.square(rows[:, group] @ error).sum())
        for group, error in zip(patches.groups, errors, strict=True)
    ]
    return math.fsum(noise)
