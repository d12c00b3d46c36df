# SPDX-License-Identifier: Apache-2.0
"""Run the FP32 network on samples in this process, and collect an Observation."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from neon8.calibrate.observation import (
    LayerFacts,
    Observation,
    TensorObservation,
    merge,
)
from neon8.calibrate.run.reference import Reference, cpu_features
from neon8.calibrate.run.threads import StatePool, usable
from neon8.calibrate.statistics import channels, histogram
from neon8.calibrate.statistics.observer import (
    Observer,
    channel_inputs,
    channel_tensors,
)
from neon8.calibrate.statistics.patches import empty as no_patches
from neon8.calibrate.statistics.sampler import Sampler
from neon8.data.inputs import Input
from neon8.data.samples import Sample
from neon8.graph.importer import load
from neon8.graph.onnx_file import ModelLike, Shapes, open_onnx
from neon8.graph.quantized import is_quantized
from neon8.ir.graph import Graph
from neon8.ir.groups import scale_groups, sources
from neon8.onnx_session import FACTS
from neon8.operators.convolution import Conv2d, convolutions

STATISTICS_BYTES = 1 << 28
"""What the histograms of all threads may take; a network that needs more has fewer."""
HISTOGRAM_BYTES = 2 * 8 * histogram.BINS


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Network:
    """A model, ready to be observed.

    references: one for each thread.  empty: the Observation of no samples.
    quantized: the file has scales of its own.
    """

    graph: Graph
    references: tuple[Reference, ...]
    empty: Observation
    ignore_nonfinite: bool
    quantized: bool

    @property
    def inputs(self) -> dict[str, Input]:
        """The inputs of the network, by name."""
        return self.references[0].inputs


def open_network(
    model: ModelLike,
    *,
    shapes: Shapes | None = None,
    preprocess_digest: str = "",
    ignore_nonfinite: bool = False,
    threads: int | None = None,
) -> Network:
    """Read the ONNX file and start onnxruntime on it.  GraphError.

    shapes: of inputs whose dimensions the file leaves open.
    threads: how many samples are observed at the same time; None for as many as there
    are processors and memory for. The Observation is the same.
    """
    file = open_onnx(model, shapes=shapes)  # once: both are of the same model
    graph = load(file)
    fetch = Observer(graph).fetch
    fixed = all(tensor.fixed for tensor in graph.tensors.values())
    reference = Reference(
        file, fetch, inside=True, fixed=fixed, tensors=graph.rearranged
    )
    room = STATISTICS_BYTES // (HISTOGRAM_BYTES * max(len(sources(graph)), 1))
    count = min(usable(), max(room, 1)) if threads is None else threads
    return Network(
        graph=graph,
        references=(reference, *(reference.another() for _ in range(count - 1))),
        empty=empty_observation(graph, preprocess_digest),
        ignore_nonfinite=ignore_nonfinite,
        quantized=is_quantized(file),
    )


def empty_observation(graph: Graph, preprocess_digest: str) -> Observation:
    """The Observation of no samples."""
    nodes = convolutions(graph)
    sizes = {name: tensor.shape[1] for name, tensor in graph.tensors.items()}
    sizes |= {node.pre_activation: len(node.weight) for node in nodes}
    sizes |= {node.inputs[0]: node.weight.shape[1] * node.groups for node in nodes}
    return Observation(
        model_name=graph.name,
        model_digest=graph.digest,
        engine={**FACTS, "cpu": cpu_features()},
        preprocess_digest=preprocess_digest,
        samples=(),
        tensors={
            name: TensorObservation(
                histogram=histogram.empty(), smallest=None, largest=None
            )
            for name in sources(graph)
        },
        channels={n: channels.empty(sizes[n]) for n in channel_tensors(graph)},
        layers={node.name: _facts(node) for node in nodes},
        scale_groups=scale_groups(graph),
    )


def _facts(node: Conv2d) -> LayerFacts:
    out, inputs, height, width = node.weight.shape
    return LayerFacts(
        input=node.inputs[0],
        output=node.output,
        pre_activation=node.pre_activation,
        weight_shape=(out, inputs, height, width),
        groups=node.groups,
        strides=node.strides,
        weight_absmax=np.abs(node.weight).reshape(out, -1).max(axis=1),
        bias=node.bias,
        patches=no_patches(node),
    )


class _Session:
    """The statistics of the samples that one thread has observed."""

    def __init__(self, network: Network, reference: Reference) -> None:
        graph = network.graph
        self._network, self._reference = network, reference
        self._observer = Observer(graph, ignore_nonfinite=network.ignore_nonfinite)
        nodes = convolutions(graph)
        origins = {name: self._observer.origins(name) for name in channel_inputs(graph)}
        self._sampler = Sampler(nodes, origins)
        self._digests: list[str] = []

    def add(self, sample: Sample, digest: str) -> None:
        values = {**sample.inputs, **self._reference.run(sample.inputs)}
        self._observer.add(values, sample=sample.name, digest=digest)
        self._sampler.add(values, digest=digest)
        self._digests.append(digest)

    def result(self) -> Observation:
        empty = self._network.empty
        if not self._digests:
            return empty
        observed = self._observer.result()
        tensors = {
            name: TensorObservation(
                histogram=one, smallest=seen.smallest, largest=seen.largest
            )
            for name, seen in ((name, observed[name]) for name in empty.tensors)
            if (one := seen.histogram) is not None
        }
        statistics = {
            name: each
            for name in empty.channels
            if (each := observed[name].channels) is not None
        }
        patches = self._sampler.result()
        return replace(
            empty,
            samples=tuple(sorted(self._digests)),
            tensors=tensors,
            channels=statistics,
            layers={
                name: replace(layer, patches=patches[name])
                for name, layer in empty.layers.items()
            },
        )


class Collector:
    """Collects the Observation of samples added one at a time.

    A sample whose digest is in `known`, or that was added before, is skipped. Once a
    method raises, or result() was called, the collector must not be used. A network has
    one collector at a time.

    names: digest -> name of the samples added.
    """

    def __init__(self, network: Network, known: AbstractSet[str] = frozenset()) -> None:
        self._known = known
        self._sessions = StatePool([_Session(network, r) for r in network.references])
        self.names: dict[str, str] = {}

    def add(self, sample: Sample, digest: str) -> bool:
        """Add a sample; False if it is not new.  digest: of the sample.

        An error may be raised later, by another add() or by result().
        CalibrationError: a value in the network is NaN or infinite.  DataError.
        """
        if digest in self._known or digest in self.names:
            return False
        self._sessions.submit(lambda session: session.add(sample, digest))
        self.names[digest] = sample.name
        return True

    def result(self) -> Observation:
        """The Observation of all samples added."""
        return reduce(merge, (session.result() for session in self._sessions.wait()))
