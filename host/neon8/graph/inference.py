# SPDX-License-Identifier: Apache-2.0
"""Shapes, types and constants of an ONNX network, node by node in order of execution.

Exporters write weights through Constant, Reshape and Transpose nodes and shapes through
Shape, Gather and Concat; what does not depend on the network's input is computed here,
by onnx's own reference implementation in the semantics of the file's opset.

onnx infers one node at a time and never the whole network: a tiny file can name
tensors of terabytes, and onnx makes a value for every element of a tensor that may be
a shape. So each result is judged before the next node sees it.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from neon8.errors import GraphError
from neon8.graph.onnx_file import LARGE, initializer, one_line
from neon8.graph.source import Array

FOLDABLE = frozenset({
    *("Add", "Cast", "Concat", "Constant", "ConstantOfShape", "Div", "Equal", "Expand"),
    *("Flatten", "Gather", "Identity", "Mul", "Neg", "Range", "ReduceProd", "Reshape"),
    *("Shape", "Slice", "Sqrt", "Squeeze", "Sub", "Tile", "Transpose", "Unsqueeze"),
    "Where",
})  # fmt: skip
MAX_LIST = 1 << 20
"""Elements of a list of integers: to onnx it may be a shape with as many dimensions."""

SPARE_BYTES = 1 << 26
PASSES = 16
"""Folding may read and write SPARE_BYTES, and PASSES times the bytes of the file's own
constants: more than any exporter's chain of nodes needs."""

INTEGERS = (onnx.TensorProto.INT32, onnx.TensorProto.INT64)


@dataclass(slots=True, kw_only=True)
class Inference:
    """What is known of the network's tensors; grows with each node.

    constants: name -> value.  types: name -> type of every tensor, as far as onnx can
    tell.  budget: bytes that constant nodes may still read and write.
    """

    path: Path
    opsets: list[onnx.OperatorSetIdProto]
    constants: dict[str, Array]
    budget: int
    types: dict[str, onnx.TypeProto] = field(default_factory=dict)

    def shape(self, name: str) -> tuple[int, ...] | None:
        """The dimensions of a tensor, None unless all are known."""
        kind = self.types.get(name, onnx.TypeProto()).tensor_type
        dims = kind.shape.dim
        if not kind.HasField("shape") or any(not d.HasField("dim_value") for d in dims):
            return None
        return tuple(int(dim.dim_value) for dim in dims)


def infer(
    path: Path, model: onnx.ModelProto, constants: dict[str, Array]
) -> tuple[Inference, list[onnx.NodeProto]]:
    """What is known of each tensor, and the nodes that are no constants.

    constants: the values of all initializers.  GraphError: a node contradicts its
    inputs, or computes more from constants than a network needs.
    """
    given = sum(value.nbytes for value in constants.values())
    known = Inference(
        path=path,
        opsets=list(model.opset_import),
        constants=dict(constants),
        budget=SPARE_BYTES + PASSES * given,
    )
    for value in model.graph.input:
        known.types[value.name] = value.type
    for tensor in model.graph.initializer:
        known.types[tensor.name] = onnx.helper.make_tensor_type_proto(
            tensor.data_type, tensor.dims
        )
    kept = []
    for node in model.graph.node:
        known.types.update(_types(known, node))
        feeds = _feeds(known, node)
        if feeds is None:
            kept.append(node)
        else:
            known.constants[node.output[0]] = _evaluate(known, node, feeds)
    for value in model.graph.output:
        declared = value.type.tensor_type.elem_type
        found = known.types.get(value.name, value.type).tensor_type.elem_type
        if declared not in (found, onnx.TensorProto.UNDEFINED):
            text = f"output {value.name!r} is not of the type that the file gives it"
            raise GraphError(f"{path}: {text}")
    return known, kept


def _types(known: Inference, node: onnx.NodeProto) -> Iterator[tuple[str, Any]]:
    """The types of the node's outputs, as far as onnx can tell."""
    inputs = {name: known.types.get(name) for name in node.input if name}
    hidden = any(item.HasField("g") or item.graphs for item in node.attribute)
    foreign = node.domain not in ("", "ai.onnx")
    if hidden or foreign or None in inputs.values():
        return
    if node.op_type == "Constant":  # may be large, and _evaluate() knows its type
        return
    values = [
        initializer(name, known.constants[name])
        for name in inputs
        if name in known.constants and known.constants[name].nbytes <= LARGE
    ]
    graph = onnx.GraphProto(
        name="node",
        node=[node],
        input=[onnx.ValueInfoProto(name=n, type=kind) for n, kind in inputs.items()],
        output=[onnx.ValueInfoProto(name=name) for name in node.output if name],
        initializer=values,
    )
    model = onnx.ModelProto(ir_version=8, graph=graph, opset_import=known.opsets)
    try:
        inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True)
    except Exception as error:  # InferenceError and whatever protobuf raises
        text = f"its shapes do not fit: {one_line(error)}"
        raise _failure(known, node, text) from error
    for value in inferred.graph.output:
        kind = value.type.tensor_type
        shape = [dim.dim_value for dim in kind.shape.dim]
        if kind.elem_type in INTEGERS and len(shape) == 1 and shape[0] > MAX_LIST:
            raise _failure(known, node, f"makes a list of {shape[0]} integers")
        yield value.name, value.type


def _feeds(known: Inference, node: onnx.NodeProto) -> dict[str, Array] | None:
    """The inputs with which a constant node is to be computed, None for another."""
    if node.domain not in ("", "ai.onnx") or node.op_type not in FOLDABLE:
        return None
    if node.op_type == "Constant":
        if any(item.name == "sparse_value" for item in node.attribute):
            raise _failure(known, node, "sparse weights are not supported")
        return {}
    name = node.output[0]
    shape = known.shape(name)
    if node.op_type == "Shape":
        source = known.shape(node.input[0])
        if source is not None:
            return {node.input[0]: np.broadcast_to(np.float32(0), source)}
    elem = known.types.get(name, onnx.TypeProto()).tensor_type.elem_type
    if (
        shape is None
        or elem in (onnx.TensorProto.UNDEFINED, onnx.TensorProto.STRING)
        or any(item and item not in known.constants for item in node.input)
    ):
        return None
    feeds = {item: known.constants[item] for item in node.input if item}
    size = math.prod(shape) * onnx.helper.tensor_dtype_to_np_dtype(elem).itemsize
    known.budget -= size + sum(value.nbytes for value in feeds.values())
    if known.budget < 0:
        text = f"makes {list(shape)} elements of constants, too many for this file"
        raise _failure(known, node, text)
    return feeds


def _evaluate(known: Inference, node: onnx.NodeProto, feeds: dict[str, Array]) -> Array:
    # Loading it takes as long as all else here, and most files have nothing to fold.
    from onnx.reference import ReferenceEvaluator  # noqa: PLC0415

    opsets = {entry.domain: entry.version for entry in known.opsets}
    try:
        outputs: Any = ReferenceEvaluator(node, opsets=opsets).run(None, feeds)
        result = np.asarray(outputs[0], order="C")
        kind = onnx.helper.np_dtype_to_tensor_dtype(result.dtype)
    except Exception as error:  # the reference implementation raises all sorts
        raise _failure(known, node, "cannot be computed") from error
    known.types[node.output[0]] = onnx.helper.make_tensor_type_proto(kind, result.shape)
    return result


def _failure(known: Inference, node: onnx.NodeProto, text: str) -> GraphError:
    name = node.name or next(filter(None, node.output), "")
    return GraphError(f"{known.path}: node {name!r} (operator {node.op_type}): {text}")
