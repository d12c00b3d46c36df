# SPDX-License-Identifier: Apache-2.0
"""A tiny network with everything that the command line needs to work on it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

CLASSES = 6
SHAPE = (1, 3, 8, 8)


@dataclass(frozen=True, slots=True)
class Tiny:
    """Files of one network: image 1x3x8x8 -> scores 1x6.  net: makes its likes."""

    net: Callable[..., onnx.ModelProto]
    folder: Path
    onnx: Path
    data: Path
    labelled: Path
    table: Path
    n8: Path
    n8_int8: Path


def conv_net(seed: int = 1, operator: str = "Relu") -> onnx.ModelProto:
    """Convolution, activation, global pool, fully connected."""
    rng = np.random.default_rng(seed)

    def weight(name, *shape):
        array = rng.normal(0, 1 / np.sqrt(np.prod(shape[1:])), shape)
        return numpy_helper.from_array(array.astype(np.float32), name)

    nodes = [
        helper.make_node("Conv", ["image", "w1", "b1"], ["sum1"], "c1", pads=[1] * 4),
        helper.make_node(operator, ["sum1"], ["act1"], "a1"),
        helper.make_node("GlobalAveragePool", ["act1"], ["pooled"], "pool"),
        helper.make_node("Flatten", ["pooled"], ["flat"], "flatten"),
        helper.make_node("Gemm", ["flat", "w2", "b2"], ["scores"], "fc", transB=1),
    ]
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, SHAPE)],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, CLASSES])],
        [
            weight("w1", 8, 3, 3, 3),
            weight("b1", 8),
            weight("w2", CLASSES, 8),
            weight("b2", CLASSES),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 8
    return model


@pytest.fixture(scope="session")
def tiny(tmp_path_factory) -> Tiny:
    """Calibrated and compiled through the Python functions."""
    import neon8

    folder = tmp_path_factory.mktemp("tiny")
    files = Tiny(
        conv_net,
        folder,
        folder / "tiny.onnx",
        folder / "train.npz",
        folder / "test.npz",
        folder / "tiny.scales.json",
        folder / "tiny.n8",
        folder / "tiny_int8.n8",
    )
    onnx.save(conv_net(), files.onnx)
    rng = np.random.default_rng(2)
    x = rng.normal(0, 1, (24, *SHAPE[1:])).astype(np.float32)
    np.savez(files.data, x=x)
    np.savez(files.labelled, x=x, y=np.arange(24) % CLASSES)
    table = neon8.calibrate_model(files.onnx, files.data, method="minmax")
    neon8.save_table(table, files.table)
    neon8.save_model(neon8.compile_model(files.onnx, table), files.n8)
    neon8.save_model(neon8.compile_model(files.onnx, table, io="int8"), files.n8_int8)
    return files
