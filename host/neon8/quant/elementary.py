# SPDX-License-Identifier: Apache-2.0
"""exp, log and what is built from them in double, (15) of docs/numerics.md.

The same bits on every machine, which those of C libraries and of numpy are not: only
operations that IEEE 754 rounds, one at a time, in the order that elementary.h has.
Arrays of float64, any shape. Good to some units in the last place. At the end sigmoid
and tanh of float32, in float32, as runtime/ref/sigmoid.c has them.
"""

import numpy as np

from neon8.arrays import DoubleArray, FloatArray

LOG2_E = 1.4426950408889634
LN2_HIGH = 0.69314718036912382
LN2_LOW = 1.9082149292705877e-10
EXP_TERMS = 13
EXP_RANGE = (-708.0, 709.0)
EXPM1_SERIES = 0.34
ROOT_HALF = 0.70710678118654752
LOG_LAST = 25
TANH_ONE = 20.0
ERF_ONE = 6.0
ERF_TERMS = 150
TURN = 6.2831853071795865
PI = 3.1415926535897931
ONE_OVER_PI = 0.31830988618379067
SINE_TERMS = 24
ARCTANGENT_LAST = 2.0**53
TWO_OVER_ROOT_PI = 1.1283791670955126
MAGIC_32, TWO_LOG2_E, HALF_LN2_HIGH, HALF_LN2_LOW, C1, C2 = np.array(
    [12583039, 2.88539004, 0.346572876, 7.14303383e-07, 0.333332360, 0.0221278779],
    np.float32,
)
SIGMOID_RANGE = np.float32(-88), np.float32(20)
TANH_RANGE = np.float32(-10), np.float32(10)


def exp(x: DoubleArray) -> DoubleArray:
    """e^x for x in -708 .. 709; beyond, 0 and infinity."""
    low, high = EXP_RANGE
    inside = np.where((x >= low) & (x <= high), x, 0.0)
    k = np.rint(inside * LOG2_E)
    r = (inside - k * LN2_HIGH) - k * LN2_LOW
    result = np.ldexp(_exp_series(r, 0), k.astype(np.int32))
    result = np.where(x < low, 0.0, np.where(x > high, np.inf, result))
    return np.where(np.isnan(x), np.nan, result)


def expm1(x: DoubleArray) -> DoubleArray:
    """e^x - 1, without cancellation near 0."""
    near = (x > -EXPM1_SERIES) & (x < EXPM1_SERIES)
    inside = np.where(near, x, 0.0)
    return np.where(near, _exp_series(inside, 1) * inside, exp(x) - 1.0)


def log(x: DoubleArray) -> DoubleArray:
    """The natural logarithm: -inf for 0, NaN for what is below."""
    usual = (x > 0) & np.isfinite(x)
    m, e = np.frexp(np.where(usual, x, 1.0))
    small = m < ROOT_HALF
    m = np.where(small, m * 2.0, m)
    exponent = np.where(small, e - 1, e).astype(np.float64)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    p = np.full_like(s, 2.0 / LOG_LAST)
    for j in range(LOG_LAST - 2, 0, -2):
        p = p * z
        p = p + 2.0 / j
    result = exponent * LN2_HIGH + (p * s + exponent * LN2_LOW)
    beyond = np.where(x == 0, -np.inf, np.where(x > 0, np.inf, np.nan))
    return np.where(usual, result, beyond)


def log1p(x: DoubleArray) -> DoubleArray:
    """ln(1 + x) for x >= 0: what rounding 1 + x loses is made good by a quotient."""
    total = 1.0 + x
    plain = (total == 1) | np.isposinf(total)
    divisor = np.where(plain, 1.0, total - 1.0)
    result = np.where(plain, x, log(total) * (np.where(plain, 0.0, x) / divisor))
    return np.where(np.isnan(x), np.nan, result)


def sigmoid(x: DoubleArray) -> DoubleArray:
    """1 / (1 + e^-x)."""
    result: DoubleArray = 1.0 / (1.0 + exp(-x))
    return result


def tanh(x: DoubleArray) -> DoubleArray:
    """t / (t + 2) with t = e^(2 |x|) - 1, and the sign of x."""
    a = np.where(x < 0, -x, x)  # keeps -0, as elementary.h does
    t = expm1(2.0 * np.minimum(a, TANH_ONE))
    y = np.where(a > TANH_ONE, 1.0, t / (t + 2.0))
    return np.where(x < 0, -y, y)


def erf(x: DoubleArray) -> DoubleArray:
    """2 / sqrt(pi) e^(-x^2) sum over n of 2^n x^(2n + 1) / (1 * 3 * ... * (2n + 1))."""
    inside = np.where(np.abs(x) < ERF_ONE, x, 0.0)
    square = inside * inside
    term = total = inside
    for n in range(1, ERF_TERMS):
        term = term * (2.0 * square / (2 * n + 1))
        total = total + term
    result = TWO_OVER_ROOT_PI * exp(-square) * total
    result = np.where(x >= ERF_ONE, 1.0, np.where(x <= -ERF_ONE, -1.0, result))
    return np.where(np.isnan(x), np.nan, result)


def sine(x: DoubleArray) -> DoubleArray:
    """What is left of whole turns, exactly, then of half ones; a series of that."""
    turned = np.fmod(x, TURN)
    k = np.rint(turned * ONE_OVER_PI)
    r = turned - k * PI
    square = r * r
    term = np.ones_like(r)
    total = np.ones_like(r)
    for j in range(2, SINE_TERMS, 2):
        term = term * (-square / (j * (j + 1)))
        total = total + term
    result = np.where(np.abs(k) == 1, -(total * r), total * r)
    return np.where(np.isnan(r), np.nan, result)


def arctangent(x: DoubleArray) -> DoubleArray:
    """Three times the half of the angle, then a series."""
    t = np.minimum(np.abs(x), ARCTANGENT_LAST)
    for _ in range(3):
        t = t / (1.0 + np.sqrt(1.0 + t * t))
    square = t * t
    p = np.full_like(t, 1.0 / 21)
    for j in range(19, 0, -2):
        p = 1.0 / j - p * square
    return np.where(np.isnan(x), np.nan, np.copysign(8.0 * (p * t), x))


def sigmoid_floats(x: FloatArray) -> FloatArray:
    """1 / (1 + e^-x); 0 where it would be denormal, as the divisor then overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        h, c, q = _exp_parts(np.clip(x, *SIGMOID_RANGE) / np.float32(2))
        above, below = 4 * ((1 + c) + h), 4 * ((1 + c) - h)
        y = above / (above + q * below)
        return np.where(np.isnan(x), np.float32(np.nan), y)


def tanh_floats(x: FloatArray) -> FloatArray:
    """(1 - e^-2x) / (1 + e^-2x), without cancellation near 0."""
    with np.errstate(invalid="ignore"):
        h, c, q = _exp_parts(np.clip(x, *TANH_RANGE))
        u, v = 1 + q, q - 1
        y = ((u * h - v * c) - v) / ((u * c - v * h) + u)
        return np.where(np.isnan(x), np.float32(np.nan), y)


def _exp_parts(x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """h, c and q of e^-2x = q (1 + c - h) / (1 + c + h)."""
    shifted = MAGIC_32 - x * TWO_LOG2_E
    k = MAGIC_32 - shifted
    h = (x - k * HALF_LN2_HIGH) - k * HALF_LN2_LOW
    w = h * h
    c = w * (C1 - w * C2)
    return h, c, (shifted.view(np.uint32) << 23).view(np.float32)


def _exp_series(r: DoubleArray, least: int) -> DoubleArray:
    """Sum over j = least .. 13 of r^(j - least) / j!, from the last term on."""
    factorials = [1.0]
    for j in range(1, EXP_TERMS + 1):
        factorials.append(factorials[-1] * j)  # exact: 13! < 2**53
    p = np.full_like(r, 1.0 / factorials[EXP_TERMS])
    for j in range(EXP_TERMS - 1, least - 1, -1):
        p = p * r
        p = p + 1.0 / factorials[j]
    return p
