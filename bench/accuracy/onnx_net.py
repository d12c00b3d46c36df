# SPDX-License-Identifier: Apache-2.0
"""Net: an ONNX file whose weights can be exchanged, and what reads a tensor."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper


@dataclass(slots=True)
class Net:
    """model: changed in place.  constants: initializers and Constant nodes, by name."""

    model: onnx.ModelProto
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    readers: dict[str, list[onnx.NodeProto]] = field(default_factory=dict)

    def __post_init__(self):
        graph = self.model.graph
        self.readers = defaultdict(list)
        for tensor in graph.initializer:
            self.constants[tensor.name] = numpy_helper.to_array(tensor)
        for node in graph.node:
            if node.op_type == "Constant":
                for one in node.attribute:
                    if one.name == "value":
                        self.constants[node.output[0]] = numpy_helper.to_array(one.t)
            for name in node.input:
                self.readers[name].append(node)

    @property
    def outputs(self) -> set[str]:
        return {value.name for value in self.model.graph.output}

    def constant(self, node: onnx.NodeProto, index: int) -> np.ndarray | None:
        """The constant that is this input; None: there is none, or it is computed."""
        if index >= len(node.input) or not node.input[index]:
            return None
        return self.constants.get(node.input[index])

    def replace(self, node: onnx.NodeProto, index: int, value: np.ndarray) -> None:
        """Another constant for this node alone, of the type of its weights."""
        name = f"{node.output[0]}.constant{index}"
        array = np.ascontiguousarray(value, self.constant(node, 1).dtype)
        listed = {value.name for value in self.model.graph.input}  # by old exporters
        for kind in (self.model.graph.initializer, self.model.graph.input):
            _drop(kind, lambda one: one.name == name)
        self.model.graph.initializer.append(numpy_helper.from_array(array, name))
        if index < len(node.input) and node.input[index] in listed:
            kind = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
            value_info = onnx.helper.make_tensor_value_info(name, kind, array.shape)
            self.model.graph.input.append(value_info)
        self.constants[name] = array
        node.input.extend([""] * (index + 1 - len(node.input)))
        node.input[index] = name

    def finished(self) -> onnx.ModelProto:
        """The model, without the constants that nothing reads any more."""
        graph = self.model.graph
        read = {name for node in graph.node for name in node.input} | self.outputs
        given = {tensor.name for tensor in graph.initializer} - read
        _drop(graph.input, lambda one: one.name in given)
        _drop(graph.initializer, lambda one: one.name not in read)
        return self.model


def _drop(repeated, unwanted: Callable[[Any], bool]) -> None:
    """Remove the entries of a repeated field; its remove() compares whole tensors."""
    for index in reversed(range(len(repeated))):
        if unwanted(repeated[index]):
            del repeated[index]


def attribute(node: onnx.NodeProto, name: str, default: object) -> object:
    for one in node.attribute:
        if one.name == name:
            return onnx.helper.get_attribute_value(one)
    return default


def groups(node: onnx.NodeProto) -> int:
    return attribute(node, "group", 1)
