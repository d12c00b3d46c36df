# SPDX-License-Identifier: Apache-2.0
"""`neon8 inspect`: a file, told apart by its contents, as text."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neon8 import text
from neon8.errors import ModelError, SetupError, TableError
from neon8.files import read_file, reading
from neon8.inspection import plan
from neon8.inspection.guards import legend
from neon8.machines import NATIVE
from neon8.quant.reasons import condensed
from neon8.quant.scale_table import CHOSEN, NARROW, LayerScale, ScaleTable, TensorScale
from neon8.runtime import Model, StepInfo, TensorInfo, cut_file
from neon8.runtime.arrays import Bounds
from neon8.runtime.board.model import BoardModel
from neon8.runtime.model import MAGIC, measure
from neon8.runtime.targets import opened
from neon8.settings.reader import takes
from neon8.settings.shapes import fixed
from neon8.settings.stages import DEFAULTS, Settings

if TYPE_CHECKING:
    from neon8.graph.onnx_file import Shapes


@takes("network", "target")
def inspect_file(
    path: str | Path,
    *,
    json: bool = False,
    settings: Settings = DEFAULTS,
    **_keywords: Any,
) -> str:
    """Describe a model, a network, a calibration file, a scale table or a library.

    json: one object with the facts of the text, null for what is not known or finite.
    Neon8Error: the file cannot be read, is damaged, or is nothing that neon8 makes.
    """
    parts = _described(Path(path), settings)
    return text.as_json(parts) if json else text.as_text(parts)


def _described(path: Path, settings: Settings) -> list[text.Part]:
    where, shapes = settings.target, settings.network.shapes
    with reading(path, SetupError):
        data = read_file(path)
    if path.suffix == ".n8" or data.startswith(MAGIC):
        at = {name: fixed(path, name, dims) for name, dims in (shapes or {}).items()}
        with opened(path, where, shapes=at or None) as model:
            if not isinstance(model, Model):
                return _opened(path, model, where=f"{where.target}, {where.core}")
            shown = model.at(at) if at else model
            largest = _at_most(model, data, where.isa)
            return _opened(path, shown, where="this machine", most=largest)
    given = {"--isa": where.isa, "--max-bytes": where.max_bytes}
    named = [name for name, value in given.items() if value is not None]
    named += ["--target"] if where.target != NATIVE else []
    if named:
        meant = "is for an .n8 file, whose kernels are chosen when it is opened"
        raise SetupError(f"{path}: {named[0]} {meant}; compile it first")
    return _made_elsewhere(path, data, shapes)


def _made_elsewhere(
    path: Path, data: bytes, shapes: "Shapes | None"
) -> list[text.Part]:
    """What is no model: a board, which has no onnx, need not import this."""
    from neon8.formats.conversion import read
    from neon8.graph.onnx_file import open_onnx
    from neon8.graph.quantized import is_quantized
    from neon8.inspection import elf, foreign, network, observation

    if data.startswith((elf.ELF_MAGIC, elf.ARCHIVE_MAGIC)):
        return _library(path, data)
    if cut_file.recognise(data):
        return _cut(path)
    if observation.recognise(data):
        return observation.describe(path, data)
    kind = _format(path, data)
    if kind != "qdq":
        table, own = read(path, source_format=kind)
        return foreign.describe(table) if own is None else _table(path, own)
    said = network.describe(path, shapes=shapes)
    if not is_quantized(open_onnx(path)):
        return said
    table, _ = read(path, source_format=kind)
    return [*said, "", text.Below("scales", foreign.describe(table))]


def _format(path: Path, data: bytes) -> str:
    """The format of a table.  SetupError: it is none, nor anything else."""
    from neon8.formats import registry

    try:
        return registry.detect(data, source=str(path))
    except TableError as error:
        raise SetupError(
            f"{path}: neither a model (.n8), a network (.onnx), a calibration file "
            "(.calib), a scale table of any known format nor a library (.so, .a)"
        ) from error


def _opened(
    path: Path,
    model: Model | BoardModel,
    *,
    where: str,
    most: Sequence[tuple[str, str]] = (),
) -> list[text.Part]:
    """A model.  most: what it takes where open dimensions are the largest."""
    facts, memory, steps = model.facts, model.memory, model.steps
    floats = {name for name, end in model.inputs.items() if end.dtype == "float32"}
    macs = sum(step.macs for step in steps)
    checksum = f"{facts.checksum:08x}"
    fields = (
        ("model", str(path)),
        ("format", f"neon8 model, version {facts.version}"),
        ("size", text.size(facts.size)),
        ("arrays", text.size(facts.data_size)),
        ("checksum", text.Shown(f"{checksum} (CRC-32, correct)", checksum)),
        ("compiled from", text.Shown(f"sha256 {facts.digest}", facts.digest)),
        *_open_dimensions(model.bounds),
        ("work", text.Shown(f"{macs} MACs a run", macs)),
        ("memory", text.size(memory.total(), " to run on one thread")),
        *most,
        ("packed weights", text.size(memory.packed)),
        *_given_up(steps),
        ("arena", text.size(memory.arena, " whatever the processor")),
        ("least arena", text.size(memory.arena_least, " in use at once")),
        ("scratch", text.size(memory.scratch, " a thread")),
        ("kernels for", where),
    )
    return [
        text.Fields(fields),
        "",
        _ends("inputs", model.inputs),
        _ends("outputs", model.outputs),
        *plan.table(steps),
        "",
        *plan.choices(steps),
        *plan.islands(steps, floats),
    ]


def _open_dimensions(
    bounds: Mapping[str, tuple[Bounds, ...]],
) -> list[tuple[str, str]]:
    """What the dimensions of inputs may be; nothing where all are fixed."""
    return [
        (f"{name} may be", "x".join(map(str, limits)))
        for name, limits in bounds.items()
        if any(limit.open for limit in limits)
    ]


def _at_most(model: Model, data: bytes, isa: str | None) -> list[tuple[str, str]]:
    """What a model takes where open dimensions are the largest; nothing for others."""
    if not model.open_dimensions:
        return []
    try:
        memory = measure(data, source="the largest shapes", isa=isa, largest=True)
    except ModelError as error:
        return [("at most", str(error))]
    return [("at most", text.size(memory.total(), " at the largest shapes"))]


def _cut(path: Path) -> list[text.Part]:
    """The files of a cut network, which are not opened."""
    cut = cut_file.load(path)
    fields = (
        ("network", str(path)),
        ("format", f"{cut_file.FORMAT}, version {cut_file.VERSION}"),
        ("compiled from", text.Shown(f"sha256 {cut.source}", cut.source)),
    )
    rows = [
        (name, "neon8" if name == "inside" else "onnxruntime", part.file, part.digest)
        for name, part in cut.parts.items()
    ]
    return [
        text.Fields(fields),
        "",
        _cut_ends("inputs", cut.inputs),
        _cut_ends("outputs", cut.outputs),
        text.Table("parts", rows, ("part", "runs in", "file", "sha256")),
    ]


def _cut_ends(title: str, ends: Mapping[str, cut_file.End]) -> text.Table:
    unknown = text.Shown("known at run time only", None)
    rows = [
        (
            name,
            end.dtype or text.UNKNOWN,
            unknown if end.shape is None else text.shape(end.shape),
        )
        for name, end in ends.items()
    ]
    return text.Table(title, rows, ("name", "type", "shape"))


def _given_up(steps: Sequence[StepInfo]) -> list[tuple[str, text.Shown]]:
    """What fitting --max-bytes costs; nothing where nothing was given up."""
    layers = [step for step in steps if step.spared]
    if not layers:
        return []
    spared = sum(step.spared for step in layers)
    work = sum(step.macs for step in layers)
    shown = (
        f"{spared} bytes of weights for Winograd, which costs speed in "
        f"{text.counted(len(layers), 'layer')} of {work} MACs"
    )
    return [("given up", text.Shown(shown, spared))]


def _ends(title: str, tensors: Mapping[str, TensorInfo]) -> text.Table:
    return text.Table(
        title,
        [
            (
                name,
                tensor.dtype,
                text.shape(tensor.shape),
                text.number(tensor.scale) if tensor.quantized else text.UNKNOWN,
                tensor.zero_point if tensor.quantized else text.UNKNOWN,
                text.span(tensor.lo, tensor.hi) if tensor.quantized else text.UNKNOWN,
            )
            for name, tensor in tensors.items()
        ],
        ("name", "type", "shape", "scale", "zero point", "range"),
    )


def _scheme(entry: TensorScale) -> str:
    """'unsigned', 'unsigned, 14 bits' or 'float32'."""
    if entry.float32:
        return "float32"
    more = "" if entry.bits == NARROW else f", {entry.bits} bits"
    return f"{entry.scheme}{more}"


def _table(path: Path, table: ScaleTable) -> list[text.Part]:
    tensors = [
        (
            name,
            _scheme(entry),
            text.number(entry.scale),
            entry.zero_point,
            *map(text.number, entry.threshold),
            *(
                text.UNKNOWN if v is None else text.number(v)
                for v in (entry.min, entry.max)
            ),
            _ends_of(entry.factors),
            _ends_of(entry.offsets),
            condensed(entry.reasons),
        )
        for name, entry in table.tensors.items()
    ]
    layers = [
        (
            name,
            entry.input,
            len(entry.weight_scales),
            text.number(min(entry.weight_scales)),
            text.number(max(entry.weight_scales)),
            _rounding(entry),
            text.decimals(entry.sqnr_loss),
            text.number(max(map(abs, entry.bias_correction)))
            if entry.bias_correction
            else text.UNKNOWN,
            condensed(entry.reasons),
        )
        for name, entry in table.layers.items()
    ]
    fields = (
        ("scale table", str(path)),
        ("of", f"{table.model_name}, sha256 {table.model_digest}"),
        ("method", f"{table.method}, scheme {table.scheme}"),
        ("samples", table.samples),
        *([("shape", text.shapes(table.shapes))] if table.shapes else []),
        ("engine", table.engine),
    )
    of_tensors = (
        *("name", "scheme", "scale", "zero point", "from", "to", "min seen"),
        *("max seen", "factors", "offsets", "reasons"),
    )
    of_layers = (
        *("name", "input", "scales", "smallest", "largest", "rounding"),
        *("loss, dB", "bias by", "reasons"),
    )
    return [
        text.Fields(fields),
        "",
        text.Table("tensors", tensors, of_tensors),
        text.Table("layers", layers, of_layers),
        *legend(table),
    ]


def _ends_of(values: tuple[float, ...]) -> str:
    """From the smallest to the largest one."""
    if not values:
        return text.UNKNOWN
    return text.span(text.number(min(values)), text.number(max(values)))


def _rounding(entry: LayerScale) -> str:
    """'nearest', 'lattice', and of how many weights the level is not the nearest."""
    from neon8.rewrite.rounding import moved

    if not entry.levels:
        return entry.rounding
    said = f"{moved(entry)} moved"
    return said if entry.rounding == CHOSEN else f"{entry.rounding}, {said}"


def _library(path: Path, data: bytes) -> list[text.Part]:
    from neon8.inspection import elf

    facts = elf.read(str(path), data)
    members = f" of {facts.members} objects" if facts.members > 1 else ""
    pairs: list[tuple[str, object]] = [
        ("library", str(path)),
        ("kind", facts.kind + members),
        ("machine", facts.machine),
        ("compiler", facts.compiler or text.UNKNOWN),
        ("size", text.size(len(data))),
    ]
    if facts.alignment:
        pairs += [
            ("alignment", f"{facts.alignment} bytes (LOAD segments)"),
            ("needs", ", ".join(facts.needed) or "nothing"),
            ("text relocations", "yes" if facts.text_relocations else "none"),
        ]
    pairs.append(
        ("stack", "executable" if facts.executable_stack else "not executable")
    )
    kernels: text.Table | text.Listed
    if facts.kernels is None:
        kernels = text.Listed("kernels", ["unknown: the symbols were stripped"])
    else:
        rows = [(isa, len(s), " ".join(s)) for isa, s in facts.kernels.items()]
        kernels = text.Table("kernels", rows, ("isa", "count", "kernels"))
    exports = text.Listed(f"exports, {len(facts.exports)}", facts.exports)
    return [text.Fields(pairs), "", exports, kernels]
