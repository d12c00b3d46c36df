# SPDX-License-Identifier: Apache-2.0
"""onnxruntime's TensorQuantOverrides as JSON.

    {"conv1.y": [{"quant_type": "QInt8", "scale": 0.02, "zero_point": 0}],
     "conv1.w": [{"axis": 0, "quant_type": "QInt8", "scale": 0.1, "zero_point": 0},
                 {"scale": 0.2, "zero_point": 0}, ...]}

The value of the extra option of that name, with the name of the QuantType in place of
the constant and numbers in place of numpy scalars; docs/formats.md has the lines that
turn it back. A list with an "axis" has one entry for each channel and belongs to
weights, whose name is all that the file knows of their layer.
"""

import json
import re
from typing import Any

from neon8.errors import TableError
from neon8.formats.foreign_table import (
    ForeignTable,
    QuantParams,
    Range,
    first_of,
    params_from,
    to_params,
)
from neon8.formats.format import Context, Format, from_bytes
from neon8.quant import strict_json
from neon8.quant.checks import decode, double_scale, integer, real, string
from neon8.quant.strict_json import JsonObject
from neon8.text import counted

TYPES = {"QInt8": (8, 0), "QUInt8": (8, 128), "QInt16": (16, 0), "QUInt16": (16, 32768)}
"""The types of a table: bits, and what is to be taken from a zero point to make it
signed."""
ENTRY = re.compile(r'\s*\{\s*"(?:[^"\\]|\\.)*"\s*:\s*\[')
"""How a file begins: an object whose first value is a list."""
KEYS = ("quant_type", "axis", "scale", "zero_point", "rmin", "rmax", "symmetric",
        "reduce_range", "convert")  # fmt: skip


def loads(data: bytes, *, source: str = "overrides") -> ForeignTable:
    """The scales and ranges in a file of overrides.  TableError names the line."""
    root = strict_json.loads(decode(data, source), source=source)
    if not isinstance(root, JsonObject):
        raise TableError(f"{source}:1: expected an object with a list per tensor")
    tensors: dict[str, QuantParams | Range] = {}
    constants: dict[str, tuple[int, tuple[float, ...]]] = {}
    bare = []
    for name, channels in root.items():
        string(f"{source}:1: a name", name)
        if not isinstance(channels, list) or not channels:
            text = f"tensor {name!r}: expected a list of objects"
            raise TableError(f"{source}:{root.line}: {text}")
        first = channels[0]
        entries = []
        for index, channel in enumerate(channels):
            line = channel.line if isinstance(channel, JsonObject) else root.line
            where = f"{source}:{line}: tensor {name!r}"
            if len(channels) > 1:
                where += f": channel {index}"
            entries.append(_entry(where, channel, first))
        known = [entry for entry in entries if entry is not None]
        place = f"{source}:{first.line}: tensor {name!r}"
        if not known:
            bare.append(name)
        elif len(known) < len(entries):
            text = f"{len(known)} of {len(entries)} channels have a scale or range"
            raise TableError(f"{place}: {text}")
        elif "axis" in first:
            scales = tuple(
                _weight_scale(f"{place}: channel {index}", entry)
                for index, entry in enumerate(known)
            )
            constants[name] = (first["axis"], scales)
        elif len(known) > 1:
            raise TableError(f"{place}: has several entries and no axis")
        else:
            tensors[name] = known[0]
    table = ForeignTable(
        source=source, format="ort-overrides", tensors=tensors, constants=constants
    )
    if not bare:
        return table
    return table.with_note(f"left out, without scale or range: {first_of(bare)}")


def _entry(where: str, entry: Any, first: Any) -> QuantParams | Range | None:
    """One channel, or the whole tensor; None if it says nothing about scales."""
    if not isinstance(entry, JsonObject) or not isinstance(first, JsonObject):
        raise TableError(f"{where}: expected an object")
    for key in entry:
        if key not in KEYS:
            text = f"key {key!r} is unknown; there are {', '.join(KEYS)}"
            raise TableError(f"{where}: {text}")
    if "convert" in entry:
        text = "convert: a second type for one tensor is not supported"
        raise TableError(f"{where}: {text}")
    if "axis" in entry:
        integer(f"{where}: axis", entry["axis"], -8, 7)
    for key in ("axis", "quant_type", "symmetric", "reduce_range"):
        if key in entry and entry[key] != first.get(key):
            text = f"{key} is not that of the first channel, as it must be"
            raise TableError(f"{where}: {text}")
    for pair in (("scale", "zero_point"), ("rmin", "rmax")):
        if (pair[0] in entry) != (pair[1] in entry):
            raise TableError(f"{where}: {pair[0]} and {pair[1]} go together")
    for key in ("symmetric", "reduce_range"):
        if not isinstance(entry.get(key, False), bool):
            raise TableError(f"{where}: {key}: expected true or false")
    kind = _type(where, first)
    if "scale" in entry:
        extra = [k for k in ("rmin", "rmax", "symmetric", "reduce_range") if k in entry]
        if extra:
            text = f"scale does not go with {extra[0]}"
            raise TableError(f"{where}: {text}")
        return _params(where, entry, kind)
    if "rmin" not in entry:
        return None
    lo, hi = (real(f"{where}: {key}", entry[key]) for key in ("rmin", "rmax"))
    if lo > hi:
        raise TableError(f"{where}: rmin {lo:g} is above rmax {hi:g}")
    if kind is not None and TYPES[kind][0] != 8:
        text = f"a range does not make the scale of {kind}"
        raise TableError(f"{where}: {text}; give scale and zero_point")
    return Range(lo=lo, hi=hi)


def _type(where: str, first: JsonObject) -> str | None:
    name = first.get("quant_type")
    if name is None:
        return None
    text = string(f"{where}: quant_type", name).removeprefix("QuantType.")
    if text not in TYPES:
        cause = f"quant_type: {text[:40]!r} is not supported; there are"
        raise TableError(f"{where}: {cause} {', '.join(TYPES)}")
    return text


def _params(where: str, entry: JsonObject, kind: str | None) -> QuantParams:
    if kind is None:
        text = "a zero point means nothing without quant_type"
        raise TableError(f"{where}: {text}; add it to the first entry")
    bits, offset = TYPES[kind]
    least = offset - 2 ** (bits - 1)
    text = f"{where}: zero_point"
    zero_point = integer(text, entry["zero_point"], least, least + 2**bits - 1)
    scale = double_scale(f"{where}: scale", entry["scale"])
    return params_from(scale, zero_point - offset, bits=bits)


def _weight_scale(where: str, entry: QuantParams | Range) -> float:
    """The scale of one channel of weights, which are symmetric."""
    if isinstance(entry, Range):
        return max(-entry.lo, entry.hi, 0.0) / 127
    if entry.zero_point != 0:
        raise TableError(f"{where}: weights have zero point 0, not one of their own")
    if entry.bits != 8:
        raise TableError(f"{where}: weights of {entry.bits} bits; ours have 8")
    return entry.scale


def prepare(table: ForeignTable, _context: Context) -> ForeignTable:
    """Note it in `table` if weights have no name of their own."""
    unnamed = [name for name in table.weights if name not in table.weight_names]
    if not unnamed:
        return table
    layers = counted(len(unnamed), "layer")
    text = f"the weight scales of {layers} are left out, such as {unnamed[0]!r}"
    return table.with_note(f"{text}: --model names the weights that are not folded")


def dumps(table: ForeignTable) -> bytes:
    """The bytes of the file: all tensors, and the weights whose names are known.

    TableError: neither is there, or a tensor or channel that is all zero.
    """
    root: dict[str, Any] = {}
    for name, entry in table.tensors.items():
        root[name] = [_scale(f"{table.source}: tensor {name!r}", to_params(entry))]
    named = dict(table.constants)
    for layer, scales in table.weights.items():
        if layer not in table.weight_names:
            continue
        weights, axis = table.weight_names[layer]
        if named.setdefault(weights, (axis, scales)) != (axis, scales):
            text = f"layer {layer!r} and another one share {weights!r}"
            raise TableError(f"{table.source}: {text} and have scales of their own")
    for name, (axis, scales) in named.items():
        where = f"{table.source}: weights {name!r}"
        entries = [_scale(where, QuantParams(scale=scale)) for scale in scales]
        root[name] = [{"axis": axis, **entries[0]}, *entries[1:]]
    if not root:
        text = "overrides need scales of tensors or names of weights, it has"
        raise TableError(f"{table.source}: {text} {table.contents}; --model names both")
    return (json.dumps(root, allow_nan=False, indent=1) + "\n").encode()


def _scale(where: str, entry: QuantParams) -> dict[str, Any]:
    if entry.scale == 0:
        text = "is all zero; an override cannot say so"
        raise TableError(f"{where}: {text}: give it a scale in the source")
    return {
        "quant_type": f"QInt{entry.bits}",
        "scale": double_scale(where, entry.scale),
        "zero_point": entry.zero_point,
    }


FORMAT = Format(
    name="ort-overrides",
    recognise=lambda head: ENTRY.match(head) is not None,
    read=from_bytes(loads),
    prepare=prepare,
    write=dumps,
    bits=(8, 16),
    weights=True,
)
