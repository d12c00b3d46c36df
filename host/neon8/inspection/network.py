# SPDX-License-Identifier: Apache-2.0
"""What would become of an ONNX file: int8, float32 or not supported, node by node."""

from collections import Counter
from pathlib import Path

from neon8 import text
from neon8.compile.domains import float_nodes
from neon8.compile.lower import lower
from neon8.errors import CompileError, GraphError
from neon8.graph.cut import NAMES, Cut, cut
from neon8.graph.importer import load
from neon8.graph.onnx_file import Shapes, open_onnx
from neon8.graph.quantized import is_quantized
from neon8.ir.graph import Graph
from neon8.operators.convolution import convolutions
from neon8.operators.opaque import opaque_nodes
from neon8.rewrite.own_scales import load_quantized

INT8, FLOAT, OPAQUE = "int8", "float32", "not supported"


def describe(path: Path, *, shapes: Shapes | None = None) -> list[text.Part]:
    """Text about the network in an ONNX file.

    shapes: of inputs whose dimensions it leaves open.  GraphError: it cannot be read.
    """
    file = open_onnx(path, shapes=shapes)
    if not is_quantized(file):
        graph = load(file)
        found = cut(file, graph) if opaque_nodes(graph) else None
        said = _network(path, graph, float_nodes(graph), "float", found)
        return said if found is None else [*said, *_parts(graph, found)]
    try:
        graph, table = load_quantized(file)
        # What stays float depends on which tensors the file rounds.
        islands = lower(graph, table, opaque=True).islands
    except (GraphError, CompileError) as error:
        return _unusable(path, error)
    return _network(path, graph, islands, "quantized elsewhere")


def _network(
    path: Path,
    graph: Graph,
    islands: dict[str, str],
    kind: str,
    found: Cut | None = None,
) -> list[text.Part]:
    """islands: the nodes that run in float32, with the reason."""
    refused = {node.name: node.reason for node in opaque_nodes(graph)}
    rows = []
    for node in graph.nodes:
        where, why = INT8, ""
        if node.name in refused:
            where, why = OPAQUE, refused[node.name]
        elif node.name in islands:
            where, why = FLOAT, islands[node.name]
        shape = graph.tensors[node.output].dims
        part = () if found is None else (NAMES[found.where[node.output]],)
        size = text.shape(shape) or text.UNKNOWN
        rows.append((where, node.name, node.operator, size, *part, why))
    count = Counter(where for where, *_ in rows)
    weights = sum(node.weight.size for node in convolutions(graph))
    nodes = ", ".join(f"{count[where]} {where}" for where in (INT8, FLOAT, OPAQUE))
    fields = (
        ("network", str(path)),
        ("format", f"ONNX, {kind}"),
        ("digest", text.Shown(f"sha256 {graph.digest}", graph.digest)),
        ("weights", f"{weights} of convolutions and matrices"),
        ("nodes", nodes),
        ("to do", _remedy(kind, opaque=count[OPAQUE], cut=found is not None)),
    )
    more = () if found is None else ("part",)
    header = ("runs in", "name", "operator", "output", *more, "why")
    return [
        text.Fields(fields),
        "",
        _ends("inputs", graph, graph.inputs),
        _ends("outputs", graph, graph.outputs),
        text.Table(
            "nodes, once activations and constants are folded into them", rows, header
        ),
    ]


def _parts(graph: Graph, found: Cut) -> list[text.Part]:
    """What `neon8 compile --cut` would make of the network."""
    runs = ("onnxruntime", "neon8", "onnxruntime")
    rows = [
        (name, where, nodes, macs)
        for name, where, nodes, macs in zip(
            NAMES, runs, found.counts, found.macs, strict=True
        )
        if nodes
    ]
    crossing = []
    for name, (source, to) in found.crossing.items():
        tensor = graph.tensors[name]
        size = text.shape(tensor.dims) if tensor.fixed else "known at run time only"
        dtype = tensor.dtype or text.UNKNOWN
        crossing.append((name, source, to, dtype, size or "scalar"))
    header = ("name", "from", "to", "type", "shape")
    return [
        text.Table(
            "cut, what neon8 compile --cut makes of the network",
            rows,
            ("part", "runs in", "nodes", "MACs"),
        ),
        text.Table("crossing, the tensors that parts hand on", crossing, header),
    ]


def _remedy(kind: str, *, opaque: int, cut: bool) -> str:
    if kind == "float":
        way = "neon8 calibrate chooses scales from samples, neon8 convert writes them"
        if cut:
            return f"{way} for other tools, neon8 compile --cut an .n8 of a part"
        return f"{way} for other tools" if opaque else f"{way}, neon8 compile an .n8"
    way = "neon8 convert --to neon8 takes its scales over"
    return way if opaque else f"neon8 compile takes it as it is; {way}"


def _ends(title: str, graph: Graph, names: tuple[str, ...]) -> text.Table:
    rows = []
    for name in names:
        tensor = graph.tensors[name]
        shape = text.shape(tensor.dims) if tensor.fixed else "known at run time only"
        rows.append((name, tensor.dtype or text.UNKNOWN, shape or "scalar"))
    return text.Table(title, rows, ("name", "type", "shape"))


def _unusable(path: Path, error: GraphError | CompileError) -> list[text.Part]:
    """A quantized file whose scales neon8 can read, but which it cannot run."""
    fields = (
        ("network", str(path)),
        ("format", "ONNX, quantized elsewhere"),
        ("to do", "neon8 convert takes its scales over; compile does not"),
    )
    because = [f"because: {error.text}", *error.details]
    return [text.Fields(fields), *map(text.printable, because)]
