# SPDX-License-Identifier: Apache-2.0
"""Values that only move, those of int8 once their scales are the same."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from neon8.compile import program
from neon8.compile.build import FLOAT, Build, Lower
from neon8.compile.program import Int32Array, Tensor
from neon8.graph.graph import (
    MAX_RANK,
    Concat,
    Gather,
    Node,
    Permute,
    Reshape,
    nchw,
)
from neon8.graph.views import View, then


def lower_concat(b: Build, node: Concat) -> None:
    """Joins along an axis; blocks of W are first made channels."""
    sources, out = moved(b, node)
    axis, joined = node.axis, out
    if node.blocks > 1:
        axis = 1
        sources = [reshaped(b, node.name, x, _in_blocks(x, node)) for x in sources]
        joined = b.temporary(replace(out, dims=_in_blocks(out, node)), "joined")
    names = tuple(source.name for source in sources)
    b.ops.append(
        program.Concat(name=node.name, inputs=names, output=joined.name, axis=axis)
    )
    reshape(b, node.name, joined, out)


def _in_blocks(tensor: Tensor, node: Concat) -> tuple[int, int]:
    """The values as (blocks, values of a block)."""
    n, c, h, w = tensor.shape
    return n * c * h * node.blocks, w // node.blocks


def lower_reshape(b: Build, node: Reshape) -> None:
    """The same values in another shape."""
    (source,), out = moved(b, node)
    inputs = (source.name,)
    b.ops.append(program.Reshape(name=node.name, inputs=inputs, output=out.name))


def moved(b: Build, node: Node) -> tuple[list[Tensor], Tensor]:
    """Inputs and output of `node` in the type in which it runs.

    Quantized inputs are on the grid of the output.
    """
    if b.type_of(node) == FLOAT:
        real = [b.float32(name) for name in node.inputs]
        return real, b.declare(node.output, FLOAT)
    sources = [b.own(name) for name in node.inputs]
    out = b.result(node.output)
    return [b.rescaled(node.name, source, out) for source in sources], out


def lower_permute(b: Build, node: Permute) -> None:
    """The values in another order."""
    (source,), out = moved(b, node)
    permute(b, node.name, source, out, (node.view, node.order))


def lower_gather(b: Build, node: Gather) -> None:
    """The values that its lists name, in the output's shape."""
    (source,), out = moved(b, node)
    source = reshaped(b, node.name, source, node.view)
    gather(b, node.name, source, out, node.indices, fill=node.fill)


def permute(
    b: Build,
    layer: str,
    source: Tensor,
    out: Tensor,
    turn: tuple[View, View],
) -> None:
    """Appends source -> out by (view, order).

    The step wants axes that the borders between the dimensions of its input and its
    output do not cut unevenly; where they do, others are between.
    """
    view, order = turn
    if not _even(source, turn, out):
        source = reshaped(b, layer, source, view)
    turned = out
    if not _even(source, turn, out):
        dims = tuple(view[axis] for axis in order)
        turned = b.temporary(replace(out, dims=dims), "turned")
    rest = range(len(view), MAX_RANK)
    b.ops.append(
        program.Permute(
            name=layer,
            inputs=(source.name,),
            output=turned.name,
            indices=np.array([[*view, *(1 for _ in rest)], [*order, *rest]], np.int32),
        )
    )
    reshape(b, layer, turned, out)


def _even(source: Tensor, turn: tuple[View, View], out: Tensor) -> bool:
    """True if one shape has the axes of the view and all dimensions as its parts."""
    flat = (0, 1, 2, 3)
    fine = then((source.shape, flat), turn, squeeze=False)
    return fine is not None and then(fine, (out.shape, flat)) is not None


def gather(
    b: Build,
    layer: str,
    source: Tensor,
    out: Tensor,
    indices: Sequence[Int32Array],
    *,
    fill: float,
) -> None:
    """Appends source -> out, where a step of its own reshapes what was gathered."""
    n, c, h, w = (len(each) for each in indices)
    taken = out
    if out.shape != (n, c, h, w):
        taken = b.temporary(replace(out, dims=(n, c, h, w)), "gathered")
    b.ops.append(
        program.Gather(
            name=layer,
            inputs=(source.name,),
            output=taken.name,
            indices=np.concatenate(indices),
            fill=level(fill, out),
        )
    )
    reshape(b, layer, taken, out)


def level(real: float, out: Tensor) -> np.float32:
    """The value that stands for `real` in `out`: the nearest q in its range, or itself.

    Where no index is -1 nothing reads it.
    """
    if out.dtype == FLOAT:
        value: np.float32 = np.float32(real)
    elif math.isinf(real):
        value = np.float32(out.lo if real < 0 else out.hi)
    else:
        q = np.rint(real / float(out.scale)) + out.zero_point
        value = np.float32(np.clip(q, out.lo, out.hi))
    return value


def reshaped(b: Build, layer: str, source: Tensor, dims: Sequence[int]) -> Tensor:
    """`source`, or a copy with these dimensions where its N C H W are others."""
    if source.shape == nchw(tuple(dims)):
        return source
    out = b.temporary(replace(source, dims=tuple(dims)), "reshaped")
    reshape(b, layer, source, out)
    return out


def reshape(b: Build, layer: str, source: Tensor, out: Tensor) -> None:
    """Appends source -> out, unless they are the same tensor."""
    if source.name != out.name:
        b.ops.append(
            program.Reshape(name=layer, inputs=(source.name,), output=out.name)
        )


LOWER: dict[type[Node], Lower] = {
    Concat: lower_concat,
    Gather: lower_gather,
    Permute: lower_permute,
    Reshape: lower_reshape,
}
"""Each serves both types."""
