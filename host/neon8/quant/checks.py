# SPDX-License-Identifier: Apache-2.0
"""Values out of a file that nobody trusts.  `where`: file, line, entry, for errors."""

import math
import re
from typing import Any

import numpy as np

from neon8.errors import TableError

SMALLEST_SCALE = 1e-30
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def decode(data: bytes, source: str) -> str:
    """The text of a file.  TableError with the line: not UTF-8."""
    try:
        return data.decode("utf-8-sig")  # editors put a byte order mark
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise TableError(f"{source}:{line}: is not UTF-8 text") from error


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
        with np.errstate(over="ignore"):
            rounded = np.float32(value)
    except OverflowError:  # an integer of hundreds of digits
        rounded = np.float32(np.inf)
    if not np.isfinite(rounded):
        cause = "is not a number" if math.isnan(rounded) else "is too large for float32"
        raise TableError(f"{where}: {_shown(value)} {cause}")
    return float(value)


def float32(where: str, value: Any) -> float:
    """A finite number, rounded to float32."""
    return float(np.float32(real(where, value)))


def scale(where: str, value: Any) -> float:
    """A float32 number that may serve as a scale."""
    number = float32(where, value)
    if number < float(np.float32(SMALLEST_SCALE)):
        text = f"{_shown(value)}: a scale is a positive number of at least"
        raise TableError(f"{where}: {text} {SMALLEST_SCALE}")
    return number


def step(where: str, value: Any) -> float:
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
