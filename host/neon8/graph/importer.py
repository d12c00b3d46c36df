# SPDX-License-Identifier: Apache-2.0
"""load(): from an ONNX file to the normalised Graph."""

import numpy as np

from neon8.errors import GraphError
from neon8.graph.convert import convert
from neon8.graph.graph import Conv2d, Graph
from neon8.graph.onnx_file import ModelLike, open_onnx
from neon8.graph.passes import PASSES
from neon8.graph.reader import read


def load(model: ModelLike) -> Graph:
    """The network in `model`, batch 1, ready to be calibrated and compiled.

    GraphError, one line: not an ONNX file, or something in it that neon8 cannot run.
    """
    file = open_onnx(model)
    graph = convert(read(file))
    for apply in PASSES:
        graph = apply(graph)
    for node in graph.nodes:
        if isinstance(node, Conv2d) and not (
            np.isfinite(node.weight).all() and np.isfinite(node.bias).all()
        ):
            text = f"node {node.name!r}: folded weights are too large for float32"
            raise GraphError(f"{file.path}: {text}")
    return graph
