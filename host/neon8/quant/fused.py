# SPDX-License-Identifier: Apache-2.0
"""Multipliers of which (5d) is proved: one fused multiply-add gives the bytes of (5).

The library proves it itself when it opens a file. Here the proof chooses among
multipliers that differ in nothing else that anybody could notice.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from neon8.arrays import DoubleArray, FloatArray, Int8Array, Int32Array, Int64Array

Bools = npt.NDArray[np.bool_]
Interval = tuple[DoubleArray, DoubleArray]

ORIGIN = 3 << 22
"""12582912, which accumulators begin at: in the middle of the SPAN whole numbers that
are neighbours in float32."""
SPAN = 1 << 23
MOST_RESULT = 32638 * 127 // 128
"""Below this are the ends of acc'' M: then (|B| + 128 P + 128 N) M is below 32638."""
NEAR = 128
"""So many neighbours of a multiplier are tried on each side: 1.5e-5 of it."""
STEPS: tuple[Int32Array, ...] = (
    np.zeros(1, np.int32),
    *(
        np.array([s for d in range(n, 2 * n) for s in (-d, d)], np.int32)
        for n in (1, 2, 4, 8, 16, 32, 64)
    ),
    np.array([-NEAR, NEAR], np.int32),
)
"""Their numbers, the nearest first, in arrays that are tried at once."""
AT_ONCE = 1 << 17
"""So many thresholds are in memory at once: 1 MB for each array of them."""

MIDDLES: DoubleArray = np.arange(0.5, 255)
# (5) comes to k where fmul gives more than k - 1/2, for an even k as much.  fmul rounds
# to this from half a unit in the last place of float32 around it.
_HALF_ULPS = np.ldexp(1.0, np.frexp(MIDDLES)[1] - 25)
EDGES = MIDDLES + np.where(np.arange(1, 256) % 2, _HALF_ULPS, -_HALF_ULPS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Channels:
    """Output channels of a layer.

    low, high: (O,), the ends of acc''.  lo, hi, zero_point: of the output.
    """

    low: Int64Array
    high: Int64Array
    lo: int
    hi: int
    zero_point: int

    @property
    def ends(self) -> tuple[int, int]:
        """What clamps rne(v), before the zero point is added."""
        return self.lo - self.zero_point, self.hi - self.zero_point

    def at(self, rows: Int64Array | slice) -> "Channels":
        """Some of them, in this order."""
        return Channels(
            low=self.low[rows],
            high=self.high[rows],
            lo=self.lo,
            hi=self.hi,
            zero_point=self.zero_point,
        )


def channels_of(
    weights: Int8Array, bias: Int32Array, *, lo: int, hi: int, zero_point: int
) -> Channels:
    """Those of a layer with these weights, (O, ...), that reads int8."""
    rows = weights.reshape(len(weights), -1)
    total = rows.sum(axis=1, dtype=np.int64)
    size = np.abs(rows).view(np.uint8).sum(axis=1, dtype=np.int64)  # 128 of -128
    above, below = (size + total) // 2, (size - total) // 2
    return Channels(
        low=bias - 128 * above - 127 * below,
        high=bias + 127 * above + 128 * below,
        lo=lo,
        hi=hi,
        zero_point=zero_point,
    )


def nearest_proved(multiplier: FloatArray, channels: Channels) -> FloatArray:
    """The multipliers, (O,), nearest to these of which (5d) is proved.

    Of two as near it is the lower one. One without any among NEAR neighbours on each
    side stays as it is.
    """
    result: FloatArray = multiplier.copy()
    left = np.flatnonzero(possible(multiplier, channels))
    for steps in STEPS:
        if not left.size:
            break
        tried = _moved(result[left], steps)
        rows = np.repeat(left, len(steps))
        holds = prove(tried.reshape(-1), channels.at(rows)).holds.reshape(tried.shape)
        found = holds.any(axis=1)
        first = holds.argmax(axis=1)
        result[left[found]] = tried[found, first[found]]
        left = left[~found]
    return result


def _moved(multiplier: FloatArray, steps: Int32Array) -> FloatArray:
    """The neighbours of these numbers, (O, S)."""
    bits: Int32Array = multiplier.view(np.int32)
    moved: FloatArray = (bits[:, None] + steps).view(np.float32)
    return moved


def possible(multiplier: FloatArray, channels: Channels) -> Bools:
    """Where the sizes of multipliers and accumulators admit (5d)."""
    most = np.maximum(np.abs(channels.low), np.abs(channels.high))
    return (
        (multiplier >= 2.0**-22)
        & (multiplier < 1)
        & (most < SPAN)
        & (channels.high - channels.low < SPAN)
        & (most * multiplier.astype(np.float64) < MOST_RESULT)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """b and c of (5d), (O,), and where they hold."""

    b: Int64Array
    c: Int64Array
    holds: Bools


def prove(multiplier: FloatArray, channels: Channels) -> Proof:
    """(5d) with the least b, for multipliers that are not 0."""
    holds = possible(multiplier, channels)
    some = np.flatnonzero(holds)
    lower, upper = interval(multiplier[some], channels.at(some))
    holds[some] = lower < upper
    opened = np.flatnonzero(lower < upper)
    some, lower, upper = some[opened], lower[opened], upper[opened]
    chosen = channels.at(some)
    # From here on in units of 2^-s, of which multipliers have m.
    fraction, exponent = np.frexp(multiplier[some].astype(np.float64))
    m = (fraction * 2.0**24).astype(np.int64)
    s = 24 - exponent.astype(np.int64)
    one = np.int64(1) << s
    first, last = ((e * one).astype(np.int64) for e in (lower, upper))
    first, last = first + 1, last - 1
    begin = -SPAN // 2 - chosen.low
    least = (first - (ORIGIN + begin) * m) % one
    x = first_inside(m, one, least, least + last - first)
    fits = (first <= last) & (x >= 0) & (x < SPAN - (chosen.high - chosen.low))
    b, c = np.zeros((2, len(multiplier)), np.int64)
    b[some] = begin + x
    c[some] = ORIGIN + channels.zero_point - ((ORIGIN + b[some]) * m - first) // one
    holds[some] = fits & (c[some] != 0)
    return Proof(b=b, c=c, holds=holds)


def interval(multiplier: FloatArray, channels: Channels) -> Interval:
    """The exact ends, (O,), between which e is in (5d), they themselves excluded."""
    lower, upper = np.empty((2, len(multiplier)))
    rows = AT_ONCE // len(MIDDLES)
    for begin in range(0, len(multiplier), rows):
        at = slice(begin, begin + rows)
        lower[at], upper[at] = _interval(multiplier[at], channels.at(at))
    return lower, upper


def _interval(multiplier: FloatArray, channels: Channels) -> Interval:
    floor, ceiling = channels.ends
    step = multiplier.astype(np.float64)
    first, last = (
        np.rint(acc.astype(np.float32) * multiplier)
        .clip(floor, ceiling)
        .astype(np.float64)
        for acc in (channels.low, channels.high)
    )
    lower = np.where(first > floor, first - 0.5 - channels.low * step, -step)
    upper = np.where(last < ceiling, last + 0.5 - channels.high * step, step)
    lower, upper = np.maximum(lower, -step), np.minimum(upper, step)
    # The least accumulator that gives each k > 0.  The quotient is at most 2^23 and, if
    # not whole, further from whole numbers than it is rounded.
    middles = MIDDLES[: max(-floor, ceiling, 0), None]
    reached = EDGES[: len(middles), None] / step
    odd, even = reached[::2], reached[1::2]
    np.add(np.floor(odd, out=odd), 1, out=odd)
    np.ceil(even, out=even)
    gaps = np.subtract(middles, np.multiply(reached, step, out=reached), out=reached)
    if ceiling > 0:
        least, most = _ends(gaps, (middles > first) & (middles < last))
        lower, upper = np.maximum(lower, most), np.minimum(upper, least + step)
    if floor < 0:  # rne(v) = -rne(-v)
        least, most = _ends(gaps, (middles > -last) & (middles < -first))
        lower, upper = np.maximum(lower, -least - step), np.minimum(upper, -most)
    return lower, upper


def _ends(gaps: DoubleArray, inside: Bools) -> Interval:
    """The least and the largest of each column, of those that are `inside`."""
    return (
        np.where(inside, gaps, np.inf).min(axis=0),
        np.where(inside, gaps, -np.inf).max(axis=0),
    )


def first_inside(
    factor: Int64Array, modulus: Int64Array, least: Int64Array, most: Int64Array
) -> Int64Array:
    """The first x >= 0, (N,), of which factor * x is from `least` to `most`.

    It is so modulo `modulus`: a `most` beyond that begins again from 0. What is far
    above SPAN or does not exist is -1.  0 < factor < modulus, factor < 2^24.
    """
    x = np.zeros(len(factor), np.int64)
    left = np.flatnonzero((least > 0) & (most < modulus))
    a, n, low, high = (v[left] for v in (factor, modulus, least, most))
    # -a x is from n - high to n - low.
    over = 2 * a > n
    low, high = np.where(over, n - high, low), np.where(over, n - low, high)
    a = np.where(over, n - a, a)
    x[left] = -(-low // a)
    deeper = np.flatnonzero(x[left] * a > high)
    if deeper.size:
        # No multiple of a is there.  a x = n y + that, where -n y is that modulo a.
        a, n, low, high = (v[deeper] for v in (a, n, low, high))
        y = _divided(a, n, low, high)
        x[left[deeper]] = np.where(y < 0, -1, -(-(low + n * np.maximum(y, 0)) // a))
    return x


def _divided(
    a: Int64Array, n: Int64Array, low: Int64Array, high: Int64Array
) -> Int64Array:
    """y of first_inside()."""
    rest = -n % a
    y = np.full(len(a), -1, np.int64)
    some = np.flatnonzero(rest)
    y[some] = first_inside(
        rest[some], a[some], low[some] % a[some], high[some] % a[some]
    )
    return np.where(y < (SPAN << 24) // n, y, -1)
