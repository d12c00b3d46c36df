# SPDX-License-Identifier: Apache-2.0
"""The float network that a refinement works on."""

from dataclasses import dataclass
from pathlib import Path

from neon8.errors import CalibrationError
from neon8.graph.importer import load_compilable
from neon8.graph.onnx_file import OnnxFile, Shapes, open_onnx
from neon8.graph.quantized import is_quantized
from neon8.ir.graph import Graph


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Network:
    """An ONNX file and its graph."""

    file: OnnxFile
    graph: Graph


def open_network(model: str | Path, *, shapes: Shapes | None = None) -> Network:
    """Open a network whose table is to be refined.

    shapes: of inputs whose dimensions the file leaves open.  CalibrationError: it was
    quantized elsewhere.  GraphError; CompileError: it cannot run in int8 at all.
    """
    file = open_onnx(model, shapes=shapes)
    if is_quantized(file):
        text = "was quantized elsewhere, so its weights and bits cannot be chosen"
        raise CalibrationError(f"{model}: {text}; give the float network")
    return Network(file=file, graph=load_compilable(file))
