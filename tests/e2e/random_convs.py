# SPDX-License-Identifier: Apache-2.0
"""Random convolutions: geometry, weights, biases, multipliers, residuals, slopes."""

import numpy as np

from neon8.ir.program import Tensor
from neon8.quant.proof import int16_depth
from random_net import Net, gain, pick_wide, window

NORMAL = np.finfo(np.float32).tiny
"""The least float bias that there is, but for 0."""


def random_weights(rng, shape):
    """int8 weights of several temperaments; one of a channel may be -128  (11)."""
    weights = random_levels(rng, shape).copy()
    if rng.integers(4) == 0:
        rows = weights.reshape(shape[0], -1)
        at = rng.integers(rows.shape[1], size=shape[0])
        rows[np.arange(shape[0]), at] = -128
    return weights


def random_levels(rng, shape):
    """int8 numbers in [-127, 127]."""
    kind = rng.integers(4)
    if kind == 0:
        return rng.choice(np.array([-127, 127], np.int8), shape)
    if kind == 1:
        return np.full(shape, rng.choice([-127, 127]), np.int8)
    if kind == 2:
        return np.clip(np.rint(rng.normal(0, 2, shape)), -127, 127).astype(np.int8)
    return rng.integers(-127, 128, shape, np.int8)


def random_wide_weights(rng, shape):
    """int16 weights: those of int8 with 8 bits more, of all values or the lowest."""
    kind = rng.integers(4)
    if kind == 0:
        return np.full(shape, -(2**15), np.int16)
    if kind == 1:
        return rng.integers(-(2**15), 2**15, shape, np.int16)
    more = rng.integers(-128, 128, shape, np.int16)
    return random_levels(rng, shape).astype(np.int16) * np.int16(256) + more


def with_room(weights, reach):
    """The weights, halved until the sums with such inputs fit int32  (24), (25)."""
    while bound(weights, np.zeros(len(weights)), reach=reach) >= 2**31:
        weights = (weights / 2).astype(weights.dtype)
    return weights


def random_bias(rng, weights, *, reach=128):
    """int32 biases, some as large as (12) allows.  reach: the largest |q|."""
    sums = np.abs(weights.astype(np.int64)).sum(axis=(1, 2, 3)) * reach
    room = 2**31 - 1 - sums
    small = rng.integers(-5000, 5000, sums.shape)
    large = room * rng.choice([-1, 1], sums.shape)
    bias = np.where(rng.random(sums.shape) < 0.05, large, small)
    return np.clip(bias, -room, room).astype(np.int32)


def bound(weights, bias, *, reach=128) -> int:
    """(12): the largest of the channels.  reach: the largest |q|."""
    sums = np.abs(weights.astype(np.int64)).sum(axis=(1, 2, 3)) * reach
    return int((sums + np.abs(bias.astype(np.int64))).max())


def random_multiplier(rng, weights):
    """Most keep the result in int8; powers of two give ties, the others saturate."""
    depth = max(1, int(np.prod(weights.shape[1:])))
    typical = 64 / (np.sqrt(depth) * 73 * max(1.0, np.abs(weights).mean()))
    values = typical * 2.0 ** rng.uniform(-2, 2, weights.shape[0])
    if rng.integers(3) == 0:
        values = 2.0 ** np.rint(np.log2(values))
    odd = rng.choice([0, 1e-30, 2.0**64, 1, 0.5], weights.shape[0])
    values = np.where(rng.random(weights.shape[0]) < 0.04, odd, values)
    return np.maximum(values, np.float32(1e-30) * (values > 0)).astype(np.float32)


def scaled(multiplier, factor):
    """The multipliers times `factor`, as far as they may go."""
    if factor == 1:
        return multiplier
    values = np.clip(multiplier * factor, np.float32(1e-30), 2.0**64)
    return np.where(multiplier == 0, 0, values).astype(np.float32)


def grow_conv(net: Net) -> None:
    """Convolution, dense or grouped, with residual and slopes, or to float."""
    source = pick_wide(net)
    beside = [t for t in net.levels if t is not source and is_beside(t, source)]
    if beside and net.rng.integers(2):  # a block that ends in a residual sum
        chosen = beside[net.rng.integers(len(beside))]
        append_conv(net, source, 1, chosen.shape[1], same=True)
        return
    divisors = [g for g in range(1, source.shape[1] + 1) if source.shape[1] % g == 0]
    groups = int(net.rng.choice([1, 1, 1, net.rng.choice(divisors)]))
    append_conv(net, source, groups, groups * int(net.rng.integers(1, 11)))


def is_beside(tensor: Tensor, source: Tensor) -> bool:
    """Whether they differ in their channels at most."""
    return tensor.shape[:1] + tensor.shape[2:] == source.shape[:1] + source.shape[2:]


def grow_depthwise(net: Net) -> None:
    """Depthwise convolution, often 3x3 with stride 1 or 2, some with a multiplier."""
    source = pick_wide(net)
    channels = source.shape[1]
    times = int(net.rng.choice([1, 1, 1, 2, 3]))
    append_conv(net, source, channels, channels * times, depthwise=True)


def append_conv(net, source, groups, out_channels, *, depthwise=False, same=False):
    rng = net.rng
    batch, channels, height, width = source.shape
    if same:
        reach = int(rng.integers(2))
        rows = (2 * reach + 1, 1, 1, reach, reach, height)
        columns = (2 * reach + 1, 1, 1, reach, reach, width)
    elif depthwise and rng.integers(2):
        stride = int(rng.integers(1, 3))
        rows = (3, stride, 1, 1, 1, (height - 1) // stride + 1)
        columns = (3, stride, 1, 1, 1, (width - 1) // stride + 1)
    else:
        rows, columns = window(net, height), window(net, width)
    shape = (batch, out_channels, rows[5], columns[5])
    weights = (random_wide_weights if net.width() == "int16" else random_weights)(
        rng, (out_channels, rows[0], columns[0], channels // groups)
    )
    weights = with_room(weights, source.reach)
    floats = rng.integers(6) == 0
    out = net.tensor(shape, dtype="float32" if floats else net.width())
    sources, slopes, residual_scale, bias_f32 = (source,), None, 0, None
    residuals = [
        tensor
        for tensor in net.levels
        if tensor.shape == shape and tensor is not source
    ]
    if floats:
        bias_f32 = rng.normal(0, 10, out_channels).astype(np.float32)
        smallest = np.array([0, -0.0, NORMAL, -NORMAL], np.float32)
        where = rng.random(out_channels) < 0.2
        bias_f32[where] = rng.choice(smallest, np.count_nonzero(where))
    elif rng.integers(3) == 0:
        slopes = rng.normal(0, 1, out_channels).astype(np.float32)
    if not floats and residuals and rng.integers(4):
        residual = residuals[int(rng.integers(len(residuals)))]
        sources = (source, residual)
        residual_scale = 2.0 ** rng.uniform(-3, 2) * gain(out) / gain(residual)
        residual_scale *= rng.choice([-1, 1])
    bias = random_bias(rng, weights, reach=source.reach)
    multiplier = random_multiplier(rng, weights)
    multiplier = scaled(multiplier, gain(out) / gain(source))
    net.grow(
        "Conv2d",
        out,
        *sources,
        weights=weights,
        bias=bias,
        multiplier=multiplier,
        bias_f32=bias_f32,
        slopes=slopes,
        residual_scale=np.float32(residual_scale),
        strides=(rows[1], columns[1]),
        dilations=(rows[2], columns[2]),
        pads=(rows[3], columns[3], rows[4], columns[4]),
        groups=groups,
        **net.clamp(out),
        acc_bound=bound(weights, bias, reach=source.reach),
        int16_depth=int16_depth(weights, source.dtype),
    )
    if floats and rng.integers(2):
        again = net.tensor(shape, dtype=net.width())
        net.grow("Quantize", again, out)
