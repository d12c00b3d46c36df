# SPDX-License-Identifier: Apache-2.0
"""Random steps of integers that are no quantized values, and of conditions."""

from dataclasses import replace

import numpy as np

from neon8.operators.integer import COMPARISONS, INTEGERS_OF
from random_floats import constant, grow_quantize, like
from random_net import Net, late, pick_float, pick_wide

EXTREMES = (-(2**31), 2**31 - 1, -1, 0, 1)


def integers(net: Net, shape):
    """Small values and extreme ones."""
    values = net.rng.integers(-9, 10, shape)
    odd = net.rng.choice(EXTREMES, shape)
    return np.where(net.rng.random(shape) < 0.1, odd, values).astype(np.int32)


def pick_integer(net: Net):
    """A tensor of integers, more often a late one; one is made where there is none."""
    if not net.integers or net.rng.integers(6) == 0:
        source = pick_float(net)
        out = net.tensor(source.shape, dtype="int32")
        if net.rng.integers(2):
            net.grow("ToInteger", out, source)
        else:
            net.grow("Constant", out, levels=integers(net, out.shape))
    return late(net, net.integers)


def pick_any(net: Net):
    """A tensor of int8, int16, float32 or int32."""
    kind = net.rng.integers(8)
    if kind > 1:
        return pick_wide(net)
    return pick_float(net) if kind else pick_integer(net)


def grow_to_float(net: Net) -> None:
    """The float form of integers."""
    source = pick_integer(net)
    out = net.tensor(source.shape, dtype="float32")
    net.grow("ToFloat", out, source)
    grow_quantize(net, out)


def broadcast(net: Net, dims):
    """Dimensions that are broadcast to `dims`, or are these."""
    if net.rng.integers(3) == 0:
        return tuple(dims)
    kept = [size if net.rng.integers(2) else 1 for size in dims]
    return tuple(kept[int(net.rng.integers(len(kept) + 1)) :])


def integer_constant(net: Net, dims):
    """A constant with these dimensions."""
    out = replace(net.tensor((1, 1, 1, 1), dtype="int32"), dims=dims)
    net.tensors[out.name] = out
    net.grow("Constant", out, levels=integers(net, dims).reshape(-1))
    return out


def pair(net: Net, source, others, make):
    """`source` and one of its dimensions, or a constant, in any order."""
    same = [tensor for tensor in others if tensor.dims == source.dims]
    other = same[int(net.rng.integers(len(same)))]
    if net.rng.integers(2):
        other = make(net, broadcast(net, source.dims))
    both = [source, other]
    if net.rng.integers(2):
        both.reverse()
    return both


def grow_integer(net: Net) -> None:
    """Two tensors, often broadcast, or one and a constant."""
    source = pick_integer(net)
    both = pair(net, source, net.integers, integer_constant)
    function = str(net.rng.choice(list(INTEGERS_OF)))
    net.grow("Integer", like(net, source), *both, function=function)


def grow_compare(net: Net) -> None:
    """Two tensors of floats, or one and a constant."""
    source = pick_float(net)
    both = pair(net, source, net.floats, constant)
    out = net.tensor((1, 1, 1, 1), dtype="int32")
    out = replace(out, dims=source.dims)
    net.tensors[out.name] = out
    net.grow("Compare", out, *both, function=str(net.rng.choice(list(COMPARISONS))))


def grow_where(net: Net) -> None:
    """Values of any type; what is broadcast is a constant."""
    pick = (pick_wide, pick_float, pick_integer)[int(net.rng.integers(3))]
    source = pick(net)
    fitting = [t for t in net.integers if t.dims == source.dims]
    condition = integer_constant(net, broadcast(net, source.dims))
    if fitting and net.rng.integers(2):
        condition = fitting[int(net.rng.integers(len(fitting)))]
    dims = broadcast(net, source.dims)
    if source.dtype == "float32":
        other = constant(net, dims)
    elif source.dtype == "int32":
        other = integer_constant(net, dims)
    else:
        other = replace(like(net, source), dims=dims)
        net.tensors[other.name] = other
        kind = np.dtype(source.dtype)
        levels = net.rng.integers(source.lo, source.hi + 1, dims, kind).reshape(-1)
        net.grow("Constant", other, levels=levels)
    both = [source, other]
    if net.rng.integers(2):
        both.reverse()
    net.grow("Where", like(net, source), condition, *both)
