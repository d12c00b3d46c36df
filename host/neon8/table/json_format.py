# SPDX-License-Identifier: Apache-2.0
"""The scale table as JSON: for a person to read and edit, one tensor to a line.

Every real number in it is a float32, written as the shortest decimal that gives that
float32 back. The compiler uses "scale" and "zero_point"; the rest says where they came
from. The reader trusts nothing.
"""

import json
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from neon8.errors import TableError
from neon8.table.scale_table import SCHEMES, LayerScale, ScaleTable, TensorScale

FORMAT = "neon8 scale table"
VERSION = 1
SMALLEST_SCALE = 1e-30
ZERO_POINTS = {"symmetric": (0, 0), "unsigned": (-128, -128), "asymmetric": (-128, 127)}


def dumps(table: ScaleTable) -> str:
    """The text of `table`; loads() gives the same table back."""
    head = {
        "format": FORMAT,
        "version": VERSION,
        "model": {"name": table.model_name, "digest": f"sha256:{table.model_digest}"},
        "method": table.method,
        "scheme": table.scheme,
        "samples": table.samples,
        "engine": table.engine,
    }
    lines = [f"  {_text(key)}: {_text(value)}," for key, value in head.items()]
    tensors = (f"{_text(key)}: {_tensor(t)}" for key, t in table.tensors.items())
    layers = (f"{_text(key)}: {_layer(layer)}" for key, layer in table.layers.items())
    body = f'  "tensors": {_block(tensors)},\n  "layers": {_block(layers)}'
    return "{\n" + "\n".join(lines) + "\n" + body + "\n}\n"


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _number(value: float) -> str:
    return str(np.float32(value))


def _numbers(values: Iterable[float]) -> str:
    return "[" + ", ".join(map(_number, values)) + "]"


def _block(lines: Iterable[str]) -> str:
    body = ",\n".join(f"    {line}" for line in lines)
    return "{\n" + body + "\n  }" if body else "{}"


def _reasons(reasons: tuple[str, ...]) -> str:
    return f', "reasons": {_text(reasons)}' if reasons else ""


def _tensor(tensor: TensorScale) -> str:
    return (
        f'{{"scale": {_number(tensor.scale)}, "zero_point": {tensor.zero_point}, '
        f'"scheme": {_text(tensor.scheme)}, "threshold": {_numbers(tensor.threshold)}, '
        f'"min": {_number(tensor.min)}, "max": {_number(tensor.max)}'
        f"{_reasons(tensor.reasons)}}}"
    )


def _layer(layer: LayerScale) -> str:
    return (
        f'{{"input": {_text(layer.input)}, '
        f'"weight_scales": {_numbers(layer.weight_scales)}{_reasons(layer.reasons)}}}'
    )


def load(path: str | PathLike[str]) -> ScaleTable:
    """The table in the file `path`.  TableError names file, place and cause."""
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise TableError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise TableError(f"{path}: is not UTF-8 text, so no scale table") from error
    return loads(text, source=str(path))


def loads(text: str, *, source: str = "table") -> ScaleTable:
    """The table in `text`.  source: what errors call it."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            double = next(name for name in names if names.count(name) > 1)
            raise TableError(f"{source}: key {double!r} occurs twice")
        return found

    try:
        data = json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        text = f"{source}:{error.lineno}: is not JSON: {error.msg}"
        raise TableError(text) from error
    except (RecursionError, ValueError) as error:  # nesting, numbers of 5000 digits
        raise TableError(f"{source}: is not a scale table") from error
    root = _object(source, data, "format", "version", "model", "method", "scheme",
                   "samples", "engine", "tensors", "layers")  # fmt: skip
    if root["format"] != FORMAT:
        raise TableError(f"{source}: format: expected {FORMAT!r}")
    if root["version"] != VERSION or isinstance(root["version"], bool):
        text = f"version: {root['version']!r} is unknown; this neon8 reads {VERSION}"
        raise TableError(f"{source}: {text}")
    model = _object(f"{source}: model", root["model"], "name", "digest")
    if root["scheme"] not in ("auto", "symmetric"):
        raise TableError(f"{source}: scheme: expected 'auto' or 'symmetric'")
    tensors = {
        name: _read_tensor(f"{source}: tensor {name!r}", value)
        for name, value in _mapping(source, root, "tensors").items()
    }
    layers = {
        name: _read_layer(f"{source}: layer {name!r}", value, tensors)
        for name, value in _mapping(source, root, "layers").items()
    }
    return ScaleTable(
        model_name=_string(f"{source}: model: name", model["name"]),
        model_digest=_digest(f"{source}: model: digest", model["digest"]),
        method=_string(f"{source}: method", root["method"]),
        scheme=root["scheme"],
        samples=_integer(f"{source}: samples", root["samples"], 0, 2**63 - 1),
        engine=_string(f"{source}: engine", root["engine"]),
        tensors=tensors,
        layers=layers,
    )


def _read_tensor(where: str, data: Any) -> TensorScale:
    data = _object(where, data, "scale", "zero_point", "scheme", "threshold", "min",
                   "max", optional="reasons")  # fmt: skip
    scheme = data["scheme"]
    if scheme not in SCHEMES:
        text = f"scheme: {scheme!r} is unknown; expected one of {', '.join(SCHEMES)}"
        raise TableError(f"{where}: {text}")
    zero_point = _integer(f"{where}: zero_point", data["zero_point"], -128, 127)
    lo, hi = ZERO_POINTS[scheme]
    if not lo <= zero_point <= hi:
        text = f"zero_point: {zero_point}, but the scheme {scheme!r} has {lo}"
        raise TableError(f"{where}: {text}")
    threshold = data["threshold"]
    if not isinstance(threshold, list) or len(threshold) != 2:
        raise TableError(f"{where}: threshold: expected [lo, hi]")
    low, high = (_real(f"{where}: threshold", value) for value in threshold)
    smallest = _real(f"{where}: min", data["min"])
    largest = _real(f"{where}: max", data["max"])
    if low > high or smallest > largest:
        raise TableError(f"{where}: threshold or min and max are the wrong way round")
    return TensorScale(
        scale=_scale(f"{where}: scale", data["scale"]),
        zero_point=zero_point,
        scheme=scheme,
        threshold=(low, high),
        min=smallest,
        max=largest,
        reasons=_read_reasons(where, data),
    )


def _read_layer(where: str, data: Any, tensors: dict[str, TensorScale]) -> LayerScale:
    data = _object(where, data, "input", "weight_scales", optional="reasons")
    name = _string(f"{where}: input", data["input"])
    if name not in tensors:
        raise TableError(f"{where}: input: there is no tensor {name!r} in the table")
    scales = data["weight_scales"]
    if not isinstance(scales, list) or not scales:
        raise TableError(f"{where}: weight_scales: expected a list of numbers")
    return LayerScale(
        input=name,
        weight_scales=tuple(
            _scale(f"{where}: weight_scales[{index}]", scale)
            for index, scale in enumerate(scales)
        ),
        reasons=_read_reasons(where, data),
    )


def _read_reasons(where: str, data: dict[str, Any]) -> tuple[str, ...]:
    reasons = data.get("reasons", [])
    if not isinstance(reasons, list):
        raise TableError(f"{where}: reasons: expected a list of strings")
    return tuple(_string(f"{where}: reasons", reason) for reason in reasons)


def _object(where: str, data: Any, *keys: str, optional: str = "") -> dict[str, Any]:
    if not isinstance(data, dict):
        raise TableError(f"{where}: expected an object with {', '.join(keys)}")
    for key in keys:
        if key not in data:
            raise TableError(f"{where}: {key} is missing")
    for key in data:
        if key not in keys and key != optional:
            text = f"key {key!r} is unknown; there are {', '.join(keys)}"
            raise TableError(f"{where}: {text}")
    return data


def _mapping(source: str, data: dict[str, Any], key: str) -> dict[str, Any]:
    value = data[key]
    if not isinstance(value, dict):
        raise TableError(f"{source}: {key}: expected an object")
    for name in value:
        _string(f"{source}: {key}: a name", name)
    return value


def _string(where: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise TableError(f"{where}: expected a string that is not empty")
    if any(0xD800 <= ord(letter) < 0xE000 for letter in value):
        raise TableError(f"{where}: contains half of a surrogate pair")
    return value


def _digest(where: str, value: Any) -> str:
    text = _string(where, value)
    head, _, digits = text.partition(":")
    if head != "sha256" or len(digits) != 64 or set(digits) - set("0123456789abcdef"):
        raise TableError(f"{where}: expected sha256: and 64 hexadecimal digits")
    return digits


def _integer(where: str, value: Any, lo: int, hi: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not lo <= value <= hi:
        raise TableError(f"{where}: {value!r} is not a whole number from {lo} to {hi}")
    return value


def _real(where: str, value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TableError(f"{where}: {value!r} is not a number")
    if isinstance(value, float) and not np.isfinite(value):
        raise TableError(f"{where}: {value!r} is no number that a table may hold")
    try:
        with np.errstate(over="ignore"):
            number = float(np.float32(value))
    except OverflowError as error:
        raise TableError(f"{where}: is too large for float32") from error
    if not np.isfinite(number):
        raise TableError(f"{where}: {value!r} is too large for float32")
    return number


def _scale(where: str, value: Any) -> float:
    scale = _real(where, value)
    if scale < float(np.float32(SMALLEST_SCALE)):
        text = f"{value!r}: a scale is a positive number of at least {SMALLEST_SCALE}"
        raise TableError(f"{where}: {text}")
    return scale
