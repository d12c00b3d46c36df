# SPDX-License-Identifier: Apache-2.0
"""The grids of numerics (1): schemes of a tensor, its bits, and what they cover."""

from dataclasses import dataclass, replace

import numpy as np

from neon8.arrays import DoubleArray, FloatArray
from neon8.quant.scale_table import TensorScale


@dataclass(frozen=True, slots=True)
class Grid:
    """scheme: "symmetric", "unsigned" or "asymmetric"; bits: 7 to 16."""

    scheme: str
    bits: int = 8

    @property
    def lowest(self) -> int:
        """The least q: of 8 bits -127 or -128."""
        return -self.highest - (self.scheme != "symmetric")

    @property
    def highest(self) -> int:
        """The largest q: of 8 bits 127."""
        return int(2 ** (self.bits - 1) - 1)

    @property
    def steps(self) -> int:
        """Between the least and the largest q."""
        return self.highest - self.lowest

    def cover(self, lo: float, hi: float) -> tuple[np.float32, int]:
        """Scale and zero point so that [lo, hi], lo <= 0 <= hi, is covered."""
        scale, zero_point = self.cover_exactly(lo, hi)
        return np.float32(scale), zero_point

    def cover_exactly(self, lo: float, hi: float) -> tuple[float, int]:
        """Scale and zero point as cover() has them, before the scale is rounded."""
        if self.scheme == "symmetric":
            return max(-lo, hi) / self.highest, 0
        if self.scheme == "unsigned":
            return hi / self.steps, self.lowest
        scale = (hi - lo) / self.steps
        zero_point = np.rint(self.lowest - lo / scale)
        return scale, int(np.clip(zero_point, self.lowest, self.highest))

    def rounded(self, values: FloatArray, scale: float, zero_point: int) -> DoubleArray:
        """What is left of real values after (2) and (1), in double."""
        q = np.rint(values * np.float32(1 / np.float32(scale))).astype(np.float64)
        q = np.clip(q + zero_point, self.lowest, self.highest)
        result: DoubleArray = (q - zero_point) * scale
        return result


def at_bits(entry: TensorScale, bits: int) -> TensorScale:
    """`entry` with so many bits: the grid that covers the same real values.

    The scale and the zero point say what these are, as people may have changed them.
    """
    if bits == entry.bits:
        return entry
    return covering(entry, *ends(entry), bits=bits)


def covering(
    entry: TensorScale, lo: float, hi: float, *, bits: int | None = None
) -> TensorScale:
    """`entry` with the grid of its scheme that covers [lo, hi], lo <= 0 <= hi."""
    bits = bits or entry.bits
    return on_grid(entry, *Grid(entry.scheme, bits).cover(lo, hi), bits=bits)


def ends(entry: TensorScale) -> tuple[float, float]:
    """The least and the largest real value of its grid."""
    grid = Grid(entry.scheme, entry.bits)
    low, high = grid.lowest - entry.zero_point, grid.highest - entry.zero_point
    return entry.scale * low, entry.scale * high


def on_grid(
    entry: TensorScale, scale: np.float32, zero_point: int, *, bits: int
) -> TensorScale:
    """`entry` with another grid of its scheme."""
    found = replace(entry, scale=float(scale), zero_point=zero_point, bits=bits)
    lo, hi = (float(np.float32(end)) for end in ends(found))
    return replace(found, threshold=(lo, hi))
