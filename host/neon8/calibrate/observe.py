# SPDX-License-Identifier: Apache-2.0
"""Statistics of the tensors, one sample at a time: nothing of a sample is kept."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from neon8.calibrate.channels import ChannelStatistics, join
from neon8.calibrate.groups import sources
from neon8.calibrate.histogram import Histogram
from neon8.calibrate.native import Job, Statistics, observe, statistics
from neon8.errors import CalibrationError
from neon8.graph.graph import Activation, Concat, Conv2d, Graph

Array = npt.NDArray[np.generic]
FloatArray = npt.NDArray[np.float32]


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
        self._histograms = sources(graph)
        self._channels = dict.fromkeys(
            (*channel_inputs(graph), *pre_activations(graph))
        )
        self._concats = {
            node.output: node.inputs
            for node in graph.nodes
            if isinstance(node, Concat) and node.axis == 1
        }
        self._activations = {
            node.output: (node.pre_activation, node.activation)
            for node in graph.nodes
            if isinstance(node, Conv2d) and node.pre_activation != node.output
        }
        parts = (part for name in self._channels for part in self._parts(name))
        self._summed = dict.fromkeys(parts)
        needed = dict.fromkeys((*self._histograms, *self._summed))
        made = (self._activations.get(name, (name,))[0] for name in needed)
        self._given = tuple(dict.fromkeys(made))
        self.fetch = tuple(name for name in self._given if name not in graph.inputs)
        self._activated = {
            source: (name, activation)
            for name, (source, activation) in self._activations.items()
            if name in needed
        }
        self._jobs: tuple[Job, ...] = ()
        self._statistics: dict[str, Statistics] = {}
        self._smallest: dict[str, Extreme] = {}
        self._largest: dict[str, Extreme] = {}

    def add(self, values: Mapping[str, Array], *, sample: str, digest: str) -> None:
        """One sample more.

        values: the inputs of the network and what `fetch` names, float32 of shape
        (1, C, ...).  sample: its name, for messages.  CalibrationError: a value is NaN
        or infinite; the observer is of no use afterwards.
        """
        arrays = [_floats(values[name]) for name in self._given]
        if not self._jobs:
            pairs = zip(self._given, arrays, strict=True)
            self._jobs = tuple(self._job(name, array) for name, array in pairs)
        observe(self._jobs, arrays)
        if not self._ignore_nonfinite:
            self._check_finite(sample)
        for name, job, array in zip(self._given, self._jobs, arrays, strict=True):
            if job.raw is not None:
                self._keep(name, job.raw, Activation(), array, digest)
            if job.activated is not None:
                activated = self._activated[name][0]
                self._keep(activated, job.activated, job.activation, array, digest)

    def result(self) -> dict[str, Observed]:
        """Of all samples so far, at least one, by name."""
        sums = {
            name: self._statistics[name].channel_statistics() for name in self._summed
        }
        joined = {
            name: join([sums[part] for part in self._parts(name)])
            for name in self._channels
        }
        histograms = {
            name: self._statistics[name].histogram() for name in self._histograms
        }
        return {
            name: Observed(
                histogram=histograms.get(name),
                channels=joined.get(name),
                smallest=self._smallest.get(name),
                largest=self._largest.get(name),
            )
            for name in {**histograms, **joined}
        }

    def _parts(self, name: str) -> tuple[str, ...]:
        """The tensors whose channels, one after another, are those of `name`."""
        inputs = self._concats.get(name)
        if inputs is None:
            return (name,)
        return tuple(part for each in inputs for part in self._parts(each))

    def _job(self, name: str, values: FloatArray) -> Job:
        """What is taken of a tensor and of its activation."""
        channels = values.shape[1]
        raw = activated = None
        if name in self._histograms or name in self._summed:
            raw = self._new(name, channels)
        after, activation = self._activated.get(name, ("", Activation()))
        if after:
            activated = self._new(after, channels)
        return Job(raw, activated, activation)

    def _new(self, name: str, channels: int) -> Statistics:
        made = statistics(
            channels,
            histogram=name in self._histograms,
            per_channel=name in self._summed,
        )
        self._statistics[name] = made
        return made

    def _check_finite(self, sample: str) -> None:
        for name, made in self._statistics.items():
            nans, infinite = made.struct.sample_nans, made.struct.sample_infs
            if nans or infinite:
                text = f"{nans} NaN and {infinite} infinite values"
                raise CalibrationError(f"tensor {name!r}: {text} in sample {sample}")

    def _keep(
        self,
        name: str,
        made: Statistics,
        activation: Activation,
        values: FloatArray,
        digest: str,
    ) -> None:
        """Remember the sample if it has the smallest or largest value so far."""
        struct = made.struct
        if not made.histogram_arrays or struct.sample_minimum > struct.sample_maximum:
            return
        for kept, value, sign in (
            (self._smallest, struct.sample_minimum, 1),
            (self._largest, struct.sample_maximum, -1),
        ):
            old = kept.get(name)
            if old is None or (sign * value, digest) < (sign * old.value, old.sample):
                seen = np.argwhere(activated(values[0], activation) == value)
                kept[name] = Extreme(
                    value=value, sample=digest, channel=int(seen[0][0])
                )


def activated(values: FloatArray, activation: Activation) -> FloatArray:
    """What `activation` makes of them, of the same shape."""
    if activation.identity:
        return values
    slope = np.float32(activation.slope)
    lo, hi = np.float32(activation.lo), np.float32(activation.hi)
    leaky = np.minimum(values, 0) * slope + np.maximum(values, 0)
    result: FloatArray = np.minimum(np.maximum(leaky, lo), hi)
    return result


def _floats(values: Array) -> FloatArray:
    floats = np.ascontiguousarray(values, dtype=np.float32)
    return floats if floats.ndim > 1 else floats.reshape(1, -1)
