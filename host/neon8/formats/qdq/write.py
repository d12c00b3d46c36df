# SPDX-License-Identifier: Apache-2.0
"""An int8 Program as an ONNX file with QuantizeLinear and DequantizeLinear nodes.

It is made from what the compiler lowered, not from the float file, so a tensor has a
Q/DQ pair exactly where our runtime rounds it: after the fused activation and the
residual sum, and nowhere else. Opset 13, or the first that has all operators: weights
int8 with one scale per output channel and zero points 0, bias int32 with scale_in *
scale_w, or float32 where the sum is not rounded, activations with one scale. They
are int8 where all are symmetric, which is what TensorRT takes, else uint8: only for
this has onnxruntime integer kernels on x86 without an option.
"""

from functools import partial

import numpy as np
import onnx
from onnx import helper, numpy_helper

from neon8.compile.lower import lower
from neon8.errors import CompileError
from neon8.formats.qdq.opaque import Originals, append, originals
from neon8.graph.extend import batch_sizes
from neon8.graph.onnx_file import ModelLike
from neon8.ir.graph import Graph
from neon8.ir.program import Op, Tensor
from neon8.operators.qdq import Nodes
from neon8.operators.registry import OPSETS, QDQ
from neon8.quant.scale_table import ScaleTable
from neon8.text import counted

OPSET = 13
IR_VERSION = 7


def dumps(table: ScaleTable, graph: Graph, model: ModelLike) -> bytes:
    """The bytes of the ONNX file.  model: the float file that `graph` came from.

    CompileError: the table is of another network, or lacks a tensor; or layers cannot
    be expressed, with a line for each.
    """
    made = lower(graph, table, opaque=True)
    layers = {node.name: node for node in graph.nodes}
    opset = OPSET
    for op in made.ops:
        if type(op) in OPSETS:
            opset = max(opset, OPSETS[type(op)](op, layers[op.name]))
    opaque = any(not node.runs for node in graph.nodes)
    kept = originals(model, least=opset) if opaque else None
    activations = [t for t in made.tensors.values() if t.dtype == "int8"]
    symmetric = all((t.lo, t.zero_point) == (-127, 0) for t in activations)
    n = Nodes(
        tensors=made.tensors,
        offset=0 if symmetric else 128,
        table=table,
        layers=layers,
        make_node=helper.make_node,
        original=partial(append, file=kept),
    )
    refused = [f"  {text}" for op in made.ops if (text := _add(n, op))]
    if refused:
        text = f"{counted(len(refused), 'layer')} cannot be expressed in Q/DQ nodes:"
        raise CompileError(f"{graph.name}: {text}", refused)
    batch = batch_sizes(model)
    out_batch = "N" if "N" in batch.values() else 1
    opsets = [helper.make_opsetid("", opset if kept is None else kept.opset)]
    opsets += [] if kept is None else kept.domains
    file = helper.make_model(
        helper.make_graph(
            n.nodes,
            graph.name,
            [_info(made.tensors[key], batch[key]) for key in made.inputs],
            [_output(made.tensors[key], out_batch, kept) for key in made.outputs],
            [numpy_helper.from_array(array, key) for key, array in n.arrays.items()],
        ),
        producer_name="neon8",
        opset_imports=opsets,
        ir_version=max(IR_VERSION, 0 if kept is None else kept.ir_version),
    )
    onnx.checker.check_model(file)
    return bytes(file.SerializeToString())


def _add(n: Nodes, op: Op) -> str:
    """Append the nodes of a step.  What keeps it from having any, "" if nothing."""
    try:
        QDQ[type(op)](n, op)
    except CompileError as error:
        if n.tensors[op.output].dtype != "float32":
            n.quantize(op.output, op.output)  # steps that read it are judged, too
        return error.text
    return ""


def _info(tensor: Tensor, batch: int | str) -> onnx.ValueInfoProto:
    """batch: takes the place of a first dimension of 1."""
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(tensor.dtype))
    free = batch if tensor.dims[:1] == (1,) else None
    shape = tensor.dims if free is None else (free, *tensor.dims[1:])
    return helper.make_tensor_value_info(tensor.name, kind, shape)


def _output(
    tensor: Tensor, batch: int | str, kept: Originals | None
) -> onnx.ValueInfoProto:
    """As _info(); of a shape that only a run shows what the float file says."""
    info = _info(tensor, batch)
    if kept is not None and not tensor.dims:
        said = kept.outputs[tensor.name].type.tensor_type.shape
        info.type.tensor_type.shape.CopyFrom(said)
    return info
