# SPDX-License-Identifier: Apache-2.0
"""The constants of a quantized ONNX file: integers, what they stand for, and scales."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NoReturn

import numpy as np
import onnx
from onnx import helper, numpy_helper

from neon8.errors import GraphError
from neon8.graph.onnx_file import OnnxFile
from neon8.graph.protos import one_line, store
from neon8.graph.quantized.integers import Array, Levels, UnusableError, dequantized
from neon8.ir.names import claimed

MOVED_CONSTANTS = ("Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze")
CONSTANT_TYPES = {
    "value_float": np.float32,
    "value_floats": np.float32,
    "value_int": np.int64,
    "value_ints": np.int64,
}
EIGHT_BITS = (onnx.TensorProto.INT8, onnx.TensorProto.UINT8)


FLOAT = onnx.TensorProto.FLOAT
FLOAT16 = onnx.TensorProto.FLOAT16


class Constants:
    """What is known after the nodes so far; all by name.

    integers: what QuantizeLinear made of constants, or what was moved.  levels: those
    that DequantizeLinear made real numbers of.  tables: what a Gather takes from
    integers, whose scale is said where they are read.
    """

    def __init__(self, file: OnnxFile, graph: onnx.GraphProto) -> None:
        self.weights = file.weights
        self.protos = dict(_protos(graph))
        self.arrays: dict[str, Array] = {}
        self.integers: dict[str, Array] = {}
        self.levels: dict[str, Levels] = {}
        self.tables: dict[str, onnx.NodeProto] = {}

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
        if name in self.levels:
            return self.levels[name].values
        if name not in self.arrays and name in self.protos:
            try:
                self.arrays[name] = np.asarray(numpy_helper.to_array(self.protos[name]))
            except Exception as error:  # the checker does not look at everything
                raise UnusableError(
                    f"{name!r} cannot be read: {one_line(error)}"
                ) from error
        return self.arrays.get(name)

    def copied(self, node: onnx.NodeProto) -> bool:
        """True if the node copied a constant, cast one, or multiplied two.

        Exporters write a scale that several nodes have once, and copies of it.
        """
        if node.op_type == "Mul" and len(node.input) == 2:
            first, second = map(self.constant, node.input)
            if first is None or second is None or first.dtype != np.float32:
                return False
            try:
                with np.errstate(over="ignore", invalid="ignore"):
                    self.arrays[node.output[0]] = first * second
            except ValueError as error:  # numpy's
                raise UnusableError(one_line(error)) from error
            return True
        if node.op_type not in ("Identity", "Cast") or len(node.input) != 1:
            return False
        values = self.constant(node.input[0])
        if values is None:
            return False
        if node.op_type == "Cast":
            number = integer_of(node, "to", FLOAT)
            if number not in (FLOAT, FLOAT16):
                return False
            with np.errstate(over="ignore"):
                values = values.astype(helper.tensor_dtype_to_np_dtype(number))
        self.arrays[node.output[0]] = values
        return True

    def moved(self, node: onnx.NodeProto) -> bool:
        """True if the node moved a constant that is quantized."""
        if node.op_type not in MOVED_CONSTANTS or not node.input:
            return False
        name, output = node.input[0], node.output[0]
        if name in self.levels:
            self.levels[output] = self._moved(node, self.levels[name])
            return True
        if self._whole(name):
            values = self.array(name)
            one = np.ones((1,) * values.ndim, np.float32)
            self.integers[output] = self._moved(node, Levels(values, one)).levels
            return True
        return False

    def looked_up(self, node: onnx.NodeProto) -> bool:
        """True if the node takes rows of a constant that is quantized."""
        if node.op_type != "Gather" or not self._whole(node.input[0]):
            return False
        self.tables[node.output[0]] = node
        return True

    def table(self, name: str, scale: Array, point: Array | None) -> Levels:
        """The constant whose rows are `name`.  UnusableError: not one scale."""
        if scale.size != 1 or (point is not None and point.size != 1):
            raise UnusableError(f"has {scale.size} scales; rows of a table have one")
        point = None if point is None else point.reshape(())
        values = self.array(self.tables[name].input[0])
        return dequantized(values, scale.reshape(()), point, axis=0)

    def _whole(self, name: str) -> bool:
        """True of a constant of integers."""
        stored = name in self.protos and self.protos[name].data_type in EIGHT_BITS
        return stored or name in self.integers

    def _moved(self, node: onnx.NodeProto, constant: Levels) -> Levels:
        """What a node in MOVED_CONSTANTS makes of a constant."""
        shape = constant.levels.shape
        given = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        numbers = self.optional(input_of(node, 1))
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


class Rewriting(ABC):
    """A network while its nodes are taken, one by one, to make another of them.

    known: its constants.  nodes: those of the other one.  taken: names in use.
    """

    said = ""
    """What a refusal begins with."""

    def __init__(self, file: OnnxFile, graph: onnx.GraphProto) -> None:
        self.path = file.path
        self.known = Constants(file, graph)
        self.nodes: list[onnx.NodeProto] = []
        self.taken = {value.name for value in (*graph.input, *graph.initializer)}
        self.taken.update(name for node in graph.node for name in node.output)

    def refuse(self, node: onnx.NodeProto, text: str) -> NoReturn:
        """GraphError that names file and node."""
        name = node.name or next(filter(None, node.output), "")
        where = f"{self.path}: node {name!r} (operator {node.op_type})"
        raise GraphError(f"{where}: {self.said}{text}")

    def take(self, node: onnx.NodeProto) -> None:
        """One node.  GraphError."""
        try:
            self.take_one(node)
        except UnusableError as error:
            self.refuse(node, str(error))

    @abstractmethod
    def take_one(self, node: onnx.NodeProto) -> None:
        """One node.  UnusableError."""

    def fresh(self, name: str) -> str:
        """`name`, lengthened until nothing has it."""
        return claimed(name, self.taken)

    def finished(
        self, file: OnnxFile, model: onnx.ModelProto, constants: Mapping[str, Array]
    ) -> OnnxFile:
        """The file of the nodes that were made, with these constants more."""
        model.graph.ClearField("node")
        model.graph.node.extend(self.nodes)
        weights = dict(file.weights)
        store(model.graph, constants, weights)
        return replace(file, model=model.SerializeToString(), weights=weights)


def _protos(graph: onnx.GraphProto) -> Iterator[tuple[str, onnx.TensorProto]]:
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


def input_of(node: onnx.NodeProto, index: int) -> str:
    """The name of an input, "" for one that is left out."""
    return node.input[index] if index < len(node.input) else ""


def integer_of(node: onnx.NodeProto, name: str, default: int) -> int:
    """An attribute."""
    return next((int(a.i) for a in node.attribute if a.name == name), default)
