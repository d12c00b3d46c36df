# SPDX-License-Identifier: Apache-2.0
"""Reads an ONNX file into a Source: batch, shapes, constants.

What onnx.checker lets pass may still be hostile.
"""

import os
from pathlib import Path

import onnx
from onnx import numpy_helper
from onnx.external_data_helper import uses_external_data

from neon8.errors import GraphError
from neon8.graph.inference import infer
from neon8.graph.onnx_file import OnnxFile, one_line
from neon8.graph.source import Array, Attribute, OnnxNode, Source

OLDEST_OPSET = 7
MAX_NAME = 1023


def read(file: OnnxFile) -> Source:
    """Infer shapes with batch 1, fold constants.  GraphError names file and cause."""
    path, model = file.path, onnx.ModelProto.FromString(file.model)
    opset = _opset(path, model)
    inputs = _pin_batch(path, model)
    outputs = tuple(value.name for value in model.graph.output)
    for name in outputs:
        if name in inputs:
            raise GraphError(f"{path}: output {name!r} is an input")
    constants = {**_constants(path, model), **file.weights}
    known, kept = infer(path, model, constants)
    for name in outputs:
        if name in known.constants:
            raise GraphError(f"{path}: output {name!r} does not depend on any input")
    for name in (*inputs, *outputs, *(o for n in model.graph.node for o in n.output)):
        if len(name.encode()) > MAX_NAME or "\0" in name:
            raise GraphError(f"{path}: tensor {name[:40]!r}... has an unusable name")
    return Source(
        path=str(path),
        name=os.fsencode(path.stem).decode(errors="replace"),
        digest=file.digest,
        opset=opset,
        nodes=_nodes(kept),
        constants=known.constants,
        shapes={
            name: shape
            for name in known.types
            if (shape := known.shape(name)) is not None
        },
        floats=frozenset(
            name
            for name, kind in known.types.items()
            if kind.tensor_type.elem_type == onnx.TensorProto.FLOAT
        ),
        inputs=inputs,
        outputs=outputs,
    )


def _opset(path: Path, model: onnx.ModelProto) -> int:
    for entry in model.opset_import:
        if entry.domain in ("", "ai.onnx"):
            if entry.version < OLDEST_OPSET:
                text = f"opset {entry.version} is too old; convert the file to 13 with"
                raise GraphError(f"{path}: {text} onnx.version_converter")
            return int(entry.version)
    raise GraphError(f"{path}: does not use the operators of ONNX itself")


def _pin_batch(path: Path, model: onnx.ModelProto) -> tuple[str, ...]:
    """Make the batch 1 and forget all other shapes; the names of the inputs."""
    initializers = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in initializers]
    for value in inputs:
        kind = value.type.tensor_type
        if kind.elem_type != onnx.TensorProto.FLOAT:
            text = f"input {value.name!r} is not float32; export the network as float32"
            raise GraphError(f"{path}: {text}")
        if not 1 <= len(kind.shape.dim) <= 4:
            text = f"input {value.name!r} has {len(kind.shape.dim)} dimensions"
            raise GraphError(f"{path}: {text}; neon8 takes 1 to 4, the batch first")
        for axis, dim in enumerate(kind.shape.dim):
            fixed = dim.WhichOneof("value") == "dim_value"
            if axis == 0 and not fixed:
                dim.dim_value = 1
            elif axis == 0 and dim.dim_value != 1:
                text = f"input {value.name!r} has batch {dim.dim_value}; export with"
                raise GraphError(f"{path}: {text} batch 1 or a symbolic batch")
            elif not fixed or dim.dim_value < 1:
                text = f"dimension {axis} of input {value.name!r} is "
                text += repr(dim.dim_param) if dim.dim_param else "not given"
                raise GraphError(f"{path}: {text}; only the batch may be symbolic")
    if not inputs:
        raise GraphError(f"{path}: the network has no inputs")
    # Before IR 4 an initializer had to be an input, too; shape inference still holds
    # old files to that, and constants that are folded here are not.
    model.ir_version = max(model.ir_version, 4)
    inputs = [onnx.ValueInfoProto.FromString(v.SerializeToString()) for v in inputs]
    del model.graph.input[:]
    model.graph.input.extend(inputs)
    del model.graph.value_info[:]
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    return tuple(value.name for value in inputs)


def _constants(path: Path, model: onnx.ModelProto) -> dict[str, Array]:
    """The values of the initializers that have them."""
    values = {}
    for tensor in model.graph.initializer:
        if not uses_external_data(tensor):
            try:
                values[tensor.name] = numpy_helper.to_array(tensor)
            except Exception as error:  # the checker does not look at everything
                text = f"initializer {tensor.name!r} cannot be read: {one_line(error)}"
                raise GraphError(f"{path}: {text}") from error
    return values


def _nodes(protos: list[onnx.NodeProto]) -> tuple[OnnxNode, ...]:
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
        foreign = node.domain not in ("", "ai.onnx")
        nodes.append(
            OnnxNode(
                name=name,
                operator=f"{node.domain}.{node.op_type}" if foreign else node.op_type,
                inputs=tuple(node.input),
                outputs=tuple(node.output),
                attributes={item.name: _attribute(item) for item in node.attribute},
            )
        )
    return tuple(nodes)


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
    return None
