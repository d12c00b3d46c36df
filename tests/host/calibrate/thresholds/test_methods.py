# SPDX-License-Identifier: Apache-2.0
"""Methods on distributions whose answer is known."""

import math
from dataclasses import replace

import numpy as np
import pytest

from neon8.calibrate.thresholds.aciq import aciq, constant
from neon8.calibrate.thresholds.choose import solve
from neon8.calibrate.thresholds.guards import MAX_CLIPPED_ENERGY, clipped_energy
from neon8.calibrate.thresholds.kl import kl, kl2017
from neon8.calibrate.thresholds.legacy import legacy
from neon8.calibrate.thresholds.minmax import minmax
from neon8.calibrate.thresholds.mse import expected_error, mse
from neon8.calibrate.thresholds.percentile import percentile
from neon8.quant.grid import Grid
from numpy_statistics import histogram_of

F = np.float32
COUNT = 400_000
RNG = np.random.default_rng(12)
GAUSS = RNG.normal(size=COUNT).astype(F)
LAPLACE = RNG.laplace(size=COUNT).astype(F)
HEAVY = RNG.standard_t(4, size=COUNT).astype(F)
OUTLIERS = GAUSS.copy()
OUTLIERS[:: COUNT // 40] *= 30


def quantized(x, tensor):
    return Grid(tensor.scheme, tensor.bits).rounded(x, tensor.scale, tensor.zero_point)


def sqnr(x, tensor):
    error = quantized(x, tensor) - x.astype(np.float64)
    return 10 * math.log10(
        np.square(x, dtype=np.float64).sum() / np.square(error).sum()
    )


@pytest.mark.parametrize(
    ("name", "bits", "published"),
    [
        ("laplace", 2, 2.83),
        ("laplace", 3, 3.90),
        ("laplace", 4, 5.03),
        ("laplace", 8, 9.89676),
        ("gauss", 2, 1.71),
        ("gauss", 3, 2.15),
        ("gauss", 4, 2.56),
        ("gauss", 8, 3.92404),
    ],
)
def test_clipping_constants_are_the_published_ones(name, bits, published):
    digits = 5 if bits == 8 else 2
    assert round(constant(name, bits), digits) == published


@pytest.mark.parametrize("size", [1e-10, 1.0, 1e20])
def test_aciq_finds_distribution_and_size(size):
    for x, name, bits in (
        (GAUSS, "gauss", 8),
        (LAPLACE, "laplace", 8),
        (np.abs(GAUSS), "gauss", 9),
        (np.abs(LAPLACE), "laplace", 9),
    ):
        scheme = "unsigned" if bits == 9 else "symmetric"
        lo, hi = aciq(histogram_of((x * size).astype(F)), Grid(scheme))
        # 1 %: the estimates of sigma and b from that many values.
        want = min(constant(name, bits) * size, np.abs(x).max() * size)
        assert hi == pytest.approx(want, rel=0.01)
        assert lo == (0 if scheme == "unsigned" else -hi)


def test_aciq_of_shifted_values_is_around_their_mean():
    h = histogram_of(GAUSS / 10 + F(0.2))
    lo, hi = aciq(h, Grid("asymmetric"))
    assert lo == pytest.approx(0.2 - 0.3924, abs=0.01)
    assert hi == pytest.approx(0.2 + 0.3924, abs=0.01)
    lo, hi = aciq(histogram_of(GAUSS + F(20)), Grid("asymmetric"))
    assert lo == 0
    assert hi == pytest.approx(23.9, abs=0.1)


def test_zeros_do_not_matter_but_where_they_should():
    relu = np.maximum(GAUSS, 0)
    h = histogram_of(relu)
    many = replace(h, zeros=10 * h.zeros)
    for function in (mse, kl, aciq, percentile, minmax):
        assert function(many, Grid("unsigned")) == function(h, Grid("unsigned"))
    for name in ("kl2017", "legacy", "percentile:99.9:all"):
        few, more = (solve(each, method=name, scheme="auto") for each in (h, many))
        assert few.threshold != more.threshold


def test_kept_zeros_are_the_trap_of_kl2017_and_the_guard_gets_it_out():
    """A sparse tensor: only the first bin matters, so it takes the smallest range."""
    x = np.where(RNG.random(COUNT) < 0.02, np.abs(HEAVY), 0).astype(F)
    h = histogram_of(x)
    lo, hi = kl2017(h, Grid("unsigned"))
    assert hi < kl(h, Grid("unsigned"))[1] / 2
    assert clipped_energy(h, lo, hi) > 10 * MAX_CLIPPED_ENERGY
    found = solve(h, method="kl2017", scheme="auto")
    assert found.reasons == ("guard",)
    assert clipped_energy(h, *found.threshold) < 1.02 * MAX_CLIPPED_ENERGY
    before = solve(h, method="minmax", scheme="auto")
    after = replace(before, scale=hi / 255)
    assert sqnr(x, found) > sqnr(x, after) + 10


@pytest.mark.parametrize("keep", [0.5, 0.9, 0.999])
def test_legacy_is_the_percentile_of_all_within_the_region(keep):
    x = np.concatenate([GAUSS, np.zeros(COUNT, F)])
    h = histogram_of(x)
    lo, hi = legacy(h, Grid("asymmetric"), percent=100 * keep)
    assert hi == -lo
    assert (np.abs(x) <= hi).mean() >= keep
    assert hi == h.width or (np.abs(x) <= hi - h.width).mean() < keep
    assert legacy(h, Grid("symmetric"), percent=100) == minmax(h, Grid("symmetric"))
    region = 0.5 * float(np.abs(x).max())
    inside = np.abs(x)[np.abs(x) <= region]
    _, cut = legacy(h, Grid("symmetric"), percent=100 * keep, cutoff=0.5)
    assert cut <= region
    # Up to a bin: the region may end in the middle of one.
    assert (inside <= cut).mean() >= keep - 1e-3
    assert (inside <= cut - h.width).mean() < keep + 1e-3


def test_percentile_of_all_or_of_nonzero():
    x = np.concatenate([np.abs(GAUSS), np.zeros(9 * COUNT, F)])
    h = histogram_of(x)
    _, of_all = percentile(h, Grid("unsigned"), percent=99, of="all")
    _, nonzero = percentile(h, Grid("unsigned"), percent=90)
    assert of_all == nonzero  # 1 % of all are 10 % of those that are not zero
    found = [
        solve(h, method=f"percentile:99.99:{of}", scheme="auto").threshold[1]
        for of in ("nonzero", "all")
    ]
    assert found[0] > found[1]


@pytest.mark.parametrize("scheme", ["symmetric", "unsigned", "asymmetric"])
@pytest.mark.parametrize("bits", [8, 16])
def test_expected_error_is_that_of_the_values(scheme, bits):
    x = np.abs(GAUSS) if scheme == "unsigned" else GAUSS
    h = histogram_of(x)
    for limit in (2.0, 3.0, 5.0):
        grid = Grid(scheme, bits)
        low = 0.0 if scheme == "unsigned" else -limit
        scale, zero_point = grid.cover(low, limit)
        error = grid.rounded(x, float(scale), zero_point) - x.astype(np.float64)
        found = expected_error(h, grid, float(scale), zero_point)
        # 3 %: values spread evenly within a bin stand for the values.
        assert found == pytest.approx(float(np.square(error).sum()), rel=0.03)
