# SPDX-License-Identifier: Apache-2.0
"""Weights on the lattice that int8 Winograd F(2,3) takes in halves (23).

A row is what an output channel multiplies a row of an input channel by, g0 g1 g2. On
the lattice the sum of the three is even, so that (g0 + g1 + g2) / 2 and
(g0 - g1 + g2) / 2 are whole, and |g0 + g2| + |g1| is at most 254, so that both fit
int8. Half of all rows are on it after plain rounding; of the others one element is
rounded the other way, which is at most one step off.
"""

import numpy as np

from neon8.arrays import DoubleArray, FloatArray, Int8Array, Int16Array
from neon8.quant.balanced import on_balance
from neon8.quant.scale_table import BALANCED, LATTICE, NARROW, WIDE
from neon8.quant.weights import (
    Integers,
    Quantize,
    enlarged,
    least_factor,
    neighbours,
    quantize_weights,
    quantize_wide,
)

TAPS = 3
WHOLE_REACH = 127
"""|g0 + g2| + |g1| of rows that need no halving."""
HALF_REACH = 254


def on_lattice(weight: FloatArray | DoubleArray, scales: DoubleArray) -> Int8Array:
    """Round to rows of even sum: to the nearest, but for one element of an odd row.

    weight: (O, ..., 3), finite; scales: (O,). One channel at a time, as
    quantize_weights().
    """
    result = np.empty(weight.shape, np.int8)
    for channel in range(len(scales)):
        at = slice(channel, channel + 1)
        nearest, other, real = neighbours(weight[at], scales[at])
        # An exact 0 has none, nor has what is clipped: one step within the ends.
        inside = nearest + np.where(nearest > 0, -1, 1)
        other = np.where(other == nearest, inside, other)
        price = np.square(real - other) - np.square(real - nearest)
        cheapest = np.argmin(price, axis=-1)[..., np.newaxis]
        odd = nearest.sum(axis=-1, keepdims=True) % 2 == 1
        moved = odd & (np.arange(TAPS) == cheapest)
        result[at] = np.where(moved, other, nearest)
    return result


def quantizer(rounding: str, bits: int = NARROW) -> Quantize:
    """The function that rounds weights so; those that were chosen are exact."""
    if bits == WIDE:
        return quantize_wide
    special: dict[str, Quantize] = {LATTICE: on_lattice, BALANCED: on_balance}
    return special.get(rounding, quantize_weights)


def reaches(weights: Integers) -> Int16Array:
    """|g0 + g2| + |g1| of each row.  weights: (..., 3)."""
    g0, g1, g2 = (weights[..., tap].astype(np.int16) for tap in range(TAPS))
    result: Int16Array = np.abs(g0 + g2) + np.abs(g1)
    return result


def lattice_scales(weight: FloatArray, scales: DoubleArray) -> DoubleArray:
    """`scales`, enlarged by the least factor where a row reaches beyond HALF_REACH.

    With absmax / 127 that is 1.5 and what rounding adds at most.
    """
    result: DoubleArray = scales.copy()
    for channel, scale in enumerate(scales):
        # Rounding adds less than 3 to what a row reaches: others need no look.
        rows = weight[channel].reshape(1, -1, TAPS).astype(np.float64)
        real = np.abs(rows[..., 0] + rows[..., 2]) + np.abs(rows[..., 1])
        wide = rows[real > (HALF_REACH - TAPS) * scale][np.newaxis]

        def fits(factor: float, wide: DoubleArray = wide, scale: float = scale) -> bool:
            levels = on_lattice(wide, enlarged(scale, factor))
            return bool((reaches(levels) <= HALF_REACH).all())

        if not fits(1.0):
            factor = least_factor(fits)
            assert factor is not None  # noqa: S101 - zeros are on the lattice
            result[channel] = enlarged(scale, factor)[0]
    return result
