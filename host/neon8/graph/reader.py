# SPDX-License-Identifier: Apache-2.0
"""Reads an ONNX file into a Source: a fixed batch, shapes, constants.

What onnx.checker lets pass may still be hostile.
"""

import os
from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import onnx

from neon8.errors import GraphError
from neon8.graph.inference import infer
from neon8.graph.onnx_file import OnnxFile
from neon8.graph.protos import (
    STANDARD,
    inner_nodes,
    network_inputs,
    pin_batch,
    values_of,
)
from neon8.ir.graph import MAX_RANK
from neon8.operators.source import Attribute, OnnxNode, Source

OLDEST_OPSET = 7
MAX_NAME = 1023


def read(file: OnnxFile) -> Source:
    """Infer shapes, fold constants.  GraphError names file and cause."""
    path, model = file.path, onnx.ModelProto.FromString(file.model)
    opset = _opset(path, model)
    inputs = _pin_batch(path, model)
    outputs = tuple(value.name for value in model.graph.output)
    constants = {**values_of(path, model.graph), **file.weights}
    known = infer(path, model, constants)
    for name in (*inputs, *outputs, *(o for n in model.graph.node for o in n.output)):
        if len(name.encode()) > MAX_NAME or "\0" in name:
            raise GraphError(f"{path}: tensor {name[:40]!r}... has an unusable name")
    return Source(
        path=str(path),
        name=os.fsencode(path.stem).decode(errors="replace"),
        digest=file.digest,
        opset=opset,
        nodes=_whole(_nodes(known.kept, known.faults), file.hidden),
        constants=known.constants,
        shapes={
            name: shape
            for name in known.types
            if (shape := known.shape(name)) is not None
        },
        types={name: kind for name in known.types if (kind := known.dtype(name))},
        inputs=inputs,
        outputs=outputs,
        hidden=file.hidden,
    )


def _opset(path: Path, model: onnx.ModelProto) -> int:
    for entry in model.opset_import:
        if entry.domain in STANDARD:
            if entry.version < OLDEST_OPSET:
                text = f"opset {entry.version} is too old; convert the file to 13 with"
                raise GraphError(f"{path}: {text} onnx.version_converter")
            return int(entry.version)
    raise GraphError(f"{path}: does not use the operators of ONNX itself")


def _pin_batch(path: Path, model: onnx.ModelProto) -> tuple[str, ...]:
    """Make a free batch 1, forget the shapes of outputs; the names of the inputs."""
    pin_batch(model.graph)
    inputs = network_inputs(model.graph)
    for value in inputs:
        kind = value.type.tensor_type
        if value.type.WhichOneof("value") != "tensor_type":
            text = f"input {value.name!r} is no tensor, and samples are tensors"
            raise GraphError(f"{path}: {text}; export it as one")
        if not kind.HasField("shape"):
            text = f"the shape of input {value.name!r} is not given"
            raise GraphError(f"{path}: {text}; {_shape_option(value)}")
        if len(kind.shape.dim) > MAX_RANK:
            text = f"input {value.name!r} has {len(kind.shape.dim)} dimensions"
            raise GraphError(f"{path}: {text}; neon8 takes up to {MAX_RANK}")
        for axis, dim in enumerate(kind.shape.dim):
            if dim.WhichOneof("value") != "dim_value":
                text = f"dimension {axis} of input {value.name!r} is "
                text += repr(dim.dim_param) if dim.dim_param else "not given"
                raise GraphError(f"{path}: {text}; {_shape_option(value)}")
            if dim.dim_value < 1:
                text = f"input {value.name!r} is empty: dimension {axis} is"
                raise GraphError(f"{path}: {text} {dim.dim_value}")
    if not inputs:
        raise GraphError(f"{path}: the network has no inputs")
    inputs = [onnx.ValueInfoProto.FromString(v.SerializeToString()) for v in inputs]
    del model.graph.input[:]
    model.graph.input.extend(inputs)
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    return tuple(value.name for value in inputs)


def _shape_option(value: onnx.ValueInfoProto) -> str:
    """What to write for an input whose shape is open."""
    dims = value.type.tensor_type.shape.dim
    sizes = [str(dim.dim_value) if dim.dim_value > 0 else "?" for dim in dims]
    if sizes and sizes[0] == "?":
        sizes[0] = "1"
    shape = f"{value.name}={','.join(sizes) or '?'}"
    return f"give it by --shape {shape}, in Python by shapes"


def _nodes(
    protos: list[onnx.NodeProto], faults: Mapping[str, str]
) -> tuple[OnnxNode, ...]:
    """faults: output of a node -> what is wrong with that."""
    given = {node.name for node in protos}
    taken: set[str] = set()
    nodes = []
    for node in protos:
        base = node.name or f"{node.op_type}_{next(filter(None, node.output), '')}"
        name, count = base, 1
        while name in taken or (name in given and name != node.name):
            count += 1
            name = f"{base}_{count}"
        taken.add(name)
        foreign = node.domain not in STANDARD
        nodes.append(
            OnnxNode(
                name=name,
                operator=f"{node.domain}.{node.op_type}" if foreign else node.op_type,
                inputs=tuple(node.input),
                outputs=tuple(node.output),
                attributes={item.name: _attribute(item) for item in node.attribute},
                captures=tuple(n for inner in inner_nodes(node) for n in inner.input),
                fault=next((faults[o] for o in node.output if o in faults), ""),
            )
        )
    return tuple(nodes)


def _whole(nodes: Iterable[OnnxNode], hidden: Container[str]) -> tuple[OnnxNode, ...]:
    """With one node for each NonMaxSuppression and the nodes that pad it."""
    last: dict[str, OnnxNode] = {}
    made: list[OnnxNode] = []
    for node in nodes:
        first = next((last.pop(name) for name in node.inputs if name in last), node)
        if first.operator == "NonMaxSuppression" and node.outputs[0] in hidden:
            last[node.outputs[0]] = first
        else:
            made.append(replace(first, outputs=node.outputs))
    return tuple(made)


def _attribute(item: onnx.AttributeProto) -> Attribute:
    value = onnx.helper.get_attribute_value(item)
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, int | float):
        return value
    if item.type == onnx.AttributeProto.INTS:
        return tuple(int(entry) for entry in value)
    if item.type == onnx.AttributeProto.FLOATS:
        return tuple(float(entry) for entry in value)
    if item.type == onnx.AttributeProto.STRINGS:
        return tuple(entry.decode(errors="replace") for entry in value)
    return None
