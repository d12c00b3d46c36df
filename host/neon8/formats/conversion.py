# SPDX-License-Identifier: Apache-2.0
"""convert_table(): a calibration file of one tool into that of another.

What differs between formats is in their descriptors; nothing here asks for a name.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

from neon8.errors import TableError
from neon8.formats import attach, registry
from neon8.formats.foreign_table import (
    ForeignTable,
    count_zero_points_lost,
    first_of,
    from_scale_table,
    renamed,
    tensors_of_other_bits,
    to_params,
)
from neon8.formats.format import Context, Format, NetworkWriter
from neon8.graph.importer import load as load_graph
from neon8.graph.onnx_file import OnnxFile, open_onnx
from neon8.quant import strict_json, table_json
from neon8.quant.checks import decode, read_bytes, string
from neon8.quant.scale_table import (
    BALANCED,
    CHOSEN,
    LATTICE,
    NARROW,
    WEIGHTS16,
    WIDE,
    ScaleTable,
)
from neon8.settings.reader import takes
from neon8.settings.stages import DEFAULTS, Settings
from neon8.text import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Converted:
    """data: the bytes of the file.  notes: what it lacks, or what the reader lost."""

    data: bytes
    source_format: str
    notes: tuple[str, ...]


def read(
    path: str | PathLike[str], *, source_format: str | None = None
) -> tuple[ForeignTable, ScaleTable | None]:
    """The table in a file of any format, and our own where it is that.

    source_format: one of registry.NAMES; without it the content decides.  TableError.
    """
    found = registry.find(source_format or registry.detect_file(path)).read(Path(path))
    if isinstance(found, ScaleTable):
        return from_scale_table(found, source=str(path)), found
    return found, None


def read_names(path: str | PathLike[str]) -> dict[str, str]:
    """A map of names from a JSON object.  TableError."""
    root = strict_json.loads(decode(read_bytes(path), str(path)), source=str(path))
    if not isinstance(root, strict_json.JsonObject):
        raise TableError(f"{path}:1: expected an object of old and new names")
    for old, new in root.items():
        string(f"{path}:{root.line}: the new name of {old!r}", new)
    return dict(root)


@takes("network", "convert")
def convert_table(
    path: str | PathLike[str],
    to: str,
    *,
    settings: Settings = DEFAULTS,
    **_keywords: Any,
) -> Converted:
    """Convert a calibration file to the format `to`; see docs/formats.md.

    to: one of registry.NAMES.  TableError names what the target needs and nobody gave.
    GraphError, CompileError, SettingsError.
    """
    wanted, shapes = settings.convert, settings.network.shapes
    model, onto, names = wanted.model, wanted.onto, wanted.names
    if isinstance(names, Path):
        names = read_names(names)
    target = registry.find(to)
    table, own = read(path, source_format=wanted.source_format)
    source, whole = registry.find(table.format), own
    options = {"ncnn_param": wanted.ncnn_param, "trt_version": wanted.trt_version}
    given = {name: str(value) for name, value in options.items() if value is not None}
    _check_options(path, given, source, target)
    file = None if model is None else open_onnx(model, shapes=shapes)
    context = _context(str(path), file, onto, given)
    # A foreign file takes names of the network, ours those of the target.
    names_at_end = names if own is not None else None
    if names_at_end and isinstance(target.write, NetworkWriter):
        text = f"{to} has the names of the network, as the source; --names is for"
        raise TableError(f"{path}: {text} names of other tools")
    if names and own is None:
        table = renamed(table, names)
    if source is not target:
        table = source.adopt(table, context)
    alone = context.graph is None and context.base is None
    if source.network and isinstance(target.write, NetworkWriter) and alone:
        graph, whole = source.network(Path(path), target is not source)
        context = replace(context, model=open_onnx(path), graph=graph)
        table = replace(table, notes=())
    else:
        table, whole = _on_network(table, whole, context)
    for name, bits in tensors_of_other_bits(table).items():
        if bits not in target.bits:
            held = " or ".join(map(str, target.bits))
            text = f"{to} holds {held} bits only, tensor {name!r} has {bits}"
            remedy = "calibrate without --fast and with --bits 8"
            if bits > min(target.bits):
                remedy = "calibrate with --plain, without --precision and --bits"
            raise TableError(f"{path}: {text}; {remedy}")
    if own is not None and source is not target:
        _check_weights(own, path, target)
    if isinstance(target.write, NetworkWriter):
        if whole is None:
            table, whole = _completed(table, context, to)
        data = target.write.write(whole, context)
        return Converted(data=data, source_format=source.name, notes=table.notes)
    if whole is not None:
        _check_quantized(whole, path, to)
        _check_plain(whole, path, to)
    if context.graph is not None and target.weights:
        table = attach.fill(table, context.graph)
    if names_at_end:
        table = renamed(table, names_at_end)
    if own is not None and source is not target:
        table = _with_lost_weights(table, own, to)
    table = target.prepare(_with_losses(table, target), context)
    data = target.write(table)
    return Converted(data=data, source_format=source.name, notes=table.notes)


def _check_quantized(table: ScaleTable, path: str | PathLike[str], to: str) -> None:
    """TableError: a tensor is to be float32, which a format `to` cannot say."""
    for name, entry in table.tensors.items():
        if entry.float32:
            text = f"{to} quantizes all tensors, and {name!r} is float32"
            raise TableError(
                f"{path}: {text}; calibrate with --plain, without --precision float"
            )


def _check_weights(
    table: ScaleTable, path: str | PathLike[str], target: Format
) -> None:
    """TableError: a layer has int16 weights, and the format says how weights are."""
    wide = [name for name, entry in table.layers.items() if entry.bits != NARROW]
    if wide and (target.weights or isinstance(target.write, NetworkWriter)):
        text = f"{target.name} holds weights of {NARROW} bits only, layer {wide[0]!r} "
        remedy = f"calibrate without --precision {WEIGHTS16}:{wide[0]}"
        raise TableError(f"{path}: {text}has {WIDE}; {remedy}")


def _check_plain(table: ScaleTable, path: str | PathLike[str], to: str) -> None:
    """TableError: a tensor has factors or offsets: the network is another one then."""
    for name, entry in table.tensors.items():
        if entry.factors or entry.offsets:
            what = "factors" if entry.factors else "offsets"
            text = f"{to} has no {what} of channels, which tensor {name!r} has"
            raise TableError(f"{path}: {text}; calibrate with --plain")


LOST_ROUNDINGS = {
    LATTICE: "on the lattice of --fast will have other weights; calibrate without "
    "--fast",
    BALANCED: "of which errors cancel over taps will have the nearest weights; "
    "calibrate with --plain",
    CHOSEN: "with levels chosen by --thorough will have the nearest ones; calibrate "
    "without --thorough",
}
"""What becomes of layers in a table that does not say how weights are rounded."""


def _with_lost_weights(table: ForeignTable, own: ScaleTable, to: str) -> ForeignTable:
    """`table` with notes on what `own` says of weights and biases and `to` cannot."""
    layers = own.layers.values()
    for rounding, text in LOST_ROUNDINGS.items():
        count = sum(layer.rounding == rounding for layer in layers)
        if count:
            note = f"{counted(count, 'layer')} {text}"
            table = table.with_note(f"{to} knows one way to round: {note}")
    count = sum(layer.bits != NARROW for layer in layers)
    if count:
        text = f"{counted(count, 'layer')} with weights of {WIDE} bits will have others"
        table = table.with_note(f"{to} does not hold the bits of weights: {text}")
    count = sum(bool(layer.bias_correction) for layer in layers)
    if count:
        text = f"corrections of the biases of {counted(count, 'layer')} are left out"
        table = table.with_note(f"{to} has no biases: {text}")
    return table


def _check_options(
    path: str | PathLike[str], given: Mapping[str, str], source: Format, target: Format
) -> None:
    """TableError: an option that neither format takes."""
    for name in given:
        if name not in (*source.read_options, *target.write_options):
            option = f"--{name.replace('_', '-')}"
            text = f"{option} has no use from {source.name} to {target.name}"
            raise TableError(f"{path}: {text}: leave it out")


def _context(
    source: str,
    file: OnnxFile | None,
    onto: str | PathLike[str] | None,
    options: Mapping[str, str],
) -> Context:
    graph = None if file is None else load_graph(file)
    base = None if onto is None else table_json.load(onto)
    if graph is not None and base is not None and base.model_digest != graph.digest:
        text = f"is a table of {base.model_name}, and --model is another network"
        raise TableError(f"{onto}: {text}; calibrate that one")
    return Context(source=source, model=file, graph=graph, base=base, options=options)


def _on_network(
    table: ForeignTable, whole: ScaleTable | None, context: Context
) -> tuple[ForeignTable, ScaleTable | None]:
    """`table` by the network's tensors and layers, and put onto the base table."""
    if context.graph is not None and context.model is not None:
        layer_weights = attach.weight_names(context.model, context.graph)
        place = f"the network {context.graph.name} once it is folded and fused"
        absent = [name for name in table.tensors if name not in context.graph.tensors]
        table = attach.attach(table, context.graph, layer_weights)
        table = _with_absent(table, absent, place)
    if context.base is not None:
        if context.graph is None:
            absent = [t for t in table.tensors if t not in context.base.tensors]
            place = f"the table of {context.base.model_name}"
            table = _with_absent(table, absent, place)
        if whole is None:
            table = _with_made_up(table, context.base.tensors)
        _check_plain(context.base, table.source, table.format)
        whole = attach.onto(table, context.base)
        known = from_scale_table(whole, source=table.source)
        table = replace(
            known,
            format=table.format,
            groups={**known.groups, **table.groups},
            weight_names=table.weight_names,
            notes=table.notes,
        )
    return table, whole


def _completed(
    table: ForeignTable, context: Context, to: str
) -> tuple[ForeignTable, ScaleTable]:
    """A scale for everything in the network.  TableError: something has none."""
    if context.graph is None:
        text = f"{to} needs the network that the scales are of, and the file has"
        raise TableError(
            f"{table.source}: {text} {table.contents}: add --model net.onnx, or --onto "
            "a table"
        )
    whole = attach.complete(table, context.graph)
    return _with_made_up(table, whole.tensors), whole


def _with_absent(table: ForeignTable, absent: list[str], place: str) -> ForeignTable:
    """`table` with a note on the tensors that are absent.  TableError: all are."""
    if absent and len(absent) == len(table.tensors):
        text = f"none of its {counted(len(absent), 'tensor')} is in {place}"
        raise TableError(f"{table.source}: {text}; map names with --names")
    return table.with_note(f"not in {place}: {first_of(absent)}") if absent else table


def _with_made_up(table: ForeignTable, known: Collection[str]) -> ForeignTable:
    """`table` with a note on its tensors, of those known, whose scale or range is 0."""
    zero = [
        name
        for name, entry in table.tensors.items()
        if name in known and to_params(entry).scale == 0
    ]
    if not zero:
        return table
    text = "no scale for tensors that were all zero, or held no real numbers; it is"
    text += f" made up, with the reason code dead: {first_of(zero)}"
    return table.with_note(text)


def _with_losses(table: ForeignTable, target: Format) -> ForeignTable:
    """`table` with notes on what the target does not hold."""
    lost = count_zero_points_lost(table)
    if target.symmetric and lost:
        text = f"{target.name} has no zero point: {counted(lost, 'tensor')} with one"
        text += " lost up to half of the levels; calibrate with --scheme symmetric"
        table = table.with_note(text)
    others = Counter(tensors_of_other_bits(table).values())
    for bits, count in others.items() if target.ranges else ():
        text = f"{target.name} has ranges, not bits: {counted(count, 'tensor')} of"
        text += f" {bits} bits will have those that the reader is told"
        table = table.with_note(text)
    if not target.weights and table.weights:
        text = f"the weight scales are left out, {target.name} takes them from the"
        table = table.with_note(f"{text} weights")
    if table.other and target.name != table.format:
        lines = counted(len(table.other), "line")
        text = f"left out, as only {table.format} has such: {lines}"
        table = table.with_note(text)
    return table
