# SPDX-License-Identifier: Apache-2.0
"""What several modules ask of onnx's messages."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
from onnx import numpy_helper
from onnx.external_data_helper import uses_external_data

from neon8.arrays import Array, FloatArray
from neon8.errors import GraphError

STANDARD = ("", "ai.onnx")
"""The names of the domain of ONNX's own operators."""

LARGE = 4096
"""Bytes of float32 weights that are kept apart; no shape of a tensor is as long."""

MAX_MESSAGE = 600
"""Characters that are kept of a message of onnx."""


def bind(graph: onnx.GraphProto, sizes: Mapping[str, int]) -> None:
    """Give the symbolic dimensions in `sizes` their values, wherever the file has them.

    So inputs agree, and what the file says of tensors that nothing else tells.
    """
    for value in (*graph.input, *graph.value_info):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param and dim.dim_param in sizes:
                dim.dim_value = sizes[dim.dim_param]


def pin_batch(graph: onnx.GraphProto) -> None:
    """Make a first dimension of an input 1 where the file leaves it open."""
    inputs = network_inputs(graph)
    dims = [v.type.tensor_type.shape.dim[0] for v in inputs if _rank(v)]
    bind(graph, {dim.dim_param: 1 for dim in dims if dim.dim_param})
    for dim in dims:
        if not dim.HasField("dim_value"):
            dim.dim_value = 1


def _rank(value: onnx.ValueInfoProto) -> int:
    return len(value.type.tensor_type.shape.dim)


def network_inputs(graph: onnx.GraphProto) -> list[onnx.ValueInfoProto]:
    """The inputs of the network: old files list initializers as inputs, too."""
    initializers = {tensor.name for tensor in graph.initializer}
    return [value for value in graph.input if value.name not in initializers]


def with_defaults(node: onnx.NodeProto) -> onnx.NodeProto:
    """The node with the attributes that it leaves out, of an operator of ONNX itself.

    The functions that define operators read them.
    """
    made = onnx.NodeProto()
    made.CopyFrom(node)
    given = {item.name for item in node.attribute}
    for name, entry in onnx.defs.get_schema(node.op_type).attributes.items():
        if name not in given and entry.default_value.type:
            made.attribute.append(entry.default_value)
    return made


def values_of(path: Path, graph: onnx.GraphProto) -> dict[str, Array]:
    """The values of the initializers that have them."""
    values = {}
    for tensor in graph.initializer:
        if not uses_external_data(tensor):
            try:
                values[tensor.name] = numpy_helper.to_array(tensor)
            except Exception as error:  # the checker does not look at everything
                text = f"initializer {tensor.name!r} cannot be read: {one_line(error)}"
                raise GraphError(f"{path}: {text}") from error
    return values


def initializer(name: str, value: npt.NDArray[np.generic]) -> onnx.TensorProto:
    """The initializer; large weights are left out and marked as external data."""
    if value.dtype != np.float32 or value.nbytes < LARGE:
        return numpy_helper.from_array(value, name)
    kind = onnx.TensorProto.FLOAT
    tensor = onnx.TensorProto(name=name, data_type=kind, dims=value.shape)
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="memory")
    return tensor


def store(
    graph: onnx.GraphProto,
    constants: Mapping[str, Array],
    weights: dict[str, FloatArray],
) -> None:
    """Add initializers; large weights go to `weights`, as in an OnnxFile."""
    for name, value in constants.items():
        graph.initializer.append(initializer(name, value))
        if value.dtype == np.float32 and value.nbytes >= LARGE:
            weights[name] = value.astype(np.float32, copy=False)


def one_line(error: BaseException) -> str:
    """What onnx says, of which the cause is often in the last of several lines."""
    text = " ".join(str(error).replace("==> Context:", "-").split())
    if len(text) > MAX_MESSAGE:  # a name in it may be of any length
        text = f"{text[: MAX_MESSAGE // 2]} ... {text[-MAX_MESSAGE // 2 :]}"
    return text or type(error).__name__


def rename(nodes: Iterable[onnx.NodeProto], names: Mapping[str, str]) -> None:
    """Give tensors other names, in branches and loops too, where these read them."""
    for node in nodes:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
        for graph in graphs_of(node):
            own = {value.name for value in (*graph.input, *graph.initializer)}
            own |= {output for each in graph.node for output in each.output}
            outer = {old: new for old, new in names.items() if old not in own}
            rename(graph.node, outer)
            for value in graph.output:
                value.name = outer.get(value.name, value.name)


def nodes_of(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """All nodes, the ones in branches and loops included."""
    for node in graph.node:
        yield node
        yield from inner_nodes(node)


def inner_nodes(node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    """The nodes in the branches and loops of `node`."""
    for graph in graphs_of(node):
        yield from nodes_of(graph)


def graphs_of(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """Its branches, or what it repeats."""
    for item in node.attribute:
        if item.HasField("g"):
            yield item.g
        yield from item.graphs
