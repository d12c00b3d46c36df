# SPDX-License-Identifier: Apache-2.0
"""Tensors that the ONNX file does not have: the values of another one, rearranged.

Where a layer wants its channels on another axis than ONNX has them, a move stands
before it and a move back after it; what lies channels last between Transposes is
computed channels first (graph/layout.py). The tensors between are told to onnxruntime
by their Origin, so that they are observed like all others.
"""

import math
from dataclasses import replace

from neon8.ir.graph import Node, Origin, Tensor
from neon8.ir.views import View, inverse, squeezed
from neon8.operators.movement import Permute, Reshape

CHANNELS_FIRST = "channels_first"
NCHW = "nchw"


def rearranged(name: str, dims: View, label: str, view: View, order: View) -> Tensor:
    """The values of tensor `name`, moved as by Permute(view, order), as `dims`.

    There is one of each label.
    """
    origin = Origin(name=name, label=label, view=view, order=order)
    return Tensor(name=f"{name}_{label}", dims=dims, origin=origin)


def channels_first(name: str, dims: View) -> Tensor:
    """Tensor `name` of `dims` with its last axis as the channels, N C ... .

    Where nothing is between the first axis and the last, the first one is pixels.
    """
    first, middle, channels = dims[0], math.prod(dims[1:-1]), dims[-1]
    if len(dims) == 2 or middle == 1:
        pixels = (first * middle, channels)
        return rearranged(name, (1, *pixels[::-1]), CHANNELS_FIRST, pixels, (1, 0))
    view = (first, middle, channels)
    moved = (first, channels, *dims[1:-1])
    return rearranged(name, moved, CHANNELS_FIRST, view, (0, 2, 1))


def nchw(name: str, dims: View) -> Tensor:
    """Tensor `name` of (N, ..., C) as (N, C, ...), also where it is one pixel."""
    order = (0, len(dims) - 1, *range(1, len(dims) - 1))
    return rearranged(name, tuple(dims[axis] for axis in order), NCHW, dims, order)


def reshaped(name: str, dims: View, label: str) -> Tensor:
    """Tensor `name` with other dimensions."""
    return rearranged(name, dims, label, (math.prod(dims),), (0,))


def rows(name: str, dims: View) -> Tensor:
    """Tensor `name` of (..., C) as (rows, C), by the name that others know it by."""
    made = reshaped(name, (math.prod(dims[:-1]), dims[-1]), "rows")
    return replace(made, name=name)


def there(layer: str, tensor: Tensor) -> Node:
    """The move of a tensor's origin to it."""
    origin = _origin(tensor)
    return _move(layer, origin.name, tensor.name, origin.view, origin.order)


def back(layer: str, tensor: Tensor) -> Node:
    """The move of a tensor to its origin."""
    origin = _origin(tensor)
    return _move(layer, tensor.name, origin.name, *inverse(origin.view, origin.order))


def alike(plain: Tensor, tensor: Tensor) -> Tensor:
    """`plain`, of the dimensions of the origin of `tensor`, moved like that."""
    origin = _origin(tensor)
    view, order = origin.view, origin.order
    made = rearranged(plain.name, tensor.dims, origin.label, view, order)
    return replace(made, hidden=plain.hidden)


def _origin(tensor: Tensor) -> Origin:
    if tensor.origin is None:
        raise ValueError(tensor.name)
    return tensor.origin


def _move(layer: str, source: str, output: str, view: View, order: View) -> Node:
    name = f"{layer}:{output}"
    view, order = squeezed(view, order)
    if order == tuple(range(len(order))):
        return Reshape(name=name, inputs=(source,), output=output)
    return Permute(name=name, inputs=(source,), output=output, view=view, order=order)
