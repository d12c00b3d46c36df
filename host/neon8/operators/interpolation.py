# SPDX-License-Identifier: Apache-2.0
"""Functions of single values with int16 on either side, as straight lines  (26)."""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from neon8.arrays import Array, DoubleArray, Int16Array, Int64Array
from neon8.ir.program import Op, Tensor
from neon8.operators.functions import Function, evaluate
from neon8.operators.reference import Operand

LONGEST = 12
"""A line serves at most 2^12 values."""
MOST_LINES = 1 << 12
"""16 KB of them."""
MOST_FRACTION = 8
FINEST = 16
"""By how many times lines should be nearer than the output's steps, if they can be."""
FARTHEST = 64
"""How far off lines may be at most, in steps of theirs: a quarter of one of int8."""
LEAST, MOST = -(2**15), 2**15 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class InterpolateOp(Op):
    """(26).

    lines: int16 (count, 2), each of `groups` values, a power of 2: what the first of
    them gives, and by how much that rises to the first of the next.
    """

    lines: Int16Array
    groups: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """A function.  lines, groups: as in a step.

    error: the most by which any value of the input is off, in steps of the lines.
    """

    lines: Int16Array
    groups: int
    error: int


def compute_interpolate(op: InterpolateOp, out: Tensor, x: Operand) -> Array:
    """(26)."""
    lo, hi = ends(x.tensor)
    at = np.clip(x.values.astype(np.int64), lo, hi) - lo
    v = on_line(op.lines[at // op.groups], at % op.groups, op.groups)
    unit = 1 << fraction(out)
    q = np.clip((2 * v + unit) // (2 * unit), out.lo, out.hi)
    result: Array = q.astype(np.dtype(out.dtype))
    return result


def on_line(line: Int16Array, place: Int64Array, groups: int) -> Int64Array:
    """What lines (..., 2) give at these places, 0 .. groups - 1, in their own steps."""
    first, rise = (line[..., k].astype(np.int64) for k in (0, 1))
    v = first + (2 * rise * place + groups) // (2 * groups)
    return np.clip(v, LEAST, MOST)


def ends(source: Tensor) -> tuple[int, int]:
    """What the input can hold, of int8 any byte."""
    return (-128, 127) if source.dtype == "int8" else (source.lo, source.hi)


def fraction(out: Tensor) -> int:
    """The bits that lines have beyond those of the output."""
    return min(15 - max(-out.lo - 1, out.hi).bit_length(), MOST_FRACTION)


def lines_of(function: Function, source: Tensor, out: Tensor) -> Lines | None:
    """The fewest lines that are near enough.

    Near enough is a FINEST of the output's step, or one of the lines' steps. Where no
    MOST_LINES are, it is the nearest ones; None if those are beyond FARTHEST.
    """
    lo, hi = ends(source)
    given = Tensor(name="", dims=(), dtype="int16", lo=lo, hi=hi)
    made = Tensor(name="", dims=(), dtype="int16", lo=out.lo, hi=out.hi)
    return _lines(
        function,
        replace(given, scale=source.scale, zero_point=source.zero_point),
        replace(made, scale=out.scale, zero_point=out.zero_point),
    )


@lru_cache(maxsize=512)  # a search compiles the same functions again and again
def _lines(function: Function, source: Tensor, out: Tensor) -> Lines | None:
    """As lines_of(), of tensors of which nothing else is set."""
    unit = 1 << fraction(out)
    size = source.hi - source.lo + 1
    q = np.arange(size + (1 << LONGEST) + 1) + source.lo - float(source.zero_point)
    exact = _in_steps(evaluate(function, np.float64(source.scale) * q), out, unit)
    best = None
    for shift in range(LONGEST, -1, -1):
        groups = 1 << shift
        count = -(-size // groups)
        if count > MOST_LINES:
            break
        found = _fitted(exact, count, groups, out, unit)
        error = int(np.abs(_off(found, exact, groups, out, unit)[:size]).max())
        if best is None or error < best.error:
            best = Lines(lines=found, groups=groups, error=error)
        if error <= max(unit // FINEST, 1):
            break
    return best if best is not None and best.error <= FARTHEST else None


def _fitted(
    exact: Int64Array, count: int, groups: int, out: Tensor, unit: int
) -> Int16Array:
    """Lines from one value to the next, then moved to the middle of their errors."""
    nodes = exact[: count * groups + 1 : groups]
    first = np.clip(nodes[:-1], LEAST, MOST)
    rise = np.clip(nodes[1:] - first, LEAST, MOST)
    lines = np.stack([first, rise], axis=1).astype(np.int16)
    off = _off(lines, exact, groups, out, unit).reshape(count, groups)
    first = first - (off.max(axis=1) + off.min(axis=1)) // 2
    return np.stack([np.clip(first, LEAST, MOST), rise], axis=1).astype(np.int16)


def _off(
    lines: Int16Array, exact: Int64Array, groups: int, out: Tensor, unit: int
) -> Int64Array:
    """By how much each value is off."""
    at = np.arange(len(lines) * groups)
    v = on_line(lines[at // groups], at % groups, groups)
    lo, hi = out.lo * unit, out.hi * unit
    return np.clip(v, lo, hi) - np.clip(exact[: len(at)], lo, hi)


def _in_steps(real: DoubleArray, out: Tensor, unit: int) -> Int64Array:
    """As a table has it  (8), but finer, and beyond the output's range, too."""
    with np.errstate(over="ignore"):
        q = np.rint(np.where(np.isnan(real), 0.0, real) / np.float64(out.scale) * unit)
    q = np.clip(q + out.zero_point * unit, -(2**20), 2**20)
    result: Int64Array = q.astype(np.int64)
    return result
