# SPDX-License-Identifier: Apache-2.0
"""Plain text for terminals: aligned columns, sizes, names that cannot do harm."""

import math
from collections.abc import Iterable, Sequence


def printable(name: str) -> str:
    """The name with control characters spelled out: a file may hold any name."""
    return "".join(
        character if character.isprintable() else ascii(character)[1:-1]
        for character in name
    )


def columns(rows: Iterable[Sequence[str]], *, header: Sequence[str]) -> list[str]:
    """Lines of left-aligned columns, indented by two; numbers go to the right."""
    table = [list(header), *([printable(cell) for cell in row] for row in rows)]
    widths = [max(map(len, cells)) for cells in zip(*table, strict=True)]
    numeric = [
        len(table) > 1 and all(_numeric(row[i]) for row in table[1:])
        for i in range(len(header))
    ]
    return [
        "  "
        + "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ).rstrip()
        for row in table
    ]


def _numeric(cell: str) -> bool:
    return cell.replace("_", "").lstrip("+-")[:1].isdigit() or cell in {"", "-", "inf"}


def fields(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Lines 'name  value' with the values in one column."""
    entries = list(pairs)
    width = max(len(name) for name, _ in entries)
    return [f"{name.ljust(width)}  {printable(value)}" for name, value in entries]


def counted(count: int, what: str) -> str:
    """'1 tensor', '2 tensors'."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def shape(dims: Sequence[int]) -> str:
    """1x3x224x224."""
    return "x".join(map(str, dims))


def size(count: int) -> str:
    """Bytes for people: '1234 bytes', '1.2 MB (1234567 bytes)'."""
    for unit, name in ((10**6, "MB"), (10**3, "kB")):
        if count >= 10 * unit or (unit == 10**6 and count >= unit):
            return f"{count / unit:.1f} {name} ({count} bytes)"
    return f"{count} bytes"


def decimals(value: float | None) -> str:
    """Two decimals; '-' for what is not known."""
    return "-" if value is None else f"{value:.2f}"


def number(value: float) -> str:
    """Six significant digits."""
    return f"{value:.6g}"


def finite(value: object) -> object:
    """What JSON holds of a value: null for floats that are not finite, at any depth."""
    if isinstance(value, dict):
        return {name: finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite(each) for each in value]
    unknown = isinstance(value, float) and not math.isfinite(value)
    return None if unknown else value
