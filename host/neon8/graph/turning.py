# SPDX-License-Identifier: Apache-2.0
"""ONNX operators that can do their work with the axes of their tensors turned.

graph/layout.py decides which of them do. An operator is a function, `(Source, OnnxNode,
Turn) -> Turned | None`, and its row in OPERATORS; None where the axes cannot be turned,
which is no error: the node stays as it is.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from neon8.operators.pointwise import IMPORTS
from neon8.operators.source import Array, OnnxNode, Source, integer, integers

Order = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Turn:
    """order: axis i of what is turned is axis order[i] of the file's tensor."""

    order: Order

    @property
    def back(self) -> Order:
        """The order that undoes it; axis a of the file's tensor is axis back[a]."""
        return tuple(int(axis) for axis in np.argsort(self.order))

    @property
    def rank(self) -> int:
        """Axes of every tensor that is turned."""
        return len(self.order)

    def axis(self, axis: int) -> int | None:
        """Where the file's axis, which may count from the end, comes to stand."""
        return self.back[axis] if -self.rank <= axis < self.rank else None

    def list(self, entries: Order) -> Order:
        """One entry for each axis, in the new order."""
        return tuple(entries[axis] for axis in self.order)


@dataclass(frozen=True, slots=True)
class Turned:
    """A node that does the same in the other order.

    constants: what takes the place of its constant inputs, by number.
    whole: False if its outputs are as in the file, and only its inputs are turned.
    channels: it has a constant with several values.
    """

    node: OnnxNode
    constants: dict[int, Array]
    whole: bool = True
    channels: bool = False


TurnOperator = Callable[[Source, OnnxNode, Turn], Turned | None]


def _pointwise(_source: Source, node: OnnxNode, _turn: Turn) -> Turned | None:
    """What computes one value from one value; its other inputs are no tensors."""
    return Turned(node, {})


def _arithmetic(source: Source, node: OnnxNode, turn: Turn) -> Turned | None:
    """Add and others, whose constants are broadcast."""
    constants: dict[int, Array] = {}
    for index, name in enumerate(node.inputs):
        value = source.constants.get(name)
        if value is None or value.size == 1:
            continue
        if value.ndim > turn.rank:
            return None
        full = value.reshape((1,) * (turn.rank - value.ndim) + value.shape)
        constants[index] = full.transpose(turn.order)
    return Turned(node, constants, channels=bool(constants))


def _along_axis(_source: Source, node: OnnxNode, turn: Turn) -> Turned | None:
    """Concat, Split."""
    axis = turn.axis(integer(node, "axis", 0))
    if axis is None:
        return None
    return Turned(_with(node, axis=axis), {})


def _softmax(source: Source, node: OnnxNode, turn: Turn) -> Turned | None:
    """Softmax along one axis, as it is since opset 13."""
    axis = turn.axis(integer(node, "axis", -1))
    if source.opset < 13 or axis is None:
        return None
    return Turned(_with(node, axis=axis), {})


def _reduce(source: Source, node: OnnxNode, turn: Turn) -> Turned | None:
    """ReduceMean and others.  Without keepdims they leave (N, C), or do not turn."""
    given = source.constants.get(node.inputs[1]) if node.inputs[1:] else None
    listed = integers(node, "axes") if given is None else tuple(given.reshape(-1))
    if not listed:
        return None
    axes = [turn.axis(int(axis)) for axis in listed]
    if None in axes:
        return None
    places = tuple(axis for axis in axes if axis is not None)
    keep = integer(node, "keepdims", 1) != 0
    left = [axis for axis in turn.order if turn.back[axis] not in places]
    if not keep and left != sorted(left):
        return None
    if given is None:
        return Turned(_with(node, axes=places), {}, whole=keep)
    return Turned(node, {1: np.array(places, np.int64)}, whole=keep)


def _pad(source: Source, node: OnnxNode, turn: Turn) -> Turned | None:
    """Pad of all axes."""
    if any(node.inputs[3:]):
        return None
    given = source.constants.get(node.inputs[1]) if node.inputs[1:] else None
    pads = integers(node, "pads")
    if given is not None:
        pads = tuple(int(pad) for pad in given.reshape(-1))
    if pads is None or len(pads) != 2 * turn.rank:
        return None
    places = turn.list(pads[: turn.rank]) + turn.list(pads[turn.rank :])
    if given is None:
        return Turned(_with(node, pads=places), {})
    return Turned(node, {1: np.array(places, np.int64)})


def _slice(source: Source, node: OnnxNode, turn: Turn) -> Turned | None:
    """Slice, whose axes are an attribute before opset 10 and an input since."""
    if source.opset < 10:
        starts = integers(node, "starts") or ()
        axes = integers(node, "axes") or tuple(range(len(starts)))
    else:
        begin = source.constants.get(node.inputs[1])
        given = source.constants.get(node.inputs[3]) if node.inputs[3:] else None
        if begin is None or (given is None and any(node.inputs[3:4])):
            return None
        listed = np.arange(begin.size) if given is None else given.reshape(-1)
        axes = tuple(int(axis) for axis in listed)
    places = [turn.axis(axis) for axis in axes]
    if None in places:
        return None
    turned = tuple(axis for axis in places if axis is not None)
    if source.opset < 10:
        return Turned(_with(node, axes=turned), {})
    room = (*node.inputs, *("",) * (4 - len(node.inputs)))
    return Turned(replace(node, inputs=room), {3: np.array(turned, np.int64)})


def _with(node: OnnxNode, **attributes: int | Order) -> OnnxNode:
    return replace(node, attributes={**node.attributes, **attributes})


ELEMENTS = ("Cast", "Dropout", "Identity", "Clip", "LeakyRelu", "Relu")

OPERATORS: dict[str, TurnOperator] = {
    **dict.fromkeys(sorted({*IMPORTS, *ELEMENTS}), _pointwise),
    **dict.fromkeys(("Add", "Div", "Max", "Mean", "Min", "Mul"), _arithmetic),
    **dict.fromkeys(("PRelu", "Sub", "Sum"), _arithmetic),
    **dict.fromkeys(("Concat", "Split"), _along_axis),
    **dict.fromkeys(("LogSoftmax", "Softmax"), _softmax),
    **dict.fromkeys(("ReduceL2", "ReduceMax", "ReduceMean"), _reduce),
    **dict.fromkeys(("ReduceMin", "ReduceSum"), _reduce),
    "Pad": _pad,
    "Slice": _slice,
}
"""Operator -> what turns it."""
