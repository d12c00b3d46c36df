# SPDX-License-Identifier: Apache-2.0
"""Thresholds, methods, schemes and guards."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neon8.calibrate.statistics import native
from neon8.calibrate.statistics.histogram import BINS
from neon8.calibrate.thresholds import kl as thresholds_kl
from neon8.calibrate.thresholds.choose import solve
from neon8.calibrate.thresholds.guards import MAX_CLIPPED_ENERGY, clipped_energy
from neon8.calibrate.thresholds.mse import mse
from neon8.calibrate.thresholds.percentile import percentile
from neon8.errors import CalibrationError
from neon8.quant.grid import Grid
from neon8.quant.scale_table import TABLE_SCHEMES as SCHEMES
from neon8.settings.methods import ROWS as METHODS
from numpy_statistics import histogram_of as of

F = np.float32
RNG = np.random.default_rng(4)
GAUSS = RNG.normal(size=40000).astype(F)
DATA = {
    "gauss": GAUSS,
    "relu": np.maximum(GAUSS, 0),
    "leaky": np.where(GAUSS < 0, GAUSS / 10, GAUSS),
    "laplace": RNG.laplace(size=40000).astype(F),
    "heavy": RNG.standard_t(3, size=40000).astype(F),
    "shifted": (GAUSS + 20).astype(F),
    "negative": -np.abs(GAUSS),
    "outliers": np.concatenate([GAUSS, 30 * GAUSS[:4]]),
    "tiny": (GAUSS * 1e-20).astype(F),
    "huge": (GAUSS * 3e37).astype(F),
}


def kind(x, scheme):
    if scheme in ("symmetric", "asymmetric"):
        return scheme
    if x.min() >= 0:
        return "unsigned"
    return "asymmetric" if scheme == "auto" else "symmetric"


def noise(x, scale, zero_point, scheme, bits=8):
    """Sum of squared errors of quantizing x, in double."""
    most = 2 ** (bits - 1) - 1
    lowest = -most if scheme == "symmetric" else -most - 1
    q = np.clip(np.rint(x / scale) + zero_point, lowest, most)
    return float(np.square((q - zero_point) * scale - x.astype(np.float64)).sum())


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("bits", [8, 16])
def test_every_grid_is_sound(name, scheme, method, bits):
    x = DATA[name]
    t = solve(of(x), method=method, scheme=scheme, bits=bits)
    assert (t.scheme, t.bits) == (kind(x, scheme), bits)
    assert t.scale == float(F(t.scale))
    assert 1e-30 <= t.scale < math.inf
    most = 2 ** (bits - 1) - 1
    zero_points = {"symmetric": {0}, "unsigned": {-most - 1}}
    assert t.zero_point in zero_points.get(t.scheme, range(-most - 1, most + 1))
    lowest = -most if t.scheme == "symmetric" else -most - 1
    ends = [(end - t.zero_point) * t.scale for end in (lowest, most)]
    assert t.threshold == pytest.approx(ends, rel=1e-6)
    assert (t.min, t.max) == (x.min(), x.max())
    lo, hi = t.threshold
    # One level of rounding at the ends may clip a little more than the guard allows.
    energy = clipped_energy(of(x), lo - t.scale, hi + t.scale)
    assert energy <= MAX_CLIPPED_ENERGY
    inside = np.clip(x, lo, hi)
    step = noise(inside, t.scale, t.zero_point, t.scheme, bits) / x.size
    assert step <= (t.scale / 2) ** 2 * 1.001


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", DATA)
def test_minmax_covers_all_values(name, scheme):
    x = DATA[name]
    t = solve(of(x), method="minmax", scheme=scheme)
    error = np.abs(np.clip(x, *t.threshold) - x).max()
    assert error <= t.scale * 0.51
    span = max(x.max(), 0) - min(x.min(), 0)
    if t.scheme == "symmetric":
        assert t.scale == F(np.abs(x).max() / 127)
    else:
        assert t.scale == pytest.approx(span / 255, rel=1e-6)


@pytest.mark.parametrize(
    ("name", "chosen"),
    sorted({(name, kind(DATA[name], scheme)) for name in DATA for scheme in SCHEMES}),
)
def test_mse_is_the_best_grid(name, chosen):
    """Against 200 ranges and all zero points, measured on the values themselves.

    2 %: values spread evenly within each of 2048 bins stand for the values.
    """
    x = DATA[name][:4000]
    lo, hi = mse(of(x), Grid(chosen))
    levels = 254 if chosen == "symmetric" else 255
    negative = {"symmetric": [127], "unsigned": [0]}.get(chosen, range(0, 256, 3))
    found = noise(x, (hi - lo) / levels, round(-lo / ((hi - lo) / levels))
                  - (127 if chosen == "symmetric" else 128), chosen)  # fmt: skip
    full = 2 * np.abs(x).max() if chosen == "symmetric" else np.ptp([*x, 0])
    best = math.inf
    for share, n in itertools.product(np.linspace(0.05, 1.02, 60), negative):
        scale = share * full / levels
        zero_point = n - (127 if chosen == "symmetric" else 128)
        best = min(best, noise(x, scale, zero_point, chosen))
    assert found <= best * 1.02


def naive_divergence(counts, bins, levels):
    """KL(P || Q) for one candidate, written out."""
    p = np.array(counts[:bins], float)
    p[-1] += sum(counts[bins:])
    q = np.zeros(bins)
    ends = [-(-level * bins // levels) for level in range(levels + 1)]
    for first, end in itertools.pairwise(ends):
        members = range(first, end)
        filled = [j for j in members if counts[j] > 0]
        for j in filled:
            q[j] = sum(counts[m] for m in members) / len(filled)
    if not q.any():
        return math.inf
    p, q = p / p.sum(), q / q.sum()
    if any(q[j] == 0 for j in range(bins) if p[j] > 0):
        return math.inf
    return sum(p[j] * math.log(p[j] / q[j]) for j in range(bins) if p[j] > 0)


def assert_divergences(counts, levels, candidates):
    padded = np.zeros(BINS)
    padded[: len(counts)] = counts
    got = native.divergence(padded, first=levels, last=len(counts), levels=levels)
    want = [naive_divergence(counts, bins, levels) for bins in candidates]
    assert got[np.array(candidates) - levels] == pytest.approx(want, abs=1e-9)


@given(st.lists(st.integers(0, 9), min_size=9, max_size=30), st.sampled_from([2, 4, 8]))
def test_divergence_is_that_of_the_definition(counts, levels):
    if any(counts):
        assert_divergences(counts, levels, range(levels, len(counts) + 1))


@pytest.mark.parametrize(("scheme", "levels"), [("symmetric", 128), ("unsigned", 256)])
def test_kl_drops_zeros_and_takes_the_last_minimum(scheme, levels):
    x = np.maximum(GAUSS, 0)
    h = of(x)
    counts = h.positive.tolist()
    used = max(np.flatnonzero(counts)) + 1
    candidates = range(levels, used + 1, 37)
    _, hi = thresholds_kl.kl(h, Grid(scheme))
    entropy = [naive_divergence(counts, bins, levels) for bins in candidates]
    at = min(int(hi / h.width - 0.5), used)
    assert naive_divergence(counts, at, levels) <= min(entropy) + 1e-12
    assert thresholds_kl.kl(of(np.append(x, np.zeros(10**6, F))), Grid(scheme))[1] == hi


def test_ties(monkeypatch):
    """kl takes the last minimum, rounding aside; kl2017 the first."""
    h = of(np.arange(1, 2048, dtype=F))

    def level(_counts, *, first, last, levels):  # noqa: ARG001
        candidates = np.arange(first, last + 1)
        noise = np.resize([0.0, 1e-15, 3e-14], candidates.size)
        return np.where((candidates < 500) | (candidates > 700), 1.0, noise)

    monkeypatch.setattr(thresholds_kl, "divergence", level)
    assert thresholds_kl.kl(h, Grid("symmetric"))[1] == 700.5

    def pairs(_counts, *, first, last, levels):  # noqa: ARG001
        return np.abs(np.arange(first, last + 1) // 2 - 250)

    monkeypatch.setattr(thresholds_kl, "divergence", pairs)
    assert thresholds_kl.kl2017(h, Grid("symmetric"))[1] == 500.5


def test_kl2017_is_the_slide():
    x = np.maximum(GAUSS[:5000], 0)
    h = of(x)
    counts = h.positive.tolist()
    counts[0] += h.zeros
    entropy = {m: naive_divergence(counts, m, 128) for m in range(128, 2048, 1)
               if m < 300 or m % 97 == 0}  # fmt: skip
    _, hi = thresholds_kl.kl2017(h, Grid("unsigned"))
    at = int(hi / h.width - 0.5)
    assert naive_divergence(counts, at, 128) <= min(entropy.values()) + 1e-12


@pytest.mark.parametrize("keep", [0.9, 0.99, 0.9999])
def test_percentile(keep):
    for scheme, x in (("symmetric", GAUSS), ("unsigned", np.abs(GAUSS))):
        h = of(np.append(x, np.zeros(99, F)))
        _, t = percentile(h, Grid(scheme), percent=100 * keep)
        assert (np.abs(x) <= t).mean() >= keep
        assert (np.abs(x) <= t - h.width).mean() < keep
    h = of(GAUSS)
    lo, hi = percentile(h, Grid("asymmetric"), percent=100 * keep)
    for tail, more in (
        ((hi < GAUSS).mean(), (hi - h.width < GAUSS).mean()),
        ((lo > GAUSS).mean(), (lo + h.width > GAUSS).mean()),
    ):
        assert tail <= (1 - keep) / 2 + 1e-12 < more


def test_guard_says_so():
    x = DATA["outliers"]
    before = percentile(of(x), Grid("symmetric"))
    t = solve(of(x), method="percentile", scheme="symmetric")
    assert t.reasons == ("guard",)
    assert t.threshold[1] > before[1]
    assert clipped_energy(of(x), *before) > MAX_CLIPPED_ENERGY
    assert solve(of(GAUSS), method="mse", scheme="auto").reasons == ()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("value", [0.0, -0.0, 1e-45, 1e-30, -1e-27])
def test_dead_tensor(method, scheme, value):
    t = solve(of(np.full(5000, value, F)), method=method, scheme=scheme)
    assert t.reasons == ("dead",)
    assert (t.scheme, t.zero_point) == ("symmetric", 0)
    assert t.threshold == pytest.approx((-1, 1))


@pytest.mark.parametrize(
    ("x", "code"),
    [(GAUSS[:999], "few:values"), (np.rint(GAUSS * 10)[:5000], "few:bins")],
)
@pytest.mark.parametrize("method", sorted(set(METHODS) - {"minmax"}))
def test_too_few_values_take_minimum_and_maximum(x, code, method):
    t = solve(of(x.astype(F)), method=method, scheme="auto")
    assert t.reasons == (code,)
    assert t.threshold == pytest.approx((x.min(), x.max()), abs=t.scale)
    assert solve(of(x.astype(F)), method="minmax", scheme="auto").reasons == ()


@pytest.mark.parametrize("value", [5.0, -5.0, 1e-25, 3e38])
def test_constant_tensor(value):
    t = solve(of(np.full(10, value, F)), method="mse", scheme="auto")
    q = np.clip(round(value / t.scale) + t.zero_point, -128, 127)
    assert (q - t.zero_point) * t.scale == pytest.approx(value, rel=1e-6)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_values_near_the_end_of_float32(method, scheme):
    x = np.clip(GAUSS, -1, 1).astype(F) * F(1e38)
    assert np.isfinite(solve(of(x), method=method, scheme=scheme).threshold).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scheme", ["auto", "asymmetric"])
def test_a_range_beyond_float32_is_an_error_and_no_warning(scheme):
    x = np.clip(GAUSS, -1, 1).astype(F) * np.finfo(F).max
    with pytest.raises(CalibrationError, match="does not fit float32 once it is"):
        solve(of(x), method="minmax", scheme=scheme)
