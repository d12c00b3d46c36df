# SPDX-License-Identifier: Apache-2.0
"""The grids of activations while a network is trained.

The range of a tensor is the moving average of its minimum and of its maximum in each
batch (Jacob et al., section 3.1). Tensors between which only bytes move share a grid,
which covers the ranges of all of them.
"""

import numpy as np
import torch
from torch import nn

from neon8.errors import CalibrationError
from neon8.qat.rounding import rounded
from neon8.quant.grid import Grid
from neon8.quant.limits import SMALLEST_SCALE

DECAY = 0.95
"""Decay of the moving averages, per batch."""


class Ranges(nn.Module):
    """The tensors that share one grid.

    names: of them.  scheme: as in a scale table.  fixed: a range that is not learned.
    active: True while batches are averaged in.
    """

    ends: torch.Tensor
    least: torch.Tensor
    seen: torch.Tensor

    def __init__(
        self,
        names: tuple[str, ...],
        *,
        scheme: str,
        fixed: tuple[float, float] | None = None,
    ) -> None:
        super().__init__()
        self.names, self.fixed, self.active = names, fixed, False
        self._scheme = scheme
        count = len(names)
        self.register_buffer("ends", torch.zeros(count, 2))
        self.register_buffer("least", torch.zeros(()))
        self.register_buffer("seen", torch.zeros(count, dtype=torch.bool))

    def observe(self, name: str, values: torch.Tensor) -> None:
        """Average a batch in.  CalibrationError: NaN or infinity in it."""
        lo, hi = torch.aminmax(values.detach())
        if not (torch.isfinite(lo) and torch.isfinite(hi)):
            text = "a batch holds NaN or infinity; lower the learning rate"
            raise CalibrationError(f"tensor {name!r}: {text}, or check the data")
        now = torch.stack((lo.clamp(max=0), hi.clamp(min=0)))
        index = self.names.index(name)
        if self.seen[index]:
            now = DECAY * self.ends[index] + (1 - DECAY) * now
        self.ends[index], self.seen[index] = now, True
        self.least.copy_(torch.minimum(self.least, lo))

    def threshold(self) -> tuple[float, float]:
        """The real range that the grid covers.  CalibrationError: no batch was seen."""
        if self.fixed is not None:
            return self.fixed
        if not self.seen.any():
            raise CalibrationError(f"tensor {self.names[0]!r}: no batch was seen")
        lo, hi = float(self.ends[:, 0].min()), float(self.ends[:, 1].max())
        return (lo, hi) if hi - lo > 127 * SMALLEST_SCALE else (0.0, 1.0)

    def grid(self) -> Grid:
        """By the scheme that was asked for, and by whether anything is negative."""
        least = float(self.least) if self.fixed is None else self.fixed[0]
        if least >= 0 and self._scheme in ("auto", "unsigned", "symmetric_with_uint8"):
            return Grid("unsigned")
        auto = self._scheme in ("auto", "asymmetric")
        return Grid("asymmetric" if auto else "symmetric")

    def parameters_of_grid(self) -> tuple[np.float32, int]:
        """Scale and zero point (1)."""
        return self.grid().cover(*self.threshold())

    def scale(self) -> float:
        """The scale alone."""
        return float(self.parameters_of_grid()[0])


class Rounding(nn.Module):
    """Rounds one tensor to the grid of its ranges."""

    def __init__(self, ranges: Ranges, name: str) -> None:
        super().__init__()
        self.ranges, self.name = ranges, name

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """What is left of `values`, which count if the ranges are active."""
        ranges = self.ranges
        if ranges.active and ranges.fixed is None:
            ranges.observe(self.name, values)
        scale, zero_point = ranges.parameters_of_grid()
        grid = ranges.grid()
        ends = grid.lowest, grid.highest
        return rounded(values, float(scale), zero_point, ends)
