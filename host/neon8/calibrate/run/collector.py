# SPDX-License-Identifier: Apache-2.0
"""Run the FP32 network on samples in this process, and collect an Observation."""

import math
from collections import Counter
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from neon8.calibrate.observation import LayerFacts, Observation, merge, structure
from neon8.calibrate.observation import Shapes as SampleShapes
from neon8.calibrate.run.reference import Reference, cpu_features
from neon8.calibrate.run.shaped import AtShapes, shapes_of
from neon8.calibrate.run.threads import StatePool, usable
from neon8.calibrate.statistics import channels, histogram
from neon8.calibrate.statistics.observer import (
    Observer,
    TensorObservation,
    channel_inputs,
    channel_tensors,
)
from neon8.calibrate.statistics.patches import empty as no_patches
from neon8.calibrate.statistics.sampler import Sampler
from neon8.data.inputs import Input, Shape
from neon8.data.open_inputs import onnx_inputs
from neon8.data.samples import Sample
from neon8.errors import CalibrationError, GraphError
from neon8.graph.importer import load
from neon8.graph.onnx_file import ModelLike, OnnxFile, Shapes, open_onnx
from neon8.graph.quantized import is_quantized
from neon8.ir.graph import Graph
from neon8.ir.groups import scale_groups, sources
from neon8.onnx_session import FACTS
from neon8.operators.convolution import Conv2d, convolutions
from neon8.quant.limits import MAX_TENSORS
from neon8.settings.shapes import is_open, settled

SHAPES = 32
"""Shapes at which a network is ready, as far as memory allows."""
STATISTICS_BYTES = 1 << 28
"""What the histograms of all threads may take; a network that needs more has fewer."""
HISTOGRAM_BYTES = 2 * 8 * histogram.BINS


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ready:
    """A model at one shape of its inputs, ready to be observed.

    references: one for each thread.  empty: the Observation of no samples.
    quantized: the file has scales of its own.  counted: shapes of samples are noted.
    """

    graph: Graph
    references: tuple[Reference, ...]
    empty: Observation
    ignore_nonfinite: bool
    quantized: bool
    counted: bool


class Network:
    """A model, ready at the last few shapes that samples had.

    inputs: by name, with their bounds.
    """

    def __init__(
        self, inputs: dict[str, Input], make: Callable[[dict[str, Shape]], Ready]
    ) -> None:
        """make: opens it at the shapes of inputs."""
        self.inputs = inputs
        self._first: Ready | None = None

        def made(shapes: dict[str, Shape]) -> Ready:
            ready = make(shapes)
            known = ready if self._first is None else self._first
            if structure(known.empty) != structure(ready.empty):
                text = "the network has other tensors or layers than at other sizes"
                raise CalibrationError(text)
            return ready

        self._sizes = AtShapes(made, most=SHAPES, bytes_of=_values_of)

    def begin(self, sample: Sample) -> None:
        """Be ready at the shape of a sample, if at none yet.  GraphError."""
        if self._first is None:
            self._first = self.at(sample)

    def at(self, sample: Sample) -> Ready:
        """The model at the shape of a sample.  GraphError."""
        return self._sizes.at(shapes_of(sample.inputs), sample.name)

    @property
    def first(self) -> Ready:
        """The model at the shape of the first sample, and without one at the least."""
        if self._first is None:
            shapes = {name: each.shape for name, each in self.inputs.items()}
            self._first = self._sizes.at(shapes, "the smallest shape")
        return self._first

    @property
    def kept(self) -> tuple[Ready, ...]:
        """The model at the last few shapes."""
        return self._sizes.kept

    def stop(self) -> None:
        """End the runs of onnxruntime; for Ctrl-C."""
        for ready in self.kept:
            ready.references[0].stop()


def _values_of(ready: Ready) -> int:
    """Bytes of the float tensors that its sessions have room for."""
    tensors = ready.graph.tensors.values()
    return 4 * len(ready.references) * sum(math.prod(each.dims) for each in tensors)


def open_network(
    model: ModelLike,
    *,
    shapes: Shapes | None = None,
    preprocess_digest: str = "",
    ignore_nonfinite: bool = False,
    threads: int | None = None,
) -> Network:
    """Read the ONNX file and start onnxruntime on it.  GraphError.

    shapes: of inputs whose dimensions the file leaves open; with bounds each sample has
    a shape of its own.
    threads: how many samples are observed at the same time; None for as many as there
    are processors and memory for. The Observation is the same.
    """

    def ready_at(shapes: Shapes | None) -> Ready:
        file = open_onnx(model, shapes=shapes)  # once: both are of the same model
        graph = load(file)
        _check_count(file, graph)
        fetch = Observer(graph).fetch
        fixed = all(tensor.fixed for tensor in graph.tensors.values())
        reference = Reference(
            file, fetch, inside=True, fixed=fixed, tensors=graph.rearranged
        )
        room = STATISTICS_BYTES // (HISTOGRAM_BYTES * max(len(sources(graph)), 1))
        count = min(usable(), max(room, 1)) if threads is None else threads
        return Ready(
            graph=graph,
            references=(reference, *(reference.another() for _ in range(count - 1))),
            empty=empty_observation(graph, preprocess_digest),
            ignore_nonfinite=ignore_nonfinite,
            quantized=is_quantized(file),
            counted=bool(shapes),
        )

    if shapes is not None and is_open(shapes) and not isinstance(model, OnnxFile):
        inputs = onnx_inputs(model, shapes)
        return Network(inputs, lambda sizes: ready_at(settled(shapes, sizes)))
    ready = ready_at(shapes)
    return Network(ready.references[0].inputs, lambda _: ready)


def _check_count(file: OnnxFile, graph: Graph) -> None:
    """GraphError: no .n8 file could hold the network, so there is nothing to choose."""
    # Each node makes a tensor of the file; only convolutions take another in.
    least = len(graph.nodes) - 2 * len(convolutions(graph))
    if least > MAX_TENSORS:
        text = f"makes {least} tensors; an .n8 file holds up to {MAX_TENSORS}"
        raise GraphError(f"{file.path}: {text}; export a part of it")


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

    def __init__(self, ready: Ready, reference: Reference) -> None:
        graph = ready.graph
        self._ready, self._reference = ready, reference
        self._observer = Observer(graph, ignore_nonfinite=ready.ignore_nonfinite)
        nodes = convolutions(graph)
        origins = {name: self._observer.origins(name) for name in channel_inputs(graph)}
        self._sampler = Sampler(nodes, origins)
        self._digests: list[str] = []
        self._shapes: Counter[SampleShapes] = Counter()

    def add(self, sample: Sample, digest: str) -> None:
        values = {**sample.inputs, **self._reference.run(sample.inputs)}
        self._observer.add(values, sample=sample.name, digest=digest)
        self._sampler.add(values, digest=digest)
        self._digests.append(digest)
        if self._ready.counted:
            self._shapes[tuple(shapes_of(sample.inputs).items())] += 1

    def result(self) -> Observation:
        empty = self._ready.empty
        if not self._digests:
            return empty
        tensors, statistics = self._observer.result()
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
            shapes=dict(sorted(self._shapes.items())),
        )


class Collector:
    """Collects the Observation of samples added one at a time.

    A sample whose digest is in `known`, or that was added before, is skipped. Once a
    method raises, or result() was called, the collector must not be used. A network has
    one collector at a time. Samples of one shape share their statistics, which are
    merged at the end, or when others need the room.

    names: digest -> name of the samples added.
    """

    def __init__(self, network: Network, known: AbstractSet[str] = frozenset()) -> None:
        self._known, self._network = known, network
        self._pools: dict[Ready, StatePool[_Session]] = {}
        self._merged: list[Observation] = []
        self.names: dict[str, str] = {}

    def add(self, sample: Sample, digest: str) -> bool:
        """Add a sample; False if it is not new.  digest: of the sample.

        An error may be raised later, by another add() or by result().
        CalibrationError: a value in the network is NaN or infinite.  DataError.
        """
        self._network.begin(sample)
        if digest in self._known or digest in self.names:
            return False
        ready = self._network.at(sample)
        for other in set(self._pools).difference(self._network.kept):
            self._merge(other)
        if ready not in self._pools:
            sessions = [_Session(ready, each) for each in ready.references]
            self._pools[ready] = StatePool(sessions)
        self._pools[ready].submit(lambda session: session.add(sample, digest))
        self.names[digest] = sample.name
        return True

    def result(self) -> Observation:
        """The Observation of all samples added."""
        for ready in tuple(self._pools):
            self._merge(ready)
        return reduce(merge, self._merged, self._network.first.empty)

    def _merge(self, ready: Ready) -> None:
        """Take the statistics of the samples of one shape."""
        sessions = self._pools.pop(ready).wait()
        self._merged = [reduce(merge, (s.result() for s in sessions), *self._merged)]
