# SPDX-License-Identifier: Apache-2.0
"""compile_model(): from a network and its scale table to the .n8 file."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from neon8.compile import lower, writer
from neon8.errors import CompileError
from neon8.graph.importer import load
from neon8.graph.onnx_file import Shapes, open_onnx
from neon8.graph.quantized import is_quantized
from neon8.ir.graph import FloatArray, Graph
from neon8.quant import table_json
from neon8.quant.int16_fit import Fit
from neon8.quant.scale_table import ScaleTable
from neon8.rewrite.own_scales import load_quantized

if TYPE_CHECKING:  # loads Pillow, which few need
    from neon8.data.preprocess import Preprocess


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """file: the bytes of the .n8 file.  islands: layers in float32, each with why.

    fits: the layers with weights that int16 did not hold four products of, and what
    came of that; empty unless accumulator_aware.
    """

    file: bytes
    islands: dict[str, str]
    fits: tuple[Fit, ...] = ()


def compile_model(
    model: str | Path | Graph,
    table: str | Path | ScaleTable | None = None,
    *,
    io: str = "float",
    layout: str = "nchw",
    image: "Preprocess | None" = None,
    shapes: Shapes | None = None,
    keep_float: Collection[str] = (),
    requantize: str = "float",
    accumulator_aware: bool = False,
    max_sqnr_loss: float = 0.1,
) -> bytes:
    """The .n8 file of a network with these scales.

    table: None for an ONNX file that was quantized elsewhere and has its own.  io:
    "float" for float32 inputs and outputs, "int8" for quantized ones.  layout: "nchw"
    or "nhwc", of those of four dimensions.  image: the input is uint8, N H W C, and
    scale, mean and std are in the file; its size and color are not.  shapes: of inputs
    whose dimensions an ONNX file leaves open.  keep_float: names of layers and ONNX
    operators, such as "Conv", that run in float32.  requantize: "float", or
    "fixed" for the integers of docs/numerics.md (10).  accumulator_aware: enlarge
    weight scales by what int16 needs to hold four products (11), in layers of which the
    weights lose less than max_sqnr_loss dB; not with "fixed", whose kernels sum in
    int32 alone.  GraphError, TableError.
    CompileError: the table does not fit the network, or a bound cannot be proved.  A
    weight scale that had to be enlarged is logged to "neon8".
    """
    return compile_network(
        model,
        table,
        io=io,
        layout=layout,
        image=image,
        shapes=shapes,
        keep_float=keep_float,
        requantize=requantize,
        accumulator_aware=accumulator_aware,
        max_sqnr_loss=max_sqnr_loss,
    ).file


def compile_network(
    model: str | Path | Graph,
    table: str | Path | ScaleTable | None = None,
    *,
    io: str = "float",
    layout: str = "nchw",
    image: "Preprocess | None" = None,
    shapes: Shapes | None = None,
    keep_float: Collection[str] = (),
    requantize: str = "float",
    accumulator_aware: bool = False,
    max_sqnr_loss: float = 0.1,
) -> Compiled:
    """As compile_model(), and which layers run in float32."""
    graph, scales = _network(model, table, shapes)
    if accumulator_aware and requantize == "fixed":
        said = "sums that are requantized in integers take no four products in int16"
        raise CompileError(
            f"{said}, so accumulator_aware would only cost accuracy; leave out one of "
            "both, --accumulator-aware or --requantize fixed"
        )
    try:
        program = lower.lower(
            graph,
            scales,
            io=io,
            layout=layout,
            images=_images(graph, image),
            keep_float=frozenset(keep_float),
            requantize=requantize,
            max_sqnr_loss=max_sqnr_loss if accumulator_aware else None,
        )
        return Compiled(
            file=writer.dumps(program), islands=program.islands, fits=program.fits
        )
    except CompileError as error:
        where = graph.name if model is graph else str(model)
        where += "" if table is scales or table is None else f" with {table}"
        raise CompileError(f"{where}: {error.text}", error.details) from error


def _images(graph: Graph, image: "Preprocess | None") -> dict[str, FloatArray]:
    """What lower() wants to know of an image."""
    if image is None:
        return {}
    if len(graph.inputs) != 1:
        text = f"an image is for one input, and there are {len(graph.inputs)}"
        raise CompileError(text)
    return {graph.inputs[0]: image.table()}


def _network(
    model: str | Path | Graph,
    table: str | Path | ScaleTable | None,
    shapes: Shapes | None,
) -> tuple[Graph, ScaleTable]:
    """The Graph and its scales, from wherever they come."""
    if isinstance(table, ScaleTable):
        given: ScaleTable | None = table
    else:
        given = None if table is None else table_json.load(table)
    if not isinstance(model, Graph):
        file = open_onnx(model, shapes=shapes)
        if is_quantized(file):
            graph, own = load_quantized(file)
            return graph, own if given is None else given
        if given is None:
            text = "has no scales of its own; `neon8 calibrate` makes a table of them"
            raise CompileError(f"{model}: {text}")
        return load(file), given
    if given is None:
        raise CompileError(f"{model.name}: a Graph needs a scale table")
    return model, given
