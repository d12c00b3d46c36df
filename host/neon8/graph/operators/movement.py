# SPDX-License-Identifier: Apache-2.0
"""Operators that keep all values: Reshape and its likes, Transpose, Concat."""

import math

from neon8.graph.graph import Concat, Node, Permute, Reshape
from neon8.graph.source import (
    Convert,
    OnnxNode,
    Source,
    constant,
    failure,
    integer,
    integers,
    shape_of,
    text,
)
from neon8.graph.views import View, squeezed


def reshape(source: Source, node: OnnxNode) -> Node:
    """Flatten, Reshape, Squeeze, Unsqueeze, Identity, Dropout: the same values."""
    for name in (node.inputs[0], node.outputs[0]):
        shape_of(source, node, name)
    return Reshape(name=node.name, inputs=node.inputs[:1], output=node.outputs[0])


def dropout(source: Source, node: OnnxNode) -> Node:
    """Dropout, which does nothing at inference."""
    training = constant(source, node, 2)
    if training is not None and training.any():
        raise failure(source, node, "training_mode is set; export for inference")
    return reshape(source, node)


def cast(source: Source, node: OnnxNode) -> Node:
    """Cast and CastLike between types of real numbers, which are all computed alike."""
    return reshape(source, node)


def concat(source: Source, node: OnnxNode) -> Node:
    """Concat along any axis."""
    shape = shape_of(source, node, node.outputs[0])
    for name in node.inputs:
        shape_of(source, node, name)
    axis = axis_of(source, node, len(shape), default=1)
    if len(node.inputs) == 1:
        return reshape(source, node)
    return Concat(
        name=node.name,
        inputs=node.inputs,
        output=node.outputs[0],
        axis=min(axis, 3),
        blocks=math.prod(shape[3:axis]),
    )


def axis_of(source: Source, node: OnnxNode, rank: int, *, default: int) -> int:
    """The attribute `axis`, counted from the front.  GraphError: there is none such."""
    axis = integer(node, "axis", default)
    if not -rank <= axis < rank:
        raise failure(source, node, f"axis {axis} of {rank} dimensions")
    return axis % rank


def transpose(source: Source, node: OnnxNode) -> Node:
    """Transpose."""
    shape = shape_of(source, node, node.inputs[0])
    order = integers(node, "perm") or tuple(reversed(range(len(shape))))
    if sorted(order) != list(range(len(shape))):
        raise failure(source, node, f"perm {list(order)} of {len(shape)} dimensions")
    return permute(source, node, shape, order)


def depth_to_space(source: Source, node: OnnxNode) -> Node:
    """DepthToSpace, whose mode says how channels and blocks are nested."""
    n, c, h, w, block = _blocks(source, node)
    if c % (block * block):
        raise failure(source, node, f"{c} channels do not make blocks of {block}")
    mode = text(node, "mode", "DCR")
    each = c // (block * block)
    if mode == "DCR":
        return permute(source, node, (n, block, block, each, h, w), (0, 3, 4, 1, 5, 2))
    if mode == "CRD":
        return permute(source, node, (n, each, block, block, h, w), (0, 1, 4, 2, 5, 3))
    raise failure(source, node, f"mode {mode!r} is neither DCR nor CRD")


def space_to_depth(source: Source, node: OnnxNode) -> Node:
    """SpaceToDepth."""
    n, c, h, w, block = _blocks(source, node)
    if h % block or w % block:
        raise failure(source, node, f"{h} x {w} pixels do not make blocks of {block}")
    view = n, c, h // block, block, w // block, block
    return permute(source, node, view, (0, 3, 5, 1, 2, 4))


def _blocks(source: Source, node: OnnxNode) -> tuple[int, int, int, int, int]:
    """The four dimensions of the input, and the size of a block."""
    shape = shape_of(source, node, node.inputs[0])
    block = integer(node, "blocksize", 0)
    if len(shape) != 4 or not 1 <= block <= max(shape):
        detail = f"blocks of {block} of an input of shape {list(shape)}"
        raise failure(source, node, detail)
    n, c, h, w = shape
    return n, c, h, w, block


def permute(source: Source, node: OnnxNode, view: View, order: View) -> Node:
    """The node for values that are turned around, or only reshaped."""
    shape_of(source, node, node.outputs[0])
    view, order = squeezed(view, order)
    if order == tuple(range(len(order))):
        return reshape(source, node)
    return Permute(
        name=node.name,
        inputs=node.inputs[:1],
        output=node.outputs[0],
        view=view,
        order=order,
    )


OPERATORS: dict[str, Convert] = {
    "Cast": cast,
    "CastLike": cast,
    "Concat": concat,
    "DepthToSpace": depth_to_space,
    "Dropout": dropout,
    "Flatten": reshape,
    "Identity": reshape,
    "Reshape": reshape,
    "SpaceToDepth": space_to_depth,
    "Squeeze": reshape,
    "Transpose": transpose,
    "Unsqueeze": reshape,
}
