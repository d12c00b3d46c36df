# SPDX-License-Identifier: Apache-2.0
"""Shapes of inputs as users give them: numbers, and bounds of what stays open."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from neon8.errors import SettingsError

OPEN_LO, OPEN_HI = 1, 1024
"""The bounds of a dimension of which only `?` is said."""

BOUNDS = re.compile(r"([0-9]+)\.\.([0-9]+)(?::([0-9]+))?")


@dataclass(frozen=True, slots=True)
class Open:
    """A dimension that stays open: lo, lo + step .. hi."""

    lo: int = OPEN_LO
    hi: int = OPEN_HI
    step: int = 1

    def __post_init__(self) -> None:
        """SettingsError: nothing is within the bounds, or hi is not on a step."""
        if min(self.lo, self.step) < 1 or self.hi < self.lo:
            raise SettingsError(f"{self} has nothing in it; write 32..256 or 32..256:8")
        if (self.hi - self.lo) % self.step:
            least = self.hi - (self.hi - self.lo) % self.step
            text = f"steps of {self.step} from {self.lo} on reach {least}"
            raise SettingsError(f"{self} does not end on a step; {text}")

    def __str__(self) -> str:
        """As on the command line."""
        bounds = f"{self.lo}..{self.hi}"
        return bounds if self.step == 1 else f"{bounds}:{self.step}"

    @property
    def values(self) -> range:
        """All that it can be."""
        return range(self.lo, self.hi + 1, self.step)

    def below(self, size: int) -> int:
        """The largest that is no larger, or the smallest."""
        steps = (min(max(size, self.lo), self.hi) - self.lo) // self.step
        return self.lo + steps * self.step

    def near(self, size: int) -> int:
        """The nearest, of two the smaller."""
        lower = self.below(size)
        upper = min(lower + self.step, self.hi)
        return lower if size - lower <= upper - size else upper


def is_open(shapes: Mapping[str, Sequence[int | Open]] | None) -> bool:
    """True if some dimension has bounds."""
    every = (shapes or {}).values()
    return any(isinstance(size, Open) for dims in every for size in dims)


def settled(
    wanted: Mapping[str, tuple[int | Open, ...]],
    shapes: Mapping[str, tuple[int, ...]] | None,
) -> dict[str, tuple[int | Open, ...]]:
    """What is wanted, with the shape that `shapes` has in place of bounds."""
    found = {
        name: (shapes or {}).get(name, dims)
        for name, dims in wanted.items()
        if is_open({name: dims})
    }
    return {**wanted, **found}


def size(word: str) -> int | Open:
    """A size, bounds as in 32..1280:32, or `?` for default bounds.  SettingsError."""
    if word == "?":
        return Open()
    found = BOUNDS.fullmatch(word)
    if found is not None:
        lo, hi, step = found.groups()
        bounds = Open(int(lo), int(hi), int(step or 1))
        return bounds if bounds.lo < bounds.hi else bounds.lo
    if not (word.isascii() and word.isdigit() and int(word)):
        text = "is not a whole number of 1 or more, nor bounds such as 32..1280:32"
        raise SettingsError(f"{word!r} {text}")
    return int(word)


def shape(word: str) -> tuple[str, tuple[int | Open, ...]]:
    """Name and sizes of an input, between which are commas or x."""
    name, equals, sizes = word.rpartition("=")
    if not equals or not name:
        raise SettingsError(f"{word!r} is not of the form NAME=1,3,224,224")
    return name, tuple(map(size, re.split("[,x]", sizes)))


def fixed(where: object, name: str, dims: tuple[int | Open, ...]) -> tuple[int, ...]:
    """The shape of an input that may have one only.  SettingsError: it has bounds."""
    sizes = tuple(size for size in dims if isinstance(size, int))
    if len(sizes) < len(dims):
        text = f"--shape {name}={'x'.join(map(str, dims))} has bounds"
        raise SettingsError(f"{where}: {text}; give the one size that is wanted here")
    return sizes
