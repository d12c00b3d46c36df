# SPDX-License-Identifier: Apache-2.0
"""Simulated quantization: numerics (1) and (2), with a gradient.

Rounding has none, so its gradient is taken for that of the identity, and values beyond
the ends of the grid get none: the straight-through estimator of Bengio et al. (2013).
"""

from typing import Any

import numpy as np
import torch

WEIGHT, BIAS = 127.0, 2.0**31 - 1
"""The largest levels of int8 weights and of an int32 bias."""


class _Rounded(torch.autograd.Function):
    @staticmethod
    def forward(
        context: Any,
        values: torch.Tensor,
        scale: float,
        zero_point: int,
        ends: tuple[int, int],
    ) -> torch.Tensor:
        inverse = float(np.float32(1) / np.float32(scale))
        q = torch.round(values * inverse) + zero_point
        context.save_for_backward((q >= ends[0]) & (q <= ends[1]))
        return (q.clamp(*ends) - zero_point) * scale

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> Any:
        (inside,) = context.saved_tensors
        return gradient * inside, None, None, None


class _RoundedRows(torch.autograd.Function):
    @staticmethod
    def forward(
        _context: Any, values: torch.Tensor, scales: torch.Tensor, most: float
    ) -> torch.Tensor:
        rows = scales.reshape(-1, *(1,) * (values.ndim - 1))
        q = torch.round(values.double() / rows).clamp(-most, most)
        return (q * rows).to(values.dtype)

    @staticmethod
    def backward(_context: Any, gradient: torch.Tensor) -> Any:
        return gradient, None, None


def rounded(
    values: torch.Tensor, scale: float, zero_point: int, ends: tuple[int, int]
) -> torch.Tensor:
    """scale * (q - zero_point), q as of (2) in ends[0] .. ends[1].

    values: float32.  scale: a float32 number. NaN stays NaN, so that a training loop
    sees it.
    """
    result: torch.Tensor = _Rounded.apply(values, scale, zero_point, ends)
    return result


def rounded_rows(
    values: torch.Tensor, scales: torch.Tensor, most: float
) -> torch.Tensor:
    """What is left of weights, as quantize_weights() rounds them, or of a bias.

    values: (O, ...) float32.  scales: (O,) float64.  most: of the levels' sizes, as in
    WEIGHT and BIAS.
    """
    result: torch.Tensor = _RoundedRows.apply(values, scales, most)
    return result
