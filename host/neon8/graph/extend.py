# SPDX-License-Identifier: Apache-2.0
"""An ONNX file with more outputs, in memory: onnxruntime then shows what is inside."""

from collections.abc import Iterable

import onnx

from neon8.graph.onnx_file import ModelLike, OnnxFile, open_onnx


def with_outputs(file: OnnxFile, names: Iterable[str]) -> bytes:
    """The bytes of the model with `names` as further outputs, without file.weights."""
    model = onnx.ModelProto.FromString(file.model)
    present = {value.name for value in model.graph.output}
    for name in names:
        if name not in present:
            present.add(name)
            model.graph.output.append(onnx.ValueInfoProto(name=name))
    data: bytes = model.SerializeToString()
    return data


def batch_sizes(model: ModelLike) -> dict[str, int | str]:
    """The first dimension of each input as the file has it: a number, or a name.

    GraphError names the file.
    """
    graph = onnx.ModelProto.FromString(open_onnx(model).model).graph
    sizes: dict[str, int | str] = {}
    for value in graph.input:
        dims = value.type.tensor_type.shape.dim
        fixed = not dims or dims[0].HasField("dim_value")
        sizes[value.name] = dims[0].dim_value if dims and fixed else "N"
    return sizes
