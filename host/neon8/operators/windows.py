# SPDX-License-Identifier: Apache-2.0
"""The geometry of sliding windows: kernel, strides, padding, dilations."""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from neon8.arrays import Array, FloatArray
from neon8.ir.program import Tensor
from neon8.operators.source import OnnxNode, Source

MAX_EXTENT = 1 << 20
"""The largest kernel, stride or pad: no product of them can overflow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """kernel, strides, dilations: height, width; pads: top, left, bottom, right."""

    kernel: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    pads: tuple[int, int, int, int]


def window(
    source: Source,
    node: OnnxNode,
    *,
    kernel: tuple[int, ...],
    image: tuple[int, ...],
    out: tuple[int, ...],
    ceil: bool = False,
) -> Window:
    """The window of `node` over spatial extents `image`, giving `out`; both of 1 or 2.

    One spatial axis becomes the height, of a window that is 1 wide.
    """
    rank = len(image)
    if rank not in (1, 2):
        raise source.failure(node, f"{rank} spatial dimensions; neon8 takes 1 or 2")
    if len(kernel) != rank or not all(1 <= k <= MAX_EXTENT for k in kernel):
        raise source.failure(node, f"kernel {list(kernel)} does not fit its input")
    strides, dilations, begins, ends = steps_of(source, node, kernel, image)
    for axis in range(rank):
        reach = (kernel[axis] - 1) * dilations[axis] + 1
        room = image[axis] + begins[axis] + ends[axis] - reach
        steps = -(-room // strides[axis]) if ceil else room // strides[axis]
        if ceil and steps * strides[axis] >= image[axis] + begins[axis]:
            steps -= 1  # that window would see nothing but padding
        if room < 0 or steps + 1 != out[axis]:
            # Before opset 22 ONNX's own shape inference counts such a window, and
            # onnxruntime does not.
            hint = (
                "; convert the file to opset 22" if ceil and source.opset < 22 else ""
            )
            raise source.failure(
                node,
                f"a window of {reach} over {image[axis]} elements, padded by "
                f"{begins[axis]} and {ends[axis]}, does not give {out[axis]} outputs"
                f"{hint}",
            )
    fill = 2 - rank
    one, zero = (1,) * fill, (0,) * fill
    return Window(
        kernel=_pair((*kernel, *one)),
        strides=_pair((*strides, *one)),
        dilations=_pair((*dilations, *one)),
        pads=(*_pair((*begins, *zero)), *_pair((*ends, *zero))),
    )


def _pair(values: tuple[int, ...]) -> tuple[int, int]:
    return values[0], values[1]


def positive(
    source: Source, node: OnnxNode, name: str, default: tuple[int, ...]
) -> tuple[int, ...]:
    """An attribute with a positive number for each axis."""
    values = node.integers(name) or default
    if len(values) != len(default) or not all(1 <= v <= MAX_EXTENT for v in values):
        text = f"{name} {list(values)}: expected {len(default)} positive numbers"
        raise source.failure(node, text)
    return values


def steps_of(
    source: Source, node: OnnxNode, kernel: tuple[int, ...], image: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Strides, dilations, and the pads before the first pixel and after the last."""
    rank = len(image)
    strides = positive(source, node, "strides", (1,) * rank)
    dilations = positive(source, node, "dilations", (1,) * rank)
    mode = node.text("auto_pad", "NOTSET")
    if mode == "VALID":
        return strides, dilations, (0,) * rank, (0,) * rank
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        begins, ends = [], []
        for k, size, stride, dilation in zip(
            kernel, image, strides, dilations, strict=True
        ):
            reach = (k - 1) * dilation + 1
            total = max((math.ceil(size / stride) - 1) * stride + reach - size, 0)
            small, large = total // 2, total - total // 2
            begins.append(small if mode == "SAME_UPPER" else large)
            ends.append(large if mode == "SAME_UPPER" else small)
        return strides, dilations, tuple(begins), tuple(ends)
    if mode != "NOTSET":
        raise source.failure(node, f"auto_pad {mode!r} is unknown")
    pads = node.integers("pads") or (0,) * (2 * rank)
    if len(pads) != 2 * rank or not all(0 <= p <= MAX_EXTENT for p in pads):
        detail = f"expected {2 * rank} numbers that are not negative"
        raise source.failure(node, f"pads {list(pads)}: {detail}")
    return strides, dilations, pads[:rank], pads[rank:]


class Windowed(Protocol):
    """A step with sliding windows: height, width; pads: top, left, bottom, right."""

    @property
    def kernel(self) -> tuple[int, int]: ...  # noqa: D102
    @property
    def strides(self) -> tuple[int, int]: ...  # noqa: D102
    @property
    def dilations(self) -> tuple[int, int]: ...  # noqa: D102
    @property
    def pads(self) -> tuple[int, int, int, int]: ...  # noqa: D102


def pad_to_windows(op: Windowed, out: Tensor, q: Array, fill: int) -> Array:
    """q with `fill` around it, as far as the windows of `out` reach."""
    widths = [(0, 0), (0, 0)]
    for axis in (0, 1):
        before = op.pads[axis]
        last = (out.shape[2 + axis] - 1) * op.strides[axis]
        reach = last + (op.kernel[axis] - 1) * op.dilations[axis] + 1
        widths.append((before, max(0, reach - before - q.shape[2 + axis])))
    return np.pad(q, widths, constant_values=fill)


def tap(op: Windowed, padded: Array, y: int, x: int, height: int, width: int) -> Array:
    """What lies under tap (y, x) of every window: N C height width."""
    top, left = y * op.dilations[0], x * op.dilations[1]
    rows = slice(top, top + (height - 1) * op.strides[0] + 1, op.strides[0])
    columns = slice(left, left + (width - 1) * op.strides[1] + 1, op.strides[1])
    return padded[:, :, rows, columns]


def places(
    op: Windowed, axis: int, tap: int, size: int, count: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Along one axis: where tap `tap` of each window lies, and if that is inside."""
    start = np.arange(count) * op.strides[axis] - op.pads[axis]
    at = start + tap * op.dilations[axis]
    return np.clip(at, 0, size - 1), (at >= 0) & (at < size)


def taps(
    op: Windowed, out: Tensor, x: FloatArray, y_tap: int, x_tap: int
) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """What lies under one tap of every window, N C H W, and where there is anything."""
    rows, row_inside = places(op, 0, y_tap, x.shape[2], out.shape[2])
    columns, column_inside = places(op, 1, x_tap, x.shape[3], out.shape[3])
    inside = row_inside[:, None] & column_inside[None, :]
    return x[:, :, rows[:, None], columns[None, :]], inside
