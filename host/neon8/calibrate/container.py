# SPDX-License-Identifier: Apache-2.0
"""Named arrays and a JSON value as bytes, and back: .calib files and journals.

    8 bytes magic · u32 version · u32 length of the header · header · arrays · SHA-256

The header is a JSON object {"arrays": [[name, type, shape], ...], "facts": value}, its
keys sorted and without spaces. The arrays follow in that order with nothing between
them. All is little-endian; the SHA-256 is of all bytes before it. The bytes are
canonical: loads() takes no others for the same content.
"""

import hashlib
import json
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from neon8.arrays import AnyArray
from neon8.errors import CalibrationError

TYPES = ("<f4", "<f8", "<i4", "<i8", "<u4", "<u8", "|u1")
_START = struct.Struct("<8sII")
_DIGEST = hashlib.sha256().digest_size
_MOST_AXES = 8
_LARGEST = (1 << 62) - 1


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of file.  name: as in "a .calib file".  magic: 8 bytes."""

    name: str
    magic: bytes
    version: int


def dumps(kind: Kind, facts: Any, arrays: Mapping[str, AnyArray]) -> bytes:
    """Write a container.  facts: a JSON value.  arrays: of the TYPES."""
    table = [[name, array.dtype.str, array.shape] for name, array in arrays.items()]
    head = _header_text({"arrays": table, "facts": facts})
    parts = [_START.pack(kind.magic, kind.version, len(head)), head]
    parts += (array.tobytes() for array in arrays.values())
    body = b"".join(parts)
    return body + hashlib.sha256(body).digest()


def loads(kind: Kind, data: bytes) -> tuple[Any, dict[str, AnyArray]]:
    """Read what dumps() wrote.  CalibrationError: the cause, without the file's name.

    Bytes, table and sizes are checked, not what facts and arrays mean. Apart from the
    facts, which may nest as deeply as JSON allows, memory use is bounded by `data`.
    """
    if data[: len(kind.magic)] != kind.magic:
        raise CalibrationError(f"is not {kind.name}")
    if len(data) < _START.size + _DIGEST:
        raise CalibrationError("is truncated")
    _, version, length = _START.unpack_from(data)
    if version != kind.version:
        text = f"is of format version {version}; this neon8 reads {kind.version}"
        raise CalibrationError(f"{text}: observe again with this version")
    if hashlib.sha256(data[:-_DIGEST]).digest() != data[-_DIGEST:]:
        raise CalibrationError(
            "is damaged or truncated: its SHA-256 does not match; copy it again, "
            "or observe again"
        )
    at, stop = _START.size + length, len(data) - _DIGEST
    if at > stop:
        raise CalibrationError("is truncated")
    facts, table = _read_header(data[_START.size : at])
    arrays = {}
    for name, dtype, shape in map(_entry, table):
        count = math.prod(shape)
        size = count * dtype.itemsize
        if size > stop - at:
            raise CalibrationError(f"is truncated in array {name!r}")
        if name in arrays:
            raise CalibrationError(f"array {name!r} is there twice")
        flat = np.frombuffer(data, dtype, count, at)
        arrays[name] = flat.reshape(shape).astype(dtype.newbyteorder("="))
        at += size
    if at != stop:
        raise CalibrationError(f"has {stop - at} bytes too many")
    return facts, arrays


def _header_text(header: Any) -> bytes:
    return json.dumps(
        header, sort_keys=True, separators=(",", ":"), allow_nan=False
    ).encode()


def _read_header(text: bytes) -> tuple[Any, list[Any]]:
    try:
        header = json.loads(text.decode("ascii"))
        canonical = _header_text(header) == text
    except (ValueError, RecursionError) as error:
        raise CalibrationError("the header is not JSON in ASCII") from error
    if not canonical:
        raise CalibrationError("the header is not canonical, so neon8 did not write it")
    if not isinstance(header, dict) or sorted(header) != ["arrays", "facts"]:
        raise CalibrationError("the header is not an object of arrays and facts")
    table = header["arrays"]
    if not isinstance(table, list):
        raise CalibrationError("the header's arrays are not a list")
    return header["facts"], table


def _entry(value: Any) -> tuple[str, np.dtype[Any], list[int]]:
    if not isinstance(value, list) or len(value) != 3:
        raise CalibrationError("the header's arrays are not [name, type, shape]")
    name, kind, shape = value
    if not isinstance(name, str) or kind not in TYPES or not isinstance(shape, list):
        raise CalibrationError("the header's arrays are not [name, type, shape]")
    whole = all(type(size) is int and 0 <= size <= _LARGEST for size in shape)
    most = math.prod(max(size, 1) for size in shape) if whole else 0
    if not whole or len(shape) > _MOST_AXES or most > _LARGEST // 8:
        raise CalibrationError(f"array {name!r} has a shape that makes no sense")
    return name, np.dtype(kind), shape
