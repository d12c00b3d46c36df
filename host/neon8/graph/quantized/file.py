# SPDX-License-Identifier: Apache-2.0
"""A quantized ONNX file taken apart, node by node in order of execution.

    x -> QuantizeLinear -> q -> MaxPool -> p -> DequantizeLinear -> y
becomes
    x -> Identity -> q -> MaxPool -> p -> Identity -> y          q, p, y are float32

with a note that q is rounded to this scale and zero point. What moves integers moves
real numbers just as well, so the network that is left computes the same, but for the
rounding.
"""

from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper

from neon8.errors import GraphError
from neon8.graph.onnx_file import OnnxFile
from neon8.graph.protos import STANDARD
from neon8.graph.quantized import integers, qlinear
from neon8.graph.quantized.constants import (
    FLOAT,
    FLOAT16,
    Rewriting,
    input_of,
    integer_of,
)
from neon8.graph.quantized.integers import OFFSETS, Array, Levels, UnusableError
from neon8.ir.graph import Quantization

DOMAINS = (*STANDARD, "com.microsoft")
PAIRS = ("QuantizeLinear", "DequantizeLinear")
MOVES = (
    *("Concat", "DepthToSpace", "Expand", "Flatten", "Gather", "Identity", "MaxPool"),
    *("Reshape", "Slice", "SpaceToDepth", "Split", "Squeeze", "Transpose", "Unsqueeze"),
)
"""What gives back integers that it was given."""


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
            value.type.tensor_type.elem_type = apart.real_type(value.name)
        elif value.name in apart.known.integers:
            text = f"{file.path}: output {value.name!r} is a constant"
            raise GraphError(text)
    levels = {name: each.values for name, each in apart.known.levels.items()}
    return QuantizedFile(
        file=apart.finished(file, model, apart.bounds | levels),
        rounded=apart.rounded,
        made_up=frozenset(apart.made_up),
        constants=apart.known.levels,
    )


class _Apart(Rewriting):
    """What is known after the nodes so far; all by name.

    kinds: each int8 or uint8 tensor to its type and quantization.  halves: those whose
    real values are float16.  bounds: constants of Clip nodes.
    """

    def __init__(self, file: OnnxFile, graph: onnx.GraphProto) -> None:
        super().__init__(file, graph)
        self.graph = graph
        self.kinds: dict[str, tuple[str, Quantization]] = {}
        self.halves: set[str] = set()
        self.rounded: dict[str, Quantization] = {}
        self.bounds: dict[str, Array] = {}
        self.made_up: set[str] = set()

    def inputs(self) -> None:
        """Inputs of 8 bits take real numbers instead, which are rounded to theirs."""
        whole = {}
        for value in self.graph.input:
            number = value.type.tensor_type.elem_type
            kind = onnx.TensorProto.DataType.Name(number).lower() if number else ""
            if value.name not in self.known.protos and kind in integers.OFFSETS:
                whole[value.name] = value, kind
        origins = {name: name for name in whole}
        for node in self.graph.node:
            origin = origins.get(next(iter(node.input), ""))
            if origin is not None and node.op_type in MOVES:
                origins.update(dict.fromkeys(node.output, origin))
            for at, scale, point in qlinear.operands(node):
                found = whole.pop(origins.get(input_of(node, at), ""), None)
                if found is None:
                    continue
                value, kind = found
                try:
                    scales = self.known.array(input_of(node, scale))
                    points = self.known.optional(input_of(node, point))
                    given = integers.quantization(scales, points, kind)
                except UnusableError as error:
                    self.refuse(node, str(error))
                self.note_half(value.name, scales)
                value.type.tensor_type.elem_type = self.real_type(value.name)
                self.kinds[value.name] = kind, given
                self.rounded[value.name] = given
        for name, (_, kind) in whole.items():
            text = f"input {name!r} is {kind}, and no node says its scale"
            raise GraphError(f"{self.path}: {text}")

    def take_one(self, node: onnx.NodeProto) -> None:
        """One node.  UnusableError."""
        own = node.domain in DOMAINS
        if own and node.op_type == "QuantizeLinear":
            self.quantize(node)
        elif own and node.op_type == "DequantizeLinear":
            self.dequantize(node)
        elif own and node.op_type in qlinear.ROWS:
            self.operator(node)
        elif own and self.known.moved(node):
            pass
        elif own and (self.known.looked_up(node) or self.known.copied(node)):
            self.nodes.append(node)
        elif own and node.op_type in MOVES and node.input[0] in self.kinds:
            self.move(node)
        elif own and node.op_type == "Clip" and node.input[0] in self.kinds:
            self.clip(node)
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
        scale, point = (
            self.known.array(node.input[1]),
            self.known.optional(input_of(node, 2)),
        )
        if point is None:
            number = integer_of(node, "output_dtype", 0) or onnx.TensorProto.UINT8
            dtype = helper.tensor_dtype_to_np_dtype(number)
            point = np.zeros(scale.shape, dtype)
        values = self.known.constant(node.input[0])
        if values is not None:
            axis, block = integer_of(node, "axis", 1), integer_of(node, "block_size", 0)
            self.known.integers[node.output[0]] = integers.quantized(
                values, scale, point, axis=axis, block=block
            )
            return
        kind = str(point.dtype)
        given = integers.quantization(scale, point, kind)
        self.note_half(node.output[0], scale)
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
        scale, point = (
            self.known.array(node.input[1]),
            self.known.optional(input_of(node, 2)),
        )
        values = self.known.constant(node.input[0])
        if values is not None:
            axis, block = integer_of(node, "axis", 1), integer_of(node, "block_size", 0)
            self.known.levels[node.output[0]] = integers.dequantized(
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
        if name in self.known.tables and name not in self.kinds:
            self.look_up(name, scale, point)
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

    def look_up(self, name: str, scale: Array, point: Array | None) -> None:
        """`name`, the rows of a table, on the grid that its first reader says."""
        gather = self.known.tables[name]
        kind = str(self.known.array(gather.input[0]).dtype)
        given = integers.quantization(scale, point, kind)
        table, real = self.fresh(f"{gather.input[0]}_real"), self.fresh(f"{name}_real")
        self.known.levels[table] = self.known.table(name, scale, point)
        self.note_half(name, scale)
        self.nodes = [node for node in self.nodes if node is not gather]
        made = onnx.NodeProto()
        made.CopyFrom(gather)
        made.input[0], made.output[0] = table, real
        self.nodes.append(made)
        self.round(real, name, kind, given, "")

    def move(self, node: onnx.NodeProto) -> None:
        """A node that gives back integers that it was given."""
        several = node.input if node.op_type == "Concat" else node.input[:1]
        found = {self.kinds.get(name) for name in several}
        made = found.pop()
        if found or made is None:
            raise UnusableError("joins integers of different scales")
        for output in filter(None, node.output[: _integers_of(node)]):
            self.kinds[output] = made
            if node.input[0] in self.halves:
                self.halves.add(output)
        self.nodes.append(node)

    def clip(self, node: onnx.NodeProto) -> None:
        """Integers between two of them: real values between what these stand for."""
        kind, given = self.kinds[node.input[0]]
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        for at in range(1, len(node.input)):
            bound = self.known.optional(node.input[at])
            if bound is None:
                continue
            if bound.size != 1:
                raise UnusableError("has several bounds")
            level = int(bound.reshape(-1)[0]) - OFFSETS[kind] - given.zero_point
            real = np.float32(level * given.scale)
            name = self.fresh(f"{node.input[at]}_real")
            half = node.input[0] in self.halves
            self.bounds[name] = np.array(real, np.float16 if half else np.float32)
            copy.input[at] = name
        self.nodes.append(copy)
        self.kinds[node.output[0]] = kind, given
        if node.input[0] in self.halves:
            self.halves.add(node.output[0])

    def note_half(self, name: str, scale: Array) -> None:
        """`name` stands for float16 values if its scale is one."""
        if scale.dtype == np.float16:
            self.halves.add(name)

    def real_type(self, name: str) -> int:
        """The ONNX type of the real values that integers `name` stand for."""
        return FLOAT16 if name in self.halves else FLOAT

    def operator(self, node: onnx.NodeProto) -> None:
        """QLinearConv and its likes: DequantizeLinear, the operator, QuantizeLinear."""
        row = qlinear.ROWS[node.op_type]
        if integer_of(node, "channels_last", 0):
            raise UnusableError("channels_last is not supported")
        inputs: list[str] = []
        scales: list[Array] = []
        kind = "uint8"
        for at, scale_at, point_at in qlinear.operands(node):
            scale = self.known.array(input_of(node, scale_at))
            point = self.known.optional(input_of(node, point_at))
            scales.append(scale)
            if self.known.constant(input_of(node, at)) is None:
                kind, _ = self.check(input_of(node, at), scale, point)
                inputs.append(node.input[at])
            else:
                inputs.append(self.real(node.input[at], scale, point, row.axis(node)))
        if row.bias is not None and input_of(node, row.bias):
            scale = integers.scale_values(scales[0]).reshape(-1)[:1]
            scale = scale * integers.scale_values(scales[1]).reshape(-1)
            inputs.append(self.real(node.input[row.bias], scale, None, -1))
        output, (scale_at, point_at) = node.output[0], row.output
        attributes = [a for a in node.attribute if a.name in row.attributes]
        rounds = bool(input_of(node, scale_at))
        real = self.fresh(f"{output}_real") if rounds else output
        made = helper.make_node(row.float, inputs, [real], node.name)
        made.attribute.extend(attributes)
        self.nodes.append(made)
        if rounds:
            point = self.known.optional(input_of(node, point_at))
            kind = kind if point is None else str(point.dtype)
            given = integers.quantization(
                self.known.array(node.input[scale_at]), point, kind
            )
            self.round(real, output, kind, given, "")

    def real(self, name: str, scale: Array, point: Array | None, axis: int) -> str:
        """The name of constant `name` in real numbers."""
        values = self.known.array(name)
        shape = (scale.size,) if scale.size > 1 else ()
        point = None if point is None else point.reshape(shape)
        made = self.fresh(f"{name}_real")
        self.known.levels[made] = integers.dequantized(
            values, scale.reshape(shape), point, axis=axis
        )
        return made

    def fresh(self, name: str) -> str:
        """`name`, lengthened until nothing has it."""
        made = super().fresh(name)
        self.made_up.add(made)
        return made


def _integers_of(node: onnx.NodeProto) -> int:
    """How many outputs of a node in MOVES are integers that it was given."""
    return 1 if node.op_type == "MaxPool" else len(node.output)
