# SPDX-License-Identifier: Apache-2.0
"""The geometry of sliding windows: kernel, strides, padding, dilations."""

import math
from dataclasses import dataclass

from neon8.graph.source import OnnxNode, Source, failure, integers, text

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
        raise failure(source, node, f"{rank} spatial dimensions; neon8 takes 1 or 2")
    strides = extents(source, node, "strides", (1,) * rank)
    dilations = extents(source, node, "dilations", (1,) * rank)
    if len(kernel) != rank or not all(1 <= k <= MAX_EXTENT for k in kernel):
        raise failure(source, node, f"kernel {list(kernel)} does not fit its input")
    begins, ends = _pads(source, node, kernel, image, strides, dilations)
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
            raise failure(
                source,
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


def extents(
    source: Source, node: OnnxNode, name: str, default: tuple[int, ...]
) -> tuple[int, ...]:
    """An attribute with a positive number for each axis."""
    values = integers(node, name) or default
    if len(values) != len(default) or not all(1 <= v <= MAX_EXTENT for v in values):
        text = f"{name} {list(values)}: expected {len(default)} positive numbers"
        raise failure(source, node, text)
    return values


def _pads(
    source: Source,
    node: OnnxNode,
    kernel: tuple[int, ...],
    image: tuple[int, ...],
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    rank = len(image)
    mode = text(node, "auto_pad", "NOTSET")
    if mode == "VALID":
        return (0,) * rank, (0,) * rank
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
        return tuple(begins), tuple(ends)
    if mode != "NOTSET":
        raise failure(source, node, f"auto_pad {mode!r} is unknown")
    pads = integers(node, "pads") or (0,) * (2 * rank)
    if len(pads) != 2 * rank or not all(0 <= p <= MAX_EXTENT for p in pads):
        detail = f"expected {2 * rank} numbers that are not negative"
        raise failure(source, node, f"pads {list(pads)}: {detail}")
    return pads[:rank], pads[rank:]
