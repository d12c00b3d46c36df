# SPDX-License-Identifier: Apache-2.0
"""The user's own ranges, which win over calibrated ones.

A JSON file: {"tensors": {"a name or a pattern like conv*": SETTING, ...}}, SETTING one
of these objects:

    {"min": -1.5, "max": 6}              the range to cover; 0 is always in it
    {"threshold": 6}                     -6 to 6; 0 to 6 for a tensor never negative
    {"scale": 0.05, "zero_point": -128}  the grid itself
    {"method": "minmax"}                 chosen by another method ...
    {"scheme": "symmetric"}              ... or on another grid; goes with the others
    {"bits": 16}                         or as many as accumulators allow; also

A name wins over patterns. Tensors that share a scale share what is set for one of them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from os import PathLike
from typing import Any

import numpy as np

from neon8.errors import CalibrationError, TableError
from neon8.quant import checks, strict_json
from neon8.quant.scale_table import BITS, TABLE_SCHEMES
from neon8.settings import methods
from neon8.text import suggested

KEYS = ("min", "max", "threshold", "scale", "zero_point", "scheme", "method", "bits")
KINDS = (("min", "max"), ("threshold",), ("scale", "zero_point"), ("method",))
"""At most one of these, with all of its keys."""

_FLOAT32_MAX = float(np.finfo(np.float32).max)


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """The settings of a tensor; None: not set.  limits: (lo, hi), lo <= 0 <= hi."""

    limits: tuple[float, float] | None = None
    threshold: float | None = None
    scale: float | None = None
    zero_point: int | None = None
    scheme: str | None = None
    method: str | None = None
    bits: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An override and its place: file, line and name, for errors."""

    where: str
    override: Override


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides:
    """All entries by tensor name or pattern, in the order of the file."""

    entries: dict[str, Entry]


def load(path: str | PathLike[str]) -> Overrides:
    """Read a file of overrides.  TableError names file, line and entry."""
    data = checks.read_bytes(path)
    return loads(checks.decode(data, str(path)), source=str(path))


def loads(text: str, *, source: str = "overrides") -> Overrides:
    """Read overrides from JSON.  source: its name in errors.  TableError."""
    root = strict_json.loads(text, source=source)
    if not isinstance(root, dict) or set(root) != {"tensors"}:
        raise TableError(f'{source}:1: expected an object with "tensors" and no more')
    tensors = root["tensors"]
    if not isinstance(tensors, dict):
        raise TableError(f"{source}:1: tensors: expected an object")
    entries = {}
    for name, value in tensors.items():
        line = value.line if isinstance(value, strict_json.JsonObject) else 1
        where = f"{source}:{line}: tensor {name!r}"
        checks.string(where, name)
        entries[name] = Entry(where=where, override=_read(where, value))
    return Overrides(entries=entries)


def _read(where: str, data: Any) -> Override:
    if not isinstance(data, dict) or not data:
        raise TableError(f"{where}: expected an object with {', '.join(KEYS)}")
    for key in data:
        if key not in KEYS:
            text = f"key {key!r} is unknown; there are {', '.join(KEYS)}"
            raise TableError(f"{where}: {text}")
    kinds = [kind for kind in KINDS if any(key in data for key in kind)]
    if len(kinds) > 1:
        first, second = (" and ".join(kind) for kind in kinds[:2])
        raise TableError(f"{where}: {first} contradict {second}; give one of them")
    for key in kinds[0] if kinds else ():
        if key not in data:
            raise TableError(f"{where}: {key} is missing")
    scheme = data.get("scheme")
    if scheme is not None and scheme not in TABLE_SCHEMES:
        text = f"scheme: {scheme!r:.60} is not one of {', '.join(TABLE_SCHEMES)}"
        raise TableError(f"{where}: {text}")
    zero_point = scale = None
    if "scale" in data:
        scale = checks.scale(f"{where}: scale", data["scale"])
        place = f"{where}: zero_point"
        zero_point = checks.integer(place, data["zero_point"], -32768, 32767)
    return Override(
        limits=_limits(where, data) if "min" in data else None,
        threshold=_threshold(where, data) if "threshold" in data else None,
        scale=scale,
        zero_point=zero_point,
        scheme=scheme,
        method=_method(where, data["method"]) if "method" in data else None,
        bits=_bits(where, data["bits"]) if "bits" in data else None,
    )


def _bits(where: str, value: Any) -> int:
    return int(checks.integer(f"{where}: bits", value, min(BITS), max(BITS)))


def _limits(where: str, data: Mapping[str, Any]) -> tuple[float, float]:
    lo = checks.float32(f"{where}: min", data["min"])
    hi = checks.float32(f"{where}: max", data["max"])
    if lo > hi:
        raise TableError(f"{where}: min {lo:.9g} is above max {hi:.9g}")
    if lo == hi == 0:
        raise TableError(f"{where}: min and max are 0: the range is empty")
    if data.get("scheme") == "unsigned" and lo < 0:
        raise TableError(f"{where}: min {lo:.9g} is negative, but scheme is unsigned")
    if hi - lo > _FLOAT32_MAX:
        raise TableError(f"{where}: max - min is too large for float32")
    return min(lo, 0.0), max(hi, 0.0)


def _threshold(where: str, data: Mapping[str, Any]) -> float:
    threshold = checks.float32(f"{where}: threshold", data["threshold"])
    if threshold <= 0:
        raise TableError(f"{where}: threshold: {threshold:.9g} is not positive")
    return threshold


def _method(where: str, text: Any) -> str:
    try:
        return str(methods.parse(checks.string(f"{where}: method", text)))
    except CalibrationError as error:
        raise TableError(f"{where}: {error}") from error


def resolve(overrides: Overrides, groups: Mapping[str, str]) -> dict[str, Entry]:
    """Scale group -> its override.

    groups: every tensor of the network -> its scale group.  TableError: an entry fits
    no tensor, or two entries for one group differ.
    """
    names: dict[str, Entry] = {}
    patterns: dict[str, Entry] = {}
    for name, entry in overrides.entries.items():
        if name in groups:
            _set(names, groups[name], entry)
    for name, entry in overrides.entries.items():
        if name in groups:
            continue
        fitting = [group for key, group in groups.items() if fnmatchcase(key, name)]
        if not fitting:
            raise TableError(f"{entry.where}: {_nothing(name, groups)}")
        for group in fitting:
            if group not in names:
                _set(patterns, group, entry)
    return {**patterns, **names}


def _set(found: dict[str, Entry], group: str, entry: Entry) -> None:
    other = found.setdefault(group, entry)
    if other.override != entry.override:
        raise TableError(
            f"{entry.where}: contradicts {other.where}: both set the scale of the "
            f"group of {group!r}"
        )


def _nothing(name: str, tensors: Iterable[str]) -> str:
    if any(letter in name for letter in "*?["):
        return "the pattern fits no tensor of the network"
    return f"the network has no such tensor{suggested(name, tensors)}"
