# SPDX-License-Identifier: Apache-2.0
"""An ONNX file, read and checked once for all who look at it.

The file is hostile until onnx.checker and the checks below have passed it.
"""

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path

import numpy as np
import onnx
from onnx.external_data_helper import (
    load_external_data_for_model,
    uses_external_data,
)

from neon8.arrays import FloatArray
from neon8.errors import GraphError
from neon8.files import read_file, reading
from neon8.graph.expansion import check_size
from neon8.graph.inference import take_branches
from neon8.graph.protos import (
    LARGE,
    STANDARD,
    bind,
    graphs_of,
    initializer,
    inner_nodes,
    network_inputs,
    nodes_of,
    one_line,
)
from neon8.settings.shapes import Open, fixed


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OnnxFile:
    """What was in a file when it was opened; a file that changes changes nothing here.

    model: a checked ModelProto, serialised, in which the large weights are marked as
    external data: onnx copies a model for whatever it does with it.  weights: these, by
    name, read-only.  digest: SHA-256, hex, of the file and of the weights beside it,
    which another thread is still computing.  original: the file as it was before some
    of its operators were replaced by others, None if it is that.  hidden: the tensors
    inside of these that are computed in float32.
    """

    path: Path
    model: bytes
    weights: Mapping[str, FloatArray]
    digest: Future[str]
    original: "OnnxFile | None" = None
    hidden: frozenset[str] = frozenset()


ModelLike = str | PathLike[str] | OnnxFile
"""What open_onnx() takes."""

IR_OF_CONSTANTS = 4
"""The first ONNX IR version in which an initializer need not be an input."""

Shapes = Mapping[str, tuple[int | Open, ...]]
"""Input -> the dimensions that the user gives it; those with bounds are for compile."""


def open_onnx(model: ModelLike, *, shapes: Shapes | None = None) -> OnnxFile:
    """Read and check the file; an OnnxFile is given back.  GraphError.

    shapes: of inputs, where the file leaves dimensions open.
    """
    # They read through this module.
    from neon8.graph.compose import composed  # noqa: PLC0415
    from neon8.graph.quantized.dynamic import with_float_weights  # noqa: PLC0415

    if isinstance(model, OnnxFile):
        if not shapes:
            return model
        return composed(with_shapes(model.original or model, shapes))
    file = with_float_weights(_open(Path(model)))
    file = with_shapes(file, shapes) if shapes else file
    taken = take_branches(file.path, file.model, file.weights)
    return composed(file if taken is None else replace(file, model=taken))


def _open(path: Path) -> OnnxFile:
    data = _read(path)
    digest = hashlib.sha256()
    hashing = ThreadPoolExecutor(1, thread_name_prefix="neon8-digest")
    try:
        hashing.submit(digest.update, data)
        decoded = _decode(path, data)
        for tensor in _load_external_data(path, decoded):
            hashing.submit(digest.update, tensor.raw_data)
        weights = _take_weights(decoded.graph)
        _check(path, decoded)
        for tensor in decoded.graph.initializer:
            if tensor.name in weights:
                tensor.CopyFrom(initializer(tensor.name, weights[tensor.name]))
        return OnnxFile(
            path=path,
            model=decoded.SerializeToString(),
            weights=weights,
            digest=hashing.submit(digest.hexdigest),
        )
    finally:
        hashing.shutdown(wait=False)


Declared = tuple[str, tuple[str | int, ...]]


def declared(model: ModelLike) -> dict[str, Declared]:
    """The type of each input, as numpy calls it, and its dimensions.

    The type is "" if it is no tensor; dimensions are numbers, or names, which are "" if
    there are none.  GraphError.
    """
    file = model if isinstance(model, OnnxFile) else _open(Path(model))
    found = onnx.ModelProto.FromString(file.model)
    kinds = {
        value.name: value.type.tensor_type for value in network_inputs(found.graph)
    }
    return {
        name: (
            _numpy_type(kind.elem_type),
            tuple(
                dim.dim_value if dim.HasField("dim_value") else dim.dim_param
                for dim in kind.shape.dim
            ),
        )
        for name, kind in kinds.items()
    }


def _numpy_type(number: int) -> str:
    try:
        return str(onnx.helper.tensor_dtype_to_np_dtype(number))
    except KeyError:
        return ""


def symbols_of(
    model: str | PathLike[str], shapes: Shapes
) -> dict[str, tuple[str, ...]]:
    """Names of the dimensions in `shapes`: those of one name are always equal.

    What has none in the file is named after its input, as in image[2].
    """
    known = {name: dims for name, (_, dims) in declared(model).items()}

    def named(name: str, axis: int) -> str:
        own = known.get(name, ())[axis : axis + 1]
        return next((n for n in own if n and isinstance(n, str)), f"{name}[{axis}]")

    return {
        name: tuple(named(name, axis) for axis in range(len(dims)))
        for name, dims in shapes.items()
    }


def with_shapes(file: OnnxFile, shapes: Shapes) -> OnnxFile:
    """The same network with inputs of these shapes, or tensors that nothing tells.

    GraphError: there is no such input, or the file contradicts the shape.
    """
    model = onnx.ModelProto.FromString(file.model)
    inputs = {value.name: value for value in network_inputs(model.graph)}
    for name in _untold(model.graph) & set(shapes):
        inputs[name] = _described(model.graph, name)
    bound: dict[str, int] = {}
    for name, given in shapes.items():
        shape = fixed(file.path, name, given)
        if name not in inputs:
            names = ", ".join(map(repr, inputs))
            text = f"has no input {name!r} to give a shape; its inputs are {names}"
            raise GraphError(f"{file.path}: {text}")
        kind = inputs[name].type.tensor_type
        dims = kind.shape.dim
        old = [d.dim_value if d.HasField("dim_value") else d.dim_param for d in dims]
        pairs = list(zip(old, shape, strict=False))
        contradicts = len(old) != len(shape) or any(
            isinstance(have, int) and have != want for have, want in pairs
        )
        if kind.HasField("shape") and contradicts:
            text = f"input {name!r} has shape {old} in the file, which cannot become"
            raise GraphError(f"{file.path}: {text} {list(shape)}")
        bound |= {have: want for have, want in pairs if isinstance(have, str)}
        kind.shape.ClearField("dim")
        for size in shape:
            kind.shape.dim.add(dim_value=size)
    bind(model.graph, bound)
    return replace(file, model=model.SerializeToString())


def _untold(graph: onnx.GraphProto) -> set[str]:
    """What nodes make of which onnx infers nothing: of other domains, or with branches.

    So the file, or the user, has to tell.
    """
    return {
        name
        for node in graph.node
        if node.domain not in STANDARD or any(inner_nodes(node))
        for name in node.output
    }


def _described(graph: onnx.GraphProto, name: str) -> onnx.ValueInfoProto:
    """What the file says of a tensor inside, which is float32 if it says nothing."""
    found = [value for value in graph.value_info if value.name == name]
    value: onnx.ValueInfoProto = found[0] if found else graph.value_info.add(name=name)
    if not found:
        kinds = {each.name: each.type.tensor_type.elem_type for each in graph.output}
        value.type.tensor_type.elem_type = kinds.get(name, onnx.TensorProto.FLOAT)
    return value


def _read(path: Path) -> bytes:
    with reading(path, GraphError):
        return read_file(path)


def _decode(path: Path, data: bytes) -> onnx.ModelProto:
    if not data:
        raise GraphError(f"{path}: is empty, not an ONNX file")
    try:
        model = onnx.load_model_from_string(data)
    except MemoryError:  # is not the file's fault
        raise
    except Exception as error:  # protobuf has no base class of its own errors here
        raise GraphError(f"{path}: is not an ONNX file, or truncated") from error
    if not model.graph.node or not model.graph.output:
        raise GraphError(f"{path}: is not an ONNX file: it has no nodes or no outputs")
    if model.ir_version < IR_OF_CONSTANTS:
        _modernize(model)
    _by_channel(model.graph)
    return model


def _modernize(model: onnx.ModelProto) -> None:
    """Make the initializers of a file before IR 4 what they are since: no inputs.

    They had to be inputs, too, and since then those that are inputs are no constants.
    onnxruntime does not insist, and its quantizer adds some that are none to old files,
    which the checker and shape inference would refuse.
    """
    model.ir_version = IR_OF_CONSTANTS
    inputs = [
        onnx.ValueInfoProto.FromString(v.SerializeToString())
        for v in network_inputs(model.graph)
    ]
    del model.graph.input[:]
    model.graph.input.extend(inputs)


def _by_channel(graph: onnx.GraphProto) -> None:
    """Make BatchNormalization with spatial=0 what its parameters say that it is.

    With one value for each channel, as old exports of MXNet have it, it is the ordinary
    form, but onnxruntime takes the attribute at its word.
    """
    ranks = {tensor.name: len(tensor.dims) for tensor in graph.initializer}
    for node in graph.node:
        scale = next(iter(node.input[1:]), "")
        if node.op_type == "BatchNormalization" and ranks.get(scale) == 1:
            kept = [each for each in node.attribute if each.name != "spatial"]
            del node.attribute[:]
            node.attribute.extend(kept)


def _load_external_data(path: Path, model: onnx.ModelProto) -> list[onnx.TensorProto]:
    """Load what is stored beside the file; the tensors that it belongs to."""
    outside = [item for item in _tensors(model.graph) if uses_external_data(item)]
    try:
        load_external_data_for_model(model, str(path.parent))
    except Exception as error:  # onnx raises ValueError, OSError, ValidationError ...
        text = f"its external data cannot be loaded: {one_line(error)}"
        raise GraphError(f"{path}: {text}") from error
    return outside


def _take_weights(graph: onnx.GraphProto) -> dict[str, FloatArray]:
    """The large weights; what stays of them has no elements, which is valid, too.

    Only those that a node reads, as onnxruntime knows no others, and whose size is
    right: all else stays for the checker to see.
    """
    read = {name for node in nodes_of(graph) for name in node.input}
    weights = {}
    for tensor in graph.initializer:
        shape = tuple(tensor.dims)
        size = 4 * math.prod(shape)
        if (
            tensor.name not in read
            or tensor.data_type != onnx.TensorProto.FLOAT
            or size < LARGE
            or min(shape) < 1
            or tensor.HasField("segment")
        ):
            continue
        raw = tensor.raw_data  # a copy, each time it is asked for
        if len(raw) == size:
            values = np.frombuffer(raw, "<f4").astype(np.float32, copy=False)
            weights[tensor.name] = values.reshape(shape)
            tensor.ClearField("raw_data")
            tensor.dims[:] = [0]
    return weights


def _tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """Initializers and attributes, the ones in branches and loops included."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            yield from (attribute.t, *attribute.tensors)
        for inner in graphs_of(node):
            yield from _tensors(inner)


def _check(path: Path, model: onnx.ModelProto) -> None:
    _check_names(path, model.graph)
    kinds = (value.type for value in model.graph.output)
    tensors = [k.tensor_type for k in kinds if k.WhichOneof("value") == "tensor_type"]
    open_ = [tensor for tensor in tensors if not tensor.HasField("shape")]
    try:
        for tensor in open_:  # which the checker demands, and inference tells
            tensor.shape.SetInParent()
        onnx.checker.check_model(model)
    except MemoryError:  # is not the file's fault
        raise
    except Exception as error:  # as above
        raise GraphError(f"{path}: is not valid ONNX: {one_line(error)}") from error
    for tensor in open_:
        tensor.ClearField("shape")
    check_size(path, model)
    for sparse in model.graph.sparse_initializer:
        text = f"initializer {sparse.values.name!r} is sparse, which is not supported"
        raise GraphError(f"{path}: {text}; store it as a plain one, zeros included")


def _check_names(path: Path, graph: onnx.GraphProto) -> None:
    """GraphError: a name is not UTF-8, which protobuf hands out as bytes."""
    values = (*graph.input, *graph.output, *graph.value_info, *graph.initializer)
    places: list[tuple[str, Iterable[object]]] = [("graph", [v.name for v in values])]
    places += [
        (f"node {number}", (n.name, n.op_type, n.domain, *n.input, *n.output))
        for number, n in enumerate(nodes_of(graph))
    ]
    for place, names in places:
        for name in names:
            if isinstance(name, bytes):
                text = f"{place}: name {name[:40]!r} is not UTF-8"
                raise GraphError(f"{path}: {text}; export the network again")
