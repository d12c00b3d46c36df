# SPDX-License-Identifier: Apache-2.0
"""The float network beside which tables are compiled, run and measured.

Of a network that is compiled with --cut it is the part that neon8 runs, as a network of
its own: what stands before it makes the samples, and what stands after it is left out.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from neon8.calibrate.run.reference import Reference
from neon8.compile.cutting import cut_for
from neon8.data.arrays import Arrays
from neon8.data.few import Kept
from neon8.data.inputs import Input
from neon8.data.samples import Data, Sample, Samples, gather
from neon8.errors import CompileError
from neon8.graph.cut import INSIDE, Cut
from neon8.graph.importer import load
from neon8.graph.onnx_file import OnnxFile, Shapes, open_onnx
from neon8.graph.part import Part, Parts
from neon8.graph.quantized import is_quantized
from neon8.ir.graph import Graph
from neon8.quant.scale_table import ScaleTable
from neon8.settings.stages import Settings
from neon8.text import counted

LOG = logging.getLogger("neon8")


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
    """An ONNX file and its graph.  cut: True of the part of a larger network."""

    file: OnnxFile
    graph: Graph
    _entry: _Entry | None = field(default=None)

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

    def gather(
        self, data: Data, inputs: Mapping[str, Input], settings: Settings
    ) -> Iterable[Sample]:
        """Samples for `file`, which has these inputs, of data for the whole network."""
        entry = self._entry
        if entry is None:
            return gather(data, inputs, settings=settings)
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


def open_network(model: str | Path, *, shapes: Shapes | None = None) -> Network:
    """Open a network whose table is to be measured.

    shapes: of inputs whose dimensions the file leaves open.  GraphError; CompileError:
    no part of it can run in int8, or it was quantized elsewhere.
    """
    file = open_onnx(model, shapes=shapes)
    if is_quantized(file):
        text = "was quantized elsewhere, so there is no float network to compare with"
        raise CompileError(f"{model}: {text}; give the one that it was made from")
    graph = load(file)
    _cut(file, graph, ())
    return Network(file=file, graph=graph)


@contextmanager
def saved(network: Network) -> Iterator[Path]:
    """The file of the network, which of a part is there only for the time being."""
    if not network.cut:
        yield network.file.path
        return
    with TemporaryDirectory() as folder:
        path = Path(folder) / network.file.path.name
        path.write_bytes(network.file.model)
        yield path


def _cut(file: OnnxFile, graph: Graph, tables: Sequence[ScaleTable]) -> Cut | None:
    """As cut_for(), with the file's name in its errors."""
    try:
        return cut_for(file, graph, *tables)
    except CompileError as error:
        raise CompileError(f"{file.path}: {error.text}", error.details) from error


def _file(whole: OnnxFile, part: Part) -> OnnxFile:
    """A part as if it had been read."""
    return replace(whole, model=part.model, weights={}, original=None)
