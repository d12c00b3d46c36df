# SPDX-License-Identifier: Apache-2.0
"""A residual network of 20 convolutions and a Gemm with random weights, as ONNX.

Run as a program, it writes the network to the path it is given: that takes more memory
than a short calibration and must not count as the calibration's.
"""

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SHAPE = (1, 3, 224, 224)
WIDTHS = (64, 128, 256, 512)


class Builder:
    """Nodes and weights so far."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(20)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def weight(self, name: str, *shape: int) -> str:
        spread = np.sqrt(2 / np.prod(shape[1:])) if len(shape) > 1 else 0.1
        array = (self.rng.standard_normal(shape) * spread).astype(np.float32)
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def node(self, operator: str, inputs: list[str], output: str, **options) -> str:
        made = helper.make_node(operator, inputs, [output], f"{output}_node", **options)
        self.nodes.append(made)
        return output

    def conv(self, x: str, name: str, sizes: tuple[int, int], kernel: int, stride: int):
        inputs, outputs = sizes
        weight = self.weight(f"{name}_w", outputs, inputs, kernel, kernel)
        bias = self.weight(f"{name}_b", outputs)
        return self.node(
            "Conv",
            [x, weight, bias],
            name,
            kernel_shape=[kernel] * 2,
            strides=[stride] * 2,
            pads=[kernel // 2] * 4,
        )

    def block(self, x: str, name: str, sizes: tuple[int, int], stride: int) -> str:
        """Two convolutions and a way around them, a third one if the shape changes."""
        y = self.conv(x, f"{name}_first", sizes, 3, stride)
        y = self.node("Relu", [y], f"{name}_middle")
        y = self.conv(y, f"{name}_second", (sizes[1], sizes[1]), 3, 1)
        if stride != 1:
            x = self.conv(x, f"{name}_around", sizes, 1, stride)
        return self.node("Relu", [self.node("Add", [y, x], f"{name}_sum")], name)


def build() -> onnx.ModelProto:
    net = Builder()
    x = net.node("Relu", [net.conv("image", "stem", (3, WIDTHS[0]), 7, 2)], "stem_out")
    x = net.node(
        "MaxPool", [x], "pool", kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4
    )
    before = WIDTHS[0]
    for stage, width in enumerate(WIDTHS):
        x = net.block(x, f"stage{stage}a", (before, width), 1 if stage == 0 else 2)
        x = net.block(x, f"stage{stage}b", (width, width), 1)
        before = width
    x = net.node("Flatten", [net.node("GlobalAveragePool", [x], "mean")], "flat")
    weight, bias = net.weight("fc_w", 1000, before), net.weight("fc_b", 1000)
    net.node("Gemm", [x, weight, bias], "scores", transB=1)
    graph = helper.make_graph(
        net.nodes,
        "net20",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, SHAPE)],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, (1, 1000))],
        net.weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 8
    onnx.checker.check_model(model)
    assert sum(node.op_type == "Conv" for node in net.nodes) == 20
    return model


if __name__ == "__main__":
    onnx.save(build(), sys.argv[1])
