# SPDX-License-Identifier: Apache-2.0
"""ReduceMean, ReduceSum, ReduceMax and ReduceMin: pools, or convolutions; ReduceL2.

Over rows and columns they are pools of the whole image; sums, and means over channels,
are convolutions of equal weights. What is over other axes is moved before. A length is
the root of a mean of squares, times their number; the squares are not in the file.
"""

import math
from dataclasses import asdict, dataclass, replace
from functools import partial

import numpy as np

from neon8.ir.graph import Node, Shape, Tensor, nchw
from neon8.ir.views import View
from neon8.operators import rearranged
from neon8.operators.arithmetic import Multiply
from neon8.operators.convolution import Conv2d, make_conv
from neon8.operators.family import Family
from neon8.operators.functions import X, affine, call
from neon8.operators.layout import Converted, Layout, with_attributes
from neon8.operators.movement import import_reshape
from neon8.operators.pointwise import Pointwise
from neon8.operators.pooling import Pool
from neon8.operators.source import OnnxNode, Source
from neon8.operators.windows import Window, window


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


def reduce(
    source: Source, node: OnnxNode, *, kind: str
) -> Node | tuple[Node | Tensor, ...]:
    """kind: "mean", "sum", "max" or "min"."""
    dims = source.shape_of(node, node.inputs[0])
    source.shape_of(node, node.outputs[0])
    axes = _axes(source, node, dims)
    single = math.prod(dims[axis] for axis in axes) == 1
    if not axes or (single and kind in ("max", "min")):
        return import_reshape(source, node)
    extent = _extent(dims, axes)
    channels = extent is not None and 1 in extent.axes
    if extent is None or (channels and kind in ("max", "min")):
        return _over_any(node, dims, axes, kind)
    if kind != "sum" and not channels:
        return _pool(node, kind, extent.kernel)
    depth = extent.shape[1]
    taken = (depth if channels else 1) * math.prod(extent.kernel)
    shape = (1, depth) if channels else (depth, 1)
    source.check_made(node, *shape, *extent.kernel)
    weight = np.full((*shape, *extent.kernel), 1.0 / taken if kind == "mean" else 1.0)
    groups = 1 if channels else depth
    conv = make_conv(node, weight, np.zeros(shape[0]), groups=groups)
    if nchw(source.shape_of(node, node.outputs[0])) == extent.result:
        return conv
    return _into(node, conv, extent.result)


def _over_any(
    node: OnnxNode, dims: View, axes: View, kind: str
) -> tuple[Node | Tensor, ...]:
    """Over any axes of `dims`, which a move before it makes rows, or channels."""
    kept = tuple(axis for axis in range(len(dims)) if axis not in axes)
    count = math.prod(dims[axis] for axis in axes)
    others = math.prod(dims[axis] for axis in kept)
    order, shape, left = kept + axes, (1, others, count), (1, others, 1)
    layer: Conv2d | Pool = _pool(node, kind, (count, 1))
    if kind == "sum":
        order, shape, left = axes + kept, (1, count, others), (1, 1, others)
        layer = make_conv(node, np.ones((1, count, 1, 1)), np.zeros(1))
    label = f"{kind}_" + "_".join(map(str, axes))
    inner = rearranged.rearranged(node.inputs[0], shape, label, dims, order)
    layer = replace(layer, inputs=(inner.name,))
    return inner, rearranged.there(node.name, inner), *_into(node, layer, left)


def length(source: Source, node: OnnxNode) -> tuple[Node | Tensor, ...]:
    """ReduceL2: the root of the sum of squares, over any axes."""
    name, out = node.inputs[0], node.outputs[0]
    dims = source.shape_of(node, name)
    axes = _axes(source, node, dims)
    squares = Tensor(f"{out}_squares", dims, hidden=True)
    mean = Tensor(f"{out}_mean", source.shape_of(node, out), hidden=True)
    square = Multiply(
        name=f"{node.name}:{squares.name}", inputs=(name, name), output=squares.name
    )
    inner = replace(
        node,
        name=f"{node.name}:{mean.name}",
        inputs=(squares.name,),
        outputs=(mean.name,),
    )
    made = _over_any(inner, dims, axes, "mean")
    count = math.prod(dims[axis] for axis in axes)
    root = Pointwise(
        name=node.name,
        inputs=(mean.name,),
        output=out,
        function=call("sqrt", affine(float(count), 0.0)),
    )
    hidden = (replace(one, hidden=True) for one in made if isinstance(one, Tensor))
    nodes = (one for one in made if isinstance(one, Node))
    return squares, *hidden, mean, square, *nodes, root


def norm_pool(source: Source, node: OnnxNode) -> tuple[Node | Tensor, ...]:
    """LpPool: the root of a mean of powers, times their number; any attributes."""
    x, out = node.inputs[0], node.outputs[0]
    power = float(node.integer("p", 2))
    if power < 1:
        raise source.failure(node, f"p {power:.4g} is not positive")
    dims = source.shape_of(node, x)
    geometry = window(
        source,
        node,
        kernel=node.integers("kernel_shape") or (),
        image=dims[2:],
        out=source.shape_of(node, out)[2:],
        ceil=bool(node.integer("ceil_mode", 0)),
    )
    powers = Tensor(f"{out}_powers", dims, hidden=True)
    mean = Tensor(f"{out}_mean", source.shape_of(node, out), hidden=True)
    raised = call("power", call("absolute", X), parameters=(power,))
    pads = pads_to_last(geometry, nchw(dims), nchw(mean.dims))
    return (
        powers,
        mean,
        Pointwise(
            name=f"{node.name}:{powers.name}",
            inputs=(x,),
            output=powers.name,
            function=raised,
        ),
        Pool(
            name=f"{node.name}:{mean.name}",
            inputs=(powers.name,),
            output=mean.name,
            kind="average",
            **asdict(replace(geometry, pads=pads)),
            count_pad=True,
        ),
        Pointwise(
            name=node.name,
            inputs=(mean.name,),
            output=out,
            function=call(
                "power",
                affine(float(math.prod(geometry.kernel)), 0.0),
                parameters=(1.0 / power,),
            ),
        ),
    )


def pads_to_last(
    geometry: Window, image: Shape, out: Shape
) -> tuple[int, int, int, int]:
    """With as much after the image as the last window reaches, so that all counts."""
    after = [
        (out[2 + a] - 1) * geometry.strides[a]
        + (geometry.kernel[a] - 1) * geometry.dilations[a]
        + 1
        - geometry.pads[a]
        - image[2 + a]
        for a in (0, 1)
    ]
    return (*geometry.pads[:2], max(after[0], 0), max(after[1], 0))


def _pool(node: OnnxNode, kind: str, kernel: tuple[int, int]) -> Pool:
    return node.made(
        Pool, kind="average" if kind in ("mean", "sum") else kind, kernel=kernel
    )


def _into(
    node: OnnxNode, layer: Conv2d | Pool, dims: View
) -> tuple[Node | Tensor, ...]:
    """The layer, which makes `dims`, and the move from there to the node's output."""
    result = rearranged.reshaped(node.outputs[0], dims, "kept")
    layer = replace(layer, output=result.name)
    if isinstance(layer, Conv2d):
        layer = replace(layer, pre_activation=result.name)
    return result, layer, rearranged.back(node.name, result)


def _axes(source: Source, node: OnnxNode, dims: View) -> View:
    """The axes that are reduced, in order.

    Those of size 1 do not count unless all are: then the mean of one value is rounded,
    as that of many is, so that one rule holds for all sizes of a dimension.
    """
    given = source.constant(node, 1)
    listed = node.integers("axes")
    if given is not None:
        listed = tuple(int(axis) for axis in given.reshape(-1))
    if not listed:
        noop = node.integer("noop_with_empty_axes", 0)
        listed = () if noop else tuple(range(len(dims)))
    if any(not -len(dims) <= axis < len(dims) for axis in listed):
        raise source.failure(node, f"axes {list(listed)} of {len(dims)} dimensions")
    axes = {axis % len(dims) for axis in listed}
    return tuple(sorted(axis for axis in axes if dims[axis] > 1)) or tuple(sorted(axes))


def _extent(dims: View, axes: View) -> Extent | None:
    """The axes as those of N C H W, None if these do not show them, or over N."""
    if 0 in axes:
        return None
    last = [axis for axis in range(3, len(dims)) if dims[axis] > 1]
    if any(axis in axes for axis in last) and not all(a in axes for a in last):
        return None
    return Extent(nchw(dims), tuple(sorted({min(axis, 3) for axis in axes})))


def reduce_layout(source: Source, node: OnnxNode, layout: Layout) -> Converted | None:
    """ReduceMean and others.  Without keepdims they leave (N, C), or do not layout."""
    given = source.constants.get(node.inputs[1]) if node.inputs[1:] else None
    listed = node.integers("axes") if given is None else tuple(given.reshape(-1))
    if not listed:
        return None
    axes = [layout.axis(int(axis)) for axis in listed]
    if None in axes:
        return None
    places = tuple(axis for axis in axes if axis is not None)
    keep = node.integer("keepdims", 1) != 0
    left = [axis for axis in layout.order if layout.back[axis] not in places]
    if not keep and left != sorted(left):
        return None
    if given is None:
        return Converted(with_attributes(node, axes=places), {}, whole=keep)
    return Converted(node, {1: np.array(places, np.int64)}, whole=keep)


FAMILY = Family(
    imports={
        "LpPool": norm_pool,
        "ReduceL2": length,
        "ReduceMax": partial(reduce, kind="max"),
        "ReduceMean": partial(reduce, kind="mean"),
        "ReduceMin": partial(reduce, kind="min"),
        "ReduceSum": partial(reduce, kind="sum"),
    },
    layouts=dict.fromkeys(
        ("ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum"), reduce_layout
    ),
)
