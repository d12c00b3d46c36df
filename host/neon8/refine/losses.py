# SPDX-License-Identifier: Apache-2.0
"""How far tensors of the int8 network are from those of the float network.

Only sums are kept: each sample adds two numbers for each tensor.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from neon8.arrays import DoubleArray, FloatArray
from neon8.evaluate.metrics import sqnr_db
from neon8.ir.program import Tensor
from neon8.operators.reference import centred, quantize

WORST = 3
"""How many channels and samples are named for each tensor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelLoss:
    """A channel of a tensor.  low, high: its range in float.

    sqnr_db: variance of its values over the mean square of its errors, since a constant
    part carries no information.
    """

    channel: int
    sqnr_db: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleLoss:
    """A tensor, or all outputs, on one sample."""

    sample: str
    sqnr_db: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorLoss:
    """A tensor of the int8 network against the same one of the float network.

    layer: what makes it, "" for an input.  bits: 0 where it is float32 there, too.
    sqnr_db: with all before it in int8, and itself.  rounding_db: the float tensor
    itself with its values inside the range rounded; clipping_db: with those outside cut
    to it, inf if there are none; clipped: their share of all values.
    alone_db: of the network's output, with this tensor rounded in the float network and
    no other; None for those in float32.
    low, high: of the float values.  channels, samples: the worst ones.
    dead: how many channels hold nothing but 0.
    """

    name: str
    layer: str
    bits: int
    sqnr_db: float
    rounding_db: float
    clipping_db: float
    clipped: float
    alone_db: float | None
    low: float
    high: float
    channels: tuple[ChannelLoss, ...]
    samples: tuple[SampleLoss, ...]
    dead: int


@dataclass(slots=True, kw_only=True)
class Tally:
    """Sums of one tensor over the samples so far; arrays are by channel, (C,).

    signal, noise: sums of squared values and errors.  total: of values.  rounding,
    clipping: of the squared changes by its own grid.  outside: how many values are
    beyond its range.
    """

    signal: DoubleArray
    noise: DoubleArray
    total: DoubleArray
    low: FloatArray
    high: FloatArray
    count: int = 0
    rounding: float = 0.0
    clipping: float = 0.0
    outside: int = 0
    samples: list[tuple[str, float, float]] = field(default_factory=list)


def empty(channels: int) -> Tally:
    """Sums of no samples."""
    signal, noise, total = (np.zeros(channels) for _ in range(3))
    low = np.full(channels, np.inf, np.float32)
    return Tally(signal=signal, noise=noise, total=total, low=low, high=-low)


def add(tally: Tally, sample: str, wanted: FloatArray, got: FloatArray) -> None:
    """Add a sample.  wanted, got: N C H W, in the float and the int8 network.

    Values that are not finite in either, like masks of -inf, are not compared.
    """
    both = np.isfinite(wanted) & np.isfinite(got)
    exact = np.where(both, wanted, 0).astype(np.float64)
    error = np.where(both, got, 0).astype(np.float64) - exact
    signal = np.einsum("nchw,nchw->c", exact, exact)
    noise = np.einsum("nchw,nchw->c", error, error)
    tally.signal += signal
    tally.noise += noise
    tally.total += exact.sum(axis=(0, 2, 3))
    tally.count += wanted[:, 0].size
    tally.low = np.minimum(tally.low, exact.min(axis=(0, 2, 3)).astype(np.float32))
    tally.high = np.maximum(tally.high, exact.max(axis=(0, 2, 3)).astype(np.float32))
    tally.samples.append((sample, float(signal.sum()), float(noise.sum())))


def add_grid(
    tally: Tally,
    wanted: FloatArray,
    tensor: Tensor,
    factors: FloatArray,
    offsets: FloatArray,
) -> None:
    """Add what the grid of an int8 tensor alone does to the float values."""
    x = (wanted - offsets) / factors
    lo, hi = (
        (end - tensor.zero_point) * tensor.scale for end in (tensor.lo, tensor.hi)
    )
    beyond = (x < lo) | (x > hi)
    taken = centred(quantize(x, tensor), tensor) * tensor.scale
    with np.errstate(invalid="ignore"):  # infinite less infinite
        error = (taken - x) * factors
    error = np.where(np.isfinite(error), error, 0)
    # The ends are on the grid, so beyond them there is nothing to round.
    inside, outside = (error[at].astype(np.float64) for at in (~beyond, beyond))
    tally.outside += len(outside)
    tally.rounding += float(inside @ inside)
    tally.clipping += float(outside @ outside)


def tensor_loss(
    name: str, tally: Tally, *, layer: str, bits: int, alone_db: float | None
) -> TensorLoss:
    """Turn the sums of a tensor into its losses."""
    signal = float(tally.signal.sum())
    samples = [SampleLoss(sample=n, sqnr_db=sqnr_db(s, e)) for n, s, e in tally.samples]
    dead = (tally.low == 0) & (tally.high == 0)
    return TensorLoss(
        name=name,
        layer=layer,
        bits=bits,
        sqnr_db=sqnr_db(signal, float(tally.noise.sum())),
        rounding_db=sqnr_db(signal, tally.rounding),
        clipping_db=sqnr_db(signal, tally.clipping),
        clipped=tally.outside / max(tally.count * len(tally.signal), 1),
        alone_db=alone_db,
        low=float(tally.low.min()),
        high=float(tally.high.max()),
        channels=_channels(tally),
        samples=worst(samples),
        dead=int(np.count_nonzero(dead)),
    )


def worst(samples: Sequence[SampleLoss]) -> tuple[SampleLoss, ...]:
    """The samples that lose most, the worst first."""
    return tuple(sorted(samples, key=lambda each: each.sqnr_db)[:WORST])


def _channels(tally: Tally) -> tuple[ChannelLoss, ...]:
    """The worst channels; a constant one loses nothing."""
    spread = tally.signal - tally.total**2 / max(tally.count, 1)
    losses = [
        ChannelLoss(
            channel=channel,
            sqnr_db=sqnr_db(max(float(spread[channel]), 0.0), float(noise)),
            low=float(tally.low[channel]),
            high=float(tally.high[channel]),
        )
        for channel, noise in enumerate(tally.noise)
        if tally.low[channel] < tally.high[channel]
    ]
    lossy = [each for each in losses if each.sqnr_db < math.inf]
    return tuple(sorted(lossy, key=lambda each: each.sqnr_db)[:WORST])
