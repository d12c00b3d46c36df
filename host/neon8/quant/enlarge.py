# SPDX-License-Identifier: Apache-2.0
"""The least weight scale that has a property which larger ones have, too."""

from collections.abc import Callable

import numpy as np

from neon8.quant.weights import DoubleArray

MAX_ENLARGEMENT = 2.0**64
BISECTIONS = 24


def enlarged(scale: float, factor: float) -> DoubleArray:
    """scale * factor, a float32 value again, as an array (1,)."""
    with np.errstate(over="ignore"):  # infinity is refused with the multiplier
        return np.array([scale * factor]).astype(np.float32).astype(np.float64)


def least_factor(fits: Callable[[float], bool]) -> float | None:
    """The least factor > 1 that fits, to one part in 2**24; None if there is none.

    A larger factor shrinks every weight and the bias, so there is one turning point.
    """
    high = 2.0
    while not fits(high):
        high *= 2
        if high > MAX_ENLARGEMENT:
            return None
    low = high / 2
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if fits(middle):
            high = middle
        else:
            low = middle
    return high
