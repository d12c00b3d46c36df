# SPDX-License-Identifier: Apache-2.0
"""An ONNX file, read and checked once for all who look at it.

The file is hostile until onnx.checker and the checks below have passed it.
"""

import hashlib
import math
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
from onnx import numpy_helper
from onnx.external_data_helper import (
    load_external_data_for_model,
    uses_external_data,
)

from neon8.errors import GraphError
from neon8.graph.graph import FloatArray

LARGE = 4096
"""Bytes of float32 weights that are kept apart; no shape of a tensor is as long."""

MAX_MESSAGE = 600
"""Characters that are kept of a message of onnx."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OnnxFile:
    """What was in a file when it was opened; a file that changes changes nothing here.

    model: a checked ModelProto, serialised, in which the large weights are marked as
    external data: onnx copies a model for whatever it does with it.  weights: these, by
    name, read-only.  digest: SHA-256, hex, of the file and of the weights beside it,
    which another thread is still computing.
    """

    path: Path
    model: bytes
    weights: Mapping[str, FloatArray]
    digest: Future[str]


ModelLike = str | PathLike[str] | OnnxFile
"""What open_onnx() takes."""


def open_onnx(model: ModelLike) -> OnnxFile:
    """Read and check the file; an OnnxFile is given back.  GraphError."""
    if isinstance(model, OnnxFile):
        return model
    path = Path(model)
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


def read_model(path: Path) -> onnx.ModelProto:
    """The checked model with all its weights.  GraphError."""
    model = _decode(path, _read(path))
    _load_external_data(path, model)
    _check(path, model)
    return model


def initializer(name: str, value: npt.NDArray[np.generic]) -> onnx.TensorProto:
    """The initializer; large weights are left out and marked as external data."""
    if value.dtype != np.float32 or value.nbytes < LARGE:
        return numpy_helper.from_array(value, name)
    kind = onnx.TensorProto.FLOAT
    tensor = onnx.TensorProto(name=name, data_type=kind, dims=value.shape)
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="memory")
    return tensor


def one_line(error: BaseException) -> str:
    """What onnx says, of which the cause is often in the last of several lines."""
    text = " ".join(str(error).replace("==> Context:", "-").split())
    if len(text) > MAX_MESSAGE:  # a name in it may be of any length
        text = f"{text[: MAX_MESSAGE // 2]} ... {text[-MAX_MESSAGE // 2 :]}"
    return text or type(error).__name__


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise GraphError(f"{path}: cannot be read: {error.strerror}") from error


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
    return model


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
    read = set(_names_read(graph))
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
            for inner in (attribute.g, *attribute.graphs):
                yield from _tensors(inner)


def _names_read(graph: onnx.GraphProto) -> Iterator[str]:
    """The inputs of all nodes, the ones in branches and loops included."""
    for node in graph.node:
        yield from node.input
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from _names_read(inner)


def _check(path: Path, model: onnx.ModelProto) -> None:
    try:
        onnx.checker.check_model(model)
    except MemoryError:  # is not the file's fault
        raise
    except Exception as error:  # as above
        raise GraphError(f"{path}: is not valid ONNX: {one_line(error)}") from error
    if model.graph.sparse_initializer:
        raise GraphError(f"{path}: sparse weights are not supported")
