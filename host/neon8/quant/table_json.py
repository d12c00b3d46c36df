# SPDX-License-Identifier: Apache-2.0
"""The scale table as JSON: for a person to read and edit, one tensor to a line.

Every real number in it is a float32, written as the shortest decimal that gives that
float32 back. The compiler uses "scale" and "zero_point"; the rest says where they came
from. The reader trusts nothing.
"""

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from os import PathLike
from typing import Any

import numpy as np

from neon8.errors import TableError
from neon8.files import write_atomic
from neon8.quant import strict_json
from neon8.quant.checks import decode, float32, integer, read_bytes, string
from neon8.quant.checks import scale as checked_scale
from neon8.quant.limits import MAX_FACTOR
from neon8.quant.scale_table import (
    BITS,
    CHOSEN,
    LATTICE,
    NARROW,
    NEAREST,
    ROUNDINGS,
    SCHEMES,
    TABLE_SCHEMES,
    WIDE,
    LayerScale,
    ScaleTable,
    TensorScale,
)

FORMAT = "neon8 scale table"
VERSION = 1
REALS = ("scale", "threshold", "min", "max", "factors", "offsets", "weight_scales",
         "bias_correction", "sqnr_loss")  # fmt: skip
"""The fields of an entry that are float32, or several of them."""


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
    if table.reasons:
        head["reasons"] = table.reasons
    if table.shapes:
        head["shapes"] = table.shapes
    lines = [f"  {_text(key)}: {_text(value)}," for key, value in head.items()]
    tensors, layers = _block(table.tensors), _block(table.layers)
    body = f'  "tensors": {tensors},\n  "layers": {layers}'
    return "{\n" + "\n".join(lines) + "\n" + body + "\n}\n"


def save(table: ScaleTable, path: str | PathLike[str]) -> None:
    """Write the table, whole or not at all.  SetupError."""
    write_atomic(path, dumps(table).encode())


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        value = base64.b64encode(value).decode()
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _block(entries: Mapping[str, TensorScale] | Mapping[str, LayerScale]) -> str:
    body = ",\n".join(f"    {_text(k)}: {_entry(e)}" for k, e in entries.items())
    return "{\n" + body + "\n  }" if body else "{}"


def _entry(entry: TensorScale | LayerScale) -> str:
    """The fields that are not what they are by default."""
    parts = []
    for field in fields(entry):
        value = getattr(entry, field.name)
        if value != field.default:
            write = _real if field.name in REALS else _text
            parts.append(f"{_text(field.name)}: {write(value)}")
    return "{" + ", ".join(parts) + "}"


def _real(value: Any) -> str:
    """The shortest decimals of a float32, of several, or of what is not known."""
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_real, value)) + "]"
    return "null" if value is None else str(np.float32(value))


def load(path: str | PathLike[str]) -> ScaleTable:
    """The table in the file `path`.  TableError names file, line, place and cause."""
    return loads(decode(read_bytes(path), str(path)), source=str(path))


def loads(text: str, *, source: str = "table") -> ScaleTable:
    """The table in `text`.  source: what errors call it."""
    data = strict_json.loads(text, source=source)
    head = f"{source}:1"
    root = _object(head, data, "format", "version", "model", "method", "scheme",
                   "samples", "engine", "tensors", "layers",
                   optional=("reasons", "shapes"))  # fmt: skip
    if root["format"] != FORMAT:
        raise TableError(f"{head}: format: expected {FORMAT!r}")
    if root["version"] != VERSION or isinstance(root["version"], bool):
        text = f"version: {root['version']!r} is unknown; this neon8 reads {VERSION}"
        raise TableError(f"{head}: {text}")
    model = _object(f"{head}: model", root["model"], "name", "digest")
    if root["scheme"] not in TABLE_SCHEMES:
        text = f"scheme: expected one of {', '.join(TABLE_SCHEMES)}"
        raise TableError(f"{head}: {text}")
    tensors = {
        name: _read_tensor(_place(source, "tensor", name, value), value)
        for name, value in _mapping(head, root, "tensors").items()
    }
    layers = {
        name: _read_layer(_place(source, "layer", name, value), value, tensors)
        for name, value in _mapping(head, root, "layers").items()
    }
    return ScaleTable(
        model_name=string(f"{head}: model: name", model["name"]),
        model_digest=_digest(f"{head}: model: digest", model["digest"]),
        method=string(f"{head}: method", root["method"]),
        scheme=root["scheme"],
        samples=integer(f"{head}: samples", root["samples"], 0, 2**63 - 1),
        engine=string(f"{head}: engine", root["engine"]),
        tensors=tensors,
        layers=layers,
        reasons=_read_reasons(head, root),
        shapes=_read_shapes(f"{head}: shapes", root.get("shapes", {})),
    )


def _place(source: str, what: str, name: str, value: Any) -> str:
    """For errors: the file, the line of an entry, and its name."""
    line = value.line if isinstance(value, strict_json.JsonObject) else 1
    return f"{source}:{line}: {what} {name!r}"


def _read_tensor(where: str, data: Any) -> TensorScale:
    data = _object_of(where, data, TensorScale)
    scheme = data["scheme"]
    if scheme not in SCHEMES:
        text = f"scheme: {scheme!r} is unknown; expected one of {', '.join(SCHEMES)}"
        raise TableError(f"{where}: {text}")
    bits = data.get("bits", NARROW)
    if bits not in BITS or isinstance(bits, bool | float):
        text = f"bits: {bits!r} is not one of {min(BITS)} to {max(BITS)}"
        raise TableError(f"{where}: {text}")
    if not isinstance(data.get("float32", False), bool):
        raise TableError(f"{where}: float32: expected true or false")
    least = -(2 ** (bits - 1))
    zero_point = integer(f"{where}: zero_point", data["zero_point"], least, -least - 1)
    lo, hi = {"symmetric": (0, 0), "unsigned": (least, least)}.get(
        scheme, (least, -least - 1)
    )
    if not lo <= zero_point <= hi:
        text = f"zero_point: {zero_point}, but the scheme {scheme!r} has {lo}"
        raise TableError(f"{where}: {text}")
    threshold = data["threshold"]
    if not isinstance(threshold, list) or len(threshold) != 2:
        raise TableError(f"{where}: threshold: expected [lo, hi]")
    low, high = (float32(f"{where}: threshold", value) for value in threshold)
    smallest = _seen(f"{where}: min", data["min"])
    largest = _seen(f"{where}: max", data["max"])
    swapped = smallest is not None and largest is not None and smallest > largest
    if low > high or swapped:
        raise TableError(f"{where}: threshold or min and max are the wrong way round")
    return TensorScale(
        scale=checked_scale(f"{where}: scale", data["scale"]),
        zero_point=zero_point,
        scheme=scheme,
        threshold=(low, high),
        min=smallest,
        max=largest,
        bits=bits,
        float32=data.get("float32", False),
        method=string(f"{where}: method", data["method"]) if "method" in data else None,
        factors=_reals(where, data, "factors", _factor),
        offsets=_reals(where, data, "offsets", float32),
        reasons=_read_reasons(where, data),
    )


def _factor(where: str, value: Any) -> float:
    found = checked_scale(where, value)
    if not 1 / MAX_FACTOR <= found <= MAX_FACTOR:
        text = f"is {found:g}; a channel has 1/{MAX_FACTOR} to {MAX_FACTOR}"
        raise TableError(f"{where}: {text}; calibrate again, or leave factors out")
    return found


def _read_layer(where: str, data: Any, tensors: dict[str, TensorScale]) -> LayerScale:
    data = _object_of(where, data, LayerScale)
    name = string(f"{where}: input", data["input"])
    if name not in tensors:
        raise TableError(f"{where}: input: there is no tensor {name!r} in the table")
    scales = _reals(where, data, "weight_scales", checked_scale)
    groups = integer(f"{where}: groups", data.get("groups", 1), 1, 2**31 - 1)
    if len(scales) > 1 and len(scales) % groups:
        text = f"groups: {groups} do not divide {len(scales)} weight scales"
        raise TableError(f"{where}: {text}")
    rounding = data.get("rounding", ROUNDINGS[0])
    if rounding not in ROUNDINGS:
        text = f"rounding: {rounding!r} is not one of {', '.join(ROUNDINGS)}"
        raise TableError(f"{where}: {text}")
    bits = data.get("bits", NARROW)
    if bits not in (NARROW, WIDE) or isinstance(bits, bool | float):
        text = f"bits: {bits!r}, but weights have {NARROW} or {WIDE}"
        raise TableError(f"{where}: {text}")
    if bits == WIDE and rounding != NEAREST:
        text = f"rounding: {rounding!r} is for weights of {NARROW} bits"
        raise TableError(f'{where}: {text}; delete it, or "bits"')
    return LayerScale(
        input=name,
        groups=groups,
        bits=bits,
        bias_correction=_reals(where, data, "bias_correction", float32),
        rounding=rounding,
        levels=_read_levels(where, data, rounding),
        sqnr_loss=float32(f"{where}: sqnr_loss", data["sqnr_loss"])
        if "sqnr_loss" in data
        else None,
        weight_scales=scales,
        reasons=_read_reasons(where, data),
    )


def _read_levels(where: str, data: dict[str, Any], rounding: str) -> bytes:
    """The bits of the weights: of all that were chosen, of some on the lattice."""
    if ("levels" in data) != (rounding == CHOSEN) and rounding != LATTICE:
        text = f"levels: they and rounding {CHOSEN!r} belong together"
        raise TableError(f"{where}: {text}; delete both, or neither")
    if "levels" not in data:
        return b""
    text = string(f"{where}: levels", data["levels"])
    try:
        return base64.b64decode(text.encode(), validate=True)
    except binascii.Error as error:
        raise TableError(f"{where}: levels: is no base64: {error}") from error


def _reals(
    where: str, data: dict[str, Any], key: str, read: Callable[[str, Any], float]
) -> tuple[float, ...]:
    """An optional list of numbers; if it is there, it is not empty."""
    values = data.get(key, [])
    if not isinstance(values, list) or (key in data and not values):
        raise TableError(f"{where}: {key}: expected a list of numbers")
    return tuple(read(f"{where}: {key}[{at}]", each) for at, each in enumerate(values))


def _read_reasons(where: str, data: dict[str, Any]) -> tuple[str, ...]:
    reasons = data.get("reasons", [])
    if not isinstance(reasons, list):
        raise TableError(f"{where}: reasons: expected a list of strings")
    return tuple(string(f"{where}: reasons", reason) for reason in reasons)


def _read_shapes(where: str, data: Any) -> dict[str, tuple[int, ...]]:
    lists = isinstance(data, dict) and all(isinstance(d, list) for d in data.values())
    if not lists:
        raise TableError(f"{where}: expected lists of dimensions")
    return {
        string(where, name): tuple(integer(where, n, 1, 2**31 - 1) for n in dims)
        for name, dims in data.items()
    }


def _object_of(
    where: str, data: Any, kind: type[TensorScale | LayerScale]
) -> dict[str, Any]:
    """An object with the fields of `kind`; those that have a default may be absent."""
    needed = [field.name for field in fields(kind) if field.default is MISSING]
    optional = [field.name for field in fields(kind) if field.name not in needed]
    return _object(where, data, *needed, optional=tuple(optional))


def _object(
    where: str, data: Any, *keys: str, optional: tuple[str, ...] = ()
) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise TableError(f"{where}: expected an object with {', '.join(keys)}")
    for key in keys:
        if key not in data:
            raise TableError(f"{where}: {key} is missing")
    for key in data:
        if key not in (*keys, *optional):
            known = ", ".join((*keys, *optional))
            text = f"key {key!r} is unknown; there are {known}"
            raise TableError(f"{where}: {text}")
    return data


def _mapping(source: str, data: dict[str, Any], key: str) -> dict[str, Any]:
    value = data[key]
    if not isinstance(value, dict):
        raise TableError(f"{source}: {key}: expected an object")
    for name in value:
        string(f"{source}: {key}: a name", name)
    return value


def _seen(where: str, value: Any) -> float | None:
    """null: nobody says what was seen."""
    return None if value is None else float32(where, value)


def _digest(where: str, value: Any) -> str:
    text = string(where, value)
    head, _, digits = text.partition(":")
    if head != "sha256" or len(digits) != 64 or set(digits) - set("0123456789abcdef"):
        raise TableError(f"{where}: expected sha256: and 64 hexadecimal digits")
    return digits
