# SPDX-License-Identifier: Apache-2.0
"""The library's single layers on numpy arrays: each step of a network on its own.

Activations are N H W C here, as the library keeps them. Equation numbers refer to
docs/numerics.md. DataError: the library refuses an argument.
"""

from dataclasses import dataclass, fields
from typing import Any, final

import numpy as np
import numpy.typing as npt

from neon8.errors import DataError
from neon8.runtime import library
from neon8.runtime.model import TYPES, check, isa_number

Int8Array = npt.NDArray[np.int8]
Int32Array = npt.NDArray[np.int32]
FloatArray = npt.NDArray[np.float32]

PIXEL_ALIGN = 8
SLACK = 64
"""Bytes that must be readable after the last pixel of an input."""

POINTERS = {"int8": "int8_t[]", "int32": "int32_t[]", "float32": "float[]"}
"""What C calls arrays of these types."""


def quantize(
    x: FloatArray, *, scale: float, zero_point: int = 0, lo: int = -128, hi: int = 127
) -> Int8Array:
    """Quantize each value by (2); NaN becomes zero_point."""
    source = contiguous(x, np.float32)
    out = np.empty(source.shape, np.int8)
    call("quantize_f32_s8", out, source, source.size, scale, zero_point, lo, hi)
    return out


def dequantize(q: Int8Array, *, scale: float, zero_point: int = 0) -> FloatArray:
    """Dequantize each value by (1)."""
    source = contiguous(q, np.int8)
    out = np.empty(source.shape, np.float32)
    call("dequantize_s8_f32", out, source, source.size, scale, zero_point)
    return out


def dequantize_s32(
    acc: Int32Array, scale: FloatArray, bias: FloatArray | None = None
) -> FloatArray:
    """(4): acc * scale + bias, two roundings.  acc: (..., C); scale, bias: (C,)."""
    source = contiguous(acc, np.int32)
    channels = source.shape[-1]
    factors = per_channel(scale, channels, np.float32)
    addends = per_channel(bias, channels, np.float32)
    out = np.empty(source.shape, np.float32)
    pixels = source.size // channels
    call("dequantize_s32_f32", out, source, pixels, channels, factors, addends)
    return out


def requantize_s32(
    acc: Int32Array,
    multiplier: FloatArray,
    *,
    zero_point: int = 0,
    lo: int = -128,
    hi: int = 127,
) -> Int8Array:
    """Requantize by (5).  acc: (..., C); multiplier: (C,)."""
    source = contiguous(acc, np.int32)
    channels = source.shape[-1]
    factors = per_channel(multiplier, channels, np.float32)
    out = np.empty(source.shape, np.int8)
    call(
        "requantize_s32_s8",
        *(out, source, source.size // channels, channels, factors),
        *(zero_point, lo, hi),
    )
    return out


@dataclass(frozen=True, slots=True, kw_only=True)
class Epilogue:
    """What happens to the accumulators of a Conv2d; arrays are (O,).

    type: "int32" for acc + bias (3); "float32" for (acc + bias) * multiplier + bias_f32
    (4); "int8" for (5), with slope (5b) or with a residual (6), residual_scale being 0
    where there is none.
    """

    type: str = "int8"
    bias: Int32Array | None = None
    multiplier: FloatArray | None = None
    bias_f32: FloatArray | None = None
    slope: FloatArray | None = None
    residual_scale: float = 0.0
    residual_zero_point: int = 0
    zero_point: int = 0
    lo: int = -128
    hi: int = 127

    def arguments(self, channels: int) -> dict[str, Any]:
        """Each field as call() takes it, for O = `channels`.  DataError."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        for name in ("multiplier", "bias_f32", "slope"):
            given[name] = per_channel(given[name], channels, np.float32)
        given["bias"] = per_channel(self.bias, channels, np.int32)
        return given


@final
class Conv2d:
    """A convolution with packed weights, for inputs of one shape."""

    def __init__(
        self,
        weights: Int8Array,
        in_shape: tuple[int, int, int, int],
        epilogue: Epilogue,
        *,
        in_zero_point: int = 0,
        in_range: tuple[int, int] | None = None,
        strides: tuple[int, int] = (1, 1),
        pads: tuple[int, int, int, int] = (0, 0, 0, 0),
        dilations: tuple[int, int] = (1, 1),
        groups: int = 1,
        isa: str | None = None,
    ) -> None:
        """Pack weights (O, kh, kw, I / groups) for inputs of in_shape, N H W C.

        pads: top, left, bottom, right.  in_range: the smallest and the largest value
        of every input, where they are known: at most 128 of them allow faster kernels.
        """
        lib = library.load()
        batch, height, width, channels = in_shape
        weights = contiguous(weights, np.int8)
        out_channels, *kernel, depth = weights.shape
        if depth * groups != channels:
            raise DataError(
                f"conv2d: weights {weights.shape} in {groups} groups do not fit to an "
                f"input of {channels} channels"
            )
        size = [
            (length + pads[axis] + pads[axis + 2] - dilations[axis] * (taps - 1) - 1)
            // strides[axis]
            + 1
            for axis, (length, taps) in enumerate(
                zip((height, width), kernel, strict=True)
            )
        ]
        shape = {
            "batch": batch,
            "in_height": height,
            "in_width": width,
            "in_channels": channels,
            "out_height": size[0],
            "out_width": size[1],
            "out_channels": out_channels,
            "kernel_height": kernel[0],
            "kernel_width": kernel[1],
            "stride_height": strides[0],
            "stride_width": strides[1],
            "dilation_height": dilations[0],
            "dilation_width": dilations[1],
            "pad_top": pads[0],
            "pad_left": pads[1],
            "groups": groups,
            **dict(zip(("in_lo", "in_hi"), in_range or (-128, 127), strict=True)),
        }
        arguments = epilogue.arguments(out_channels)
        row = lib.ffi.new("struct n8_conv2d_epilogue *")
        row.type = getattr(lib.lib, TYPES[arguments.pop("type")])
        for name, value in arguments.items():
            setattr(row, name, as_c(lib.ffi, value))
        out = lib.ffi.new("struct n8_conv2d **")
        call(
            "conv2d_create",
            lib.ffi.new("struct n8_conv2d_shape *", shape),
            weights,
            in_zero_point,
            row,
            isa_number(lib, isa),
            out,
        )
        self._handle = lib.ffi.gc(out[0], lib.lib.n8_conv2d_destroy)
        self._type = epilogue.type
        self.in_shape = in_shape
        self.in_range = in_range
        self.out_shape = (batch, *size, out_channels)

    def run(
        self, x: Int8Array, residual: Int8Array | None = None
    ) -> npt.NDArray[np.generic]:
        """x: N H W C; residual: of the output's shape. Not for two threads at once."""
        if x.shape != self.in_shape:
            raise DataError(f"conv2d: input {x.shape}, expected {self.in_shape}")
        if self.in_range is not None and x.size:
            lo, hi = int(x.min()), int(x.max())
            if lo < self.in_range[0] or hi > self.in_range[1]:
                raise DataError(f"conv2d: input {lo} .. {hi}, not in {self.in_range}")
        if residual is not None and residual.shape != self.out_shape:
            raise DataError(f"conv2d: residual {residual.shape}, not {self.out_shape}")
        source, in_stride = padded_pixels(x)
        addend, residual_stride = (
            (None, 0) if residual is None else padded_pixels(residual)
        )
        channels = self.out_shape[-1]
        room = channels + -channels % PIXEL_ALIGN
        out = np.empty((*self.out_shape[:3], room), self._type)
        call(
            "conv2d_run",
            *(self._handle, out, room * out.itemsize),
            *(source, in_stride, addend, residual_stride),
        )
        return np.ascontiguousarray(out[..., :channels])


def contiguous(array: npt.NDArray[Any], dtype: type) -> npt.NDArray[Any]:
    """The array as C wants it.  DataError: another type."""
    if array.dtype != np.dtype(dtype):
        raise DataError(f"an array of {array.dtype}, expected {np.dtype(dtype)}")
    return np.require(array, requirements=("C", "A"))


def per_channel(
    array: npt.NDArray[Any] | None, channels: int, dtype: type
) -> npt.NDArray[Any] | None:
    """The array, (channels,), as C wants it.  DataError: another shape or type."""
    if array is not None and array.shape != (channels,):
        raise DataError(f"an array {array.shape}, expected one entry per channel")
    return None if array is None else contiguous(array, dtype)


def padded_pixels(x: Int8Array) -> tuple[Int8Array, int]:
    """A copy with pixels of 8 n bytes and slack after them; the bytes of a pixel."""
    *pixels, channels = x.shape
    stride = channels + -channels % PIXEL_ALIGN
    size = int(np.prod(pixels)) * stride
    buffer = np.zeros(size + SLACK, np.int8)
    buffer[:size].reshape(*pixels, stride)[..., :channels] = contiguous(x, np.int8)
    return buffer, stride


def call(name: str, *arguments: Any) -> None:
    """Call n8_`name`, arrays as pointers and None as NULL.  DataError, SetupError."""
    lib = library.load()
    function = getattr(lib.lib, f"n8_{name}")
    status = function(*(as_c(lib.ffi, argument) for argument in arguments))
    check(lib, status, name, error=DataError)


def as_c(ffi: Any, value: Any) -> Any:
    """`value` as cffi takes it: a pointer to an array, which the caller keeps alive."""
    if isinstance(value, np.ndarray):
        return ffi.from_buffer(POINTERS[str(value.dtype)], value)
    return ffi.NULL if value is None else value
