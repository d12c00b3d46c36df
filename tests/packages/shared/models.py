# SPDX-License-Identifier: Apache-2.0
"""Models of the kinds that packages meet, tiny."""

from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

import neon8

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
IMAGE = "size = [6, 6]\ncolor = 'bgr'\nscale = 0.0039\nmean = [0.4, 0.5, 0.6]\n"


def network(folder, *, source="image", result="scores"):
    """A convolution, a mean and five classes, on images of 6 x 6."""
    drawn = np.random.default_rng(1)
    weights = {
        "w": drawn.standard_normal((5, 3, 3, 3)).astype(np.float32),
        "b": drawn.standard_normal(5).astype(np.float32),
    }
    nodes = [
        helper.make_node("Conv", [source, "w", "b"], ["y"], "conv", pads=[1, 1, 1, 1]),
        helper.make_node("GlobalAveragePool", ["y"], ["m"], "mean"),
        helper.make_node("Flatten", ["m"], [result], "flat"),
    ]
    float32 = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info(source, float32, [1, 3, 6, 6])],
        [helper.make_tensor_value_info(result, float32, [1, 5])],
        [numpy_helper.from_array(w, name) for name, w in weights.items()],
    )
    opsets = [helper.make_opsetid("", 17)]
    path = folder / "net.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


def compiled(folder, *, io="float", image=False, **names):
    """The network as an .n8 file."""
    onnx_file = network(folder, **names)
    samples = np.random.default_rng(2).standard_normal((4, 3, 6, 6))
    table = neon8.calibrate_model(onnx_file, samples.astype(np.float32))
    (folder / "p.toml").write_text(IMAGE)
    how = {"image": folder / "p.toml"} if image else {}
    made = neon8.compile_model(onnx_file, table, io=io, **how)
    path = folder / "net.n8"
    neon8.save_model(made, path)
    return path
