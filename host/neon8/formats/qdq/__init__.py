# SPDX-License-Identifier: Apache-2.0
"""Quantized ONNX as a table format: read in any form, written with Q/DQ nodes."""

from neon8.errors import TableError
from neon8.formats.format import Context, Format, NetworkWriter
from neon8.formats.qdq.read import load
from neon8.formats.qdq.write import dumps
from neon8.quant.scale_table import ScaleTable
from neon8.rewrite.own_scales import load_quantized


def _write(table: ScaleTable, context: Context) -> bytes:
    if context.graph is None or context.model is None:
        text = "qdq needs the float network: add --model net.onnx"
        raise TableError(f"{context.source}: {text}")
    return dumps(table, context.graph, context.model)


FORMAT = Format(
    name="qdq",
    # A protobuf message of ONNX begins with its IR version; no text has a NUL.
    recognise=lambda head: head.startswith("\b") or "\0" in head[:512],
    read=load,
    network=lambda path, narrow: load_quantized(path, narrow=narrow),
    write=NetworkWriter(_write),
    bits=(8,),
    weights=True,
)
