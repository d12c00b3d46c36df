# SPDX-License-Identifier: Apache-2.0
"""The steps as functions on paths and values; the command line calls the same ones."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from neon8.calibrate.calibrate import calibrate
from neon8.compile import compile_model as compile_graph
from neon8.data import Sample
from neon8.errors import CompileError
from neon8.files import write_atomic
from neon8.graph.graph import Graph
from neon8.graph.importer import load
from neon8.graph.onnx_file import open_onnx
from neon8.inspection.describe import describe
from neon8.preprocess import Preprocess
from neon8.samples import Data, gather
from neon8.table import json_format
from neon8.table.conversion import Converted, convert
from neon8.table.scale_table import ScaleTable


def load_graph(model: str | Path) -> Graph:
    """The network of an ONNX file, normalised.  GraphError: unreadable, unsupported."""
    return load(Path(model))


def calibrate_model(
    model: str | Path,
    data: Data,
    *,
    method: str = "mse",
    scheme: str = "auto",
    preprocess: Preprocess | None = None,
    limit: int | None = None,
    skip: int = 0,
    watch: Callable[[Iterable[Sample]], Iterable[Sample]] = iter,
) -> ScaleTable:
    """Run the ONNX file in FP32 on the samples and choose a scale for every tensor.

    data: see neon8.samples.gather.  watch: wraps the samples, as tqdm does.
    GraphError, DataError, CalibrationError.
    """
    file = open_onnx(model)
    samples = gather(data, load(file), preprocess=preprocess, limit=limit, skip=skip)
    return calibrate(file, watch(samples), method=method, scheme=scheme)


def load_table(path: str | Path) -> ScaleTable:
    """A scale table from its JSON file.  TableError names the entry that is wrong."""
    return json_format.load(Path(path))


def save_table(table: ScaleTable, path: str | Path) -> None:
    """Write the table as JSON, whole or not at all."""
    write_atomic(Path(path), json_format.dumps(table).encode())


def convert_table(
    path: str | Path,
    to: str,
    *,
    source_format: str | None = None,
    names: Mapping[str, str] | None = None,
    model: str | Path | None = None,
    onto: str | Path | None = None,
    ncnn_param: str | Path | None = None,
    trt_version: str | None = None,
) -> Converted:
    """A calibration file of any tool in the format of another; see docs/formats.md.

    The rest is as for `neon8 convert`.  TableError, GraphError, CompileError.
    """
    return convert(
        path,
        to,
        source_format=source_format,
        names=names,
        model=model,
        onto=onto,
        ncnn_param=ncnn_param,
        trt_version=trt_version,
    )


def compile_model(
    model: str | Path | Graph, table: str | Path | ScaleTable, *, io: str = "float"
) -> bytes:
    """The .n8 file of a network with these scales.

    io: "float" or "int8", the type of inputs and outputs.  GraphError, TableError,
    CompileError; a weight scale that had to be enlarged is logged to "neon8".
    """
    graph = model if isinstance(model, Graph) else load_graph(model)
    scales = table if isinstance(table, ScaleTable) else load_table(table)
    try:
        return compile_graph(graph, scales, io=io)
    except CompileError as error:
        where = graph.name if model is graph else str(model)
        where += "" if table is scales else f" with {table}"
        raise CompileError(f"{where}: {error}") from error


def save_model(model: bytes, path: str | Path) -> None:
    """Write an .n8 file, whole or not at all."""
    write_atomic(Path(path), model)


def inspect_file(path: str | Path) -> str:
    """What `neon8 inspect` prints about a file."""
    return describe(Path(path))
