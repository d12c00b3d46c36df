# SPDX-License-Identifier: Apache-2.0
"""Text for terminals and notebooks: columns, sizes, names that cannot do harm."""

import dataclasses
import difflib
import html
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from typing import Any


class Shown(str):
    """Text that keeps the value it shows, for JSON."""

    __slots__ = ("value",)
    value: object

    def __new__(cls, shown: str, value: object) -> "Shown":  # noqa: PYI034 (no Self yet)
        """Say `shown` where text is asked for, `value` where values are."""
        self = super().__new__(cls, shown)
        self.value = value
        return self


UNKNOWN = Shown("-", None)


@dataclass(frozen=True, slots=True)
class Fields:
    """Facts by name."""

    pairs: Iterable[tuple[str, object]]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows below a title, of which JSON takes what stands before a comma."""

    title: str
    rows: Sequence[Sequence[object]]
    header: Sequence[str]


@dataclass(frozen=True, slots=True)
class Listed:
    """Lines below a title."""

    title: str
    lines: Sequence[str]


@dataclass(frozen=True, slots=True)
class Below:
    """Another description, an object of its own in JSON."""

    title: str
    parts: Sequence["Part"]


Part = str | Fields | Table | Listed | Below


def as_text(parts: Iterable[Part]) -> str:
    """Lines for people."""
    lines: list[str] = []
    for part in parts:
        match part:
            case Fields():
                lines += fields(part.pairs)
            case Table():
                lines += [part.title, *columns(part.rows, header=part.header)]
            case Listed():
                lines += [part.title, *(f"  {printable(line)}" for line in part.lines)]
            case Below():
                lines.append(as_text(part.parts))
            case _:
                lines.append(part)
    return "\n".join(lines)


def as_json(parts: Iterable[Part]) -> str:
    """One object with the same facts; lines that stand alone are its notes."""
    return json.dumps(finite(_facts(parts)))


def _facts(parts: Iterable[Part]) -> dict[str, object]:
    found: dict[str, object] = {}
    notes: list[str] = []
    for part in parts:
        match part:
            case Fields():
                found |= dict(part.pairs)
            case Table():
                names = [name or "number" for name in part.header]
                rows = [dict(zip(names, row, strict=True)) for row in part.rows]
                found[part.title.partition(",")[0]] = rows
            case Listed():
                found[part.title.partition(",")[0]] = part.lines
            case Below():
                found[part.title] = _facts(part.parts)
            case _:
                notes += [part.strip()] if part else []
    return found | ({"notes": notes} if notes else {})


MOST_ROWS = 30
"""How many a table in a notebook has."""


def as_html(parts: Iterable[Part]) -> str:
    """Tables for a notebook, in its own colours; long ones end early."""
    lines: list[str] = []
    for part in parts:
        match part:
            case Fields():
                lines.append(_html_table("", [], list(part.pairs)))
            case Table():
                lines.append(_html_table(part.title, part.header, part.rows))
            case Listed():
                rows = [(line,) for line in part.lines]
                lines.append(_html_table(part.title, [], rows))
            case Below():
                lines.append(as_html(part.parts))
            case _:
                lines += [f"<p>{_escaped(part)}</p>"] if part else []
    return "\n".join(lines)


def _html_table(
    title: str, header: Sequence[str], rows: Sequence[Sequence[object]]
) -> str:
    more = len(rows) - MOST_ROWS
    shown = [[_escaped(cell) for cell in row] for row in rows[:MOST_ROWS]]
    if more > 0:
        shown.append([f"... and {more} more"])
    heads = "".join(f"<th>{_escaped(name)}</th>" for name in header)
    body = "".join(
        f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in shown
    )
    caption = f"<caption>{_escaped(title)}</caption>" if title else ""
    head = f"<thead><tr>{heads}</tr></thead>" if header else ""
    return f"<table>{caption}{head}<tbody>{body}</tbody></table>"


def _escaped(cell: object) -> str:
    return html.escape(printable(str(cell)))


class Showing(ABC):
    """Base of what shows itself: in a line, and as tables in a notebook."""

    __slots__ = ()

    @abstractmethod
    def parts(self) -> list[Part]:
        """What is shown; the line is that of the first, which are Fields."""

    def __repr__(self) -> str:
        """The first facts."""
        first = self.parts()[0]
        pairs = first.pairs if isinstance(first, Fields) else ()
        said = ", ".join(f"{name}={printable(str(value))}" for name, value in pairs)
        return f"{type(self).__name__}({said})"

    def _repr_html_(self) -> str:
        return as_html(self.parts())


def printable(name: str) -> str:
    """The name with control characters spelled out: a file may hold any name."""
    return "".join(
        character if character.isprintable() else ascii(character)[1:-1]
        for character in name
    )


def columns(rows: Iterable[Sequence[object]], *, header: Sequence[str]) -> list[str]:
    """Lines of left-aligned columns, indented by two; numbers go to the right."""
    table = [list(header), *([printable(str(cell)) for cell in row] for row in rows)]
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


def fields(pairs: Iterable[tuple[str, object]]) -> list[str]:
    """Lines 'name  value' with the values in one column."""
    entries = list(pairs)
    width = max(len(name) for name, _ in entries)
    return [f"{name.ljust(width)}  {printable(str(value))}" for name, value in entries]


def suggested(name: str, known: Iterable[str]) -> str:
    """'; did you mean ...?' with known names like `name`, or nothing."""
    near = difflib.get_close_matches(name, dict.fromkeys(known))
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else ""


def counted(count: int, what: str) -> str:
    """'1 tensor', '2 tensors'."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def shape(dims: Sequence[int]) -> str:
    """1x3x224x224."""
    return Shown("x".join(map(str, dims)), tuple(dims))


def shapes(of_inputs: Mapping[str, Sequence[int]]) -> str:
    """The shapes of inputs, as in x 1x3x32x32."""
    return ", ".join(f"{printable(n)} {shape(dims)}" for n, dims in of_inputs.items())


def span(lo: object, hi: object) -> str:
    """-128 .. 127."""
    return Shown(f"{lo} .. {hi}", (getattr(lo, "value", lo), getattr(hi, "value", hi)))


def size(count: int, what: str = "") -> str:
    """Bytes for people: '1234 bytes', '1.2 MB (1234567 bytes)'."""
    for unit, name in ((10**6, "MB"), (10**3, "kB")):
        if count >= 10 * unit or (unit == 10**6 and count >= unit):
            return Shown(f"{count / unit:.1f} {name} ({count} bytes){what}", count)
    return Shown(f"{count} bytes{what}", count)


def decimals(value: float | None) -> str:
    """Two decimals; '-' for what is not known."""
    return UNKNOWN if value is None else Shown(f"{value:.2f}", float(value))


def number(value: float) -> str:
    """Six significant digits."""
    return Shown(f"{value:.6g}", float(value))


def finite(value: Any) -> Any:
    """What JSON holds of a value, at any depth, without the bytes in dataclasses.

    None for floats that are not finite.
    """
    if isinstance(value, Shown):
        return finite(value.value)
    if is_dataclass(value):
        own = {
            each.name: getattr(value, each.name) for each in dataclasses.fields(value)
        }
        return {n: finite(each) for n, each in own.items() if type(each) is not bytes}
    if isinstance(value, dict):
        return {name: finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite(each) for each in value]
    unknown = isinstance(value, float) and not math.isfinite(value)
    return None if unknown else value
