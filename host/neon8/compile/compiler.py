# SPDX-License-Identifier: Apache-2.0
"""compile_model(): from a network and its scale table to the .n8 file."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neon8.arrays import FloatArray
from neon8.compile import lower, writer
from neon8.compile.cutting import cut_for, files_of, kept_inside
from neon8.compile.open_shapes import (
    compile_open,
    openings,
)
from neon8.compile.whole_numbers import wrapping
from neon8.data.samples import loaded
from neon8.errors import CompileError, SettingsError
from neon8.files import write_all
from neon8.graph.cut import Cut
from neon8.graph.importer import load
from neon8.graph.onnx_file import OnnxFile, Shapes, open_onnx, symbols_of
from neon8.graph.quantized import is_quantized
from neon8.ir.graph import Graph
from neon8.ir.program import Program
from neon8.progress import Stages, nobody
from neon8.quant import table_json
from neon8.quant.int16_fit import Fit
from neon8.quant.scale_table import ScaleTable
from neon8.rewrite.own_scales import load_quantized
from neon8.settings.reader import takes
from neon8.settings.shapes import is_open
from neon8.settings.stages import DEFAULTS, Settings

if TYPE_CHECKING:  # loads Pillow, which few need
    from neon8.data.preprocess import Preprocess


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """file: the bytes of the .n8 file.  islands: layers in float32, each with why.

    fits: the layers with weights that int16 did not hold four products of, and what
    came of that; empty unless accumulator_aware.
    cut: of which part the file is; None if it is the whole network, `graph`.
    wrapping: the layers with integers of more values than int32 that may leave it.
    """

    file: bytes
    islands: dict[str, str]
    graph: Graph
    fits: tuple[Fit, ...] = ()
    cut: Cut | None = None
    wrapping: tuple[str, ...] = ()

    def files(self, path: Path) -> dict[Path, bytes]:
        """What is to be written, by path, the .n8 file at `path`."""
        if self.cut is None:
            return {path: self.file}
        return files_of(self.file, self.cut, self.graph, path)


@takes("network", "compile")
def compile_model(
    model: str | Path | Graph,
    table: str | Path | ScaleTable | None = None,
    *,
    output: str | Path | None = None,
    settings: Settings = DEFAULTS,
    **_keywords: Any,
) -> bytes:
    """Compile a network with these scales to an .n8 file, and return its content.

    table: None for an ONNX file that was quantized elsewhere and has its own.
    output: the .n8 file to write; with `cut`, which needs it, the other parts stand
    beside it, see CutModel.
    GraphError, TableError, SettingsError, SetupError.  CompileError: the table does not
    fit the network, or a bound cannot be proved.  A weight scale that had to be
    enlarged is logged to "neon8".
    """
    if settings.compile.cut and output is None:
        text = "cut writes several files: give output, the path of the .n8 file"
        raise SettingsError(text)
    compiled = compile_network(model, table, settings)
    if output is not None:
        write_all(compiled.files(Path(output)))
    return compiled.file


def compile_network(
    model: str | Path | Graph,
    table: str | Path | ScaleTable | None = None,
    settings: Settings = DEFAULTS,
    progress: Stages = nobody,
) -> Compiled:
    """As compile_model(), and which layers run in float32.

    progress: told how many shapes of an open network are compiled, and of how many.
    """
    if is_open(settings.network.shapes):
        return _compile_open(model, table, settings, progress)
    wanted = settings.compile
    graph, scales, file = _network(model, table, settings.network.shapes)
    with _named(model, table):
        found = cut_for(file, graph, scales) if wanted.cut else None
        keep = frozenset(wanted.keep_float)
        if found is not None:
            keep = kept_inside(found, graph, keep)
        inside = graph if found is None else found.inside
        program = _lowered(inside, graph, scales, keep, settings)
        return Compiled(
            file=writer.dumps(program),
            islands=program.islands,
            graph=graph,
            fits=program.fits,
            cut=found,
            wrapping=wrapping(program, inside),
        )


def _compile_open(
    model: str | Path | Graph,
    table: str | Path | ScaleTable | None,
    settings: Settings,
    progress: Stages,
) -> Compiled:
    """The file for all shapes within bounds."""
    shapes = settings.network.shapes or {}
    if isinstance(model, Graph):
        raise CompileError(
            f"{model.name}: a Graph has fixed shapes; give the ONNX file"
        )
    if settings.compile.cut:
        raise CompileError(f"{model}: --cut wants fixed shapes; leave out the bounds")
    keep = frozenset(settings.compile.keep_float)
    given = _table(table)
    usual = {} if given is None else given.shapes
    last: list[tuple[Graph, Program]] = []

    def compile_at(sizes: Shapes) -> Program:
        graph, scales, _file = _network(model, given, sizes)
        made = _lowered(graph, graph, scales, keep, settings)
        last[:] = [(graph, made)]
        return made

    with _named(model, table):
        found = openings(shapes, symbols_of(model, shapes), usual)
        program = compile_open(found, compile_at, progress)
        return Compiled(
            file=writer.dumps(program),
            islands=program.islands,
            graph=last[0][0],
            fits=program.fits,
            wrapping=wrapping(last[0][1], last[0][0]),
        )


def _lowered(
    inside: Graph,
    graph: Graph,
    scales: ScaleTable,
    keep: frozenset[str],
    settings: Settings,
) -> Program:
    """The Program of `inside`, which is `graph` or a part of it."""
    wanted = settings.compile
    return lower.lower(
        inside,
        scales,
        io=wanted.io,
        layout=wanted.layout,
        images=_images(graph, loaded(wanted.image)),
        keep_float=keep,
        max_sqnr_loss=wanted.max_sqnr_loss if wanted.accumulator_aware else None,
    )


@contextmanager
def _named(
    model: str | Path | Graph, table: str | Path | ScaleTable | None
) -> Iterator[None]:
    """Say of which network and table a CompileError is."""
    try:
        yield
    except CompileError as error:
        where = model.name if isinstance(model, Graph) else str(model)
        where += f" with {table}" if isinstance(table, str | Path) else ""
        raise CompileError(f"{where}: {error.text}", error.details) from error


def _images(graph: Graph, image: "Preprocess | None") -> dict[str, FloatArray]:
    """What lower() wants to know of an image."""
    if image is None:
        return {}
    if len(graph.inputs) != 1:
        text = f"an image is for one input, and there are {len(graph.inputs)}"
        raise CompileError(text)
    return {graph.inputs[0]: image.table()}


def _network(
    model: str | Path | Graph,
    table: str | Path | ScaleTable | None,
    shapes: Shapes | None,
) -> tuple[Graph, ScaleTable, OnnxFile | None]:
    """The Graph and its scales, from wherever they come, and its file."""
    given = _table(table)
    if not isinstance(model, Graph):
        file = open_onnx(model, shapes=shapes)
        if is_quantized(file):
            graph, own = load_quantized(file)
            return graph, own if given is None else given, file
        if given is None:
            text = "has no scales of its own; `neon8 calibrate` makes a table of them"
            raise CompileError(f"{model}: {text}")
        return load(file), given, file
    if given is None:
        raise CompileError(f"{model.name}: a Graph needs a scale table")
    return model, given, None


def _table(table: str | Path | ScaleTable | None) -> ScaleTable | None:
    return table_json.load(table) if isinstance(table, str | Path) else table
