# SPDX-License-Identifier: Apache-2.0
"""Integers and what they stand for: the scales of tensors and of constants."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from neon8.arrays import FloatArray
from neon8.ir.graph import Quantization

Array = npt.NDArray[Any]

OFFSETS = {"int8": 0, "uint8": 128}
"""Types of activations, and what is to be taken from a zero point to make it int8."""


class UnusableError(Exception):
    """What is wrong with the scales of a node; the caller knows which node."""


@dataclass(frozen=True, slots=True)
class Levels:
    """A constant as integers: value = float32(levels * scale).

    levels: without their zero point, so uint8 ones may be in -255 .. 255.  scale: of as
    many axes, each of the same length or 1.  half: the values are float16 in the file.
    """

    levels: Array
    scale: FloatArray
    half: bool = False

    @property
    def values(self) -> Array:
        """As DequantizeLinear computes them."""
        result = self.levels.astype(np.float32) * self.scale
        with np.errstate(over="ignore"):
            return result.astype(np.float16) if self.half else result

    def along(self, axis: int) -> FloatArray | None:
        """The scales along one axis, None if others have more than one as well."""
        if self.levels.ndim == 0:
            return self.scale.reshape(1)
        whole = np.broadcast_to(self.scale, self.levels.shape)
        rows = np.moveaxis(whole, axis, 0).reshape(self.levels.shape[axis], -1)
        if rows.size == 0 or (rows != rows[:, :1]).any():
            return None
        return np.ascontiguousarray(rows[:, 0])

    def transposed(self, order: tuple[int, ...]) -> "Levels":
        """With its axes in another order."""
        scale = self.scale.transpose(order)
        return Levels(self.levels.transpose(order), scale, self.half)

    def reshaped(self, shape: tuple[int, ...]) -> "Levels":
        """With other dimensions."""
        if self.scale.size == 1:
            levels = self.levels.reshape(shape)
            return Levels(levels, self.scale.reshape((1,) * levels.ndim), self.half)
        whole = np.broadcast_to(self.scale, self.levels.shape)
        return Levels(self.levels.reshape(shape), whole.reshape(shape), self.half)


def scale_values(scale: Array) -> FloatArray:
    """The scales of a node in float32.  UnusableError: they are none."""
    if scale.dtype not in (np.float32, np.float16):
        text = f"its scale is {scale.dtype}; neon8 reads float32 and float16 scales"
        raise UnusableError(text)
    if scale.size == 0 or not (np.isfinite(scale).all() and (scale > 0).all()):
        raise UnusableError("a scale is not a positive number")
    return scale.astype(np.float32)


def quantization(scale: Array, zero_point: Array | None, kind: str) -> Quantization:
    """The grid of an activation of type `kind`.

    UnusableError: not one scale, or not 8 bits.
    """
    if kind not in OFFSETS:
        raise UnusableError(
            f"quantizes to {kind}; neon8 has int8 and uint8 activations"
        )
    scales = scale_values(scale)
    if scales.size != 1:
        raise UnusableError(f"has {scales.size} scales; an activation has one in neon8")
    if zero_point is not None and zero_point.size != 1:
        raise UnusableError(f"has {zero_point.size} zero points for one scale")
    point = 0 if zero_point is None else int(zero_point.reshape(-1)[0])
    return Quantization(float(scales.reshape(-1)[0]), point - OFFSETS[kind])


def dequantized(
    values: Array, scale: Array, zero_point: Array | None, *, axis: int, block: int = 0
) -> Levels:
    """A constant as Levels.  UnusableError: its scales do not fit its shape."""
    if not np.issubdtype(values.dtype, np.integer) and "int" not in str(values.dtype):
        raise UnusableError(f"its constant is {values.dtype}, which are no integers")
    if values.dtype in (np.int16, np.uint16):
        text = f"its constant is {values.dtype}; neon8 has weights of 8 bits"
        raise UnusableError(f"{text}; quantize them to int8")
    spread = _spread(scale_values(scale), values.shape, axis, block)
    levels = values.astype(np.int64)
    if zero_point is not None:
        if zero_point.size != scale.size:
            text = f"has {zero_point.size} zero points for {scale.size} scales"
            raise UnusableError(text)
        levels = levels - _spread(
            zero_point.astype(np.int64).reshape(scale.shape), values.shape, axis, block
        )
    limit = 2**31 - 1
    if levels.size and max(-int(levels.min()), int(levels.max())) > limit:
        raise UnusableError("its constant less the zero point does not fit 32 bits")
    return Levels(levels.astype(np.int32), spread, scale.dtype == np.float16)


def quantized(
    values: Array, scale: Array, zero_point: Array, *, axis: int, block: int = 0
) -> Array:
    """QuantizeLinear of a constant.  UnusableError: the scales do not fit its shape."""
    if values.dtype not in (np.float32, np.float16) or not np.isfinite(values).all():
        raise UnusableError("its constant has no finite real values")
    values = values.astype(np.float32)
    spread = _spread(scale_values(scale), values.shape, axis, block)
    points = _spread(zero_point.astype(np.float64), values.shape, axis, block)
    bounds = _bounds(zero_point)
    with np.errstate(over="ignore"):
        levels = np.rint(values / spread).astype(np.float64) + points
    return np.clip(levels, *bounds).astype(zero_point.dtype)


def _bounds(zero_point: Array) -> tuple[int, int]:
    if not np.issubdtype(zero_point.dtype, np.integer):
        raise UnusableError(f"quantizes a constant to {zero_point.dtype}")
    info = np.iinfo(zero_point.dtype)
    return int(info.min), int(info.max)


def _spread(per_axis: Array, shape: tuple[int, ...], axis: int, block: int) -> Array:
    """One number, one for each index of `axis`, or one for each block along it."""
    if block == 0 and per_axis.size == 1:
        return per_axis.reshape((1,) * len(shape))
    if not -len(shape) <= axis < len(shape):
        raise UnusableError(f"axis {axis} is none of the constant's {list(shape)}")
    axis %= len(shape)
    if block == 0:
        if per_axis.shape != (shape[axis],):
            text = f"{list(per_axis.shape)} scales along axis {axis} of {list(shape)}"
            raise UnusableError(f"has {text}")
        return per_axis.reshape([-1 if at == axis else 1 for at in range(len(shape))])
    blocks = list(shape)
    blocks[axis] = -(-shape[axis] // block)
    if block < 0 or per_axis.shape != tuple(blocks):
        raise UnusableError(f"has scales {list(per_axis.shape)} in blocks of {block}")
    repeated = np.repeat(per_axis, min(block, shape[axis]), axis=axis)
    return repeated.take(range(shape[axis]), axis=axis)
