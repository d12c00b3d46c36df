# SPDX-License-Identifier: Apache-2.0
"""An int8 Program as an ONNX file with QuantizeLinear and DequantizeLinear nodes.

It is made from what the compiler lowered, not from the float file, so a tensor has a
Q/DQ pair exactly where our runtime rounds it: after the fused activation and the
residual sum, and nowhere else. Opset 13, or the first that has all operators: weights
int8 with one scale per output channel and zero points 0, bias int32 with scale_in *
scale_w, or float32 where the accumulator is not rounded, activations with one scale.
They are int8 where all are symmetric, which is what TensorRT takes, else uint8: only
for this has onnxruntime integer kernels on x86 without an option.

Opaque nodes stay as they were in the float network. They read float32 and tensors of
other types; what they took from folded constants becomes an initializer. A node of an
old opset is converted to that of the file.
"""

from dataclasses import dataclass, field
from functools import partial

import numpy as np
import onnx
import onnx.version_converter
from onnx import TensorProto, helper, numpy_helper

from neon8.compile.lower import lower
from neon8.errors import CompileError, TableError
from neon8.graph.extend import batch_sizes
from neon8.graph.onnx_file import ModelLike, open_onnx
from neon8.graph.protos import STANDARD, inner_nodes, one_line, rename
from neon8.graph.reader import read
from neon8.ir.graph import Graph
from neon8.ir.program import Op, Tensor
from neon8.operators.opaque import OpaqueOp
from neon8.operators.qdq import Nodes
from neon8.operators.registry import OPSETS, QDQ
from neon8.operators.source import Source
from neon8.quant.scale_table import ScaleTable
from neon8.rewrite.equalization import equalized
from neon8.text import counted

OPSET = 13
IR_VERSION = 7
OTHER_FLOATS = {"float16": TensorProto.FLOAT16, "float64": TensorProto.DOUBLE}


@dataclass(slots=True, kw_only=True)
class Originals:
    """The nodes of an ONNX file.

    makers: tensor -> the node that makes it.  outputs: of the network.  arrays:
    constant -> its initializer in the Q/DQ network.  opset: of the Q/DQ network, the
    file's or a newer one.
    """

    source: Source
    makers: dict[str, onnx.NodeProto]
    outputs: dict[str, onnx.ValueInfoProto]
    domains: list[onnx.OperatorSetIdProto]
    ir_version: int
    opset: int
    arrays: dict[str, str] = field(default_factory=dict)


def dumps(table: ScaleTable, graph: Graph, model: ModelLike) -> bytes:
    """The bytes of the ONNX file.  model: the float file that `graph` came from.

    CompileError: the table is of another network, or lacks a tensor; or layers cannot
    be expressed, with a line for each.
    """
    made = lower(graph, table, opaque=True)
    layers = {node.name: node for node in equalized(graph, table).nodes}
    opset = OPSET
    for op in made.ops:
        if type(op) in OPSETS:
            opset = max(opset, OPSETS[type(op)](op, layers[op.name]))
    opaque = any(type(op) is OpaqueOp for op in made.ops)
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


def originals(model: ModelLike, *, least: int) -> Originals:
    """The nodes of the file, for a Q/DQ network of opset `least` or newer."""
    file = open_onnx(model)
    proto = onnx.ModelProto.FromString(file.model)
    source = read(file)
    return Originals(
        source=source,
        makers={name: node for node in proto.graph.node for name in node.output},
        outputs={value.name: value for value in proto.graph.output},
        domains=[e for e in proto.opset_import if e.domain not in STANDARD],
        ir_version=proto.ir_version,
        opset=max(source.opset, least),
    )


def append(n: Nodes, op: OpaqueOp, file: Originals | None) -> None:
    """The nodes that `op` stands for, between Casts where it is not of float32."""
    if file is None:
        raise ValueError(op.name)
    if not op.reads and op.output in file.source.constants:
        n.arrays[op.output] = file.source.constants[op.output]
        return
    names = dict(zip(op.reads, op.inputs, strict=True))
    types = file.source.types
    for name in op.reads:
        if types.get(name) in OTHER_FLOATS:
            kind = OTHER_FLOATS[types[name]]
            names[name] = n.node("Cast", [names[name]], to=kind)
    casts = []
    makes: dict[str, str] = {}  # it may read what another copy of the node makes
    for name, out in zip(op.makes, (op.output, *op.more), strict=True):
        makes[name] = out
        if types.get(name) in OTHER_FLOATS:
            makes[name] = n.fresh(f"{out}_{types[name]}")
            casts.append((makes[name], out))
    for made in (new for old in _written(op, file) for new in _upgraded(old, file)):
        node = onnx.NodeProto()
        node.CopyFrom(made)
        node.name = n.fresh_node(made.name or made.output[0])
        for name in (
            name for each in (node, *inner_nodes(node)) for name in each.input
        ):
            if name in file.source.constants and name not in names:
                if name not in file.arrays:
                    file.arrays[name] = n.array(name, file.source.constants[name])
                names[name] = file.arrays[name]
        for name in filter(None, node.output):
            names[name] = makes.setdefault(name, n.fresh(name))
        rename([node], names)
        n.nodes.append(node)
    for value, out in casts:
        n.node("Cast", [value], output=out, to=TensorProto.FLOAT)


def _written(op: OpaqueOp, file: Originals) -> list[onnx.NodeProto]:
    """The nodes of the file that `op` stands for, in order; mostly one."""
    known = {*op.reads, *file.source.constants}
    nodes = [file.makers[op.makes[0]]]
    while inner := [n for n in nodes[0].input if n in file.makers and n not in known]:
        nodes.insert(0, file.makers[inner[0]])
    return nodes


def _upgraded(node: onnx.NodeProto, file: Originals) -> list[onnx.NodeProto]:
    """The nodes that do in file.opset what `node` does in its own.  TableError."""
    if file.opset == file.source.opset or node.domain not in STANDARD:
        return [node]
    source = file.source
    given = [name for name in node.input if name]
    graph = helper.make_graph(
        [node],
        "node",
        [_info_of(source, name) for name in given],
        [_info_of(source, name) for name in node.output if name],
        [
            numpy_helper.from_array(source.constants[name], name)
            for name in given
            if name in source.constants
        ],
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", source.opset)]
    )
    try:
        made = onnx.version_converter.convert_version(model, file.opset).graph
    except Exception as error:  # of its C++ part, of any class
        text = f"node {node.name or node.output[0]!r} (operator {node.op_type}) of"
        text += f" opset {source.opset} cannot be converted to {file.opset}"
        raise TableError(f"{source.path}: {text}: {one_line(error)}") from error
    file.source.constants.update(
        (item.name, numpy_helper.to_array(item)) for item in made.initializer
    )
    return list(made.node)


def _info_of(source: Source, name: str) -> onnx.ValueInfoProto:
    """What is known of a tensor."""
    dtype = source.types.get(name)
    if dtype is None:
        return onnx.ValueInfoProto(name=name)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return helper.make_tensor_value_info(name, kind, source.shapes.get(name))
