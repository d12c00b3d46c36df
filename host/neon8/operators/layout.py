# SPDX-License-Identifier: Apache-2.0
"""ONNX operators that can work with the axes of their tensors in another order.

graph/layout.py decides which of them do. Each family has the rows of its operators.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from neon8.arrays import Array
from neon8.operators.source import OnnxNode, Source

Order = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """An order of axes.  order: axis i here is axis order[i] of the file's tensor."""

    order: Order

    @property
    def back(self) -> Order:
        """The order that undoes it; axis a of the file's tensor is axis back[a]."""
        return tuple(int(axis) for axis in np.argsort(self.order))

    @property
    def rank(self) -> int:
        """Axes of every tensor that is converted."""
        return len(self.order)

    def axis(self, axis: int) -> int | None:
        """Where the file's axis, which may count from the end, comes to stand."""
        return self.back[axis] if -self.rank <= axis < self.rank else None

    def list(self, entries: Order) -> Order:
        """One entry for each axis, in the new order."""
        return tuple(entries[axis] for axis in self.order)


@dataclass(frozen=True, slots=True)
class Converted:
    """A node that does the same in the other order.

    constants: what takes the place of its constant inputs, by number.
    whole: False if its outputs are as in the file, and only its inputs are converted.
    channels: it has a constant with several values.
    """

    node: OnnxNode
    constants: dict[int, Array]
    whole: bool = True
    channels: bool = False


ChangeLayout = Callable[[Source, OnnxNode, Layout], Converted | None]
"""None where the axes cannot be reordered, which is no error: the node stays."""


def by_value(_source: Source, node: OnnxNode, _layout: Layout) -> Converted | None:
    """What computes one value from one value; its other inputs are no tensors."""
    return Converted(node, {})


def along_axis(_source: Source, node: OnnxNode, layout: Layout) -> Converted | None:
    """Concat, Split."""
    axis = layout.axis(node.integer("axis", 0))
    if axis is None:
        return None
    return Converted(with_attributes(node, axis=axis), {})


def with_attributes(node: OnnxNode, **attributes: int | Order) -> OnnxNode:
    """`node` with these in place of its own."""
    return replace(node, attributes={**node.attributes, **attributes})


def with_constants(source: Source, node: OnnxNode, layout: Layout) -> Converted | None:
    """Add and others, whose constants are broadcast."""
    constants: dict[int, Array] = {}
    for index, name in enumerate(node.inputs):
        value = source.constants.get(name)
        if value is None or value.size == 1:
            continue
        if value.ndim > layout.rank:
            return None
        full = value.reshape((1,) * (layout.rank - value.ndim) + value.shape)
        constants[index] = full.transpose(layout.order)
    return Converted(node, constants, channels=bool(constants))
