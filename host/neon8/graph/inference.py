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
from collections import ChainMap, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from neon8.arrays import Array
from neon8.errors import GraphError
from neon8.graph.branches import branch_of
from neon8.graph.protos import (
    LARGE,
    STANDARD,
    graphs_of,
    initializer,
    one_line,
    pin_batch,
    values_of,
    with_defaults,
)

KEPT = frozenset({
    *("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform"),
    *("RandomUniformLike", "DequantizeLinear", "QuantizeLinear"),
})  # fmt: skip
"""Operators that are not folded: random ones, and those that say what is quantized."""

LINEAR = frozenset({
    *("Abs", "Add", "And", "Cast", "CastLike", "Ceil", "Clip", "Concat"),
    *("ConstantOfShape", "Cos", "CumSum", "Div", "Dropout", "Equal", "Erf", "Exp"),
    *("Expand", "Flatten", "IsNaN", "Sin"),
    *("Floor", "Gather", "GatherElements", "GatherND", "Greater", "GreaterOrEqual"),
    *("Identity", "Less", "LessOrEqual", "Log", "Max", "Min", "Mod", "Mul", "Neg"),
    *("Not", "Or", "Pad", "Pow", "Range", "Reciprocal", "ReduceMax", "ReduceMean"),
    *("ReduceMin", "ReduceProd", "ReduceSum", "Relu", "Reshape", "Round", "Shape"),
    *("Sigmoid", "Sign", "Size", "Slice", "Split", "Sqrt", "Squeeze", "Sub", "Sum"),
    *("Tanh", "Tile", "Transpose", "Trilu", "Unsqueeze", "Where", "Xor"),
})  # fmt: skip
"""Operators whose work is that of reading and writing."""

WORK = 1 << 26
"""Multiplications of any other operator on constants; more are left to the run."""

MAX_LIST = 1 << 20
"""Elements of a list of integers: to onnx it may be a shape with as many dimensions."""

MAX_ELEMENTS = 2**31 - 1
"""Elements of a tensor: libneon8 refuses one of as many bytes."""

SPARE_BYTES = 1 << 26
PASSES = 16
"""Folding may read and write SPARE_BYTES, and PASSES times the bytes of the file's own
constants: more than any exporter's chain of nodes needs."""

INTEGERS = (onnx.TensorProto.INT32, onnx.TensorProto.INT64)


@dataclass(slots=True, kw_only=True)
class Inference:
    """What is known of the network's tensors; grows with each node.

    constants: name -> value.  types: name -> type of every tensor, as far as onnx can
    tell, or the file.  declared: what the file says of tensors inside the network,
    which is believed only where nothing else tells.  faults: output of a node -> what
    onnx finds wrong with the node.  budget: bytes that constant nodes may still read
    and write.  run: the nodes, those of branches that are taken in place of their If.
    kept: those of them that are no constants.
    """

    path: Path
    opsets: list[onnx.OperatorSetIdProto]
    constants: dict[str, Array]
    budget: int
    declared: dict[str, onnx.TypeProto]
    types: dict[str, onnx.TypeProto] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)
    run: list[onnx.NodeProto] = field(default_factory=list)
    kept: list[onnx.NodeProto] = field(default_factory=list)

    def dtype(self, name: str) -> str:
        """The type of the elements of a tensor, as numpy calls it; "" if unknown."""
        kind = self.types.get(name, onnx.TypeProto()).tensor_type.elem_type
        if kind == onnx.TensorProto.UNDEFINED:
            return ""
        if kind == onnx.TensorProto.STRING:
            return "str"
        return str(onnx.helper.tensor_dtype_to_np_dtype(kind).name)

    def shape(self, name: str) -> tuple[int, ...] | None:
        """The dimensions of a tensor, None unless all are known."""
        return _dims(self.types.get(name, onnx.TypeProto()))

    def blame(self, node: onnx.NodeProto, text: str) -> None:
        """Note what is wrong with a node."""
        self.faults.update({name: text for name in node.output if name})


LIKE_INPUT = ("GroupNormalization",)
"""Operators whose result is like their input, of which onnx infers no dimensions."""


def infer(path: Path, model: onnx.ModelProto, constants: dict[str, Array]) -> Inference:
    """What is known of each tensor and node.

    constants: the values of all initializers.  GraphError: a node contradicts its
    inputs, or computes more from constants than a network needs.
    """
    given = sum(value.nbytes for value in constants.values())
    known = Inference(
        path=path,
        opsets=list(model.opset_import),
        constants=dict(constants),
        budget=SPARE_BYTES + PASSES * given,
        declared={
            value.name: value.type
            for value in (*model.graph.output, *model.graph.value_info)
        },
    )
    for value in model.graph.input:
        known.types[value.name] = value.type
    for tensor in model.graph.initializer:
        known.types[tensor.name] = onnx.helper.make_tensor_type_proto(
            tensor.data_type, tensor.dims
        )
    names = {*known.types, *(n for each in model.graph.node for n in each.output)}
    outputs = {value.name for value in model.graph.output}
    waiting = deque(model.graph.node)
    while waiting:
        node = waiting.popleft()
        if _taken(known, node):
            condition = bool(known.constants[node.input[0]])
            inner = branch_of(node, condition=condition, taken=names)
            waiting.extendleft(reversed(inner))
            continue
        known.run.append(node)
        for name, kind in _types(known, node).items():
            _admit(known, node, name, kind)
        _find_empty(known, node, outputs)
        if _changes_nothing(known, node):
            ends = node.input[:1], node.output
            node = onnx.helper.make_node("Identity", *ends, node.name)
        if all(name in known.constants for name in filter(None, node.output)):
            continue
        feeds = _feeds(known, node)
        if feeds is None or not _evaluate(known, node, feeds):
            known.kept.append(node)
    for value in model.graph.output:
        declared = value.type.tensor_type.elem_type
        found = known.types.get(value.name, value.type).tensor_type.elem_type
        if declared not in (found, onnx.TensorProto.UNDEFINED):
            text = f"output {value.name!r} is not of the type that the file gives it"
            raise GraphError(f"{path}: {text}")
    return known


def _changes_nothing(known: Inference, node: onnx.NodeProto) -> bool:
    """True of a Resize to the same size, which onnxruntime copies whatever its scales.

    Not of one that crops.
    """
    if node.op_type != "Resize" or node.domain not in STANDARD:
        return False
    shape = known.shape(node.input[0])
    crops = any(item.s == b"tf_crop_and_resize" for item in node.attribute)
    return shape is not None and shape == known.shape(node.output[0]) and not crops


def take_branches(
    path: Path, model: bytes, weights: Mapping[str, Array]
) -> bytes | None:
    """The same network without branches whose condition is a constant, None if so.

    model, weights: as in OnnxFile.  Nested ones go, too.  GraphError, as infer().
    """
    found = onnx.ModelProto.FromString(model)
    if all(node.op_type != "If" for node in found.graph.node):
        return None
    pinned = onnx.ModelProto.FromString(model)
    pin_batch(pinned.graph)
    known = infer(path, pinned, {**values_of(path, pinned.graph), **weights})
    if len(known.run) == len(found.graph.node):
        return None
    del found.graph.node[:]
    found.graph.node.extend(known.run)
    return bytes(found.SerializeToString())


def _taken(known: Inference, node: onnx.NodeProto) -> bool:
    """True if the node is an If of which it is known which branch it runs."""
    condition = known.constants.get(node.input[0]) if node.input else None
    if node.op_type != "If" or node.domain not in STANDARD or condition is None:
        return False
    return condition.size == 1


def _types(known: Inference, node: onnx.NodeProto) -> dict[str, Any]:
    """The types of the node's outputs, as far as anything tells."""
    found = _inferred(known, node)
    for name in filter(known.declared.get, node.output):
        said, kind = known.declared[name], found.get(name)
        if kind is None or (
            kind.tensor_type.elem_type == said.tensor_type.elem_type
            and _dims(said) is not None
            and _dims(kind) is None
        ):
            found[name] = said
    return found


def _dims(kind: onnx.TypeProto) -> tuple[int, ...] | None:
    """The dimensions of a tensor, None unless all are known."""
    dims = kind.tensor_type.shape.dim
    has = kind.tensor_type.HasField("shape")
    if not has or not all(dim.HasField("dim_value") for dim in dims):
        return None
    return tuple(int(dim.dim_value) for dim in dims)


def _inferred(known: Inference, node: onnx.NodeProto) -> dict[str, Any]:
    """As far as onnx can tell."""
    inputs = {name: known.types.get(name) for name in node.input if name}
    hidden = any(graphs_of(node))
    foreign = node.domain not in STANDARD
    if hidden or foreign or None in inputs.values():
        return {}
    if node.op_type == "Constant":  # may be large, and _evaluate() knows its type
        return {}
    values = [
        initializer(name, known.constants[name])
        for name in inputs
        if name in known.constants and known.constants[name].nbytes <= LARGE
    ]
    graph = onnx.GraphProto(
        name="node",
        node=[with_defaults(node) if _is_function(node) else node],
        input=[onnx.ValueInfoProto(name=n, type=kind) for n, kind in inputs.items()],
        output=[onnx.ValueInfoProto(name=name) for name in node.output if name],
        initializer=values,
    )
    model = onnx.ModelProto(ir_version=8, graph=graph, opset_import=known.opsets)
    try:
        inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True)
    except Exception as error:  # noqa: BLE001 - InferenceError and whatever protobuf raises
        known.blame(node, f"its shapes do not fit: {one_line(error)}")
        return {}
    if node.op_type in LIKE_INPUT:
        return {node.output[0]: known.types[node.input[0]]}
    return {
        value.name: value.type
        for value in inferred.graph.output
        if value.type.WhichOneof("value") is not None
    }


def _is_function(node: onnx.NodeProto) -> bool:
    """True if onnx infers the shapes of an operator from those inside."""
    if not onnx.defs.has(node.op_type):
        return False
    schema: Any = onnx.defs.get_schema(node.op_type)
    return bool(schema.has_function)


def _admit(known: Inference, node: onnx.NodeProto, name: str, kind: Any) -> None:
    """The type of a tensor becomes known.  GraphError: its size is absurd."""
    tensor = kind.tensor_type
    shape = [dim.dim_value for dim in tensor.shape.dim]
    if tensor.elem_type in INTEGERS and len(shape) == 1 and shape[0] > MAX_LIST:
        raise _failure(known, node, f"makes a list of {shape[0]} integers")
    if (count := math.prod(shape)) > MAX_ELEMENTS:
        text = f"makes {count} values, {name!r} of shape {shape}; neon8 takes up to "
        text += f"{MAX_ELEMENTS} in a tensor: export the network for smaller ones"
        raise _failure(known, node, text)
    known.types[name] = kind


def _find_empty(known: Inference, node: onnx.NodeProto, outputs: set[str]) -> None:
    """A tensor without values is a constant, whatever it is computed from.

    Unless it is one of `outputs`, those of the network, which then is refused.
    """
    for name in set(filter(None, node.output)) - outputs:
        shape = known.shape(name)
        if shape is not None and 0 in shape and known.dtype(name) not in ("", "str"):
            known.constants[name] = np.zeros(shape, known.dtype(name))


def _feeds(known: Inference, node: onnx.NodeProto) -> dict[str, Array] | None:
    """The inputs with which a constant node is to be computed, None for another."""
    hidden = any(graphs_of(node))
    if node.domain not in STANDARD or node.op_type in KEPT or hidden:
        return None
    if node.op_type == "Constant":
        if any(item.name == "sparse_value" for item in node.attribute):
            text = "sparse weights are not supported; store it as a plain tensor"
            raise _failure(known, node, text)
        return {}
    if node.op_type in ("Shape", "Size"):
        source = known.shape(node.input[0])
        if source is not None:
            return {node.input[0]: np.broadcast_to(np.float32(0), source)}
    inputs = [item for item in node.input if item]
    like: dict[str, Array] = {}
    if node.op_type == "CastLike" and known.dtype(node.input[1]) not in ("", "str"):
        kind = known.types[node.input[1]].tensor_type.elem_type
        only_type = np.zeros((), onnx.helper.tensor_dtype_to_np_dtype(kind))
        like = {node.input[1]: only_type}
    values = ChainMap(like, known.constants)
    if not inputs or not all(node.output) or any(item not in values for item in inputs):
        return None
    feeds = {item: values[item] for item in inputs}
    sizes = [_size(known, name) for name in node.output if name]
    if None in sizes or known.faults.keys() & set(node.output):
        return None
    made = sum(filter(None, sizes))
    if node.op_type not in LINEAR and made * _taps(node, feeds) > WORK:
        return None
    known.budget -= made + sum(value.nbytes for value in feeds.values())
    if known.budget < 0:
        text = f"makes {made} bytes of constants, too many for this file"
        raise _failure(known, node, text)
    return feeds


def _size(known: Inference, name: str) -> int | None:
    """The bytes of a tensor; None if they are not known, or not numbers."""
    shape, kind = known.shape(name), known.dtype(name)
    if shape is None or kind in ("", "str"):
        return None
    elem = known.types[name].tensor_type.elem_type
    return math.prod(shape) * int(onnx.helper.tensor_dtype_to_np_dtype(elem).itemsize)


def _taps(node: onnx.NodeProto, feeds: dict[str, Array]) -> int:
    """At most so many elements go into one element of the output."""
    if node.op_type == "MatMul":
        return int(next(iter(feeds.values())).shape[-1])
    if node.op_type == "Conv":
        return math.prod(feeds[node.input[1]].shape[1:])
    return sum(value.size for value in feeds.values())


def _evaluate(known: Inference, node: onnx.NodeProto, feeds: dict[str, Array]) -> bool:
    """Compute a constant node.  False: it cannot be done."""
    # Loading it takes as long as all else here, and most files have nothing to fold.
    from onnx.reference import ReferenceEvaluator  # noqa: PLC0415

    opsets = {entry.domain: entry.version for entry in known.opsets}
    # Given a node alone, it takes the newest opset whatever it is told.
    graph = onnx.GraphProto(
        name="node",
        node=[node],
        input=[onnx.ValueInfoProto(name=name) for name in feeds],
        output=[onnx.ValueInfoProto(name=name) for name in node.output if name],
    )
    try:
        with np.errstate(all="ignore"):
            outputs: Any = (
                [_elements(node, *(feeds[name] for name in node.input))]
                if node.op_type == "GatherElements"
                else ReferenceEvaluator(graph, opsets=opsets).run(None, feeds)
            )
        results = [np.asarray(value, order="C") for value in outputs]
        kinds = [onnx.helper.np_dtype_to_tensor_dtype(r.dtype) for r in results]
    except MemoryError:  # is not the file's fault
        raise
    except Exception as error:  # noqa: BLE001 - the reference implementation raises all sorts
        known.blame(node, f"cannot be computed from its constants: {one_line(error)}")
        return False
    names = [name for name in node.output if name]
    for name, kind, result in zip(names, kinds, results, strict=True):
        known.types[name] = onnx.helper.make_tensor_type_proto(kind, result.shape)
        known.constants[name] = result
    return True


def _elements(node: onnx.NodeProto, data: Array, indices: Array) -> Array:
    """GatherElements, which the reference cannot where there are fewer indices."""
    axis = next((field.i for field in node.attribute if field.name == "axis"), 0)
    axis += data.ndim if axis < 0 else 0
    parts = [slice(length) for length in indices.shape]
    parts[axis] = slice(None)
    result: Array = np.take_along_axis(
        data[tuple(parts)], indices.astype(np.int64), axis
    )
    return result


def _failure(known: Inference, node: onnx.NodeProto, text: str) -> GraphError:
    name = node.name or next(filter(None, node.output), "")
    return GraphError(f"{known.path}: node {name!r} (operator {node.op_type}): {text}")
