# SPDX-License-Identifier: Apache-2.0
"""Arrays that depend on the shape, as segments: what an array is made of, and back."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from neon8.arrays import Array
from neon8.compile.size_search import SizeBook, Vector
from neon8.errors import CompileError
from neon8.ir.sizes import Segment, value
from neon8.operators.resize import ROUNDINGS, Filter, nearest, tapped

MOST_RUNS = 4096
"""Runs of one array; what needs more has no pattern."""

MODES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")
"""Coordinates as the file counts them, from 1 on, and so ROUNDINGS."""

FILTERS = (
    Filter(),
    *(
        Filter(cubic=True, antialias=antialias, exclude=exclude, a=a)
        for antialias in (False, True)
        for exclude in (False, True)
        for a in (-0.75, -0.5)
    ),
    Filter(antialias=True),
    Filter(antialias=True, exclude=True),
)
"""How a resize weighs neighbours: those that exporters write."""

CUBIC, ANTIALIAS, EXCLUDE, TAPS = 8, 16, 32, 256
"""enum n8_taps, which is added to the coordinates."""

FLOAT_BITS = "<f4"


@dataclass(frozen=True, slots=True)
class Run:
    """Entries first + j * step, where j is k / repeat % period, or k / repeat."""

    count: int
    first: Any
    step: Any = 0
    repeat: int = 1
    period: int = 0


def entries(run: Run, kind: npt.DTypeLike) -> Array:
    """The values of a run; of floats both operations round."""
    j = np.arange(run.count) // run.repeat
    if run.period:
        j %= run.period
    scalar = np.dtype(kind).type
    result: Array = scalar(run.first) + scalar(run.step) * j.astype(kind)
    return result.astype(kind)


def runs(values: Array) -> list[Run] | None:
    """What the array is made of, each run as long as can be; None if of too many."""
    found: list[Run] = []
    at = 0
    while at < len(values):
        if len(found) == MOST_RUNS:
            return None
        found.append(_run(values[at:]))
        at += found[-1].count
    return found


def _run(rest: Array) -> Run:
    """The longest run that an array begins with."""
    first = rest[0]
    repeat = _same(rest, np.full(len(rest), first))
    found = [Run(1, first)]
    for each in sorted({1, repeat}):
        if len(rest) <= each:
            continue
        step = rest[each] - first
        whole = Run(len(rest), first, step, each)
        length = _same(rest, entries(whole, rest.dtype))
        length -= length % each
        if length < 2 * each:
            continue
        found.append(Run(length, first, step, each))
        if length == len(rest) or rest[length] != first or not step:
            continue  # it does not begin again
        again = _same(rest, np.resize(rest[:length], len(rest)))
        again -= again % length
        if again > length:
            found.append(Run(again, first, step, each, length // each))
    best = max(found, key=lambda run: run.count)
    # Two values far apart are the end of one pattern and the beginning of another.
    pair = best.count == 2 and abs(best.step) > 1
    return Run(1, first, first - first) if pair or best.count == 1 else best


def _same(values: Array, others: Array) -> int:
    """How many are the same from the first one on."""
    differ = values != others
    return int(differ.argmax()) if differ.any() else len(values)


def array_of(
    segments: Sequence[Segment], sizes: Sequence[int], kind: npt.DTypeLike
) -> Array:
    """The array where the sizes have these values."""
    parts = [_part(each, sizes, np.dtype(kind)) for each in segments]
    return np.concatenate([np.zeros(0, kind), *parts]).astype(kind)


def _part(segment: Segment, sizes: Sequence[int], kind: np.dtype[Any]) -> Array:
    count, a, b, c, d = segment.words
    length = value(count, sizes)
    if segment.kind == "run":
        read = real if kind.kind == "f" else partial(value, sizes=sizes)
        run = Run(length, read(a), read(b), value(c, sizes), value(d, sizes))
        return entries(run, kind)
    size = value(a, sizes)
    scale = real(b) if b else np.float32(length) / np.float32(size)
    if segment.kind == "nearest":
        return nearest(size, length, scale, MODES[c - 1], ROUNDINGS[d - 1])
    how, taps = _manner(c, d)
    made = tapped(size, length, scale, MODES[(c & 7) - 1], how, taps)
    if made is None:
        raise CompileError(
            f"a resize from {size} to {length} has more than {taps} taps"
        )
    return made[kind.kind == "f"].reshape(-1)


def _manner(c: int, d: int) -> tuple[Filter, int]:
    """How the taps of a segment weigh, and how many there are."""
    flags = {
        name: c & flag != 0
        for name, flag in (
            ("cubic", CUBIC),
            ("antialias", ANTIALIAS),
            ("exclude", EXCLUDE),
        )
    }
    return Filter(**flags, a=float(real(d))), c // TAPS


def bits(number: Any) -> int:
    """The bits of a float, as an int32."""
    return int(np.array(number, FLOAT_BITS).view("<i4"))


def real(number: int) -> np.float32:
    """The float that has these bits."""
    found: np.float32 = np.array([number], "<i4").view(FLOAT_BITS).astype(np.float32)[0]
    return found


Samples = Sequence[Array]
"""One array as it is at each sample."""


def fitted(
    samples: Samples, book: SizeBook, near: Sequence[int], *, far: bool
) -> tuple[Segment, ...] | None:
    """Segments that give the array at every sample; None if there are none.

    near, far: see SizeBook.found().
    """
    split = aligned([runs(each) for each in samples])
    if split is None:
        return None
    made = []
    for part in zip(*split, strict=True):
        counts, firsts, steps, repeats, periods = (
            tuple(getattr(run, name) for run in part)
            for name in ("count", "first", "step", "repeat", "period")
        )
        words: list[int | None] = []
        for vector, plain in (
            (counts, False),
            (firsts, samples[0].dtype.kind == "f"),
            (steps, samples[0].dtype.kind == "f"),
            (repeats, False),
            (periods, False),
        ):
            if plain:
                words.append(bits(vector[0]) if len(set(vector)) == 1 else None)
            else:
                whole = tuple(map(int, vector))
                words.append(book.found(whole, near, far=far))
        if None in words:
            return None
        count, first, step, repeat, period = (word or 0 for word in words)
        made.append(Segment("run", (count, first, step, repeat, period)))
    return tuple(made)


def aligned(split: Sequence[list[Run] | None]) -> list[list[Run]] | None:
    """As many runs in each sample, where some have none of those that are constant.

    None if they do not go together.
    """
    known = [each for each in split if each]
    most = max(map(len, known), default=0)
    if len(known) < len(split) or not most:
        return None
    full = [each for each in known if len(each) == most]
    firsts = [{run.first for run in place} for place in zip(*full, strict=True)]
    steps = [
        {run.step for run in place if run.count > run.repeat}
        for place in zip(*full, strict=True)
    ]
    made = []
    for each in known:
        left = list(each)
        row = []
        for at, (first, step) in enumerate(zip(firsts, steps, strict=True)):
            spare = len(left) < most - at and len(first) == 1
            if spare and (not left or left[0].first not in first):
                run = replace(full[0][at], count=0)
            elif left:
                run = left.pop(0)
            else:
                return None
            if run.count <= run.repeat and len(step) == 1:
                run = replace(run, step=next(iter(step)))
            row.append(run)
        if left:
            return None
        made.append(row)
    return made


def resized(
    samples: Sequence[Mapping[str, Array]],
    size: tuple[int, Vector],
    count: tuple[int, Vector],
    taps: int,
) -> Segment | None:
    """The segment that gives the lists of one axis at every sample, or None.

    samples: indices and, unless taps is 1, values.  size, count: of the input and of
    the output, as a number and at each sample.
    """
    pairs = list(zip(size[1], count[1], strict=True))
    for scale in scales(size[1], count[1]):
        fixed = 0 if scale is None else bits(scale)
        for mode, last in _manners(taps):
            segment = Segment(
                "nearest" if taps == 1 else "taps", (0, 0, fixed, mode, last)
            )
            if all(map(partial(_gives, segment), pairs, samples)):
                return replace(segment, words=(count[0], size[0], *segment.words[2:]))
    return None


def _manners(taps: int) -> Iterator[tuple[int, int]]:
    """The last two words that a segment may have."""
    for mode in range(1, len(MODES) + 1):
        if taps == 1:
            yield from ((mode, rounding) for rounding in range(1, len(ROUNDINGS) + 1))
            continue
        for how in FILTERS:
            flags = CUBIC * how.cubic + ANTIALIAS * how.antialias
            manner = mode + flags + EXCLUDE * how.exclude + TAPS * taps
            yield manner, bits(how.a) if how.cubic else 0


def _gives(
    segment: Segment, pair: tuple[int, int], wanted: Mapping[str, Array]
) -> bool:
    """Whether a resize from one size to another has these lists."""
    words = (pair[1], pair[0], *segment.words[2:])
    try:
        return all(
            np.array_equal(_part(replace(segment, words=words), (), each.dtype), each)
            for each in wanted.values()
        )
    except CompileError:
        return False


def scales(sizes: Vector, counts: Vector) -> Iterator[np.float32 | None]:
    """None, that is the ratio of both, and then fixed ones with which they agree."""
    yield None
    least = max(Fraction(out, n) for n, out in zip(sizes, counts, strict=True))
    most = min(Fraction(out + 1, n) for n, out in zip(sizes, counts, strict=True))
    seen = set()
    for q in (*range(1, 17), 20, 25, 50, 100, 1000):
        p = -(-least.numerator * q // least.denominator)
        ratio = Fraction(p, q)
        if ratio < most and ratio not in seen:
            seen.add(ratio)
            yield np.float32(p) / np.float32(q)
