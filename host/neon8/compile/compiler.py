# SPDX-License-Identifier: Apache-2.0
"""compile_model(): from a network and its scale table to the .n8 file."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from neon8.compile import lower, writer
from neon8.errors import CompileError
from neon8.graph.graph import Graph
from neon8.graph.importer import load
from neon8.graph.onnx_file import Shapes
from neon8.quant import table_json
from neon8.quant.scale_table import ScaleTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """file: the bytes of the .n8 file.  islands: layers in float32, each with why."""

    file: bytes
    islands: dict[str, str]


def compile_model(
    model: str | Path | Graph,
    table: str | Path | ScaleTable,
    *,
    io: str = "float",
    shapes: Shapes | None = None,
    keep_float: Collection[str] = (),
) -> bytes:
    """The .n8 file of a network with these scales.

    io: "float" for float32 inputs and outputs, "int8" for quantized ones.  shapes: of
    inputs whose dimensions an ONNX file leaves open.  keep_float: names of layers and
    ONNX operators, such as "Conv", that run in float32.  GraphError, TableError.
    CompileError: the table does not fit the network, or a bound cannot be proved.  A
    weight scale that had to be enlarged is logged to "neon8".
    """
    return compile_network(
        model, table, io=io, shapes=shapes, keep_float=keep_float
    ).file


def compile_network(
    model: str | Path | Graph,
    table: str | Path | ScaleTable,
    *,
    io: str = "float",
    shapes: Shapes | None = None,
    keep_float: Collection[str] = (),
) -> Compiled:
    """As compile_model(), and which layers run in float32."""
    graph = model if isinstance(model, Graph) else load(model, shapes=shapes)
    scales = table if isinstance(table, ScaleTable) else table_json.load(table)
    try:
        program = lower.lower(graph, scales, io=io, keep_float=frozenset(keep_float))
        return Compiled(file=writer.dumps(program), islands=program.islands)
    except CompileError as error:
        where = graph.name if model is graph else str(model)
        where += "" if table is scales else f" with {table}"
        raise CompileError(f"{where}: {error}") from error
