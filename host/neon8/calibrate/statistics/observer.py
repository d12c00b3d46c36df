# SPDX-License-Identifier: Apache-2.0
"""Statistics of tensors, one sample at a time; no sample is kept."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from neon8.arrays import Array, FloatArray, UInt64Array
from neon8.calibrate.statistics.channels import ChannelStatistics, join
from neon8.calibrate.statistics.histogram import Histogram
from neon8.calibrate.statistics.native import Bank, Job, Plan, Wanted, bank
from neon8.errors import CalibrationError
from neon8.ir.graph import Activation, Graph, nchw
from neon8.ir.groups import sources
from neon8.operators.convolution import convolutions
from neon8.operators.opaque import opaque_nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class Extreme:
    """The smallest or largest value of a tensor and where it was seen.

    sample: the least digest of the samples that have the value.  channel: the first
    that has it in that sample.
    """

    value: float
    sample: str
    channel: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TensorObservation:
    """Statistics of one tensor.  smallest, largest: None without a finite value."""

    histogram: Histogram
    smallest: Extreme | None
    largest: Extreme | None


def channel_inputs(graph: Graph) -> tuple[str, ...]:
    """The inputs of all convolutions, each once, in order of execution."""
    return tuple(dict.fromkeys(node.inputs[0] for node in convolutions(graph)))


def channel_tensors(graph: Graph) -> tuple[str, ...]:
    """The tensors whose channels are observed, each once.

    Inputs of convolutions and their outputs before activations; of functions, products
    and sums what they read and make; and what normalizations make.
    """
    near = [
        name
        for node in graph.nodes
        if node.absorbs_factors(graph)
        or node.makes_factors
        or (node.by_channel and not node.shares_scale)
        if not node.weighted
        for name in (*(() if node.makes_factors else node.inputs), node.output)
        if graph.tensors[name].observed and graph.tensors[name].fixed
    ]
    both = (*channel_inputs(graph), *pre_activations(graph))
    return tuple(dict.fromkeys((*both, *near)))


def pre_activations(graph: Graph) -> tuple[str, ...]:
    """The outputs of all convolutions before their activations, each once."""
    return tuple(dict.fromkeys(node.pre_activation for node in convolutions(graph)))


class Observer:
    """Collects statistics of a network's tensors, sample by sample.

    It keeps histograms of all sources of `graph`, and statistics of the channels of
    channel_tensors().

    fetch: inner tensors that add() needs. What can be derived from others is not among
    them, such as the output of an activation or a Concat.
    """

    def __init__(self, graph: Graph, *, ignore_nonfinite: bool = False) -> None:
        self._ignore_nonfinite = ignore_nonfinite
        opaque = {name for node in opaque_nodes(graph) for name in node.outputs}
        self._free = {t.name for t in graph.tensors.values() if not t.fixed}
        self._histograms = sources(graph)
        self._channels = dict.fromkeys(channel_tensors(graph))
        self._concats = {
            node.output: node.inputs for node in graph.nodes if node.joins_channels
        }
        self._activations = {
            node.output: (node.pre_activation, node.activation)
            for node in convolutions(graph)
            if node.pre_activation != node.output
        }
        parts = (part for name in self._channels for part in self._parts(name))
        self._summed = dict.fromkeys(parts)
        needed = dict.fromkeys((*self._histograms, *self._summed))
        made = (self._activations.get(name, (name,))[0] for name in needed)
        self._given = tuple(dict.fromkeys(made))
        self.fetch = tuple(name for name in self._given if name not in graph.inputs)
        known = (*self._given, *self._activations)
        self._names = tuple(dict.fromkeys(name for name in known if name in needed))
        self._strict = np.array([n not in opaque for n in self._names], np.uint64)
        self._bank: Bank | None = None
        self._plan: Plan | None = None
        self._shapes: list[tuple[int, ...]] = []
        self._smallest = _Least(len(self._names))
        self._largest = _Least(len(self._names))

    def add(self, values: Mapping[str, Array], *, sample: str, digest: str) -> None:
        """Add a sample.

        values: the inputs of the network and what `fetch` names, (N, C, ...), or any
        shape for tensors that are not fixed.  sample: its name, for messages.
        CalibrationError: a value is NaN or infinite, except from an Opaque node, where
        attention masks are; the observer must not be used afterwards.
        """
        given = {name: self._floats(name, values[name]) for name in self._given}
        shapes = [array.shape for array in given.values()]
        if self._bank is None:
            self._bank = self._begin(given)
        if self._plan is None or shapes != self._shapes:
            self._plan, self._shapes = self._plan_for(given, self._bank), shapes
        self._plan.observe(tuple(given.values()))
        nonfinite = (self._bank.sample_nans + self._bank.sample_infs) * self._strict
        if not self._ignore_nonfinite and nonfinite.any():
            first = int(np.flatnonzero(nonfinite)[0])
            nans, infs = self._bank.sample_nans[first], self._bank.sample_infs[first]
            text = f"{nans} NaN and {infs} infinite values in {sample}"
            text += "; check the weights and the preprocessing, or --ignore-nonfinite"
            raise CalibrationError(f"tensor {self._names[first]!r}: {text}")
        seen = self._bank
        self._smallest.add(seen.sample_minimum, seen.sample_argmin, digest)
        self._largest.add(-seen.sample_maximum, seen.sample_argmax, digest)

    def result(
        self,
    ) -> tuple[dict[str, TensorObservation], dict[str, ChannelStatistics]]:
        """The statistics of all samples so far, by tensor; empty before the first.

        First of the sources, then of the channels of channel_tensors().  A later add()
        changes the histograms.
        """
        if self._bank is None:
            return {}, {}
        taken = dict(zip(self._names, self._bank.each, strict=True))
        smallest = self._extremes(self._smallest, 1)
        largest = self._extremes(self._largest, -1)
        tensors = {
            name: TensorObservation(
                histogram=taken[name].histogram(),
                smallest=smallest.get(name),
                largest=largest.get(name),
            )
            for name in self._histograms
        }
        sums = {name: taken[name].channels() for name in self._summed}
        channels = {
            name: join([sums[part] for part in self._parts(name)])
            for name in self._channels
        }
        return tensors, channels

    def origins(self, name: str) -> list[tuple[str, Activation]]:
        """The tensors given to add() that hold the channels of `name`, in order.

        Each comes with the activation that follows it.  name: an input of a
        convolution.
        """
        return [self._origin(part) for part in self._parts(name)]

    def _parts(self, name: str) -> tuple[str, ...]:
        """The tensors that `name` concatenates, or itself."""
        inputs = self._concats.get(name)
        if inputs is None:
            return (name,)
        return tuple(part for each in inputs for part in self._parts(each))

    def _begin(self, given: Mapping[str, FloatArray]) -> Bank:
        """Allocate statistics for samples of these shapes."""
        return bank(
            [
                Wanted(
                    channels=given[self._origin(name)[0]].shape[1],
                    histogram=name in self._histograms,
                    per_channel=name in self._summed,
                )
                for name in self._names
            ]
        )

    def _plan_for(self, given: Mapping[str, FloatArray], made: Bank) -> Plan:
        """Prepare the jobs for samples of these shapes."""
        taken = dict(zip(self._names, made.each, strict=True))
        after = {}  # by the tensor that an activation follows
        for name in self._names:
            if name not in given:
                origin, activation = self._origin(name)
                after[origin] = taken[name], activation
        jobs = [
            Job(values.shape, taken.get(name), *after.get(name, ()))
            for name, values in given.items()
        ]
        return Plan(jobs)

    def _floats(self, name: str, values: Array) -> FloatArray:
        """Cast to float32 of shape (1, C, ...), the images of a batch side by side.

        A tensor that is not fixed becomes (1, 1, n), as its shape may vary, and one
        without values (1, 1, 0).
        """
        floats: FloatArray = np.asarray(values, dtype=np.float32, order="C")
        if name in self._free or not floats.size:
            return floats.reshape(1, 1, floats.size)
        if floats.ndim > 1 and floats.shape[0] == 1:
            return floats
        batch, channels, *image = nchw(floats.shape)
        planes = floats.reshape(batch, channels, math.prod(image)).swapaxes(0, 1)
        side = planes.reshape(1, channels, batch * math.prod(image))
        return np.ascontiguousarray(side)

    def _origin(self, name: str) -> tuple[str, Activation]:
        """The tensor that add() gets for `name`, and the activation in between."""
        if name in self._given:
            return name, Activation()
        return self._activations[name]

    def _extremes(self, least: "_Least", sign: int) -> dict[str, Extreme]:
        """Extremes of the tensors that have a histogram and a finite value."""
        found = zip(self._names, least.value.tolist(), strict=True)
        return {
            name: Extreme(
                value=sign * value + 0.0,  # no -0.0
                sample=least.sample[index],
                channel=int(least.channel[index]),
            )
            for index, (name, value) in enumerate(found)
            if name in self._histograms and value < np.inf
        }


class _Least:
    """The least value so far of each of n tensors, and where it was seen.

    sample: the least digest of the samples that have it.
    """

    def __init__(self, count: int) -> None:
        self.value = np.full(count, np.inf, dtype=np.float32)
        self.channel = np.zeros(count, dtype=np.uint64)
        self.sample = [""] * count
        self._start = np.zeros(count, dtype=np.uint64)  # of the digest, as a number

    def add(self, value: FloatArray, channel: UInt64Array, digest: str) -> None:
        """Add the least values of a sample, inf where there is none."""
        start = np.uint64(int(digest[:16], 16))
        # After an activation, the least value is the same in most samples.
        same = (value == self.value) & (start <= self._start)
        for index in np.flatnonzero((value < self.value) | same).tolist():
            if same[index] and digest >= self.sample[index]:
                continue
            self.value[index], self.channel[index] = value[index], channel[index]
            self.sample[index], self._start[index] = digest, start
