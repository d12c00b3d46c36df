# SPDX-License-Identifier: Apache-2.0
"""Nodes of the float network that a Q/DQ network has as they were.

They read float32 and tensors of other types; what they took from folded constants
becomes an initializer. A node of an old opset is converted to that of the file.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import onnx
import onnx.version_converter
from onnx import TensorProto, helper

from neon8.errors import TableError
from neon8.graph.onnx_file import ModelLike, one_line, open_onnx
from neon8.graph.reader import read
from neon8.operators.opaque import OpaqueOp
from neon8.operators.qdq import Nodes
from neon8.operators.source import Source

ONNX_DOMAINS = ("", "ai.onnx")
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


def originals(model: ModelLike, *, least: int) -> Originals:
    """The nodes of the file, for a Q/DQ network of opset `least` or newer."""
    file = open_onnx(model)
    proto = onnx.ModelProto.FromString(file.model)
    source = read(file)
    return Originals(
        source=source,
        makers={name: node for node in proto.graph.node for name in node.output},
        outputs={value.name: value for value in proto.graph.output},
        domains=[e for e in proto.opset_import if e.domain not in ONNX_DOMAINS],
        ir_version=proto.ir_version,
        opset=max(source.opset, least),
    )


def append(n: Nodes, op: OpaqueOp, file: Originals | None) -> None:
    """The node that `op` stands for, between Casts where it is not of float32."""
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
    for name, out in zip(op.makes, (op.output, *op.more), strict=True):
        names[name] = out
        if types.get(name) in OTHER_FLOATS:
            names[name] = n.fresh(f"{out}_{types[name]}")
            casts.append((names[name], out))
    for made in _upgraded(file.makers[op.makes[0]], file):
        n.nodes.append(_renamed(n, made, names, file))
    for value, out in casts:
        n.node("Cast", [value], output=out, to=TensorProto.FLOAT)


def _renamed(
    n: Nodes, node: onnx.NodeProto, names: dict[str, str], file: Originals
) -> onnx.NodeProto:
    """A copy with the names of the Q/DQ network; `names` grows with its outputs."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    copy.name = n.fresh_node(node.name or node.output[0])
    _rename_inputs(n, copy, names, file)
    for index, name in enumerate(copy.output):
        if name:
            names.setdefault(name, n.fresh(name))
            copy.output[index] = names[name]
    return copy


def _rename_inputs(
    n: Nodes, node: onnx.NodeProto, names: Mapping[str, str], file: Originals
) -> None:
    """What `node` reads, and what the nodes in its branches read from outside."""
    for index, name in enumerate(node.input):
        node.input[index] = _read(n, name, names, file)
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            own = {value.name for value in (*graph.input, *graph.initializer)}
            own |= {name for inner in graph.node for name in inner.output}
            inside = {**names, **{name: name for name in own}}
            for inner in graph.node:
                _rename_inputs(n, inner, inside, file)
            for value in graph.output:
                value.name = _read(n, value.name, inside, file)


def _read(n: Nodes, name: str, names: Mapping[str, str], file: Originals) -> str:
    if not name or name in names:
        return names.get(name, "")
    if name in file.source.constants:
        if name not in file.arrays:
            file.arrays[name] = n.array(name, file.source.constants[name])
        return file.arrays[name]
    return name  # of a branch around this one


def _upgraded(node: onnx.NodeProto, file: Originals) -> list[onnx.NodeProto]:
    """The nodes that do in file.opset what `node` does in its own.  TableError."""
    if file.opset == file.source.opset or node.domain not in ONNX_DOMAINS:
        return [node]
    source = file.source
    given = [name for name in node.input if name]
    graph = helper.make_graph(
        [node],
        "node",
        [_info(source, name) for name in given],
        [_info(source, name) for name in node.output if name],
        [
            onnx.numpy_helper.from_array(source.constants[name], name)
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
        (item.name, onnx.numpy_helper.to_array(item)) for item in made.initializer
    )
    return list(made.node)


def _info(source: Source, name: str) -> onnx.ValueInfoProto:
    """What is known of a tensor."""
    dtype = source.types.get(name)
    if dtype is None:
        return onnx.ValueInfoProto(name=name)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return helper.make_tensor_value_info(name, kind, source.shapes.get(name))
