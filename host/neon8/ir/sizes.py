# SPDX-License-Identifier: Apache-2.0
"""What is open in a Program: sizes that follow from those of its inputs.

As in the file, a number of a Program with open sizes stands for itself unless it is
negative: -1 - i is size i. neon8_format.h says what each kind of a size and of a
segment is, and evaluates them in the same way.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from neon8.errors import CompileError

MOST = 2**31 - 1
"""The largest size, and the largest on the way to it."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """An open dimension: lo, lo + step .. hi; `usual` where a caller gives none.

    name: as the ONNX file calls it, or of an input and its axis, as in image[2].
    """

    name: str
    lo: int
    hi: int
    step: int
    usual: int

    @property
    def values(self) -> range:
        """All that it can be."""
        return range(self.lo, self.hi + 1, self.step)


@dataclass(frozen=True, slots=True)
class Size:
    """A whole number.  kind: of enum n8_size_kind, in lower case; a, b: see there."""

    kind: str
    a: int
    b: int = 0


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of an array.  kind: of enum n8_segment_kind, in lower case.

    words: count and the four that follow, as in the file.
    """

    kind: str
    words: tuple[int, ...]


Form = tuple[int, ...] | tuple[Segment, ...]
"""An array that depends on sizes: numbers, or segments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """All of a Program.  forms: by the place of a step and its field."""

    symbols: tuple[Symbol, ...]
    sizes: tuple[Size, ...]
    forms: Mapping[tuple[int, str], Form]


def link(place: int) -> int:
    """The number that stands for a size; the place of the size that it stands for."""
    return -1 - place


def combined(kind: str, a: int, b: int) -> int:
    """What a size of two others is."""
    match kind:
        case "add":
            return a + b
        case "subtract":
            return a - b
        case "multiply":
            return a * b
        case "divide":
            return a // b
        case "maximum":
            return max(a, b)
        case "minimum":
            return min(a, b)
    raise ValueError(kind)


def evaluated(sizes: Sequence[Size], symbols: Sequence[int]) -> list[int]:
    """All sizes where the symbols are these.  CompileError: one is too large."""
    found: list[int] = []
    for each in sizes:
        if each.kind == "symbol":
            found.append(symbols[each.a])
        elif each.kind == "number":
            found.append(each.a)
        else:
            found.append(combined(each.kind, found[each.a], found[each.b]))
        if abs(found[-1]) > MOST:
            raise CompileError(f"a size that follows from the shape is {found[-1]}")
    return found


def value(number: int, sizes: Sequence[int]) -> int:
    """What a number is, of evaluated sizes."""
    return sizes[link(number)] if number < 0 else number
