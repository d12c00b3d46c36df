# SPDX-License-Identifier: Apache-2.0
"""What an int8 convolution reads: its mean over all output pixels, and single rows.

A row is what one output pixel reads: for each group K = I / groups * kh * kw integer
values less the zero point, 0 where it pads, in the order of the weights.
"""

import numpy as np
import numpy.typing as npt

from neon8.arrays import Array, DoubleArray, Int32Array
from neon8.ir.program import Tensor
from neon8.operators.convolution import Conv2dOp
from neon8.operators.windows import pad_to_windows

Places = npt.NDArray[np.intp]

DIGITS = 16
"""Hex digits of a sample's digest that decide where rows are taken."""
PIXELS = 50
"""How many rows are taken from a sample; all, if there are not so many."""
WEYL = 0x9E3779B97F4A7C15
"""2**64 over the golden ratio; any number of its multiples spread evenly."""


def mean_row(op: Conv2dOp, out: Tensor, source: Tensor, q: Array) -> DoubleArray:
    """The mean of all rows of a sample, (G, K)."""
    height, width = out.shape[2:]
    rows, columns = (_taps(op, axis, size) for axis, size in ((0, height), (1, width)))
    padded = pad_to_windows(op, out, q, source.zero_point)
    total = np.zeros((source.shape[1], len(rows), len(columns)), np.int64)
    for x, across in enumerate(columns):
        # One pass for each column of taps, as its rows share these sums.
        lines = padded[..., across].sum(axis=(0, 3), dtype=np.int64)
        for y, down in enumerate(rows):
            total[:, y, x] = lines[:, down].sum(axis=1)
    pixels = out.shape[0] * height * width
    result: DoubleArray = (total - pixels * source.zero_point) / pixels
    return result.reshape(op.groups, -1)


def some_pixels(shape: tuple[int, ...], digest: str) -> tuple[Places, Places, Places]:
    """Images, rows and columns of PIXELS pixels, or all, of a sample's tensor.

    shape: N C H W.  digest: of the sample; it decides where the first pixel lies.
    """
    batch, _, height, width = shape
    count = batch * height * width
    taken = np.arange(count)
    if count > PIXELS:
        first = int(digest[:DIGITS], 16)
        places = ((first + i * WEYL) % 2**64 * count >> 64 for i in range(PIXELS))
        taken = np.array(sorted(places))
    image, y, x = np.unravel_index(taken, (batch, height, width))
    return image, y, x


def some_rows(
    op: Conv2dOp, out: Tensor, source: Tensor, q: Array, *, digest: str
) -> Int32Array:
    """Rows of a sample, (n, G, K), at its some_pixels()."""
    image, y, x = some_pixels(out.shape, digest)
    padded = pad_to_windows(op, out, q, source.zero_point)
    _, kernel_height, kernel_width, _ = op.weights.shape
    down = y[:, None] * op.strides[0] + np.arange(kernel_height) * op.dilations[0]
    across = x[:, None] * op.strides[1] + np.arange(kernel_width) * op.dilations[1]
    at = image[:, None, None], slice(None), down[:, :, None], across[:, None, :]
    found = padded[at].astype(np.int32) - source.zero_point  # n, kh, kw, channels
    shape = len(y), op.groups, -1
    result: Int32Array = found.transpose(0, 3, 1, 2).reshape(shape)
    return result


def _taps(op: Conv2dOp, axis: int, size: int) -> list[slice]:
    """For each tap the slice of the padded input, along an axis, that it reads."""
    stride, dilation = op.strides[axis], op.dilations[axis]
    length = (size - 1) * stride + 1
    starts = (tap * dilation for tap in range(op.weights.shape[1 + axis]))
    return [slice(start, start + length, stride) for start in starts]
