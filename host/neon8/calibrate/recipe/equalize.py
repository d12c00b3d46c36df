# SPDX-License-Identifier: Apache-2.0
"""Equalization: factors for channels of very different sizes, where they reduce noise.

A channel that shares its scale with much larger ones is rounded coarsely. Divided by
s[c] = max(hi[c], -lo[c] / rho), each channel fills the range. rho is the ratio of the
negative part of the range to the positive one, so that a channel without positive
values is not stretched until all others need a larger range below zero. Who reads the
tensor absorbs the factors: a layer in its weights, a product in its multipliers, a
function in its tables. Where each channel of a depthwise layer has a weight scale of
its own, that costs nothing. Elsewhere the weights of several input channels share a
scale, and the factors are a compromise, s^a / w^(1 - a), where w measures the weights
that read the channel. As each pair of factors around a function is a table of 256
bytes, factors of such tensors are rounded up to powers of the root of 2.

The gain is predicted at the outputs of layers: rounding noise, step^2 / 12 for each
input and weight, against the variance observed before their activations. Through
functions and products noise is followed to the layers after them (noise.py). Factors
are used only if noise exceeds LEAST_NOISE of the signal without them and is GAIN times
smaller with them; DENSE_GAIN or NEAR_DENSE_GAIN times where they change how weights are
rounded.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from neon8.arrays import DoubleArray
from neon8.calibrate.observation import Observation
from neon8.calibrate.recipe.components import Component, components
from neon8.calibrate.recipe.noise import cost_of, costs, energies, moving
from neon8.calibrate.recipe.spans import Span, spans_of
from neon8.calibrate.recipe.steady import unsteady
from neon8.ir.graph import Graph, Node
from neon8.operators.convolution import Conv2d
from neon8.quant.grid import Grid
from neon8.quant.limits import MAX_FACTOR
from neon8.quant.scale_table import TensorScale

LEAST_NOISE = 1e-4
GAIN = 1.25
DENSE_GAIN = 4.0
"""Where a layer that is not depthwise reads the tensor."""
NEAR_DENSE_GAIN = 1.15
"""The same of tensors that functions read or make."""
RATIOS = (0.01, 0.015, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0)
"""The ratio of the negative part of a range to the positive one."""
LARGER = (4 / 3, 2.0, 3.5, 7.0, 14.0)
"""Further ratios, of tensors near functions."""
QUARTERS = (4, 3, 2, 1)
"""The exponent a of a channel's size in its factor, times four."""
LEAST_FACTOR = 1 / MAX_FACTOR
CLASSES = np.array(
    [math.ldexp((1.0, math.sqrt(0.5))[k % 2], -(k // 2)) for k in range(32, -1, -1)]
)
"""Factors of tensors that functions read or make, as each pair of them is a table."""
MANY = 256
FEW = 16
"""The largest classes are used of tensors with more channels, for FEW^2 tables."""
TIE = 1e-6
"""Relative: a factor so much above a class is in it."""
DECIMALS = 2
"""Decimals of predicted dB; beyond them the order of additions would show."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Equalized:
    """Factors, and the ranges of the values divided by them.

    factors: tensor -> (C,), float32 values.  limits: scale group -> (lo, hi) as
    they are to be expected; seen: as they were.
    """

    factors: Mapping[str, DoubleArray]
    limits: Mapping[str, tuple[float, float]]
    seen: Mapping[str, tuple[float, float]]


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
    spans = spans_of(graph, observation, offsets)
    after = costs(graph, observation)
    lacking = [
        name for name in graph.tensors if name not in spans or name not in groups
    ]
    found: dict[str, DoubleArray] = {}
    limits: dict[str, tuple[float, float]] = {}
    seen: dict[str, tuple[float, float]] = {}
    closed = {*closed, *lacking, *unsteady(graph, observation)}
    for part in components(graph, closed):
        readers: list[_Reader | _Passage] = []
        for node in part.readers:
            if isinstance(node, Conv2d):
                readers.append(_Reader.of(node, observation, exact))
            else:
                readers += _passages(graph, observation, node, part, after)
        best = _best(part, readers, groups, tensors, spans)
        if best is None:
            continue
        for name, numbers in part.channels.items():
            found[name] = best[numbers]
        limits |= _limits(part, groups, spans, best, reserve=True)
        seen |= _limits(part, groups, spans, best, reserve=False)
    return Equalized(factors=found, limits=limits, seen=seen)


def _best(
    part: Component,
    readers: Sequence["_Reader | _Passage"],
    groups: Mapping[str, str],
    tensors: Mapping[str, TensorScale],
    spans: Mapping[str, Span],
) -> DoubleArray | None:
    """The factors with the least noise, (count,), or None if they gain too little."""
    entries = {groups[name]: tensors[name] for name in part.channels}
    steps = {group: each.scale for group, each in entries.items()}
    before = _noise(part, readers, groups, steps, np.ones(part.count))
    if before is None or before <= LEAST_NOISE:
        return None
    weights, gain = _weights(part, readers), GAIN
    if weights is not None:
        gain = NEAR_DENSE_GAIN if part.tabled else DENSE_GAIN
    found, least = None, _decibels(before / gain)
    for factors in _candidates(part, groups, spans, weights):
        limits = _limits(part, groups, spans, factors, reserve=True)
        for group, entry in entries.items():
            scale, _ = Grid(entry.scheme, entry.bits).cover(*limits[group])
            steps[group] = float(scale)
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
    ratios = (*RATIOS, *LARGER) if part.tabled else RATIOS
    least = np.maximum(_least(part, spans), LEAST_FACTOR)
    for ratio in ratios if negative else RATIOS[-1:]:
        sizes = _sizes(part, groups, spans, ratio)
        for quarters in QUARTERS if weights is not None else QUARTERS[:1]:
            factors = sizes
            if weights is not None:
                factors = _power(sizes, quarters) / _power(weights, 4 - quarters)
                factors = factors / factors.max()
            factors = np.minimum(np.maximum(factors, least), 1)
            if part.tabled:
                classes = CLASSES[-FEW:] if part.count > MANY else CLASSES
                factors = classes[np.searchsorted(classes, factors * (1 - TIE))]
            yield factors.astype(np.float32).astype(np.float64)


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
        sizes = np.abs(node.weight.astype(np.float64)).reshape(*shape, -1)
        made = observation.channels[node.pre_activation]
        read = observation.channels[node.inputs[0]]
        return cls(
            source=node.inputs[0],
            taps=height * width / math.prod(node.spread),
            energy=energies(node),
            largest=sizes.max(axis=-1),
            power=read.variance().reshape(node.groups, 1, depth),
            signal=moving(made).reshape(shape[:2]),
            rounded=np.where(exact[node.name], 0.0, 1.0).reshape(shape[:2]),
        )

    @property
    def depthwise(self) -> bool:
        """True if each weight scale serves a single input channel."""
        return int(self.energy.shape[2]) == 1

    def noise(self, lost: DoubleArray, factors: DoubleArray) -> DoubleArray:
        """Noise to signal of each output that counts, (n,).

        lost: (I,), mean square of the error of each channel of the input.  factors:
        (I,), of these.
        """
        groups = self.energy.shape[0]
        own = factors.reshape(groups, 1, -1)
        total = (self.energy * lost.reshape(groups, 1, -1)).sum(axis=2)
        if not self.depthwise:
            scales = (self.largest * own).max(axis=2) / 127
            uniform = bool((own == own.flat[0]).all())
            power = (self.power / np.square(own)).sum(axis=2) * self.taps
            total = total + np.square(scales) / 12 * power * (
                self.rounded if uniform else 1.0
            )
        alive = self.signal > 0
        result: DoubleArray = total[alive] / self.signal[alive]
        return result


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Passage:
    """A function or a product that reads a tensor with factors.  cost: (C,)."""

    source: str
    cost: DoubleArray

    def noise(self, lost: DoubleArray, _factors: DoubleArray) -> DoubleArray:
        """Noise to signal where it comes out, (1,), as of a _Reader."""
        result: DoubleArray = (self.cost * lost).sum(keepdims=True)
        return result


def _passages(
    graph: Graph,
    observation: Observation,
    node: Node,
    part: Component,
    after: Mapping[str, DoubleArray],
) -> Iterator[_Passage]:
    """One for each tensor of the component that the node reads."""
    for name in dict.fromkeys(node.inputs):
        if name in part.channels:
            cost = cost_of(graph, observation, node, name, after)
            if cost is not None:
                yield _Passage(source=name, cost=cost)


def _noise(
    part: Component,
    readers: Iterable[_Reader | _Passage],
    groups: Mapping[str, str],
    steps: Mapping[str, float],
    factors: DoubleArray,
) -> float | None:
    """Mean noise to signal, of outputs and then of readers; None if none counts."""
    means = []
    for reader in readers:
        own = factors[part.channels[reader.source]]
        each = reader.noise(np.square(steps[groups[reader.source]] * own) / 12, own)
        if len(each):
            means.append(float(each.mean()))
    return sum(means) / len(means) if means else None


def _weights(
    part: Component, readers: Iterable[_Reader | _Passage]
) -> DoubleArray | None:
    """The weight w of each channel in the head of this file, (count,).

    The root of the mean energy of its weights relative to the variance of the outputs,
    over readers that are not depthwise; None if all are.
    """
    dense = [r for r in readers if isinstance(r, _Reader) and not r.depthwise]
    if not dense:
        return None
    total = np.zeros(part.count)
    for reader in dense:
        signal = np.where(reader.signal > 0, reader.signal, np.inf)
        share = (reader.energy / signal[:, :, np.newaxis]).mean(axis=1)
        np.add.at(total, part.channels[reader.source], share.reshape(-1))
    least = total[total > 0].min() if (total > 0).any() else 1.0
    return np.sqrt(np.maximum(total, least))
