# SPDX-License-Identifier: Apache-2.0
"""What other reductions are made of: ReduceL1, ReduceProd, LpNormalization ...

Here is what ONNX has operators for and neon8 has no step of its own.
"""

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from neon8.ir.graph import INTEGERS
from neon8.operators.composition import Parts
from neon8.operators.family import Family

SMALLEST = 1e-12
"""The least norm: where all is 0, the quotient is 0."""

STEADY = 1e-18
"""MeanVarianceNormalization adds 1e-9 to a root."""


def axes_of(p: Parts, dims: tuple[int, ...]) -> list[int]:
    """The axes that are reduced, in order."""
    given = p.source.constant(p.node, 1) if len(p.node.inputs) > 1 else None
    listed = p.node.integers("axes")
    if given is not None:
        listed = tuple(int(axis) for axis in given.reshape(-1))
    if not listed:
        if p.node.integer("noop_with_empty_axes", 0):
            raise p.failure("noop_with_empty_axes is not supported")
        listed = tuple(range(len(dims)))
    if any(not -len(dims) <= axis < len(dims) for axis in listed):
        raise p.failure(f"axes {list(listed)} of {len(dims)} axes")
    return sorted({axis % len(dims) for axis in listed})


def summed(
    p: Parts, *, before: Callable[[Parts, str], str] | None = None, after: str = ""
) -> bool:
    """The sum of absolute values or squares, or the logarithm of a sum."""
    x, out = p.node.inputs[0], p.node.outputs[0]
    axes = axes_of(p, p.shape_of(x))
    keep = p.node.integer("keepdims", 1) != 0
    value = x if before is None else before(p, x)
    total = p.reduce("ReduceSum", value, axes, keep=keep, output="" if after else out)
    if after:
        p.add(after, total, output=out)
    return True


def log_sum_exp(p: Parts) -> bool:
    """ReduceLogSumExp, less the largest value before and plus it after."""
    x, out = p.node.inputs[0], p.node.outputs[0]
    axes = axes_of(p, p.shape_of(x))
    most = p.reduce("ReduceMax", x, axes, keep=True)
    powers = p.add("Exp", p.add("Sub", x, most))
    total = p.add("Log", p.reduce("ReduceSum", powers, axes, keep=True))
    total = p.add("Add", total, most)
    p.add("Reshape", total, p.shape_of(out), output=out)
    return True


def product(p: Parts) -> bool:
    """ReduceProd: half of the values by the other half, until one is left."""
    p.in_float = True
    return _halved(p, "Mul")


def _halved(p: Parts, operator: str) -> bool:
    """A reduction by an operator of two values."""
    x, out = p.node.inputs[0], p.node.outputs[0]
    dims = p.dims_of(x)
    axes = axes_of(p, dims)
    kept = [axis for axis in range(len(dims)) if axis not in axes]
    count = math.prod(dims[axis] for axis in axes)
    value = p.add("Transpose", x, perm=(*axes, *kept))
    rest = math.prod(dims[axis] for axis in kept)
    value = p.add("Reshape", value, [count, rest])
    while count > 1:
        half = count // 2
        low, high = (
            p.add("Gather", value, np.arange(begin, begin + half), axis=0)
            for begin in (0, half)
        )
        last = value
        value = p.add(operator, low, high)
        if count % 2:
            odd = p.add("Gather", last, [count - 1], axis=0)
            value = p.add("Concat", value, odd, axis=0)
        count = half + count % 2
    p.add("Reshape", value, p.dims_of(out), output=out)
    return True


def unit(p: Parts) -> bool:
    """LpNormalization: by the norm along one axis."""
    x = p.node.inputs[0]
    kind = {1: "ReduceL1", 2: "ReduceL2"}.get(p.node.integer("p", 2))
    if kind is None:
        return False
    norm = p.reduce(kind, x, [p.node.integer("axis", -1)], keep=True)
    p.add("Div", x, p.add("Max", norm, SMALLEST), output=p.node.outputs[0])
    return True


def hardmax(p: Parts) -> bool:
    """Hardmax: one where the largest value is first; before opset 13 from `axis` on."""
    x, out = p.node.inputs[0], p.node.outputs[0]
    dims = p.shape_of(x)
    old = p.source.opset < 13
    axis = p.node.integer("axis", 1 if old else -1) % max(len(dims), 1)
    shape = dims
    if old:
        shape = (math.prod(dims[:axis]), math.prod(dims[axis:]))
        x, axis = p.add("Reshape", x, shape), 1
    largest = p.add("ArgMax", x, axis=axis, keepdims=0)
    values = np.array([0, 1], np.float32)
    one = p.add("OneHot", largest, [shape[axis]], values, axis=axis)
    p.add("Reshape", one, dims, output=out)
    return True


def cumulative(p: Parts) -> bool:
    """CumSum: of twice as many neighbours each time, until all are in."""
    p.in_float = True
    x, out = p.node.inputs[0], p.node.outputs[0]
    dims = p.dims_of(x)
    given = p.source.constant(p.node, 1)
    if given is None or given.size != 1:
        raise p.failure("has no axis that is one constant")
    axis = int(given.reshape(-1)[0])
    if not -len(dims) <= axis < len(dims):
        raise p.failure(f"axis {axis} of {len(dims)} dimensions")
    axis %= len(dims)
    back = p.node.integer("reverse", 0) != 0
    value = x
    if p.node.integer("exclusive", 0):
        value = _moved(p, value, len(dims), axis, -1 if back else 1)
    step = 1
    while step < dims[axis]:
        moved = _moved(p, value, len(dims), axis, -step if back else step)
        value = p.add("Add", value, moved)
        step *= 2
    p.add("Identity", value, output=out)
    return True


def _moved(p: Parts, value: str, rank: int, axis: int, by: int) -> str:
    """Moved along an axis, with 0 where nothing comes from."""
    pads = [0] * (2 * rank)
    pads[axis], pads[axis + rank] = by, -by
    if p.source.opset < 11:
        return p.add("Pad", value, pads=tuple(pads))
    return p.add("Pad", value, pads)


def triangle(p: Parts) -> bool:
    """Trilu: the values on one side of a diagonal, and 0."""
    x = p.node.inputs[0]
    dims = p.dims_of(x)
    given = p.source.constant(p.node, 1)
    k = 0 if given is None else int(given.reshape(-1)[0])
    p.source.check_made(p.node, *dims[-2:])
    every = np.ones(dims[-2:], bool)
    k = min(max(k, -dims[-2]), dims[-1])
    kept = np.triu(every, k) if p.node.integer("upper", 1) else np.tril(every, k)
    zero = np.zeros((), np.dtype(p.source.types[x]))
    p.add("Where", kept, x, zero, output=p.node.outputs[0])
    return True


def one_hot(p: Parts) -> bool:
    """OneHot: along a new axis, which indices count from either end."""
    indices, depth, values = p.node.inputs
    dims = p.dims_of(indices)
    count, both = (p.source.constant(p.node, place) for place in (1, 2))
    if count is None or both is None or count.size != 1 or both.size != 2:
        raise p.failure(f"{depth!r} or {values!r} is of another size")
    size, rank = int(count.reshape(-1)[0]), len(dims) + 1
    p.source.check_made(p.node, size)
    axis = p.node.integer("axis", -1) % rank
    view = (*dims[:axis], 1, *dims[axis:])
    value = p.add("Reshape", indices, view)
    value = p.add("Cast", value, to=INT64)
    places = np.arange(size).reshape(-1, *(1,) * (rank - axis - 1))
    front = p.add("Equal", value, places)
    hit = p.add("Or", front, p.add("Equal", value, places - size))
    off, on = both.reshape(2, 1)
    p.add("Where", hit, on.reshape(()), off.reshape(()), output=p.node.outputs[0])
    return True


def of_integers(p: Parts, *, kind: str) -> bool:
    """ReduceMax, ReduceMin and ReduceSum of integers and of bool."""
    types = p.source.types.get(p.node.inputs[0])
    if types not in INTEGERS:
        return False
    return _halved(p, BOOL[kind] if types == "bool" else kind)


BOOL = {"Max": "Or", "Min": "And", "Add": "Add"}

INT64 = 7


def standardized(p: Parts) -> bool:
    """MeanVarianceNormalization, as an InstanceNormalization of the axes."""
    x, out = p.node.inputs[0], p.node.outputs[0]
    dims = p.shape_of(x)
    axes = [
        a % len(dims) for a in p.node.integers("axes") or (0, 2, 3) if a < len(dims)
    ]
    kept = [axis for axis in range(len(dims)) if axis not in axes]
    channels = math.prod(dims[axis] for axis in kept)
    order = (*kept, *sorted(axes))
    value = p.add("Transpose", x, perm=order)
    value = p.add("Reshape", value, [1, channels, -1])
    one, zero = np.ones(channels, np.float32), np.zeros(channels, np.float32)
    value = p.add("InstanceNormalization", value, one, zero, epsilon=STEADY)
    value = p.add("Reshape", value, [dims[axis] for axis in order])
    back = tuple(int(axis) for axis in np.argsort(order))
    p.add("Transpose", value, output=out, perm=back)
    return True


def affine(p: Parts) -> bool:
    """AffineGrid of known size: each place times the matrix of its image."""
    source, node = p.source, p.node
    images, rows, columns = source.shape_of(node, node.inputs[0])
    *sizes, _ = source.shape_of(node, node.outputs[0])[1:]
    if (rows, columns) != (len(sizes), len(sizes) + 1):
        return False
    p.in_float = True  # a place is finer than 8 bits
    ends = node.integer("align_corners", 0)
    axes = []
    for size in sizes:
        steps = np.arange(size) - (size - 1) / 2
        axes.append(steps * 2 / (max(size - 1, 1) if ends else size))
    places = np.meshgrid(*axes, indexing="ij")[::-1]
    theta = p.add("Reshape", node.inputs[0], [images, 1, rows, columns])
    found = p.add("Gather", theta, rows, axis=3)
    for at, place in enumerate(places):
        share = p.add("Gather", theta, at, axis=3)
        column = place.reshape(1, -1, 1).astype(np.float32)
        found = p.add("Add", p.add("Mul", share, column), found)
    p.add("Reshape", found, [images, *sizes, rows], output=node.outputs[0])
    return True


FAMILY = Family(
    compositions={
        "AffineGrid": affine,
        "CumSum": cumulative,
        "Hardmax": hardmax,
        "LpNormalization": unit,
        "MeanVarianceNormalization": standardized,
        "OneHot": one_hot,
        "ReduceL1": partial(summed, before=lambda p, x: p.add("Abs", x)),
        "ReduceLogSum": partial(summed, after="Log"),
        "ReduceLogSumExp": log_sum_exp,
        "ReduceMax": partial(of_integers, kind="Max"),
        "ReduceMin": partial(of_integers, kind="Min"),
        "ReduceProd": product,
        "ReduceSum": partial(of_integers, kind="Add"),
        "ReduceSumSquare": partial(summed, before=lambda p, x: p.add("Mul", x, x)),
        "Trilu": triangle,
    }
)
