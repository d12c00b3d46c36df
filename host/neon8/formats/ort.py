# SPDX-License-Identifier: Apache-2.0
"""onnxruntime's calibration ranges as JSON, in its two layouts.

calibration.json of write_calibration_table:
    {"t": {"CLS": "TensorData", "lowest": <array>, "highest": <array>}, ...}
the file of calibration_cache_path:
    {"CLS": "TensorsData", "data": {<as above>}, "calibration_method": {"CLS":
     "CalibrationMethod", "value": "CalibrationMethod.MinMax"}, "smooth_quant": false}
<array> is {"data": 1.5, "dtype": "float32", "CLS": "numpy.array"}, or a bare number.

Beside its calibration.json onnxruntime writes calibration.cache, "name value" lines in
which value is max(highest, lowest): of -10 .. 1 that keeps 1. It is not read here.
"""

import json
from dataclasses import replace
from functools import partial
from typing import Any

from neon8.errors import TableError
from neon8.formats.foreign_table import ForeignTable, Range, float32_range
from neon8.formats.format import Format, begins_as_json, from_bytes
from neon8.quant import strict_json
from neon8.quant.checks import decode, real, string
from neon8.quant.strict_json import JsonObject
from neon8.text import counted

METHODS = ("MinMax", "Entropy", "Percentile", "Distribution")
FIELDS = ("CLS", "lowest", "highest", "avg", "std", "hist", "hist_edges", "bins")
FLOATS = ("float16", "float32", "float64")


def loads(data: bytes, *, source: str = "calibration") -> ForeignTable:
    """The ranges in either layout.  TableError names the line."""
    root = strict_json.loads(decode(data, source), source=source)
    where = f"{source}:1"
    if not isinstance(root, JsonObject):
        raise TableError(f"{where}: expected an object with a TensorData per tensor")
    header = {}
    entries: Any = root
    if root.get("CLS") == "TensorsData":
        for key in root:
            if key not in ("CLS", "data", "calibration_method", "smooth_quant"):
                raise TableError(f"{where}: key {key!r} is unknown in TensorsData")
        header["method"] = _method(where, root.get("calibration_method"))
        smooth = root.get("smooth_quant", False)
        if smooth is not False:
            text = f"smooth_quant is {smooth!r}: the ranges are of a changed network"
            raise TableError(f"{where}: {text}; calibrate without SmoothQuant")
        entries = root.get("data")
    if not isinstance(entries, JsonObject):
        raise TableError(f"{where}: data: expected an object with the tensors")
    tensors: dict[str, Range] = {}
    histograms = 0
    for name, entry in entries.items():
        string(f"{where}: a name", name)
        line = entry.line if isinstance(entry, JsonObject) else entries.line
        tensors[name] = _range(f"{source}:{line}: tensor {name!r}", entry)
        histograms += "hist" in entry
    table = ForeignTable(
        source=source, format="ort", tensors=dict(tensors), header=header
    )
    if not histograms:
        return table
    return table.with_note(
        f"left out: the histograms of {counted(histograms, 'tensor')}"
    )


def _method(where: str, value: Any) -> str:
    if isinstance(value, JsonObject) and value.get("CLS") == "CalibrationMethod":
        name = value.get("value")
        known = [method for method in METHODS if name == f"CalibrationMethod.{method}"]
        if known and len(value) == 2:
            return known[0]
    names = ", ".join(METHODS)
    raise TableError(f"{where}: calibration_method: expected a CLS and one of {names}")


def _range(where: str, entry: Any) -> Range:
    if not isinstance(entry, JsonObject) or entry.get("CLS") != "TensorData":
        raise TableError(f"{where}: expected an object with CLS TensorData")
    for key in entry:
        if key not in FIELDS:
            raise TableError(f"{where}: key {key!r} is unknown in TensorData")
    if "lowest" not in entry or "highest" not in entry:
        has = ", ".join(key for key in entry if key != "CLS") or "nothing"
        text = f"has {has}, and no lowest and highest, so no range"
        raise TableError(f"{where}: {text}; calibrate with another method")
    lo, hi = (_number(f"{where}: {key}", entry[key]) for key in ("lowest", "highest"))
    if lo > hi:
        raise TableError(f"{where}: lowest {lo:g} is above highest {hi:g}")
    return Range(lo=lo, hi=hi)


def _number(where: str, value: Any) -> float:
    """A bare number, or a numpy array with one element."""
    if isinstance(value, dict):
        if value.get("CLS") != "numpy.array" or value.get("dtype") not in FLOATS:
            text = "expected a number, or CLS numpy.array of a float dtype"
            raise TableError(f"{where}: {text}")
        if set(value) != {"CLS", "dtype", "data"}:
            raise TableError(f"{where}: expected CLS, dtype and data")
        value = value["data"]
        while isinstance(value, list) and len(value) == 1:
            value = value[0]
        if isinstance(value, list):
            text = f"has {len(value)} values, one for the tensor is expected"
            raise TableError(f"{where}: {text}")
    return real(where, value)


def dumps(table: ForeignTable, *, cache: bool = False) -> bytes:
    """The bytes of a file in the first layout.  TableError: no ranges of tensors.

    cache: the second layout, for calibration_cache_path; onnxruntime wants there the
    method that it will be called with, MinMax unless another one was read.
    """
    if "CLS" in table.tensors and not cache:
        text = "a tensor named 'CLS' cannot be told from the class"
        raise TableError(f"{table.source}: {text}; use ort-cache")
    entries = {
        name: _entry(float32_range(where, entry))
        for where, name, entry in table.tensors_for("onnxruntime needs ranges")
    }
    root: dict[str, Any] = entries
    if cache:
        method = f"CalibrationMethod.{table.header.get('method', METHODS[0])}"
        root = {
            "CLS": "TensorsData",
            "data": entries,
            "calibration_method": {"CLS": "CalibrationMethod", "value": method},
            "smooth_quant": False,
        }
    return (json.dumps(root, allow_nan=False, indent=1) + "\n").encode()


def _entry(ends: Range) -> dict[str, Any]:
    def array(value: float) -> dict[str, Any]:
        return {"data": value, "dtype": "float32", "CLS": "numpy.array"}

    return {
        "CLS": "TensorData",
        "lowest": array(ends.lo),
        "highest": array(ends.hi),
    }


def _is_cache(head: str) -> bool:
    return begins_as_json(head, '"CLS":"TensorsData"')


FORMAT = Format(
    name="ort",
    recognise=lambda head: (
        begins_as_json(head, '"CLS":"TensorData"') and not _is_cache(head)
    ),
    read=from_bytes(loads),
    write=dumps,
    ranges=True,
)
CACHE = replace(
    FORMAT,
    name="ort-cache",
    recognise=_is_cache,
    write=partial(dumps, cache=True),
)
"""Read like FORMAT, as loads() takes either."""
