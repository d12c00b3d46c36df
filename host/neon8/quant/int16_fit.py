# SPDX-License-Identifier: Apache-2.0
"""Weight scales with which int16 holds four products (11), and what they cost."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from neon8.arrays import DoubleArray, FloatArray
from neon8.errors import LOG
from neon8.quant.proof import INT16_REACH
from neon8.quant.weights import HIGHEST, enlarged, least_factor, quantize_weights

DEPTH = 4
"""How many products kernels sum in int16 where it is proved that they fit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """What it takes that int16 holds DEPTH products of a layer.

    channels: how many need a larger scale, of `all`.  factor: the largest one.
    before, after: SQNR of the layer's weights in dB, inf where they are exact.
    applied: the cost was below the limit.
    """

    layer: str
    channels: int
    all: int
    factor: float
    before: float
    after: float
    applied: bool

    @property
    def loss(self) -> float:
        """What it costs, in dB; infinite where the weights were exact."""
        return math.inf if math.isinf(self.before) else self.before - self.after


def fit(
    layer: str, weight: FloatArray, scales: DoubleArray, *, limit: float
) -> tuple[DoubleArray, Fit | None]:
    """Scales (O,) with which DEPTH products fit, and what that costs.

    weight: (O, ...) real values, finite.  The scales are `scales` where the cost
    reaches `limit` dB; None where nothing has to be done, or no scale helps.
    """
    # Rounding keeps the order of sizes, so these decide for the channel.
    sizes = np.abs(weight.reshape(len(weight), -1).astype(np.float64))
    count = min(DEPTH, sizes.shape[1])
    largest = np.partition(sizes, -count, axis=1)[:, -count:]
    factors = np.ones(len(weight))
    result = scales.copy()
    for channel, scale in enumerate(scales):

        def fits(factor: float, at: int = channel, scale: float = scale) -> bool:
            levels = np.rint(largest[at] / enlarged(scale, factor)[0])
            return bool(np.minimum(levels, HIGHEST).sum() <= INT16_REACH)

        if fits(1.0):
            continue
        # A step of the search is less than one of float32, to which enlarged() rounds:
        # the float32 below the scale that is found does not fit.
        factor = least_factor(fits)
        if factor is None:
            return scales, None
        factors[channel] = factor
        result[channel] = enlarged(scale, factor)[0]
    if (factors == 1).all():
        return scales, None
    before, after = (sqnr(weight, each) for each in (scales, result))
    found = Fit(
        layer=layer,
        channels=int((factors > 1).sum()),
        all=len(factors),
        factor=float(factors.max()),
        before=before,
        after=after,
        applied=not math.isinf(before) and before - after < limit,
    )
    LOG.info(
        "layer %r: %d of %d weight scales %s by up to %.7g so that int16 holds %d "
        "products, which costs %.3g dB",
        *(layer, found.channels, found.all),
        "enlarged" if found.applied else "would have to be enlarged",
        *(found.factor, DEPTH, found.loss),
    )
    return (result if found.applied else scales), found


def sqnr(weight: FloatArray, scales: DoubleArray) -> float:
    """Signal to rounding error of the weights of a layer, in dB, over all channels."""
    signal = noise = 0.0
    levels = quantize_weights(weight, scales)
    for channel, scale in enumerate(scales):  # a large layer in double is eight of it
        real = weight[channel].astype(np.float64)
        signal += float(np.square(real).sum())
        noise += float(np.square(real - scale * levels[channel]).sum())
    if noise == 0:
        return math.inf
    return 10 * math.log10(signal / noise)


def rows(fits: Iterable[Fit]) -> list[tuple[str, ...]]:
    """Layer, channels, largest factor, SQNR before and after, loss, whether done."""
    return [
        (
            one.layer,
            f"{one.channels} of {one.all}",
            f"{one.factor:.4f}",
            f"{one.before:.2f}",
            f"{one.after:.2f}",
            f"{one.loss:.3f}",
            "yes" if one.applied else "no",
        )
        for one in fits
    ]
