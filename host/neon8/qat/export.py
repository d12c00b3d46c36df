# SPDX-License-Identifier: Apache-2.0
"""From a trained network to ONNX with Q/DQ nodes.

The float network and the scales are written as they would have been calibrated, and the
compiler puts the two together, so that the file rounds where the runtime does.
"""

import tempfile
from pathlib import Path
from typing import Protocol

from neon8.formats.qdq import write
from neon8.graph.importer import load
from neon8.graph.onnx_file import open_onnx
from neon8.ir.graph import Graph
from neon8.operators.convolution import convolutions
from neon8.qat.layers import Weighted
from neon8.qat.ranges import Ranges
from neon8.qat.trace import Traced
from neon8.qat.writer import Writer
from neon8.quant.scale_table import LayerScale, ScaleTable, TensorScale

BATCH = "N"


class Trained(Protocol):
    """What is exported of a QatModel."""

    @property
    def traced(self) -> Traced:
        """The network as a list of layers."""

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of inputs and outputs."""

    def ranges_of(self, name: str) -> Ranges | None:
        """The range of a tensor, None if it is not rounded."""


def quantized(model: Trained, name: str) -> bytes:
    """The bytes of the file.  name: of the network.  CompileError."""
    with tempfile.TemporaryDirectory(prefix="neon8-") as folder:
        path = Path(folder, f"{name}.onnx")
        path.write_bytes(float_network(model))
        file = open_onnx(path)
        graph = load(file)
        return write.dumps(table_of(model, graph), graph, file)


def float_network(model: Trained) -> bytes:
    """The network without roundings, its normalizations folded, as ONNX."""
    w = Writer()
    traced = model.traced
    names = {name: name for name in traced.inputs}
    for step in traced.steps:
        inputs = [names[name] for name in step.inputs]
        names[step.name] = step.layer.write(w, step.name, inputs)

    def shape(name: str) -> list[int | str]:
        return [BATCH, *model.shapes[name][1:]]

    return w.model(
        {name: shape(name) for name in traced.inputs},
        {names[name]: shape(name) for name in traced.outputs},
    )


def table_of(model: Trained, graph: Graph) -> ScaleTable:
    """The scales of the model.  graph: of its float_network()."""
    tensors = {}
    for name in graph.tensors:
        ranges = model.ranges_of(name)
        if ranges is None:
            continue
        scale, zero_point = ranges.parameters_of_grid()
        tensors[name] = TensorScale(
            scale=float(scale),
            zero_point=zero_point,
            scheme=ranges.grid().scheme,
            threshold=ranges.threshold(),
            min=None,
            max=None,
        )
    trained = {step.name: step.layer for step in model.traced.steps}
    layers = {}
    for node in convolutions(graph):
        layer = trained.get(node.name)
        if isinstance(layer, Weighted):
            scales = layer.scales(*layer.folded())
            layers[node.name] = LayerScale(
                input=node.inputs[0],
                weight_scales=tuple(map(float, scales)),
                groups=node.groups,
            )
    return ScaleTable(
        model_name=graph.name,
        model_digest=graph.digest,
        method="qat",
        scheme="auto",
        samples=0,
        engine="torch",
        tensors=tensors,
        layers=layers,
    )
