# SPDX-License-Identifier: Apache-2.0
"""A transposed convolution as a plain one, whose channels are then made pixels.

With stride s, the output pixels y, y + s, y + 2 s ... all meet the same taps of the
kernel: every s-th one, or with dilations some of these. They are a convolution of the
input with these taps alone, so s * s of them, side by side as channels, have all output
pixels there are (Shi et al., 2016, arXiv:1609.05158, sub-pixel convolution). The result
is exact: the sums have the same terms, and the zeros between the pixels are gone.
"""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from neon8.arrays import Int64Array
from neon8.ir.graph import Shape

if TYPE_CHECKING:  # which is made of this
    from neon8.operators.convolution import Conv2d


@dataclass(frozen=True, slots=True, kw_only=True)
class Subpixel:
    """conv: without spread, of groups * phases * (O / groups) channels in this order.

    phases: how many rows and columns of the output one pixel of `conv` makes; crop: how
    many rows and columns at the top and left of all these are not wanted.
    """

    conv: "Conv2d"
    phases: tuple[int, int]
    crop: tuple[int, int]

    def shape(self, source: Shape) -> Shape:
        """N C H W of what `conv` makes of an input of this shape."""
        size = []
        for axis in (0, 1):
            reach = (self.conv.weight.shape[2 + axis] - 1) * self.conv.dilations[axis]
            pads = self.conv.pads[axis] + self.conv.pads[2 + axis]
            size.append(source[2 + axis] + pads - reach)
        return source[0], len(self.conv.weight), size[0], size[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Axis:
    """One axis.  taps: (phases, size), which tap of the kernel is met, -1 for none."""

    taps: Int64Array
    dilation: int
    pads: tuple[int, int]
    crop: int


def subpixel(node: "Conv2d") -> Subpixel:
    """How to compute a convolution with spread, or with negative pads."""
    rows, columns = (_axis(node, axis) for axis in (0, 1))
    out, depth, *_ = node.weight.shape
    each = out // node.groups
    padded = np.pad(node.weight, ((0, 0), (0, 0), (0, 1), (0, 1)))  # for tap -1
    taken = padded[:, :, rows.taps][..., columns.taps]
    # O, depth, phase and tap of rows, phase and tap of columns
    weight = taken.reshape(node.groups, each, *taken.shape[1:])
    weight = weight.transpose(0, 3, 5, 1, 2, 4, 6)
    phases = len(rows.taps), len(columns.taps)
    conv = replace(
        node,
        weight=np.ascontiguousarray(weight.reshape(-1, depth, *weight.shape[5:])),
        bias=repeated(node.bias, node.groups, math.prod(phases)),
        pads=(rows.pads[0], columns.pads[0], rows.pads[1], columns.pads[1]),
        dilations=(rows.dilation, columns.dilation),
        spread=(1, 1),
        weight_scales=repeated(node.weight_scales, node.groups, math.prod(phases)),
        exact_bias=repeated(node.exact_bias, node.groups, math.prod(phases)),
    )
    return Subpixel(conv=conv, phases=phases, crop=(rows.crop, columns.crop))


def repeated(values: Any, groups: int, phases: int) -> Any:
    """(O,) to (groups * phases * (O / groups),), as subpixel() has them; None stays."""
    if values is None:
        return None
    return np.repeat(values.reshape(groups, 1, -1), phases, axis=1).reshape(-1)


def taps_of(kernel: int, dilation: int, spread: int) -> int:
    """How many taps of a plain kernel stand for these, in one phase."""
    return kernel if spread == 1 else (kernel - 1) * dilation // spread + 1


def _axis(node: "Conv2d", axis: int) -> _Axis:
    """Output pixel y of the whole, with y + before = spread * q + phase, is pixel q."""
    kernel, dilation = node.weight.shape[2 + axis], node.dilations[axis]
    spread = node.spread[axis]
    reach = (kernel - 1) * dilation
    before = reach - node.pads[axis]
    size = taps_of(kernel, dilation, spread)
    far = reach // spread  # pixels from the first tap of a phase to its last
    if spread == 1:
        taps = np.arange(kernel)[np.newaxis]
    else:
        phase, at = np.arange(spread)[:, np.newaxis], np.arange(size)
        distance = (far - at) * spread + phase  # from the last tap, in output pixels
        met = (distance % dilation == 0) & (distance <= reach)
        taps = np.where(met, kernel - 1 - distance // dilation, -1)
    first = min(before // spread, far)
    return _Axis(
        taps=taps,
        dilation=dilation if spread == 1 else 1,
        pads=(far - first, max(node.pads[2 + axis] // spread, 0)),
        crop=before - first * spread,
    )
