# SPDX-License-Identifier: Apache-2.0
"""Writes a float ONNX network, node by node."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 13
IR_VERSION = 8


class Writer:
    """Collects nodes and constants."""

    def __init__(self) -> None:
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []

    def constant(self, name: str, value: npt.NDArray[Any] | np.float32) -> str:
        """Add an initializer of float32; its name."""
        array = np.ascontiguousarray(value, np.float32).reshape(np.shape(value))
        self._constants.append(numpy_helper.from_array(array, name))
        return name

    def node(
        self, operator: str, name: str, inputs: Sequence[str], **attributes: Any
    ) -> str:
        """Add a node that is called like its output; this name."""
        node = helper.make_node(operator, list(inputs), [name], name, **attributes)
        self._nodes.append(node)
        return name

    def model(
        self,
        inputs: Mapping[str, Sequence[int | str]],
        outputs: Mapping[str, Sequence[int | str]],
    ) -> bytes:
        """The file.  inputs, outputs: name -> shape."""

        def infos(tensors: Mapping[str, Sequence[int | str]]) -> list[Any]:
            return [
                helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape))
                for name, shape in tensors.items()
            ]

        graph = helper.make_graph(
            self._nodes, "qat", infos(inputs), infos(outputs), self._constants
        )
        model = helper.make_model(
            graph,
            producer_name="neon8",
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
        )
        onnx.checker.check_model(model)
        data: bytes = model.SerializeToString()
        return data
