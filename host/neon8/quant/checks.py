# SPDX-License-Identifier: Apache-2.0
"""Values out of a file that nobody trusts.  `where`: file, line, entry, for errors."""

import math
import re
from os import PathLike
from typing import Any

import numpy as np

from neon8.errors import TableError
from neon8.files import MAX_TEXT_BYTES, read_file, reading
from neon8.quant.limits import SMALLEST_SCALE

MOST_LINES = 1 << 18
"""Lines of a table, one for each tensor or layer; a model file holds 16384."""
LEAST_SCALE = float(np.float32(SMALLEST_SCALE))
FLOAT32_END = 2.0**128 - 2.0**103
"""The least number that float32 rounds to infinity."""
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def read_bytes(path: str | PathLike[str]) -> bytes:
    """The bytes of a table.  TableError: unreadable, or too large for one."""
    with reading(path, TableError):
        return read_file(path, most=MAX_TEXT_BYTES)


def decode(data: bytes, source: str) -> str:
    """The text of a file.  TableError with the line: not UTF-8."""
    try:
        return data.decode("utf-8-sig")  # editors put a byte order mark
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise TableError(f"{source}:{line}: is not UTF-8 text") from error


def decode_lines(data: bytes, source: str) -> list[str]:
    """The lines of a file.  TableError: not UTF-8, or more than MOST_LINES."""
    lines = decode(data, source).split("\n")
    if len(lines) > MOST_LINES:
        text = f"has {len(lines)} lines, more than {MOST_LINES}"
        raise TableError(f"{source}:{MOST_LINES}: {text}")
    return lines


def parse_real(where: str, text: str) -> float:
    """A plain decimal number that fits float32, in double."""
    if len(text) > 400 or not NUMBER.fullmatch(text):
        shown = text if len(text) <= 40 else f"{text[:40]}..."
        raise TableError(f"{where}: {shown!r} is not a number")
    return real(where, float(text))


def real(where: str, value: Any) -> float:
    """A finite number that fits float32, in double."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TableError(f"{where}: {_shown(value)} is not a number")
    try:
        number = float(value)
    except OverflowError:  # an integer of hundreds of digits
        number = math.inf
    if not abs(number) < FLOAT32_END:
        cause = "is not a number" if math.isnan(number) else "is too large for float32"
        raise TableError(f"{where}: {_shown(value)} {cause}")
    return number


def float32(where: str, value: Any) -> float:
    """A finite number, rounded to float32."""
    return float(np.float32(real(where, value)))


def scale(where: str, value: Any) -> float:
    """A float32 number that may serve as a scale."""
    number = float32(where, value)
    if number < LEAST_SCALE:
        text = f"{_shown(value)}: a scale is a positive number of at least"
        raise TableError(f"{where}: {text} {LEAST_SCALE:g}")
    return number


def double_scale(where: str, value: Any) -> float:
    """A scale in double, as it stands in the file."""
    scale(where, value)
    return float(value)


def string(where: str, value: Any) -> str:
    """Text that is not empty and can be written as UTF-8."""
    if not isinstance(value, str) or not value:
        raise TableError(f"{where}: expected a string that is not empty")
    if any(0xD800 <= ord(letter) < 0xE000 for letter in value):
        raise TableError(f"{where}: contains half of a surrogate pair")
    return value


def integer(where: str, value: Any, lo: int, hi: int) -> int:
    """A whole number from lo to hi."""
    if not isinstance(value, int) or isinstance(value, bool) or not lo <= value <= hi:
        text = f"{_shown(value)} is not a whole number from {lo} to {hi}"
        raise TableError(f"{where}: {text}")
    return value


def _shown(value: Any) -> str:
    """`value` for an error, not longer than a line should be."""
    if isinstance(value, int) and abs(value) >= 2**63:
        return "a number of very many digits"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
