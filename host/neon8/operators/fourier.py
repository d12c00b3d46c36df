# SPDX-License-Identifier: Apache-2.0
"""Fourier transforms of constant length: products with a constant matrix.

A complex number is two values, of which the last axis is.
"""

import math

import numpy as np

from neon8.arrays import Array, DoubleArray
from neon8.operators.composition import Parts
from neon8.operators.family import Family

COMPLEX = 2
"""Values of a number, real and imaginary part."""

MOST = 1 << 13
"""The longest transform: its matrix has four times the square of that."""


def transform(p: Parts) -> bool:
    """DFT along one axis of known length."""
    source, node = p.source, p.node
    dims = list(source.shape_of(node, node.inputs[0]))
    shape = source.shape_of(node, node.outputs[0])
    rank = len(dims)
    axis = node.integer("axis", 1)
    if source.opset >= 20:
        axis = _whole(p, 2, -2)
    if not -rank <= axis < rank - 1 or axis == -1:
        raise source.failure(node, f"axis {axis} of {rank} dimensions")
    axis %= rank
    inverse, half = (node.integer(name, 0) for name in ("inverse", "onesided"))
    size = shape[axis]
    length = _whole(p, 1, size if inverse and half else dims[axis])
    if not 0 < length <= MOST:
        return False
    taken = min(dims[axis], length // 2 + 1 if inverse and half else length)
    matrix = _matrix(length, taken, size, dims[-1], shape[-1], inverse=inverse != 0)
    if inverse and half:  # what is left out is the conjugate of what is there
        twice = np.full(taken, 2.0)
        twice[0] = 1
        twice[length // 2 :] = 1 if length % 2 == 0 else 2
        matrix = matrix * twice[:, None, None, None]
    order = [*(a for a in range(rank - 1) if a != axis), axis, rank - 1]
    value = p.add("Transpose", node.inputs[0], perm=tuple(order))
    if taken < dims[axis]:
        value = p.add("Gather", value, np.arange(taken), axis=rank - 2)
    outer = [dims[a] for a in order[:-2]]
    value = p.add("Reshape", value, [*outer, taken * dims[-1]])
    flat = matrix.reshape(taken * dims[-1], size * shape[-1])
    value = p.add("MatMul", value, flat.astype(np.float32))
    value = p.add("Reshape", value, [*outer, size, shape[-1]])
    back = tuple(int(a) for a in np.argsort(order))
    p.add("Transpose", value, output=node.outputs[0], perm=back)
    return True


def frames(p: Parts) -> bool:
    """STFT of a real signal, as a convolution."""
    source, node = p.source, p.node
    batch, length, *parts = source.shape_of(node, node.inputs[0])
    if math.prod(parts) != 1:
        return False
    step = _whole(p, 1, 0)
    window = None if _left_out(p, 2) else source.required(node, 2).astype(np.float64)
    size = _whole(p, 3, length if window is None else window.size)
    if not 0 < size <= min(MOST, length) or step < 1:
        return False
    count = (length - size) // step + 1
    bins = size // 2 + 1 if node.integer("onesided", 1) else size
    matrix = _matrix(size, size, bins, 1, COMPLEX, inverse=False)
    kernels = matrix.transpose(2, 3, 1, 0).reshape(bins * COMPLEX, 1, size)
    if window is not None:
        kernels = kernels * window.reshape(-1)
    value = p.add("Reshape", node.inputs[0], [batch, 1, length])
    value = p.add("Conv", value, kernels.astype(np.float32), strides=(step,))
    value = p.add("Transpose", value, perm=(0, 2, 1))
    p.add("Reshape", value, [batch, count, bins, COMPLEX], output=node.outputs[0])
    return True


def _left_out(p: Parts, index: int) -> bool:
    return index >= len(p.node.inputs) or not p.node.inputs[index]


def _whole(p: Parts, index: int, default: int) -> int:
    """Input `index`, a constant number."""
    value = p.source.constant(p.node, index)
    if value is None:
        return default
    if value.size != 1:
        raise p.failure(f"input {index} is not one number")
    number: Array = value.reshape(-1)
    return int(number[0])


def _matrix(
    length: int, taken: int, size: int, read: int, made: int, *, inverse: bool
) -> DoubleArray:
    """What value (n, part) adds to (k, part) of a transform; (taken, read, size, made).

    read, made: parts of a number, 1 if it is real.
    """
    turns = np.outer(np.arange(taken), np.arange(size)) % length
    angles = 2 * np.pi / length * turns * (1 if inverse else -1)
    real, imaginary = np.cos(angles), np.sin(angles)
    whole = np.array([[real, imaginary], [-imaginary, real]])
    scale = 1 / length if inverse else 1.0
    matrix: DoubleArray = whole.transpose(2, 0, 3, 1)[:, :read, :, :made] * scale
    return matrix


FAMILY = Family(compositions={"DFT": transform, "STFT": frames})
