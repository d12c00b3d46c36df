# SPDX-License-Identifier: Apache-2.0
"""ONNX with Q/DQ nodes as a table format; neon8.graph reads and writes the files."""

from os import PathLike

import numpy as np

from neon8.compile.lower import lower
from neon8.compile.program import Conv2d, Program
from neon8.errors import TableError
from neon8.formats import qdq_read, qdq_write
from neon8.formats.foreign import ForeignTable
from neon8.graph.extend import batch_sizes
from neon8.graph.graph import Graph
from neon8.graph.onnx_file import ModelLike
from neon8.quant.scale_table import ScaleTable
from neon8.quant.weights import FloatArray


def load(path: str | PathLike[str]) -> ForeignTable:
    """Scales of tensors and layers.  TableError."""
    return qdq_read.load(path)


def dumps(table: ScaleTable, graph: Graph, model: ModelLike) -> bytes:
    """The bytes of the ONNX file.  model: the float file that `graph` came from.

    CompileError: the table is of another network, or lacks a tensor.
    """
    program = lower(graph, table)
    return qdq_write.dumps(
        program,
        {
            op.name: _weight_scales(program, table, op)
            for op in program.ops
            if isinstance(op, Conv2d)
        },
        name=graph.name,
        batch=batch_sizes(model),
    )


def _weight_scales(program: Program, table: ScaleTable, op: Conv2d) -> FloatArray:
    """(O,), of the table; TableError where the compiler could not take them."""
    scales = np.array(table.layers[op.name].weight_scales, np.float32)
    scales = np.broadcast_to(scales, op.multiplier.shape)
    product = np.float64(program.tensors[op.inputs[0]].scale) * scales
    out = program.tensors[op.output]
    if out.dtype == "int8":
        product = product / np.float64(out.scale)
    changed = np.flatnonzero(product.astype(np.float32) != op.multiplier)
    if changed.size:
        text = f"layer {op.name!r}: weight scale {changed[0]} is too small for int32"
        raise TableError(f"{table.model_name}: {text} sums; enlarge it in the table")
    return scales
