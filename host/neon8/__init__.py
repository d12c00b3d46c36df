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

import ast
import importlib
from pathlib import Path

from neon8 import errors as errors
from neon8.version import __version__ as __version__


def _homes() -> dict[str, str]:
    """Public name -> the module that has it, as __init__.pyi lists them."""
    listed = ast.parse(Path(__file__).with_suffix(".pyi").read_text("utf-8")).body
    return {
        alias.name: str(node.module)
        for node in listed
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


_HOME = _homes()
__all__ = sorted(_HOME)  # noqa: PLE0605 - the list is in __init__.pyi


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
    return list(__all__)
