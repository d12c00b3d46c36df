# SPDX-License-Identifier: Apache-2.0
"""The float network beside which tables are compiled, run and measured.

Of a network that is compiled with --cut it is the part that neon8 runs, as a network of
its own: what stands before it makes the samples, and what stands after it is left out.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from neon8.calibrate.run.reference import Reference
from neon8.calibrate.run.shaped import AtShapes, shapes_of
from neon8.compile.cutting import cut_for
from neon8.data.arrays import Arrays
from neon8.data.few import Kept
from neon8.data.inputs import Input, Shape, as_inputs
from neon8.data.open_inputs import onnx_inputs
from neon8.data.samples import Data, Sample, Samples, gather
from neon8.errors import LOG, CompileError
from neon8.evaluate.measure import (
    AnyBench,
    Bench,
    Judge,
    MixedBench,
    before_softmax,
    by_shape,
)
from neon8.evaluate.tasks import Labels, Setup
from neon8.graph.cut import INSIDE, Cut
from neon8.graph.importer import load
from neon8.graph.maker import maker
from neon8.graph.onnx_file import OnnxFile, Shapes, open_onnx
from neon8.graph.part import Part, Parts
from neon8.graph.quantized import is_quantized
from neon8.ir.graph import Graph
from neon8.progress import nobody
from neon8.quant.scale_table import ScaleTable
from neon8.settings.shapes import is_open, settled
from neon8.settings.stages import JudgeSettings, Settings
from neon8.text import counted

SHAPES = 16
"""Shapes at which a network is kept, which has no session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """How samples reach the part inside.

    inputs: of the whole network.  before: None if nothing stands there.  names: of what
    the part takes.
    """

    inputs: dict[str, Input]
    before: Reference | None
    names: Sequence[str]

    def enter(self, inputs: Arrays) -> Arrays:
        """What the part takes of a sample for the whole network.  DataError."""
        values = dict(inputs)
        if self.before is not None:
            taken = self.before.inputs
            values |= self.before.run({name: inputs[name] for name in taken})
        return {name: values[name] for name in self.names}

    def each(self, samples: Iterable[Sample]) -> Iterator[Sample]:
        """The samples of the part, each made when it is asked for.  DataError."""
        for sample in samples:
            yield replace(sample, inputs=self.enter(sample.inputs), pixels={})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Network:
    """An ONNX file and its graph, at one shape; see at().

    cut: True of the part of a larger network.
    """

    file: OnnxFile
    graph: Graph
    _entry: _Entry | None = field(default=None)
    _inputs: dict[str, Input] | None = field(default=None)
    _sizes: "AtShapes[Network] | None" = field(default=None)

    @property
    def inputs(self) -> dict[str, Input]:
        """What it takes of samples."""
        return Reference(self.file).inputs if self._inputs is None else self._inputs

    @property
    def mixed(self) -> bool:
        """True if samples have shapes of their own."""
        return self._sizes is not None

    def at(self, inputs: Arrays, sample: str = "a sample") -> "Network":
        """The network at the shapes that the inputs of a sample have.

        GraphError: it cannot take them.
        """
        return self.at_shapes(shapes_of(inputs), sample)

    def at_shapes(
        self, shapes: dict[str, Shape], sample: str = "a sample"
    ) -> "Network":
        """The same, given the shapes."""
        return self if self._sizes is None else self._sizes.at(shapes, sample)

    @property
    def cut(self) -> bool:
        """True if this is a part of a network."""
        return self._entry is not None

    def runnable(self, *tables: ScaleTable) -> "Network":
        """The part that neon8 runs with any of these tables; all of it if it can.

        CompileError: there is none.
        """
        found = _cut(self.file, self.graph, tables)
        if found is None:
            return self
        if self.mixed:
            text = "a part of it stays outside, and that wants samples of one shape"
            raise CompileError(f"{self.file.path}: {text}; leave bounds out of --shape")
        text = "%s: measured is the part that compile --cut makes, %s; "
        text += "evaluate judges the whole"
        part = f"{found.counts[INSIDE]} of {counted(len(self.graph.nodes), 'node')}"
        LOG.warning(text, self.file.path, part)
        inside = found.inside
        made = Parts(self.file).part(inside.outputs, inside.inputs)
        if made is None:
            raise AssertionError("a part without outputs")
        before = found.before
        entry = _Entry(
            inputs=Reference(self.file).inputs,
            before=None if before is None else Reference(_file(self.file, before)),
            names=inside.inputs,
        )
        return Network(file=_file(self.file, made), graph=inside, _entry=entry)

    def gather(self, data: Data, settings: Settings) -> Iterable[Sample]:
        """Samples for `file` of data for the whole network."""
        entry = self._entry
        if entry is None:
            return gather(data, self.inputs, settings=settings)
        found = gather(data, entry.inputs, settings=settings)
        if not isinstance(found, Samples):
            return entry.each(found)
        make = found.make  # their number is known
        return replace(found, make=lambda *ends: entry.each(make(*ends)))

    def entered(self, samples: tuple[Kept, ...]) -> tuple[Kept, ...]:
        """Samples of the whole network as this one takes them.  DataError."""
        entry = self._entry
        if entry is None:
            return samples
        return tuple(replace(k, inputs=entry.enter(k.inputs)) for k in samples)


def open_network(
    model: str | Path,
    *,
    shapes: Shapes | None = None,
    usual: Mapping[str, tuple[int, ...]] | None = None,
) -> Network:
    """Open a network whose table is to be measured.

    shapes: of inputs whose dimensions the file leaves open; with bounds each sample has
    a shape of its own.  usual: the shapes at which the network is then but for at().
    GraphError; CompileError: no part of it can run in int8, or it was quantized
    elsewhere.
    """
    if shapes is not None and is_open(shapes):
        inputs = onnx_inputs(model, shapes)
        least = {name: each.shape for name, each in inputs.items()}
        opened = AtShapes(
            lambda sizes: open_network(model, shapes=settled(shapes, sizes)),
            most=SHAPES,
        )
        first = opened.at({**least, **(usual or {})}, "the table")
        return replace(first, _inputs=inputs, _sizes=opened)
    file = open_onnx(model, shapes=shapes)
    if is_quantized(file):
        text = "was quantized elsewhere, so there is no float network to compare with"
        raise CompileError(f"{model}: {text}; give the one that it was made from")
    graph = load(file)
    _cut(file, graph, ())
    return Network(file=file, graph=graph)


def logits_of(network: Network, samples: Sequence[Arrays]) -> list[Arrays]:
    """The outputs of the float network before a final Softmax.  DataError."""
    found: list[Arrays] = [{} for _ in samples]
    for places in by_shape(samples):
        here = network.at(samples[places[0]])
        outputs = before_softmax(here.graph).outputs
        reference = Reference(here.file, outputs, inside=True, fixed=False)
        for at in places:
            found[at] = reference.run(samples[at])
    return found


def judge_of(
    network: Network, asked: JudgeSettings, wanted: Arrays, *, labelled: bool = False
) -> Judge:
    """What compares outputs, told by those of a sample in float.  DataError.

    wanted: before a final Softmax.
    """
    inputs, operator = as_inputs(network.graph), partial(maker, network.file)
    setup = Setup.of(asked, inputs, operator, labelled=labelled)
    return Judge.of(network.graph, setup, wanted)


def bench_of(
    network: Network,
    samples: Sequence[Arrays],
    judge: JudgeSettings,
    *,
    wanted: Sequence[Arrays] | None = None,
    labels: Sequence[Labels] = (),
    tick: Callable[[], None] = nobody,
    price: Callable[[bytes], float] | None = None,
) -> AnyBench:
    """What measures tables on samples, each at its own shape.

    wanted: as logits_of() gives them, if they are known.  price: of a .n8 file,
    milliseconds, if they count.  DataError: the metric does not fit the outputs.
    """
    exact = logits_of(network, samples) if wanted is None else wanted
    parts = []
    for places in by_shape(samples):
        here = network.at(samples[places[0]])
        bench = Bench(
            graph=before_softmax(here.graph),
            samples=[samples[at] for at in places],
            wanted=[exact[at] for at in places],
            tick=tick,
            judge=judge_of(here, judge, exact[places[0]], labelled=any(labels[:1])),
            labels=[labels[at] for at in places] if labels else (),
            price=price,
        )
        parts.append((bench, places))
    return parts[0][0] if len(parts) == 1 else MixedBench(parts=tuple(parts))


def _cut(file: OnnxFile, graph: Graph, tables: Sequence[ScaleTable]) -> Cut | None:
    """As cut_for(), with the file's name in its errors."""
    try:
        return cut_for(file, graph, *tables)
    except CompileError as error:
        raise CompileError(f"{file.path}: {error.text}", error.details) from error


def _file(whole: OnnxFile, part: Part) -> OnnxFile:
    """A part as if it had been read."""
    return replace(whole, model=part.model, weights={}, original=None)
