# SPDX-License-Identifier: Apache-2.0
"""Statistics of the tensors, one sample at a time: nothing of a sample is kept."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from neon8.calibrate import channels, histogram, twins
from neon8.calibrate.channels import ChannelStatistics
from neon8.calibrate.groups import sources
from neon8.calibrate.histogram import Histogram
from neon8.errors import CalibrationError
from neon8.graph.graph import Activation, Concat, Conv2d, Graph

Array = npt.NDArray[np.generic]


@dataclass(frozen=True, slots=True, kw_only=True)
class Extreme:
    """The smallest or largest value of a tensor and where it was seen.

    sample: the digest, the first in order of those that have the value.  channel: the
    first one of that sample.
    """

    value: float
    sample: str
    channel: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Observed:
    """Of one tensor.  histogram: of the sources; channels: of those that have them.

    smallest, largest: None if there is no finite value, or no histogram.
    """

    histogram: Histogram | None
    channels: ChannelStatistics | None
    smallest: Extreme | None
    largest: Extreme | None


def channel_inputs(graph: Graph) -> tuple[str, ...]:
    """The inputs of all convolutions, each once, in order of execution."""
    nodes = (node for node in graph.nodes if isinstance(node, Conv2d))
    return tuple(dict.fromkeys(node.inputs[0] for node in nodes))


def pre_activations(graph: Graph) -> tuple[str, ...]:
    """The outputs of all convolutions before their activations, each once."""
    nodes = (node for node in graph.nodes if isinstance(node, Conv2d))
    return tuple(dict.fromkeys(node.pre_activation for node in nodes))


class Observer:
    """Takes in samples and gives the statistics of all so far.

    Histograms of all sources of `graph`; channels of all inputs and pre-activation
    outputs of its convolutions.

    fetch: names of the tensors inside the network that add() needs. What follows from
    others is not among them: an activation's output, a Concat's channels.
    """

    def __init__(self, graph: Graph, *, ignore_nonfinite: bool = False) -> None:
        self._ignore_nonfinite = ignore_nonfinite
        self._histograms = dict.fromkeys(sources(graph), histogram.empty())
        self._channels: dict[str, ChannelStatistics | None] = {}
        self._smallest: dict[str, Extreme] = {}
        self._largest: dict[str, Extreme] = {}
        self._activated: dict[str, tuple[str, Activation]] = {
            node.output: (node.pre_activation, node.activation)
            for node in graph.nodes
            if isinstance(node, Conv2d) and node.pre_activation != node.output
        }
        self._concats = {
            node.output: node.inputs
            for node in graph.nodes
            if isinstance(node, Concat) and node.axis == 1
        }
        self._wanted = (*channel_inputs(graph), *pre_activations(graph))
        for name in self._wanted:
            self._channels |= dict.fromkeys(self._parts(name))
        needed = (*self._histograms, *self._channels)
        made = dict.fromkeys(self._activated.get(name, (name,))[0] for name in needed)
        self.fetch = tuple(name for name in made if name not in graph.inputs)

    def add(self, values: Mapping[str, Array], *, sample: str, digest: str) -> None:
        """One sample more.

        values: the inputs of the network and what `fetch` names, float32 of shape
        (1, C, ...).  sample: its name, for messages.  CalibrationError: a value is NaN
        or infinite; the observer is of no use afterwards.
        """
        new = {name: self._value(values, name) for name in self._histograms}
        new |= {name: self._value(values, name) for name in self._channels}
        if not self._ignore_nonfinite:
            for name, array in new.items():
                _check_finite(name, array, sample)
        for name, old in self._histograms.items():
            one = histogram.of(new[name])
            self._histograms[name] = histogram.merge(old, one)
            if one.total:
                self._keep(name, new[name], one, digest)
        for name, before in self._channels.items():
            now = twins.channels_of(new[name])
            if before is not None:
                now = channels.merge(before, now)
            self._channels[name] = now

    def result(self) -> dict[str, Observed]:
        """Of all samples so far, at least one, by name."""
        observed = dict.fromkeys(self._wanted)
        for name in observed:
            parts = [self._channels[part] for part in self._parts(name)]
            observed[name] = channels.join(parts)
        return {
            name: Observed(
                histogram=self._histograms.get(name),
                channels=observed.get(name),
                smallest=self._smallest.get(name),
                largest=self._largest.get(name),
            )
            for name in {**self._histograms, **observed}
        }

    def _parts(self, name: str) -> tuple[str, ...]:
        """The tensors whose channels, one after another, are those of `name`."""
        inputs = self._concats.get(name)
        if inputs is None:
            return (name,)
        return tuple(part for each in inputs for part in self._parts(each))

    def _value(self, values: Mapping[str, Array], name: str) -> npt.NDArray[np.float32]:
        if name not in self._activated:
            return np.ascontiguousarray(values[name], dtype=np.float32)
        source, activation = self._activated[name]
        x = np.ascontiguousarray(values[source], dtype=np.float32)
        x = np.where(x < 0, x * np.float32(activation.slope), x)
        lo, hi = np.float32(activation.lo), np.float32(activation.hi)
        return np.minimum(np.maximum(x, lo), hi)

    def _keep(
        self, name: str, values: npt.NDArray[np.float32], one: Histogram, digest: str
    ) -> None:
        for kept, value, sign in (
            (self._smallest, one.minimum, 1),
            (self._largest, one.maximum, -1),
        ):
            old = kept.get(name)
            if old is None or (sign * value, digest) < (sign * old.value, old.sample):
                channel = int(np.argwhere(values[0] == value)[0][0])
                kept[name] = Extreme(value=value, sample=digest, channel=channel)


def _check_finite(name: str, values: npt.NDArray[np.float32], sample: str) -> None:
    nans = int(np.count_nonzero(np.isnan(values)))
    infinite = int(np.count_nonzero(np.isinf(values)))
    if nans or infinite:
        text = f"{nans} NaN and {infinite} infinite values of {values.size}"
        raise CalibrationError(f"tensor {name!r}: {text} in sample {sample}")
