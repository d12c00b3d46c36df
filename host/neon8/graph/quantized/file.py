# SPDX-License-Identifier: Apache-2.0
"""A quantized ONNX file taken apart, node by node in order of execution.

    x -> QuantizeLinear -> q -> MaxPool -> p -> DequantizeLinear -> y
becomes
    x -> Identity -> q -> MaxPool -> p -> Identity -> y          q, p, y are float32

with a note that q is rounded to this scale and zero point. What moves integers moves
real numbers just as well, so the network that is left computes the same, but for the
rounding.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NoReturn

import numpy as np
import onnx
from onnx import helper, numpy_helper

from neon8.errors import GraphError
from neon8.graph.graph import Quantization
from neon8.graph.onnx_file import LARGE, OnnxFile, initializer, one_line
from neon8.graph.quantized import integers, qlinear
from neon8.graph.quantized.integers import Array, Levels, UnusableError

DOMAINS = ("", "ai.onnx", "com.microsoft")
PAIRS = ("QuantizeLinear", "DequantizeLinear")
MOVES = (
    *("Concat", "DepthToSpace", "Expand", "Flatten", "Gather", "Identity", "MaxPool"),
    *("Reshape", "Slice", "SpaceToDepth", "Split", "Squeeze", "Transpose", "Unsqueeze"),
)
"""What gives back integers that it was given."""
MOVED_CONSTANTS = ("Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze")
CONSTANT_TYPES = {
    "value_float": np.float32,
    "value_floats": np.float32,
    "value_int": np.int64,
    "value_ints": np.int64,
}
EIGHT_BITS = (onnx.TensorProto.INT8, onnx.TensorProto.UINT8)

FLOAT = onnx.TensorProto.FLOAT


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantizedFile:
    """file: the float network.  rounded: tensor -> how it is quantized.

    Each of these is an input of the network or what an Identity gives.  made_up: the
    tensors whose names are not in the original file.  constants: name -> the integers
    of an initializer of `file`.
    """

    file: OnnxFile
    rounded: dict[str, Quantization]
    made_up: frozenset[str]
    constants: dict[str, Levels]


def is_quantized(file: OnnxFile) -> bool:
    """True if a node of the file quantizes, or computes on integers."""
    known = (*PAIRS, *qlinear.ROWS)
    graph = onnx.ModelProto.FromString(file.model).graph
    return any(n.op_type in known and n.domain in DOMAINS for n in graph.node)


def take_apart(file: OnnxFile) -> QuantizedFile:
    """The float network in a quantized file.

    GraphError: scales that are computed at run time, that neon8 cannot hold, or that
    two nodes give differently; a node that computes on integers in a way of its own.
    """
    model = onnx.ModelProto.FromString(file.model)
    apart = _Apart(file, model.graph)
    apart.inputs()
    for node in model.graph.node:
        apart.take(node)
    for value in model.graph.output:
        if value.name in apart.kinds:
            value.type.tensor_type.elem_type = FLOAT
        elif value.name in apart.integers:
            text = f"{file.path}: output {value.name!r} is a constant"
            raise GraphError(text)
    del model.graph.node[:]
    model.graph.node.extend(apart.nodes)
    weights = dict(file.weights)
    for name, levels in apart.constants.items():
        values = levels.values
        model.graph.initializer.append(initializer(name, values))
        if values.nbytes >= LARGE:
            weights[name] = values
    return QuantizedFile(
        file=replace(file, model=model.SerializeToString(), weights=weights),
        rounded=apart.rounded,
        made_up=frozenset(apart.made_up),
        constants=apart.constants,
    )


class _Apart:
    """What is known after the nodes so far; all by name.

    integers: constants that QuantizeLinear made, or that were moved.  kinds: each int8
    or uint8 tensor to its type and quantization.  nodes: those of the float network.
    """

    def __init__(self, file: OnnxFile, graph: onnx.GraphProto) -> None:
        self.path = file.path
        self.graph = graph
        self.weights = file.weights
        self.protos = dict(_constant_protos(graph))
        self.arrays: dict[str, Array] = {}
        self.integers: dict[str, Array] = {}
        self.kinds: dict[str, tuple[str, Quantization]] = {}
        self.rounded: dict[str, Quantization] = {}
        self.constants: dict[str, Levels] = {}
        self.made_up: set[str] = set()
        self.nodes: list[onnx.NodeProto] = []
        self.taken = {value.name for value in (*graph.input, *graph.initializer)}
        self.taken.update(name for node in graph.node for name in node.output)

    def refuse(self, node: onnx.NodeProto, text: str) -> NoReturn:
        """GraphError that names file and node."""
        name = node.name or next(filter(None, node.output), "")
        kind = f"operator {node.op_type}"
        raise GraphError(f"{self.path}: node {name!r} ({kind}): {text}")

    def inputs(self) -> None:
        """Inputs of 8 bits take real numbers instead, which are rounded to theirs."""
        whole = {}
        for value in self.graph.input:
            number = value.type.tensor_type.elem_type
            kind = onnx.TensorProto.DataType.Name(number).lower() if number else ""
            if value.name not in self.protos and kind in integers.OFFSETS:
                whole[value.name] = value, kind
        origins = {name: name for name in whole}
        for node in self.graph.node:
            origin = origins.get(next(iter(node.input), ""))
            if origin is not None and node.op_type in MOVES:
                origins.update(dict.fromkeys(node.output, origin))
            for at, scale, point in qlinear.operands(node):
                found = whole.pop(origins.get(_input(node, at), ""), None)
                if found is None:
                    continue
                value, kind = found
                try:
                    given = integers.quantization(
                        self.array(_input(node, scale)),
                        self.optional(_input(node, point)),
                        kind,
                    )
                except UnusableError as error:
                    self.refuse(node, str(error))
                value.type.tensor_type.elem_type = FLOAT
                self.kinds[value.name] = kind, given
                self.rounded[value.name] = given
        for name, (_, kind) in whole.items():
            text = f"input {name!r} is {kind}, and no node says its scale"
            raise GraphError(f"{self.path}: {text}")

    def take(self, node: onnx.NodeProto) -> None:
        """One node.  GraphError."""
        try:
            self.take_one(node)
        except UnusableError as error:
            self.refuse(node, str(error))

    def take_one(self, node: onnx.NodeProto) -> None:
        """One node.  UnusableError."""
        own = node.domain in DOMAINS
        if own and node.op_type == "QuantizeLinear":
            self.quantize(node)
        elif own and node.op_type == "DequantizeLinear":
            self.dequantize(node)
        elif own and node.op_type in qlinear.ROWS:
            self.operator(node)
        elif own and self.moved_constant(node):
            pass
        elif own and node.op_type in MOVES and node.input[0] in self.kinds:
            self.move(node)
        else:
            for name in node.input:
                if name in self.kinds:
                    text = f"computes on the integers of {name!r} in a way that neon8"
                    raise UnusableError(
                        f"{text} cannot; export it with DequantizeLinear"
                    )
            self.nodes.append(node)

    def quantize(self, node: onnx.NodeProto) -> None:
        """QuantizeLinear of a constant, or of an activation."""
        scale, point = self.array(node.input[1]), self.optional(_input(node, 2))
        if point is None:
            number = _integer(node, "output_dtype", 0) or onnx.TensorProto.UINT8
            dtype = helper.tensor_dtype_to_np_dtype(number)
            point = np.zeros(scale.shape, dtype)
        values = self.constant(node.input[0])
        if values is not None:
            axis, block = _integer(node, "axis", 1), _integer(node, "block_size", 0)
            self.integers[node.output[0]] = integers.quantized(
                values, scale, point, axis=axis, block=block
            )
            return
        kind = str(point.dtype)
        given = integers.quantization(scale, point, kind)
        self.round(node.input[0], node.output[0], kind, given, node.name)

    def round(
        self, source: str, output: str, kind: str, given: Quantization, name: str
    ) -> None:
        """`source` rounded to the integers of `output`."""
        self.kinds[output] = kind, given
        self.rounded[output] = given
        self.nodes.append(helper.make_node("Identity", [source], [output], name))

    def dequantize(self, node: onnx.NodeProto) -> None:
        """DequantizeLinear of a constant, or of an activation."""
        scale, point = self.array(node.input[1]), self.optional(_input(node, 2))
        values = self.constant(node.input[0])
        if values is not None:
            axis, block = _integer(node, "axis", 1), _integer(node, "block_size", 0)
            self.constants[node.output[0]] = integers.dequantized(
                values, scale, point, axis=axis, block=block
            )
            return
        self.check(node.input[0], scale, point)
        output = node.output[0]
        self.nodes.append(helper.make_node("Identity", node.input[:1], [output]))

    def check(
        self, name: str, scale: Array, point: Array | None
    ) -> tuple[str, Quantization]:
        """Type and quantization of `name`, which a node reads with these."""
        if name not in self.kinds:
            raise UnusableError(f"{name!r} are not integers that a node before it made")
        kind, given = self.kinds[name]
        said = integers.quantization(scale, point, kind)
        if said != given:
            raise UnusableError(
                f"{name!r} was made with scale {given.scale:.9g} and zero point "
                f"{given.zero_point + integers.OFFSETS[kind]}, and is read with "
                f"{said.scale:.9g} and {said.zero_point + integers.OFFSETS[kind]}; "
                "make them equal, or quantize again"
            )
        return kind, given

    def move(self, node: onnx.NodeProto) -> None:
        """A node that gives back integers that it was given."""
        several = node.input if node.op_type == "Concat" else node.input[:1]
        found = {self.kinds.get(name) for name in several}
        made = found.pop()
        if found or made is None:
            raise UnusableError("joins integers of different scales")
        for output in filter(None, node.output[: _integers_of(node)]):
            self.kinds[output] = made
        self.nodes.append(node)

    def moved_constant(self, node: onnx.NodeProto) -> bool:
        """True if the node moved a constant that is quantized."""
        if node.op_type not in MOVED_CONSTANTS or not node.input:
            return False
        name, output = node.input[0], node.output[0]
        if name in self.constants:
            self.constants[output] = self.moved(node, self.constants[name])
            return True
        stored = name in self.protos and self.protos[name].data_type in EIGHT_BITS
        if stored or name in self.integers:
            values = self.array(name)
            one = np.ones((1,) * values.ndim, np.float32)
            self.integers[output] = self.moved(node, Levels(values, one)).levels
            return True
        return False

    def moved(self, node: onnx.NodeProto, constant: Levels) -> Levels:
        """What a node in MOVED_CONSTANTS makes of a constant."""
        shape = constant.levels.shape
        given = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        numbers = self.optional(_input(node, 1))
        name = "shape" if node.op_type == "Reshape" else "axes"
        wanted = given.get(name) if numbers is None else numbers.reshape(-1)
        sizes = None if wanted is None else tuple(int(n) for n in wanted)
        try:
            match node.op_type, sizes:
                case "Identity", _:
                    return constant
                case "Transpose", _:
                    order = given.get("perm", range(len(shape))[::-1])
                    return constant.transposed(tuple(order))
                case "Reshape", tuple():
                    same = not given.get("allowzero", 0)
                    return constant.reshaped(
                        tuple(
                            shape[at] if same and size == 0 else size
                            for at, size in enumerate(sizes)
                        )
                    )
                case "Squeeze", _:
                    return constant.reshaped(constant.levels.squeeze(sizes).shape)
                case "Unsqueeze", tuple():
                    longer = np.expand_dims(constant.levels, sizes)
                    return constant.reshaped(longer.shape)
        except (ValueError, IndexError) as error:  # numpy's
            text = f"cannot move {list(shape)} so: {one_line(error)}"
            raise UnusableError(text) from error
        raise UnusableError(f"it does not say the {name}")

    def operator(self, node: onnx.NodeProto) -> None:
        """QLinearConv and its likes: DequantizeLinear, the operator, QuantizeLinear."""
        row = qlinear.ROWS[node.op_type]
        if _integer(node, "channels_last", 0):
            raise UnusableError("channels_last is not supported")
        inputs: list[str] = []
        scales: list[Array] = []
        kind = "uint8"
        for at, scale_at, point_at in qlinear.operands(node):
            scale = self.array(_input(node, scale_at))
            point = self.optional(_input(node, point_at))
            scales.append(scale)
            if self.constant(_input(node, at)) is None:
                kind, _ = self.check(_input(node, at), scale, point)
                inputs.append(node.input[at])
            else:
                inputs.append(self.real(node.input[at], scale, point, row.axis(node)))
        if row.bias is not None and _input(node, row.bias):
            scale = integers.scale_values(scales[0]).reshape(-1)[:1]
            scale = scale * integers.scale_values(scales[1]).reshape(-1)
            inputs.append(self.real(node.input[row.bias], scale, None, -1))
        output, (scale_at, point_at) = node.output[0], row.output
        attributes = [a for a in node.attribute if a.name in row.attributes]
        rounds = bool(_input(node, scale_at))
        real = self.fresh(f"{output}_real") if rounds else output
        made = helper.make_node(row.float, inputs, [real], node.name)
        made.attribute.extend(attributes)
        self.nodes.append(made)
        if rounds:
            point = self.optional(_input(node, point_at))
            kind = kind if point is None else str(point.dtype)
            given = integers.quantization(self.array(node.input[scale_at]), point, kind)
            self.round(real, output, kind, given, "")

    def real(self, name: str, scale: Array, point: Array | None, axis: int) -> str:
        """The name of constant `name` in real numbers."""
        values = self.array(name)
        shape = (scale.size,) if scale.size > 1 else ()
        point = None if point is None else point.reshape(shape)
        made = self.fresh(f"{name}_real")
        self.constants[made] = integers.dequantized(
            values, scale.reshape(shape), point, axis=axis
        )
        return made

    def fresh(self, name: str) -> str:
        """`name`, lengthened until nothing has it."""
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        self.made_up.add(name)
        return name

    def array(self, name: str) -> Array:
        """A constant.  UnusableError: it is none."""
        value = self.constant(name)
        if value is None:
            raise UnusableError(
                f"{name!r} is computed at run time; it must be a constant"
            )
        return value

    def optional(self, name: str) -> Array | None:
        """As array(); None for one that is left out."""
        return self.array(name) if name else None

    def constant(self, name: str) -> Array | None:
        """The values of an initializer or a constant node, None of all else."""
        if name in self.weights:
            values: Array = self.weights[name]
            return values
        if name in self.integers:
            return self.integers[name]
        if name in self.constants:
            return self.constants[name].values
        if name not in self.arrays and name in self.protos:
            try:
                self.arrays[name] = np.asarray(numpy_helper.to_array(self.protos[name]))
            except Exception as error:  # the checker does not look at everything
                raise UnusableError(
                    f"{name!r} cannot be read: {one_line(error)}"
                ) from error
        return self.arrays.get(name)


def _constant_protos(graph: onnx.GraphProto) -> Iterator[tuple[str, onnx.TensorProto]]:
    """Initializers and constant nodes, by name."""
    for item in graph.initializer:
        yield item.name, item
    for node in graph.node:
        if node.op_type == "Constant" and len(node.attribute) == 1:
            value = helper.get_attribute_value(node.attribute[0])
            if isinstance(value, onnx.TensorProto):
                yield node.output[0], value
            elif node.attribute[0].name in CONSTANT_TYPES:
                kind = CONSTANT_TYPES[node.attribute[0].name]
                yield node.output[0], numpy_helper.from_array(np.array(value, kind))


def _integers_of(node: onnx.NodeProto) -> int:
    """How many outputs of a node in MOVES are integers that it was given."""
    return 1 if node.op_type == "MaxPool" else len(node.output)


def _input(node: onnx.NodeProto, index: int) -> str:
    """The name of an input, "" for one that is left out."""
    return node.input[index] if index < len(node.input) else ""


def _integer(node: onnx.NodeProto, name: str, default: int) -> int:
    return next((int(a.i) for a in node.attribute if a.name == name), default)
