# SPDX-License-Identifier: Apache-2.0
"""The library's single layers on numpy arrays, N H W C, which C programs call."""

import numpy as np

from neon8.runtime import library
from neon8.runtime.structs import TYPES, check, isa_number

PIXEL_ALIGN = 8
SLACK = 64
"""Bytes that must be readable after the last pixel of an input."""

POINTERS = {"int8": "int8_t[]", "int32": "int32_t[]", "float32": "float[]"}


def quantize(x, *, scale, zero_point=0, lo=-128, hi=127):
    out = np.empty(x.shape, np.int8)
    call("quantize_f32_s8", out, x, x.size, scale, zero_point, lo, hi)
    return out


def dequantize(q, *, scale, zero_point=0):
    out = np.empty(q.shape, np.float32)
    call("dequantize_s8_f32", out, q, q.size, scale, zero_point)
    return out


def dequantize_s32(acc, scale, bias=None):
    """acc: (pixels, C); scale, bias: (C,)."""
    out = np.empty(acc.shape, np.float32)
    call("dequantize_s32_f32", out, acc, *acc.shape, scale, bias)
    return out


def requantize_s32(acc, multiplier, *, zero_point=0, lo=-128, hi=127):
    """acc: (pixels, C); multiplier: (C,)."""
    out = np.empty(acc.shape, np.int8)
    arguments = (*acc.shape, multiplier, zero_point, lo, hi)
    call("requantize_s32_s8", out, acc, *arguments)
    return out


class Conv2d:
    """A convolution with packed weights, (O, kh, kw, I / groups), for one shape.

    pads: top, left, bottom, right.  epilogue: fields of n8_conv2d_epilogue.
    """

    def __init__(
        self,
        weights,
        in_shape,
        *,
        in_zero_point=0,
        in_range=(-128, 127),
        strides=(1, 1),
        pads=(0, 0, 0, 0),
        dilations=(1, 1),
        groups=1,
        isa=None,
        **epilogue,
    ):
        lib = library.load()
        epilogue = {"type": "int8", "lo": -128, "hi": 127} | epilogue
        self.type = epilogue.pop("type")
        weights = np.ascontiguousarray(weights)
        batch, *lengths, channels = in_shape
        out_channels, *kernel, _ = weights.shape
        size = [
            (lengths[i] + pads[i] + pads[i + 2] - dilations[i] * (kernel[i] - 1) - 1)
            // strides[i]
            + 1
            for i in (0, 1)
        ]
        self.out_shape = (batch, *size, out_channels)
        shape = (batch, *lengths, channels, *size, out_channels, *kernel)
        shape += (*strides, *dilations, *pads[:2], groups, *in_range)
        row = lib.ffi.new("struct n8_conv2d_epilogue *")
        row.type = getattr(lib.lib, TYPES[self.type])
        for name, value in epilogue.items():
            setattr(row, name, as_c(lib.ffi, value))
        out = lib.ffi.new("struct n8_conv2d **")
        facts = lib.ffi.new("struct n8_conv2d_shape *", shape)
        number = isa_number(lib, isa)
        call("conv2d_create", facts, weights, in_zero_point, row, number, out)
        self._handle = lib.ffi.gc(out[0], lib.lib.n8_conv2d_destroy)

    def run(self, x, residual=None):
        none = (None, 0)
        operands = [none if each is None else padded(each) for each in (x, residual)]
        *pixels, channels = self.out_shape
        room = channels + -channels % PIXEL_ALIGN
        out = np.empty((*pixels, room), self.type)
        arguments = (out, room * out.itemsize, *operands[0], *operands[1])
        call("conv2d_run", self._handle, *arguments)
        return np.ascontiguousarray(out[..., :channels])


def padded(x):
    """A copy with pixels of 8 n bytes and slack after them; the bytes of a pixel."""
    *pixels, channels = x.shape
    stride = channels + -channels % PIXEL_ALIGN
    size = int(np.prod(pixels)) * stride
    buffer = np.zeros(size + SLACK, np.int8)
    buffer[:size].reshape(*pixels, stride)[..., :channels] = x
    return buffer, stride


def call(name, *arguments):
    """n8_`name`, arrays as pointers and None as NULL; ModelError if it refuses."""
    lib = library.load()
    function = getattr(lib.lib, f"n8_{name}")
    status = function(*(as_c(lib.ffi, argument) for argument in arguments))
    check(lib, status, name)


def as_c(ffi, value):
    if isinstance(value, np.ndarray):
        return ffi.from_buffer(POINTERS[str(value.dtype)], value)
    return ffi.NULL if value is None else value
