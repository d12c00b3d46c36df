# SPDX-License-Identifier: Apache-2.0
"""Simulated quantization: numerics (1) and (2), with a gradient.

Rounding has none, so its gradient is taken for that of the identity, and values beyond
the ends of the grid get none: the straight-through estimator of Bengio et al. (2013).
"""

from typing import Any

import numpy as np
import torch


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


def rounded_weights(values: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """What is left of weights, as quant.weights.quantize_weights() rounds them.

    values: (O, ...) float32.  scales: (O,) float64, float32 numbers.
    """
    result: torch.Tensor = _RoundedRows.apply(values, scales, 127.0)
    return result


def rounded_bias(values: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """What is left of a bias that is an int32 with these scales, (O,), float64."""
    result: torch.Tensor = _RoundedRows.apply(values, scales, 2.0**31 - 1)
    return result
