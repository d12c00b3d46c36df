# SPDX-License-Identifier: Apache-2.0
"""JSON from a file that nobody trusts: no key twice; objects know their line.

The line is what lets an error about a value, not only one about the syntax, say where.
NaN and infinity pass: checks.py refuses them by the name of their entry.
"""

import json
from bisect import bisect_left
from collections import Counter
from json.decoder import JSONObject  # type: ignore[attr-defined]
from json.scanner import py_make_scanner  # type: ignore[attr-defined]
from typing import Any

from neon8.errors import TableError

MAX_PARTS = 1 << 21
"""Objects, lists and entries of one file: each costs about 100 bytes of memory."""

MAX_VALUES = 1 << 23
"""Values of one file: 2000 tensors with 2048 bins and their edges have as many."""


class JsonObject(dict[str, Any]):
    """An object of the file; line: where it begins, from 1."""

    __slots__ = ("line",)

    line: int


def loads(text: str, *, source: str) -> Any:
    """The value in `text`, its objects JsonObject.  TableError names file and line."""
    for marks, most, what in (
        ("{[:", MAX_PARTS, "objects, lists and entries"),
        (",", MAX_VALUES, "values"),
    ):
        count = sum(map(text.count, marks))
        if count > most:
            raise TableError(f"{source}:1: has {count} {what}, more than {most}")
    breaks = [at for at, letter in enumerate(text) if letter == "\n"]

    def located(state: tuple[str, int], *rest: Any) -> tuple[Any, int]:
        line = bisect_left(breaks, state[1]) + 1
        try:
            value, end = JSONObject(state, *rest)
        except json.JSONDecodeError:
            raise
        except (ValueError, RecursionError) as error:
            raise TableError(f"{source}:{line}: {_cause(error)}") from error
        value.line = line
        return value, end

    decoder: Any = json.JSONDecoder(object_pairs_hook=_unique)
    decoder.parse_object = located
    decoder.scan_once = py_make_scanner(decoder)
    try:
        return decoder.decode(text)
    except json.JSONDecodeError as error:
        text = f"{source}:{error.lineno}: is not JSON: {error.msg}"
        raise TableError(text) from error
    except (ValueError, RecursionError) as error:
        raise TableError(f"{source}:1: {_cause(error)}") from error


class _RefusedError(ValueError):
    """JSON that Python takes and a table must not have."""


def _unique(pairs: list[tuple[str, Any]]) -> JsonObject:
    found = JsonObject(pairs)
    if len(found) < len(pairs):
        ((name, _),) = Counter(name for name, _ in pairs).most_common(1)
        text = f"key {name!r} occurs twice in an object"
        raise _RefusedError(text)
    return found


def _cause(error: Exception) -> str:
    if isinstance(error, _RefusedError):
        return str(error)
    if isinstance(error, RecursionError):
        return "is nested too deeply"
    return "has a number of too many digits"
