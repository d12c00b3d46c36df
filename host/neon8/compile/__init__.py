# SPDX-License-Identifier: Apache-2.0
"""Lower a Graph and a ScaleTable to a Program, prove it, write it as a .n8 file."""

from neon8.compile import lower, writer
from neon8.graph.graph import Graph
from neon8.quant.scale_table import ScaleTable

__all__ = ["compile_model"]


def compile_model(graph: Graph, table: ScaleTable, *, io: str = "float") -> bytes:
    """The .n8 file of `graph`, quantized with `table`.

    io: "float" for float32 inputs and outputs, "int8" for quantized ones.
    CompileError: the table does not fit to the graph, or a bound cannot be proved.
    """
    return writer.dumps(lower.lower(graph, table, io=io))
