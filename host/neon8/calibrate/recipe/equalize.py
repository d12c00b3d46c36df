# SPDX-License-Identifier: Apache-2.0
"""Equalization: factors for channels of very different sizes, where they reduce noise.

A channel that shares its scale with much larger ones is rounded coarsely. Divided by
s[c] = max(hi[c], -lo[c] / rho), each channel fills the range. rho is the ratio of the
negative part of the range to the positive one, so that a channel without positive
values is not stretched until all others need a larger range below zero. The layers that
read the tensor absorb the factors into their weights. That costs a depthwise layer
nothing, since each of its channels has a weight scale of its own. Elsewhere the weights
of several input channels share a scale, and the factors are a compromise,
s^a / w^(1 - a), where w measures the weights that read the channel.

The gain is predicted at the outputs of these layers: rounding noise, step^2 / 12 for
each input and weight, against the variance observed before their activations. Factors
are used only if noise exceeds LEAST_NOISE of the signal without them and is GAIN or
DENSE_GAIN times smaller with them.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from neon8.arrays import DoubleArray
from neon8.calibrate.observation import Observation
from neon8.calibrate.recipe.components import Component, components
from neon8.ir.graph import Activation, Graph, Node
from neon8.operators.convolution import Conv2d
from neon8.quant.grid import Grid
from neon8.quant.limits import MAX_FACTOR
from neon8.quant.scale_table import TensorScale
from neon8.rewrite.equalization import CHANNELS, Link, links

LEAST_NOISE = 1e-3
GAIN = 2.0
DENSE_GAIN = 4.0
"""Where a layer that is not depthwise reads the tensor."""
HEADROOM = 1.5
"""Divided by the square root of the number of samples: by how much, relative to its
largest value seen, a channel may exceed it. One scale for all channels leaves most of
them that much room anyway."""
DEVIATIONS = 5
"""A channel clamped at 0 may reach the mean of its pre-activation plus this many
standard deviations, even if it was hardly ever positive on the samples."""
RATIOS = (0.01, 0.015, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0)
"""The ratio of the negative part of a range to the positive one."""
QUARTERS = (4, 3, 2, 1)
"""The exponent a of a channel's size in its factor, times four."""
LEAST_FACTOR = 1 / MAX_FACTOR
STILL = 1e-3
"""A channel whose standard deviation is a smaller share of its mean is constant."""
DECIMALS = 2
"""Decimals of predicted dB; beyond them the order of additions would show."""


def headroom(observation: Observation) -> float:
    """The margin for values not seen: a multiple of a channel's largest value."""
    return 1 + HEADROOM / math.sqrt(len(observation.samples))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Equalized:
    """Factors, and the ranges of the values divided by them.

    factors: tensor -> (C,), float32 values.  limits: scale group -> (lo, hi), headroom
    included; seen: the same without headroom.
    """

    factors: Mapping[str, DoubleArray]
    limits: Mapping[str, tuple[float, float]]
    seen: Mapping[str, tuple[float, float]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Span:
    """The least and largest value of each channel, (C,): seen, and to be expected."""

    seen: tuple[DoubleArray, DoubleArray]
    reach: tuple[DoubleArray, DoubleArray]


def equalize(
    graph: Graph,
    observation: Observation,
    tensors: Mapping[str, TensorScale],
    exact: Mapping[str, DoubleArray],
    closed: Iterable[str] = (),
    *,
    offsets: Mapping[str, DoubleArray],
) -> Equalized:
    """Choose factors for all tensors that gain by them.

    tensors: their scales without factors.  exact: for each layer, which of its output
    channels have weights without rounding errors, (O,).  closed: tensors that must stay
    as they are.  offsets: tensor -> (C,), subtracted before values are divided.
    """
    groups = observation.scale_groups
    spans = _spans(graph, observation, offsets)
    lacking = [
        name for name in graph.tensors if name not in spans or name not in groups
    ]
    found: dict[str, DoubleArray] = {}
    limits: dict[str, tuple[float, float]] = {}
    seen: dict[str, tuple[float, float]] = {}
    for part in components(graph, {*closed, *lacking}):
        best = _best(part, observation, tensors, spans, exact)
        if best is None:
            continue
        for name, numbers in part.channels.items():
            found[name] = best[numbers]
        limits |= _limits(part, groups, spans, best, reserve=True)
        seen |= _limits(part, groups, spans, best, reserve=False)
    return Equalized(factors=found, limits=limits, seen=seen)


def _spans(
    graph: Graph, observation: Observation, offsets: Mapping[str, DoubleArray]
) -> dict[str, Span]:
    """The spans of all tensors for which they are known, offsets subtracted."""
    spans: dict[str, Span] = {}
    for node in graph.nodes:
        if node.output in offsets:
            own = offsets[node.output]
            span = _observed(Activation(), observation, node.output, own)
        else:
            span = _span(graph, node, observation, spans)
        if span is not None:
            spans[node.output] = span
    return spans


def _span(
    graph: Graph, node: Node, observation: Observation, spans: Mapping[str, Span]
) -> Span | None:
    if node.weighted:
        return _observed(node.activation, observation, node.pre_activation)
    known = [spans[name] for name in node.inputs if name in spans]
    linked = links(graph, node) if node.joins or node.moves else None
    if linked is not None and len(known) == len(node.inputs):
        count = graph.tensors[node.output].shape[CHANNELS]
        return Span(
            seen=_linked(linked, [span.seen for span in known], count),
            reach=_linked(linked, [span.reach for span in known], count),
        )
    if node.output in observation.channels:
        return _observed(Activation(), observation, node.output)
    if not (node.by_channel and len(node.inputs) == 1 and known):
        return None
    if node.leaky_slopes is None:
        return known[0]
    slopes = node.leaky_slopes.astype(np.float64)
    return Span(seen=_bent(known[0].seen, slopes), reach=_bent(known[0].reach, slopes))


def _linked(
    linked: Sequence[Link],
    ends: Sequence[tuple[DoubleArray, DoubleArray]],
    count: int,
) -> tuple[DoubleArray, DoubleArray]:
    """The ends of `count` channels that come from others; 0 where none does."""
    low, high = np.full(count, np.inf), np.full(count, -np.inf)
    for link, (least, most) in zip(linked, ends, strict=True):
        np.minimum.at(low, link.made, least[link.read])
        np.maximum.at(high, link.made, most[link.read])
    filled = low > high
    return np.where(filled, 0.0, low), np.where(filled, 0.0, high)


def _bent(
    ends: tuple[DoubleArray, DoubleArray], slopes: DoubleArray
) -> tuple[DoubleArray, DoubleArray]:
    """The ends after a PRelu, whose slopes may be negative."""
    made = [np.where(x < 0, x * slopes, x) for x in ends]
    return np.minimum(*made), np.maximum(np.maximum(*made), 0)


def _observed(
    activation: Activation,
    observation: Observation,
    name: str,
    offsets: DoubleArray | None = None,
) -> Span | None:
    """The span after an activation, from what was observed of `name` before it.

    offsets: (C,), subtracted from the values, where there is no activation.
    """
    before = observation.channels[name]
    if not before.count.all() or activation.slope < 0:
        return None
    seen = before.minimum.astype(np.float64), before.maximum.astype(np.float64)
    if offsets is not None:
        seen = seen[0] - offsets, seen[1] - offsets
    lo, hi = (_activated(activation, x) for x in seen)
    likely = hi
    if activation.lo == 0:
        likely = before.mean() + DEVIATIONS * np.sqrt(before.variance())
    room = headroom(observation)
    reach = (
        np.maximum(np.minimum(lo * room, lo), activation.lo),
        np.minimum(np.maximum(np.maximum(likely, hi) * room, hi), activation.hi),
    )
    return Span(seen=(lo, hi), reach=reach)


def _activated(activation: Activation, x: DoubleArray) -> DoubleArray:
    bent = np.where(x < 0, x * activation.slope, x)
    return np.clip(bent, activation.lo, activation.hi)


def _best(
    part: Component,
    observation: Observation,
    tensors: Mapping[str, TensorScale],
    spans: Mapping[str, Span],
    exact: Mapping[str, DoubleArray],
) -> DoubleArray | None:
    """The factors with the least noise, (count,), or None if they gain too little."""
    groups = observation.scale_groups
    readers = [_Reader.of(node, observation, exact) for node in part.readers]
    steps = {groups[name]: tensors[name].scale for name in part.channels}
    plain = np.ones(part.count)
    before = _noise(part, readers, groups, steps, plain)
    if before is None or before <= LEAST_NOISE:
        return None
    weights = _weights(part, readers)
    gain = GAIN if all(reader.depthwise for reader in readers) else DENSE_GAIN
    found, least = None, _decibels(before / gain)
    for factors in _candidates(part, groups, spans, weights):
        limits = _limits(part, groups, spans, factors, reserve=True)
        steps = {
            group: float(Grid(entry.scheme, entry.bits).cover(*limits[group])[0])
            for group, entry in ((groups[n], tensors[n]) for n in part.channels)
        }
        noise = _noise(part, readers, groups, steps, factors)
        if noise is not None and _decibels(noise) < least:
            found, least = factors, _decibels(noise)
    return found


def _decibels(noise: float) -> float:
    return round(10 * math.log10(noise), DECIMALS) if noise > 0 else -math.inf


def _candidates(
    part: Component,
    groups: Mapping[str, str],
    spans: Mapping[str, Span],
    weights: DoubleArray | None,
) -> Iterator[DoubleArray]:
    """Factors to try, (count,): float32 values up to 1."""
    negative = any((spans[name].reach[0] < 0).any() for name in part.channels)
    for ratio in RATIOS if negative else RATIOS[-1:]:
        sizes = _sizes(part, groups, spans, ratio)
        for quarters in QUARTERS if weights is not None else QUARTERS[:1]:
            factors = sizes
            if weights is not None:
                factors = _power(sizes, quarters) / _power(weights, 4 - quarters)
                factors = factors / factors.max()
            least = _least(part, spans)
            factors = np.maximum(factors, np.maximum(least, LEAST_FACTOR))
            yield np.minimum(factors, 1).astype(np.float32).astype(np.float64)


def _power(values: DoubleArray, quarters: int) -> DoubleArray:
    """values ** (quarters / 4), by operations that are the same everywhere."""
    half = np.sqrt(values)
    powers = (np.ones_like(values), np.sqrt(half), half, half * np.sqrt(half), values)
    return powers[quarters]


def _sizes(
    part: Component,
    groups: Mapping[str, str],
    spans: Mapping[str, Span],
    ratio: float,
) -> DoubleArray:
    """Sizes of channels relative to the largest of their scale group, (count,)."""
    each = {
        name: np.maximum(spans[name].reach[1], -spans[name].reach[0] / ratio)
        for name in part.channels
    }
    largest: dict[str, float] = {}
    for name, sizes in each.items():
        group = groups[name]
        largest[group] = max(largest.get(group, 0.0), float(sizes.max()))
    result = np.zeros(part.count)
    for name, sizes in each.items():
        if largest[groups[name]] > 0:
            np.maximum.at(result, part.channels[name], sizes / largest[groups[name]])
    return np.where(result > 0, result, 1.0)


def _least(part: Component, spans: Mapping[str, Span]) -> DoubleArray:
    """The least factor that keeps each channel below its bound, (count,)."""
    result = np.zeros(part.count)
    for name, bound in part.bounds.items():
        np.maximum.at(result, part.channels[name], spans[name].reach[1] / bound)
    return result


def _limits(
    part: Component,
    groups: Mapping[str, str],
    spans: Mapping[str, Span],
    factors: DoubleArray,
    *,
    reserve: bool,
) -> dict[str, tuple[float, float]]:
    """The range of each scale group once its channels are divided by their factors."""
    found: dict[str, tuple[float, float]] = {}
    for name, numbers in part.channels.items():
        low, high = spans[name].reach if reserve else spans[name].seen
        lo = float((low / factors[numbers]).min())
        hi = float((high / factors[numbers]).max())
        if reserve:
            lo, hi = min(lo, 0.0), max(hi, 0.0)
        least, most = found.get(groups[name], (lo, hi))
        found[groups[name]] = min(lo, least), max(hi, most)
    return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Reader:
    """A convolution that reads a tensor with factors, in G groups of D input channels.

    energy, largest: (G, O / G, D), over the taps, the sum of squared weights and the
    largest magnitude.  taps: how many an output meets.  power: (G, 1, D), variance of
    the inputs.  signal: (G, O / G), variance of the outputs, 0 for constant ones, which
    do not count.  rounded: (G, O / G), 1 where rounding changes weights, else 0.
    """

    source: str
    taps: float
    energy: DoubleArray
    largest: DoubleArray
    power: DoubleArray
    signal: DoubleArray
    rounded: DoubleArray

    @classmethod
    def of(
        cls,
        node: Conv2d,
        observation: Observation,
        exact: Mapping[str, DoubleArray],
    ) -> "_Reader":
        out, depth, height, width = node.weight.shape
        shape = node.groups, out // node.groups, depth
        weight = node.weight.astype(np.float64).reshape(*shape, -1)
        made = observation.channels[node.pre_activation]
        variance, mean = made.variance(), made.mean()
        moves = np.sqrt(variance) > STILL * np.abs(mean)
        read = observation.channels[node.inputs[0]]
        # Of a transposed one a pixel of the output meets a share of the taps.
        phases = math.prod(node.spread)
        return cls(
            source=node.inputs[0],
            taps=height * width / phases,
            energy=np.square(weight).sum(axis=-1) / phases,
            largest=np.abs(weight).max(axis=-1),
            power=read.variance().reshape(node.groups, 1, depth),
            signal=np.where(moves, variance, 0.0).reshape(shape[:2]),
            rounded=np.where(exact[node.name], 0.0, 1.0).reshape(shape[:2]),
        )

    @property
    def depthwise(self) -> bool:
        """True if each weight scale serves a single input channel."""
        return int(self.energy.shape[2]) == 1

    def noise(self, step: float, factors: DoubleArray) -> DoubleArray:
        """Noise to signal of each output that counts, (n,).  factors: of the input."""
        own = factors.reshape(self.energy.shape[0], 1, -1)
        total = (self.energy * np.square(step * own)).sum(axis=2)
        if not self.depthwise:
            scales = (self.largest * own).max(axis=2) / 127
            uniform = bool((own == own.flat[0]).all())
            power = (self.power / np.square(own)).sum(axis=2) * self.taps
            total = total + np.square(scales) * power * (
                self.rounded if uniform else 1.0
            )
        alive = self.signal > 0
        result: DoubleArray = total[alive] / 12 / self.signal[alive]
        return result


def _noise(
    part: Component,
    readers: Iterable[_Reader],
    groups: Mapping[str, str],
    steps: Mapping[str, float],
    factors: DoubleArray,
) -> float | None:
    """Mean noise to signal over all outputs of all readers; None if none counts."""
    every = [
        reader.noise(
            steps[groups[reader.source]], factors[part.channels[reader.source]]
        )
        for reader in readers
    ]
    noise = np.concatenate(every)
    return float(noise.mean()) if len(noise) else None


def _weights(part: Component, readers: Iterable[_Reader]) -> DoubleArray | None:
    """The weight w of each channel in the head of this file, (count,).

    The root of the mean energy of its weights relative to the variance of the outputs,
    over readers that are not depthwise; None if all are.
    """
    dense = [reader for reader in readers if not reader.depthwise]
    if not dense:
        return None
    total = np.zeros(part.count)
    for reader in dense:
        signal = np.where(reader.signal > 0, reader.signal, np.inf)
        share = (reader.energy / signal[:, :, np.newaxis]).mean(axis=1)
        np.add.at(total, part.channels[reader.source], share.reshape(-1))
    least = total[total > 0].min() if (total > 0).any() else 1.0
    return np.sqrt(np.maximum(total, least))
