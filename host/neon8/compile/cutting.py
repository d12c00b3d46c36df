# SPDX-License-Identifier: Apache-2.0
"""compile --cut: the part of a network that is compiled, and the files around it."""

from collections.abc import Collection, Sequence
from pathlib import Path

from neon8.errors import CompileError, SettingsError
from neon8.files import STDOUT
from neon8.graph.cut import Cut, cut
from neon8.graph.onnx_file import OnnxFile
from neon8.graph.remedies import refusal
from neon8.ir.graph import Graph
from neon8.quant.scale_table import ScaleTable
from neon8.runtime import cut_file
from neon8.runtime.cut_file import NUMBERS, CutFile, End, PartFile
from neon8.runtime.targets import CUT


def cut_for(file: OnnxFile | None, graph: Graph, *tables: ScaleTable) -> Cut | None:
    """The largest part that neon8 can run; None if that is the whole network.

    An output that is an input as well is in no part, as what runs them gives it back.
    file: what `graph` was imported from.  A tensor to which a table gives factors (5c)
    has other values inside of the part, so it is not handed on.
    CompileError: no part can run, or the network was quantized elsewhere.
    """
    refused = refusal(graph)
    if refused is None and set(graph.inputs).isdisjoint(graph.outputs):
        return None
    if file is None or graph.quantized:
        what = "a Graph" if file is None else "a network that was quantized elsewhere"
        text = f"{what} cannot be cut; give the ONNX file of the float network"
        raise CompileError(text)

    def sealed(name: str) -> bool:
        entries = (table.tensors.get(name) for table in tables)
        return any(each and (each.factors or each.offsets) for each in entries)

    found = cut(file, graph, sealed=sealed)
    if found is None:
        text = "no part of the network is left to compile"
        if refused is None:  # there is nothing but outputs that are inputs
            raise CompileError(text)
        raise CompileError(f"{text}: {refused.text}", refused.details[:-1])
    return found


def kept_inside(found: Cut, graph: Graph, names: Collection[str]) -> frozenset[str]:
    """The layers and operators to be kept in float32 that the part has.

    The others run in float32 anyway.  graph: the whole network.
    """
    there, every = (
        {name for node in each.nodes for name in (node.name, node.operator)}
        for each in (found.inside, graph)
    )
    return frozenset(name for name in names if name in there or name not in every)


def files_of(model: bytes, found: Cut, graph: Graph, path: Path) -> dict[Path, bytes]:
    """All files of a network that was cut, by their paths, the description last.

    model: the .n8 file, for `path`.  graph: the whole network.
    """
    if path == STDOUT:
        text = "--cut writes several files beside each other: name a file with -o"
        raise SettingsError(text)
    if path.suffix in (CUT, ".onnx"):
        stem = path.name.removesuffix(path.suffix).removesuffix(".cut")
        text = "-o names the .n8 file, and --cut writes the others beside it"
        raise SettingsError(f"{path}: {text}; give {path.with_name(f'{stem}.n8')}")
    stem = path.name.removesuffix(".n8")
    named = {
        "before": (f"{stem}.before.onnx", found.before and found.before.model),
        "inside": (path.name, model),
        "after": (f"{stem}.after.onnx", found.after and found.after.model),
    }
    made = {part: (name, data) for part, (name, data) in named.items() if data}
    description = CutFile(
        source=graph.digest,
        inputs=_ends(graph, graph.inputs),
        outputs=_ends(graph, graph.outputs),
        parts={part: PartFile.of(name, data) for part, (name, data) in made.items()},
    )
    files = {path.with_name(name): data for name, data in made.values()}
    files[path.with_name(f"{stem}.cut{CUT}")] = cut_file.dumps(description)
    return files


def _ends(graph: Graph, names: Sequence[str]) -> dict[str, End]:
    ends = {}
    for name in names:
        tensor = graph.tensors[name]
        ends[name] = End(
            dtype=tensor.dtype if tensor.dtype in NUMBERS else "",
            shape=tensor.dims if tensor.fixed else None,
        )
    return ends
