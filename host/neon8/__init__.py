# SPDX-License-Identifier: Apache-2.0
"""neon8: float ONNX networks as int8 networks on ARM, every step on a PC.

    import neon8

    table = neon8.calibrate_model("net.onnx", "calibration.npz")
    neon8.save_table(table, "net.scales.json")
    neon8.save_model(neon8.compile_model("net.onnx", table), "net.n8")
    print(neon8.evaluate_model("net.n8", "test.npz", reference="net.onnx"))

    with neon8.Model.open("net.n8") as model, model.session(threads=1) as session:
        outputs = session.run({"image": image})

The public names are those of this flat namespace and of neon8.errors; every error
derives from neon8.errors.Neon8Error. The functions have two words in their names
because neon8.calibrate, neon8.compile and neon8.evaluate are packages.

Importing neon8 costs next to nothing: each name loads its module when it is first used.
Model and Session need numpy and cffi only, so they work on a board; calibration and
compilation need onnx and onnxruntime, too.
"""

import importlib
from typing import TYPE_CHECKING

from neon8 import errors
from neon8.version import __version__

if TYPE_CHECKING:
    from neon8.api import (
        calibrate_model,
        convert_table,
        inspect_file,
        load_graph,
        load_observation,
        load_table,
        merge_observations,
        observe_model,
        save_model,
        save_observation,
        save_table,
        solve_observation,
    )
    from neon8.calibrate.observation import Observation
    from neon8.compile.compiler import compile_model
    from neon8.data.preprocess import Preprocess
    from neon8.evaluate.evaluate import evaluate_model
    from neon8.evaluate.metrics import Evaluation
    from neon8.ir.graph import Graph
    from neon8.quant.scale_table import LayerScale, ScaleTable, TensorScale
    from neon8.refine.diagnosis import Diagnosis, diagnose_model
    from neon8.runtime import Model, Session, ThreadPool
    from neon8.runtime.emulate import EmulatedModel

__all__ = [
    "Diagnosis",
    "EmulatedModel",
    "Evaluation",
    "Graph",
    "LayerScale",
    "Model",
    "Observation",
    "Preprocess",
    "ScaleTable",
    "Session",
    "TensorScale",
    "ThreadPool",
    "__version__",
    "calibrate_model",
    "compile_model",
    "convert_table",
    "diagnose_model",
    "errors",
    "evaluate_model",
    "inspect_file",
    "load_graph",
    "load_observation",
    "load_table",
    "merge_observations",
    "observe_model",
    "save_model",
    "save_observation",
    "save_table",
    "solve_observation",
]

_HOMES = {
    "neon8.api": (
        "calibrate_model",
        "convert_table",
        "inspect_file",
        "load_graph",
        "load_observation",
        "load_table",
        "merge_observations",
        "observe_model",
        "save_model",
        "save_observation",
        "save_table",
        "solve_observation",
    ),
    "neon8.compile.compiler": ("compile_model",),
    "neon8.calibrate.observation": ("Observation",),
    "neon8.evaluate.evaluate": ("evaluate_model",),
    "neon8.evaluate.metrics": ("Evaluation",),
    "neon8.ir.graph": ("Graph",),
    "neon8.data.preprocess": ("Preprocess",),
    "neon8.refine.diagnosis": ("Diagnosis", "diagnose_model"),
    "neon8.runtime": ("Model", "Session", "ThreadPool"),
    "neon8.runtime.emulate": ("EmulatedModel",),
    "neon8.quant.scale_table": ("LayerScale", "ScaleTable", "TensorScale"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    """Load a public name from its module, once."""
    if name not in _HOME:
        message = f"module 'neon8' has no attribute {name!r}"
        raise AttributeError(message)
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names, loaded or not."""
    return sorted(__all__)
