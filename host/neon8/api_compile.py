# SPDX-License-Identifier: Apache-2.0
"""From a network and its scale table to the model file, as functions on paths."""

from pathlib import Path

from neon8.compile import compile_model as compile_graph
from neon8.errors import CompileError
from neon8.files import write_atomic
from neon8.graph.graph import Graph
from neon8.graph.importer import load
from neon8.quant import table_json as json_format
from neon8.quant.scale_table import ScaleTable


def load_graph(model: str | Path) -> Graph:
    """The network of an ONNX file, normalised.  GraphError: unreadable, unsupported."""
    return load(Path(model))


def load_table(path: str | Path) -> ScaleTable:
    """A scale table from its JSON file.  TableError names the entry that is wrong."""
    return json_format.load(Path(path))


def save_table(table: ScaleTable, path: str | Path) -> None:
    """Write the table as JSON, whole or not at all."""
    json_format.save(table, path)


def compile_model(
    model: str | Path | Graph, table: str | Path | ScaleTable, *, io: str = "float"
) -> bytes:
    """The .n8 file of a network with these scales.

    io: "float" or "int8", the type of inputs and outputs.  GraphError, TableError,
    CompileError; a weight scale that had to be enlarged is logged to "neon8".
    """
    graph = model if isinstance(model, Graph) else load_graph(model)
    scales = table if isinstance(table, ScaleTable) else load_table(table)
    try:
        return compile_graph(graph, scales, io=io)
    except CompileError as error:
        where = graph.name if model is graph else str(model)
        where += "" if table is scales else f" with {table}"
        raise CompileError(f"{where}: {error}") from error


def save_model(model: bytes, path: str | Path) -> None:
    """Write an .n8 file, whole or not at all."""
    write_atomic(Path(path), model)
