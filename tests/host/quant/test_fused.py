# SPDX-License-Identifier: Apache-2.0
"""The proof (5d): what it finds does what (5) does, and it finds all that there is."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neon8.quant import fused
from neon8.quant.fused import Channels, channels_of, nearest_proved, prove

F = np.float32
DIGEST = "0x7abde47db2a2f985"
"""That of all channels, as in tests/native/fuse.c."""


def channel(low, high, lo=-128, hi=127, zero_point=0):
    ends = np.array([low]), np.array([high])
    return Channels(low=ends[0], high=ends[1], lo=lo, hi=hi, zero_point=zero_point)


def requantized(acc, multiplier, some):
    """(5)"""
    v = np.rint(acc.astype(F) * multiplier).astype(np.int64)
    return np.clip(v + some.zero_point, some.lo, some.hi)


def units(multiplier):
    """m and s, of which it is m * 2^-s with 24 bits of m."""
    fraction, exponent = math.frexp(multiplier)
    return int(fraction * 2**24), 24 - exponent


def multiply_added(acc, multiplier, b, c, some):
    """What a fused multiply-add of the float32 with these bits stores; all exact."""
    x = (0x4B400000 + b + acc).astype(np.int32).view(F)
    assert ((x >= 2**23) & (x < 2**24)).all()
    m, s = units(multiplier)
    product = x.astype(np.int64) * m
    whole, rest = (product >> s) + c, product & (1 << s) - 1
    half = 1 << s - 1
    up = (rest > half) | ((rest == half) & (whole & 1 == 1))
    result = (whole + up).astype(F)
    assert (result == whole + up).all()  # no other rounding than this one
    assert ((result >= 2**23) & (result < 2**24)).all()
    q = result.view(np.int32).astype(np.int16).astype(np.int64)
    return np.clip(q, some.lo, some.hi)


def thresholds(multiplier, some):
    """Between which e of (5d) is, by looking at all accumulators."""
    acc = np.arange(int(some.low[0]), int(some.high[0]) + 1)
    q = requantized(acc, multiplier, some) - some.zero_point
    step = Fraction(float(multiplier))
    half = Fraction(1, 2)
    lower, upper = [-step], [step]
    if q[0] > some.lo - some.zero_point:
        lower.append(int(q[0]) - half - int(acc[0]) * step)
    if q[-1] < some.hi - some.zero_point:
        upper.append(int(q[-1]) + half - int(acc[-1]) * step)
    for k in range(int(q[0]) + 1, int(q[-1]) + 1):
        t = int(acc[np.searchsorted(q, k)])
        lower.append(k - half - t * step)
        upper.append(k - half - (t - 1) * step)
    return max(lower), min(upper)


def least_b(multiplier, some, lower, upper):
    """The least b that (5d) allows, one after another, and its c; None without one."""
    m, s = units(multiplier)
    first, last = int(lower * 2**s) + 1, int(upper * 2**s) - 1
    begin, end = -(2**22) - int(some.low[0]), 2**22 - int(some.high[0])
    for at in range(begin, end, 1 << 16):
        starts = (12582912 + np.arange(at, min(at + (1 << 16), end))) * m
        hits = np.flatnonzero((starts - first) % 2**s <= last - first)
        if hits.size:
            whole = (int(starts[hits[0]]) - first) // 2**s
            return at + hits[0], 12582912 + some.zero_point - whole
    return None


@st.composite
def channels(draw):
    """Channels with few to all results, and fewer accumulators than 2^20."""
    zero_point = draw(st.integers(-128, 127))
    lo = draw(st.integers(-128, 126))
    hi = draw(st.integers(lo + 1, 127))
    results = draw(st.floats(0.5, 600))
    span = int(min(results * 2 ** draw(st.floats(0, 20)), 2**20))
    multiplier = F(min(max(results / max(span, 1), 2.0**-22), 1 - 2.0**-24))
    # With few bits, e meets its ends.
    multiplier = (multiplier.view(np.int32) & -1 << draw(st.integers(0, 23))).view(F)
    middle = draw(st.integers(lo - zero_point - 3, hi - zero_point + 3))
    low = round(middle / float(multiplier)) - draw(st.integers(0, span))
    return multiplier, channel(low, low + span, lo, hi, zero_point)


@given(channels())
def test_the_proof_is_exact_and_complete(case):
    multiplier, some = case
    one = np.array([multiplier])
    proof = prove(one, some)
    if not fused.possible(one, some)[0]:
        assert not proof.holds[0]
        return
    found = [Fraction(float(end[0])) for end in fused.interval(one, some)]
    assert found == list(thresholds(multiplier, some))
    if proof.holds[0]:
        b, c = int(proof.b[0]), int(proof.c[0])
        acc = np.arange(int(some.low[0]), int(some.high[0]) + 1)
        got = multiply_added(acc, float(multiplier), b, c, some)
        assert (got == requantized(acc, multiplier, some)).all()
        assert 0 < abs(c) <= 2**24
    want = least_b(multiplier, some, *found)
    assert proof.holds[0] == (want is not None and want[1] != 0)
    assert not proof.holds[0] or want == (proof.b[0], proof.c[0])


@pytest.mark.parametrize("room", [0, 100])
def test_all_accumulators_are_in_the_span(room):
    """With about 2^23 accumulators b has few choices, and some channels none."""
    channels = 2000
    low = np.random.default_rng(room).integers(-(5 << 20), -(3 << 20), channels)
    multiplier = np.linspace(3e-3, 6e-3, channels).astype(F)
    high = low + 2**23 - 1 - room
    some = Channels(low=low, high=high, lo=0, hi=1, zero_point=1)
    proof = prove(multiplier, some)
    assert 0 < np.count_nonzero(proof.holds) < channels
    ends = zip(*fused.interval(multiplier, some), strict=True)
    for row, (lower, upper) in enumerate(ends):
        one = some.at(np.array([row]))
        want = least_b(multiplier[row], one, Fraction(lower), Fraction(upper))
        assert proof.holds[row] == (want is not None)
        assert want is None or want == (proof.b[row], proof.c[row])


@given(st.data())
def test_first_inside(data):
    s = data.draw(st.integers(24, 45))
    factor = data.draw(st.integers(2**23, 2**24 - 1))
    least = data.draw(st.integers(0, 2**s - 1))
    most = least + data.draw(st.integers(0, 2 ** (s - 12)))
    (x,) = fused.first_inside(
        *(np.array([v], np.int64) for v in (factor, 2**s, least, most))
    )
    tried = np.arange(1 << 14, dtype=np.int64) * factor % 2**s
    hits = np.flatnonzero((tried - least) % 2**s <= most - least)
    if hits.size:
        assert x == hits[0]
    else:
        assert x == -1 or x >= 1 << 14
    assert x == -1 or (int(x) * factor - least) % 2**s <= most - least


def test_first_inside_says_that_there_is_none():
    factor, modulus = np.array([[2**23, 3 << 22], [2**25, 2**25]])
    x = fused.first_inside(factor, modulus, np.array([1, 1]), np.array([2**22 - 1] * 2))
    assert x.tolist() == [-1, -1]


def drawn(seed, channels=300):
    rng = np.random.default_rng(seed)
    weights = rng.integers(-127, 128, (channels, 3, 3, 5)).astype(np.int8)
    bias = rng.integers(-20000, 20000, channels).astype(np.int32)
    some = channels_of(weights, bias, lo=-128, hi=127, zero_point=int(seed))
    multiplier = (2.0 ** rng.uniform(-13, -8, channels)).astype(F)
    return weights, bias, multiplier, some


def test_channels_of():
    weights, bias, *_ = drawn(3)
    weights[0, 0, 0, 0] = -128
    w = weights.reshape(len(weights), -1).astype(np.int64)
    some = channels_of(weights, bias, lo=-128, hi=127, zero_point=3)
    ends = [np.where(w > 0, 127, -128), np.where(w > 0, -128, 127)]
    high, low = ((w * end).sum(axis=1) + bias for end in ends)
    assert some.low.tolist() == low.tolist()
    assert some.high.tolist() == high.tolist()
    assert some.ends == (-131, 124)


@pytest.mark.parametrize("seed", [0, 7])
def test_the_nearest_that_is_proved(seed):
    """One after another gives the same."""
    _, _, multiplier, some = drawn(seed)
    chosen = nearest_proved(multiplier, some)
    moved = chosen.view(np.int32).astype(np.int64) - multiplier.view(np.int32)
    assert 0 < np.count_nonzero(moved) < len(moved)
    assert (moved < 0).any()
    assert (moved > 0).any()
    assert np.abs(moved).max() > 2
    order = [0, *(s for d in range(1, 129) for s in (-d, d))]
    for row in np.flatnonzero(moved):
        bits = multiplier[row].view(np.int32) + np.array(order, np.int32)
        holds = prove(bits.view(F), some.at(np.full(len(order), row))).holds
        assert order[holds.argmax()] == moved[row]


def drawn_as_in_c(channels):
    """The channels of tests/native/fuse.c."""
    state = 1

    def below(end):
        nonlocal state
        state = (state * 6364136223846793005 + 1442695040888963407) & (1 << 64) - 1
        return (state >> 32) * end >> 32

    for _ in range(channels):
        lo = -100 if below(4) == 0 else -128
        hi = 90 if below(4) == 0 else 127
        zero_point = -128 if below(2) == 0 else below(256) - 128
        reach = 1 << below(15)
        above = below(reach)
        under = reach - above
        bias = below(1 << 18) - (1 << 17)
        exponent, mantissa = 104 + below(24), below(1 << 23)
        bits = exponent << 23 | (0 if below(3) == 0 else mantissa)
        low = bias - 128 * above - 127 * under
        some = channel(low, low + 255 * reach, lo, hi, zero_point)
        yield np.array([bits], np.int32).view(F), bias, some


def test_the_library_proves_the_same():
    """Start and addend of each channel, as in tests/native/fuse.c."""
    digest = 0
    for multiplier, bias, some in drawn_as_in_c(4000):
        proof = prove(multiplier, some)
        start = (0x4B400000 + bias + int(proof.b[0])) if proof.holds[0] else 0
        for value in (start, int(proof.c[0]) if proof.holds[0] else 0):
            digest = ((digest ^ value & 0xFFFFFFFF) * 0x100000001B3) & (1 << 64) - 1
    assert f"{digest:#x}" == DIGEST


def test_without_a_proof_nothing_changes():
    """There is none with 2^23 accumulators, nor of 0 or a large or small M."""
    multiplier = np.array([1e-3, 1.0, 2e-7, 0, 2.5e-5], F)
    low = np.array([-(2**22), -500, -500, -500, 2**22])
    high = np.array([2**22, 500, 500, 500, 2**22 + 2**22])
    some = Channels(low=low, high=high, lo=-128, hi=127, zero_point=0)
    assert (nearest_proved(multiplier, some) == multiplier).all()
    assert not fused.possible(multiplier, some)[:4].any()
