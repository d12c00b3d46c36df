# SPDX-License-Identifier: Apache-2.0
"""An ONNX file with more outputs, in memory: onnxruntime then shows what is inside."""

from collections.abc import Iterable
from os import PathLike
from pathlib import Path

import onnx

from neon8.errors import GraphError
from neon8.graph.reader import read_model


def with_outputs(path: str | PathLike[str], names: Iterable[str]) -> bytes:
    """The bytes of the model in `path`, its batch 1, with `names` as further outputs.

    Weights stored beside the file are taken in.  GraphError names the file.
    """
    model = read_model(Path(path))[0]
    present = {value.name for value in model.graph.output}
    for name in names:
        if name not in present:
            present.add(name)
            model.graph.output.append(onnx.ValueInfoProto(name=name))
    try:
        data: bytes = model.SerializeToString()
    except ValueError as error:
        raise GraphError(f"{path}: is larger than 2 GB with its weights") from error
    return data


def batch_sizes(path: str | PathLike[str]) -> dict[str, int | str]:
    """The first dimension of each input as the file has it: 1, or a name.

    GraphError names the file.
    """
    graph = read_model(Path(path))[0].graph
    sizes: dict[str, int | str] = {}
    for value in graph.input:
        dims = value.type.tensor_type.shape.dim
        fixed = len(dims) > 0 and dims[0].dim_value == 1
        sizes[value.name] = 1 if fixed else "N"
    return sizes
