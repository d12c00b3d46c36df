# SPDX-License-Identifier: Apache-2.0
"""Proofs for any input: accumulators fit int32 (12), products int16 (11); (23)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from neon8.arrays import DoubleArray, FloatArray
from neon8.errors import LOG, CompileError
from neon8.quant.lattice import HALF_REACH, TAPS, WHOLE_REACH, reaches
from neon8.quant.weights import (
    ACC_LIMIT,
    NARROW_REACH,
    Integers,
    Quantize,
    Sums,
    enlarged,
    least_factor,
    quantize_weights,
    sums,
)
from neon8.text import counted

FEWER_BITS = (
    "calibrate, or solve with the network, chooses the most bits that fit; in the "
    'table, give the tensors of its scale group less "bits" with the grid of these'
)
INT16_DEPTHS = (8, 4)  # of kernels; 2 need no proof
INT16_REACH = 255  # sum|w| * 128 <= 32767


@dataclass(frozen=True, slots=True, kw_only=True)
class Enlarged:
    """A channel whose weight scale grew by `factor`, for its accumulator bound (12)."""

    layer: str
    channel: int
    bound: float
    factor: float


def prove_sums(
    layer: str,
    weight: FloatArray,
    bias: DoubleArray,
    scales: DoubleArray,
    *,
    scale_in: float,
    zero_point_in: int,
    reach: int,
    quantize: Quantize = quantize_weights,
) -> tuple[Sums, DoubleArray, list[Enlarged]]:
    """Prove that the accumulators of a layer fit int32, with larger scales if need be.

    reach: the largest |q| of the input.  quantize: what rounds the weights.

    A channel that does not fit gets a larger weight scale, and is in the list; not so
    where the input is int16, which had better have fewer bits.
    CompileError: no scale helps, or the input is int16.
    """

    def quantized(at: slice, channel_scales: DoubleArray) -> Sums:
        return sums(
            weight[at],
            bias[at],
            channel_scales,
            scale_in=scale_in,
            zero_point_in=zero_point_in,
            reach=reach,
            quantize=quantize,
        )

    everything = slice(None)
    result = quantized(everything, scales)
    too_large = np.flatnonzero(result.bound >= ACC_LIMIT)
    if too_large.size == 0:
        return result, scales, []
    if reach > NARROW_REACH:
        worst = int(result.bound.argmax())
        raise CompileError(
            f"layer {layer!r}: channel {worst}: accumulator bound "
            f"{result.bound[worst]:.4g} reaches 2**31, as its input is int16; "
            f"{FEWER_BITS}"
        )
    scales = scales.copy()
    grown = []
    for channel in too_large:
        at = slice(channel, channel + 1)

        def fits(factor: float, at: slice = at, scale: float = scales[channel]) -> bool:
            return bool(quantized(at, enlarged(scale, factor)).bound[0] < ACC_LIMIT)

        factor = least_factor(fits)
        if factor is None:
            raise CompileError(
                f"layer {layer!r}: channel {channel}: the accumulator does not fit "
                "int32 with any weight scale; check its bias"
            )
        bound = float(result.bound[channel])
        grown.append(
            Enlarged(layer=layer, channel=int(channel), bound=bound, factor=factor)
        )
        scales[at] = enlarged(scales[channel], factor)
    return quantized(everything, scales), scales, grown


def tell(grown: Sequence[Enlarged]) -> None:
    """One warning of all channels of a network, with the one that grew most."""
    if not grown:
        return
    one = max(grown, key=lambda each: each.factor)
    more = ""
    if len(grown) > 1:
        layers = len({each.layer for each in grown})
        more = (
            f"; so are those of {len(grown)} channels of {counted(layers, 'layer')}, "
            "of which this is the worst"
        )
    LOG.warning(
        "layer %r: channel %d: accumulator bound %.4g reaches 2**31; weight scale "
        "enlarged by %.7g%s",
        one.layer,
        one.channel,
        one.bound,
        one.factor,
        more,
    )


def int16_depth(weights: Integers, dtype: str = "int8") -> int:
    """How many products of a channel int16 holds, whichever they are: 8, 4 or 2  (11).

    weights: (O, ...), no two of a channel above INT16_REACH together.  dtype: of the
    input; of int16, as of such weights, nobody asks, and it is 2.
    """
    if dtype != "int8" or weights.dtype != np.int8:
        return 2
    channels = weights.reshape(len(weights), -1)
    for depth in INT16_DEPTHS:
        if all(sum_of_largest(channel, depth) <= INT16_REACH for channel in channels):
            return depth
    return 2


def winograd_form(weights: Integers, *, stride: int, dilation: int) -> str:
    """Which form of (23) the weights serve: "whole", else "half", else "".

    weights: (O, I / groups, kh, kw).  stride, dilation: along the row.
    """
    if (
        weights.dtype != np.int8
        or weights.shape[-1] != TAPS
        or stride != 1
        or dilation != 1
    ):
        return ""
    most = int(reaches(weights).max())
    if most <= WHOLE_REACH:
        return "whole"
    even = (np.bitwise_xor.reduce(weights, axis=-1) & 1 == 0).all()
    return "half" if most <= HALF_REACH and even else ""


def sum_of_largest(channel: Integers, depth: int) -> int:
    """The sum of the `depth` largest |w|, of fewer where there are fewer."""
    sizes = np.abs(channel.astype(np.int16))
    count = min(depth, len(sizes))
    return int(np.partition(sizes, -count)[-count:].sum())
