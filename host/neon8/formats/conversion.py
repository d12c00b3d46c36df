# SPDX-License-Identifier: Apache-2.0
"""convert(): a calibration file of one tool into that of another."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path

from neon8.errors import TableError
from neon8.formats import binding, glow, ncnn, ncnn_param, ort, ort_overrides, qdq, trt
from neon8.formats.detect import FORMATS, detect
from neon8.formats.foreign import (
    ForeignTable,
    from_table,
    moved_to_zero,
    of_16_bits,
    renamed,
)
from neon8.formats.weight_names import weight_names
from neon8.graph.graph import Conv2d, Graph
from neon8.graph.importer import load as load_graph
from neon8.graph.onnx_file import OnnxFile, open_onnx
from neon8.quant import strict_json, table_json
from neon8.quant.checks import decode, string
from neon8.quant.scale_table import ScaleTable
from neon8.text import counted

READERS = {
    "ncnn": ncnn.loads,
    "trt": trt.loads,
    "glow": glow.loads,
    "ort": ort.loads,
    "ort-cache": ort.loads,
    "ort-overrides": ort_overrides.loads,
}
OF_LAYERS = ("ncnn", "ort-overrides")
"""Formats that want weight scales."""
OF_NETWORK = ("neon8", "qdq")
"""Formats that say something of every tensor, by the network's names."""
SYMMETRIC = ("ncnn", "trt")
RANGES = ("glow", "ort", "ort-cache")
EIGHT_BITS = {"ncnn": "ncnn", "trt": "TensorRT's cache", "qdq": "Q/DQ of opset 13"}
"""Formats without 16 bits, by what errors call them."""


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

    source_format: one of FORMATS; without it the content decides.  TableError.
    """
    source = str(path)
    data = _bytes(path)
    known = source_format or detect(data, source=source)
    if known == "neon8":
        table = table_json.loads(decode(data, source), source=source)
        return from_table(table, source=source), table
    if known == "qdq":
        return qdq.load(path), None
    if known not in READERS:
        raise TableError(f"format {known!r} is not one of {', '.join(FORMATS)}")
    return READERS[known](data, source=source), None


def read_names(path: str | PathLike[str]) -> dict[str, str]:
    """A map of names from a JSON object.  TableError."""
    root = strict_json.loads(decode(_bytes(path), str(path)), source=str(path))
    if not isinstance(root, strict_json.Located):
        raise TableError(f"{path}:1: expected an object of old and new names")
    for old, new in root.items():
        string(f"{path}:{root.line}: the new name of {old!r}", new)
    return dict(root)


def convert(
    path: str | PathLike[str],
    to: str,
    *,
    source_format: str | None = None,
    names: Mapping[str, str] | None = None,
    model: str | PathLike[str] | None = None,
    onto: str | PathLike[str] | None = None,
    ncnn_param: str | PathLike[str] | None = None,
    trt_version: str | None = None,
) -> Converted:
    """The file `path` in the format `to`, one of FORMATS.

    names: old -> new, of tensors, layers and weights; new are those of the target, or
    of the network if the source has others.  model: the float ONNX file.  onto: our own
    table, whose scales stay where `path` has none.  ncnn_param: the text .param whose
    layers ncnn's entries are named after.  trt_version: for the header.
    TableError names what the target needs and nobody gave.
    """
    if to not in FORMATS:
        raise TableError(f"format {to!r} is not one of {', '.join(FORMATS)}")
    if trt_version is not None and to != "trt":
        raise TableError(f"{path}: --trt-version is for --to trt, and this is to {to}")
    table, whole = read(path, source_format=source_format)
    if ncnn_param is not None and "ncnn" not in (table.format, to):
        text = f"--ncnn-param names the layers of ncnn, and this is {table.format}"
        raise TableError(f"{path}: {text} to {to}")
    file = None if model is None else open_onnx(model)
    graph = None if file is None else load_graph(file)
    base = None if onto is None else table_json.load(onto)
    if graph is not None and base is not None and base.model_digest != graph.digest:
        text = f"is a table of {base.model_name}, and --model is another network"
        raise TableError(f"{onto}: {text}; calibrate that one")
    own_names = whole is not None
    if names and own_names and to in OF_NETWORK:
        text = f"{to} has the names of the network, as the source; --names is for"
        raise TableError(f"{path}: {text} names of other tools")
    if names and not own_names:
        table = renamed(table, dict(names))
    if ncnn_param is not None and table.format == "ncnn" and to != "ncnn":
        table = _from_param(table, ncnn_param, graph, base)
    if graph is not None and file is not None:
        table = _attached(table, graph, file)
    if base is not None:
        if graph is None:
            absent = [name for name in table.tensors if name not in base.tensors]
            table = _noted(table, absent, f"the table of {base.model_name}")
        whole = binding.onto(table, base)
        table = _as_foreign(whole, table)
    wide = of_16_bits(table)
    if wide and to in EIGHT_BITS:
        text = f"{EIGHT_BITS[to]} holds 8 bits only, tensor {wide[0]!r} has 16"
        raise TableError(f"{path}: {text}; solve with --bits 8")
    if to in OF_NETWORK:
        if whole is None and graph is not None:
            whole = binding.complete(table, graph)
        if whole is None:
            text = f"{to} needs the network that the scales are of, and the file has"
            raise TableError(
                f"{path}: {text} {table.holds}: add --model net.onnx, or --onto a table"
            )
        if to == "neon8":
            data = table_json.dumps(whole).encode()
        elif graph is None or file is None:
            text = "qdq needs the float network: add --model net.onnx"
            raise TableError(f"{path}: {text}")
        else:
            data = qdq.dumps(whole, graph, file)
        return Converted(data=data, source_format=table.format, notes=table.notes)
    if graph is not None and to in OF_LAYERS:
        table = binding.fill(table, graph)
    if to == "ncnn":
        table = ncnn.per_group(table)
    if names and own_names:
        table = renamed(table, dict(names))
    if ncnn_param is not None and to == "ncnn":
        table = ncnn_param_names(table, ncnn_param, _sizes(graph))
    data, notes = _written(table, to, trt_version=trt_version)
    return Converted(
        data=data, source_format=table.format, notes=(*table.notes, *notes)
    )


def _bytes(path: str | PathLike[str]) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise TableError(f"{path}: cannot be read: {error.strerror}") from error


def _sizes(graph: Graph | None) -> dict[str, int]:
    """How many weights each layer of the network has."""
    nodes = () if graph is None else graph.nodes
    return {node.name: node.weight.size for node in nodes if isinstance(node, Conv2d)}


def _as_foreign(whole: ScaleTable, table: ForeignTable) -> ForeignTable:
    """`whole`, with what only `table`, which it was made of, knows."""
    result = from_table(whole, source=table.source)
    return replace(
        result,
        format=table.format,
        groups={**result.groups, **table.groups},
        weight_names=table.weight_names,
        notes=table.notes,
    )


def _attached(table: ForeignTable, graph: Graph, model: OnnxFile) -> ForeignTable:
    absent = [name for name in table.tensors if name not in graph.tensors]
    table = binding.attach(table, graph, weight_names(model, graph))
    network = f"the network {graph.name} once it is folded and fused"
    return _noted(table, absent, network)


def _noted(table: ForeignTable, absent: list[str], place: str) -> ForeignTable:
    """`table` with a note on the tensors that are absent.  TableError: all are."""
    if absent and len(absent) == len(table.tensors):
        text = f"none of its {counted(len(absent), 'tensor')} is in {place}"
        raise TableError(f"{table.source}: {text}; map names with --names")
    if absent:
        text = f"not in {place}: {absent[0]!r}"
        if len(absent) > 1:
            text += f" and {counted(len(absent) - 1, 'other tensor')}"
        table = replace(table, notes=(*table.notes, text))
    return table


def _from_param(
    table: ForeignTable,
    param: str | PathLike[str],
    graph: Graph | None,
    base: ScaleTable | None,
) -> ForeignTable:
    sizes = _sizes(graph)
    own = tuple(sizes) or tuple(base.layers if base else ())
    if not own:
        text = "names of a .param say nothing without the network: add --model"
        raise TableError(f"{table.source}: {text} net.onnx")
    layers = ncnn_param.loads(_bytes(param), source=str(param))
    return ncnn_param.from_param_names(
        table, layers, own, source=str(param), sizes=sizes
    )


def ncnn_param_names(
    table: ForeignTable, param: str | PathLike[str], sizes: dict[str, int]
) -> ForeignTable:
    """`table` with the layer names of a .param file."""
    layers = ncnn_param.loads(_bytes(param), source=str(param))
    return ncnn_param.to_param_names(table, layers, source=str(param), sizes=sizes)


def _written(
    table: ForeignTable, to: str, *, trt_version: str | None
) -> tuple[bytes, tuple[str, ...]]:
    notes = []
    moved = moved_to_zero(table)
    if to in SYMMETRIC and moved:
        text = f"{to} has no zero point: {counted(moved, 'tensor')} with one lost up to"
        notes.append(f"{text} half of the levels; calibrate with --scheme symmetric")
    wide = len(of_16_bits(table))
    if to in RANGES and wide:
        text = f"{to} has ranges, not bits: {counted(wide, 'tensor')} of 16 bits"
        notes.append(f"{text} will have those that the reader is told")
    if to in ("trt", *RANGES) and table.weights:
        notes.append(
            f"the weight scales are left out, {to} takes them from the weights"
        )
    if table.other and to != "ncnn":
        lines = counted(len(table.other), "line")
        notes.append(f"left out, as only ncnn has such: {lines}")
    if to == "ncnn":
        return ncnn.dumps(table), tuple(notes)
    if to == "trt":
        if trt_version is None and "version" not in table.header:
            text = f"the header says TensorRT {trt.VERSION}, another one refuses it"
            notes.append(f"{text}: name yours with --trt-version")
        return trt.dumps(table, version=trt_version), tuple(notes)
    if to == "glow":
        if "hash" not in table.header:
            text = "the graph hash is 0x0, which Glow's loader refuses: put in the one"
            notes.append(f"{text} of a profile that it dumped of this network")
        return glow.dumps(table), tuple(notes)
    if to == "ort-overrides":
        unnamed = [name for name in table.weights if name not in table.weight_names]
        if unnamed:
            layers = counted(len(unnamed), "layer")
            text = f"the weight scales of {layers} are left out, as of {unnamed[0]!r}"
            notes.append(f"{text}: --model names the weights that are not folded")
        return ort_overrides.dumps(table), tuple(notes)
    return ort.dumps(table, cache=to == "ort-cache"), tuple(notes)
