# SPDX-License-Identifier: Apache-2.0
"""ReduceMean, ReduceSum and ReduceMax: pools, or convolutions of equal weights."""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from neon8.graph.graph import Node, Pool, Shape, nchw
from neon8.graph.operators.convolution import make_conv
from neon8.graph.operators.movement import reshape
from neon8.graph.source import (
    Convert,
    OnnxNode,
    Source,
    constant,
    failure,
    integer,
    integers,
    shape_of,
)


@dataclass(frozen=True, slots=True)
class Extent:
    """What is reduced.  shape: N C H W of the input; axes: which of these, in order."""

    shape: Shape
    axes: tuple[int, ...]

    @property
    def kernel(self) -> tuple[int, int]:
        """Height and width of the window."""
        height, width = (self.shape[a] if a in self.axes else 1 for a in (2, 3))
        return height, width

    @property
    def result(self) -> Shape:
        """N C H W of the result, the reduced ones being 1."""
        n, c, h, w = (1 if a in self.axes else self.shape[a] for a in range(4))
        return n, c, h, w


def reduce(source: Source, node: OnnxNode, *, kind: str) -> Node:
    """kind: "mean", "sum" or "max"."""
    extent = _extent(source, node)
    if not extent.axes:
        return reshape(source, node)
    channels = 1 in extent.axes
    if kind == "max" and channels:
        raise failure(source, node, "over the channels is not supported")
    if kind != "sum" and not channels:
        return Pool(
            name=node.name,
            inputs=node.inputs[:1],
            output=node.outputs[0],
            kind="max" if kind == "max" else "average",
            kernel=extent.kernel,
        )
    if nchw(shape_of(source, node, node.outputs[0])) != extent.result:
        text = "leaves out an axis before one that stays; export it with keepdims=1"
        raise failure(source, node, text)
    depth = extent.shape[1]
    taken = (depth if channels else 1) * math.prod(extent.kernel)
    shape = (1, depth) if channels else (depth, 1)
    value = 1.0 / taken if kind == "mean" else 1.0
    weight = np.full((*shape, *extent.kernel), value)
    groups = 1 if channels else depth
    return make_conv(node, weight, np.zeros(shape[0]), groups=groups)


def _extent(source: Source, node: OnnxNode) -> Extent:
    """The axes that are reduced; those of size 1 do not count."""
    dims = shape_of(source, node, node.inputs[0])
    given = constant(source, node, 1)
    listed = integers(node, "axes") if given is None else tuple(given.reshape(-1))
    if not listed:
        noop = integer(node, "noop_with_empty_axes", 0)
        listed = () if noop else tuple(range(len(dims)))
    axes = {int(axis) % len(dims) for axis in listed if dims} if dims else set()
    whole = set()
    for axis in (axis for axis in axes if dims[axis] > 1):
        if axis == 0:
            raise failure(source, node, "over the batch is not supported")
        if axis > 2 and any(a not in axes and dims[a] > 1 for a in range(3, len(dims))):
            text = f"over axis {axis} of {list(dims)}, and not over all from the fourth"
            raise failure(source, node, f"{text} on, is not supported")
        whole.add(min(axis, 3))
    return Extent(nchw(dims), tuple(sorted(whole)))


OPERATORS: dict[str, Convert] = {
    "ReduceMax": partial(reduce, kind="max"),
    "ReduceMean": partial(reduce, kind="mean"),
    "ReduceSum": partial(reduce, kind="sum"),
}
