# SPDX-License-Identifier: Apache-2.0
"""Where values of a tensor lie, told by steps along axes: views that move nothing.

In memory a tensor is pixels, numbered in N H W order, of channels. Reshape, Transpose
and Slice of it name values whose pixel and channel grow by a fixed step along each
axis, mostly; a step that knows such views needs no copy of them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from neon8.arrays import Int32Array
from neon8.ir.graph import Shape
from neon8.ir.views import View, common, grouped


@dataclass(frozen=True, slots=True)
class Axis:
    """size: of values; pixels, channels: from one to the next, 0 if there is one."""

    size: int
    pixels: int = 0
    channels: int = 0

    def inner(self, size: int) -> "Axis":
        """`size` values of it that are neighbours."""
        return Axis(size, self.pixels, self.channels) if size > 1 else Axis(size)

    def outer(self, size: int, inner: int) -> "Axis":
        """`size` runs of `inner` values each."""
        made = Axis(size, self.pixels * inner, self.channels * inner)
        return made if size > 1 else Axis(size)


@dataclass(frozen=True, slots=True)
class Strided:
    """Values of a tensor, as an array of these axes.  pixel, channel: of the first."""

    axes: tuple[Axis, ...]
    pixel: int = 0
    channel: int = 0

    @property
    def sizes(self) -> View:
        """The sizes of the axes."""
        return tuple(axis.size for axis in self.axes)

    def split(self, view: View) -> "Strided | None":
        """The same values with axes of which some together are each axis of `view`.

        None if the borders of the axes cut those of `view` unevenly.
        """
        fine = common(self.sizes, view)
        if fine is None:
            return None
        axes = []
        for axis, pieces in zip(self.axes, grouped(self.sizes, fine), strict=True):
            sizes = [fine[piece] for piece in pieces] or [1]
            for at, size in enumerate(sizes):
                rest = math.prod(sizes[at + 1 :])
                axes.append(axis.outer(size, rest))
        return replace(self, axes=tuple(axis for axis in axes if axis.size > 1))

    def along(self, view: View) -> "Strided | None":
        """The same values with the axes of `view`, None if they have no fixed steps."""
        fine = self.split(view)
        if fine is None:
            return None
        axes = []
        for size, group in zip(view, grouped(view, fine.sizes), strict=True):
            axis = Axis(size)
            inner = 1
            for piece in reversed([fine.axes[at] for at in group]):
                axis = Axis(size, piece.pixels, piece.channels) if inner == 1 else axis
                if piece != axis.outer(piece.size, inner):
                    return None
                inner *= piece.size
            axes.append(axis)
        return replace(self, axes=tuple(axes))

    def permuted(self, view: View, order: Sequence[int]) -> "Strided | None":
        """As axes of `view` in this order."""
        fine = self.split(view)
        if fine is None:
            return None
        groups = grouped(view, fine.sizes)
        pieces = (piece for axis in order for piece in groups[axis])
        return replace(self, axes=tuple(fine.axes[piece] for piece in pieces))

    def taken(self, view: View, indices: Sequence[Int32Array]) -> "Strided | None":
        """Those that lists of indices name along the axes of `view`.

        None unless each list is all of its axis or neighbours of it.
        """
        fine = self.split(view)
        if fine is None:
            return None
        axes: list[Axis] = []
        pixel, channel = self.pixel, self.channel
        groups = grouped(view, fine.sizes)
        for size, group, each in zip(view, groups, indices, strict=True):
            pieces = tuple(fine.axes[piece] for piece in group)
            first, count = int(each[0]), len(each)
            if first < 0 or (np.diff(each) != 1).any():
                return None
            if count == size:
                axes += pieces
                continue
            whole = Strided(pieces).along((size,))
            if whole is None:
                return None
            (axis,) = whole.axes
            axes.append(axis.inner(count))
            pixel += first * axis.pixels
            channel += first * axis.channels
        return Strided(tuple(axes), pixel, channel)

    def boxes(self, shape: Shape) -> "Boxes | None":
        """The view of a tensor of `shape` as a Reshape, Slices and a Transpose of it.

        None if steps do not divide each other.
        """
        n, c, h, w = shape
        view: list[int] = []
        ranges: list[range] = []
        order: dict[int, int] = {}
        for total, start, steps in (
            (n * h * w, self.pixel, [axis.pixels for axis in self.axes]),
            (c, self.channel, [axis.channels for axis in self.axes]),
        ):
            rest, first = total, start
            moving = sorted(
                ((step, at) for at, step in enumerate(steps) if step), reverse=True
            )
            for step, at in moving:
                level, uneven = divmod(rest, step)
                rest = step
                digit, first = divmod(first, rest)
                size = self.axes[at].size
                if uneven or digit + size > level or at in order:
                    return None
                order[at] = len(view)
                view.append(level)
                ranges.append(range(digit, digit + size))
            view.append(rest)
            ranges.append(range(first, first + 1))
        return Boxes(tuple(view), tuple(ranges), order)

    def of(self, shape: Shape, source: "Strided") -> "Strided | None":
        """The view of a tensor of `shape`, which is `source` of another one.

        None if that has no fixed steps.
        """
        boxes = self.boxes(shape)
        pixels_first = source.permuted(shape, (0, 2, 3, 1))
        if boxes is None or pixels_first is None:
            return None
        lists = [np.array(each, np.int32) for each in boxes.ranges]
        taken = pixels_first.taken(boxes.view, lists)
        at = sorted(boxes.order)
        moved = taken and taken.permuted(
            tuple(map(len, boxes.ranges)), [boxes.order[i] for i in at]
        )
        found = moved and moved.along(tuple(self.axes[i].size for i in at))
        if not found:
            return None
        axes = dict(zip(at, found.axes, strict=True))
        fixed = (axes.get(i, Axis(axis.size)) for i, axis in enumerate(self.axes))
        return replace(found, axes=tuple(fixed))


@dataclass(frozen=True, slots=True)
class Boxes:
    """Pixels and channels of a tensor as `view`, of which ranges are taken.

    order: of axes of the result that are not the same values again, which axis of
    `view` they are.  Those of one value that are left out have any.
    """

    view: View
    ranges: tuple[range, ...]
    order: dict[int, int]


def whole(shape: Shape) -> Strided:
    """All values of a tensor, N C H W."""
    n, c, h, w = shape
    axes = Axis(n, h * w), Axis(c, 0, 1), Axis(h, w), Axis(w, 1)
    return Strided(tuple(axis.inner(axis.size) for axis in axes))
