# SPDX-License-Identifier: Apache-2.0
"""Random steps of integers that are no quantized values."""

import numpy as np

from random_floats import grow_quantize
from random_net import Net, late, pick_float

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


def grow_to_float(net: Net) -> None:
    """The float form of integers."""
    source = pick_integer(net)
    out = net.tensor(source.shape, dtype="float32")
    net.grow("ToFloat", out, source)
    grow_quantize(net, out)
