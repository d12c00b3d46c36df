# SPDX-License-Identifier: Apache-2.0
"""An ONNX file with more outputs, in memory: onnxruntime then shows what is inside."""

from collections.abc import Iterable, Mapping

import numpy as np
import onnx
from onnx import helper, numpy_helper

from neon8.graph.onnx_file import ModelLike, OnnxFile, declared
from neon8.graph.protos import nodes_of, rename
from neon8.ir.graph import Tensor
from neon8.ir.names import claimed


def with_outputs(
    file: OnnxFile, names: Iterable[str], tensors: Mapping[str, Tensor] | None = None
) -> bytes:
    """The bytes of the model with `names` as further outputs, without file.weights.

    tensors: the Graph's, of which the file does not have those with an origin.
    """
    model = onnx.ModelProto.FromString(file.model)
    present = {value.name for value in model.graph.output}
    taken = {
        name for node in nodes_of(model.graph) for name in (*node.input, *node.output)
    }
    there: set[str] = set()
    for name in names:
        if name not in present:
            present.add(name)
            for tensor in _ways(name, tensors or {}):
                if tensor.name not in there:
                    there.add(tensor.name)
                    _rearrange(model.graph, tensor, taken)
            model.graph.output.append(onnx.ValueInfoProto(name=name))
    data: bytes = model.SerializeToString()
    return data


def _ways(name: str, tensors: Mapping[str, Tensor]) -> list[Tensor]:
    """The tensors with an origin from one in the file to `name`, in order."""
    found: list[Tensor] = []
    tensor = tensors.get(name)
    while tensor is not None and tensor.origin is not None:
        found.insert(0, tensor)
        own = tensor.origin.name == tensor.name
        tensor = None if own else tensors.get(tensor.origin.name)
    return found


def _rearrange(graph: onnx.GraphProto, tensor: Tensor, taken: set[str]) -> None:
    """Append the nodes that make `tensor` of its origin.  taken: names in use."""

    def reshape(source: str, dims: tuple[int, ...], output: str) -> None:
        shape = claimed(f"{output}_shape", taken)
        graph.initializer.append(numpy_helper.from_array(np.array(dims), shape))
        graph.node.append(helper.make_node("Reshape", [source, shape], [output]))

    origin = tensor.origin
    if origin is None:
        return
    source = origin.name
    if source == tensor.name:
        source = claimed(f"{source}_in_file", taken)
        rename(graph.node, {tensor.name: source})
        for value in graph.value_info:
            value.name = source if value.name == tensor.name else value.name
    seen, turned = (
        claimed(f"{tensor.name}_{step}", taken) for step in ("view", "turned")
    )
    reshape(source, origin.view, seen)
    node = helper.make_node("Transpose", [seen], [turned], perm=list(origin.order))
    graph.node.append(node)
    reshape(turned, tensor.dims, tensor.name)


def batch_sizes(model: ModelLike) -> dict[str, int | str]:
    """The first dimension of each input as the file has it: a number, or "N".

    GraphError names the file.
    """
    first = {name: next(iter(dims), "") for name, (_, dims) in declared(model).items()}
    return {name: n if isinstance(n, int) else "N" for name, n in first.items()}
