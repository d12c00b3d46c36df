# SPDX-License-Identifier: Apache-2.0
"""The calibrator's C library against its twins, and how it is found."""

from functools import reduce

import numpy as np
import pytest

import numpy_solvers
import numpy_statistics
from native_kits import facts, isas, taken
from neon8.calibrate.statistics import channels, histogram, native
from neon8.calibrate.statistics.native_library import CALIBRATE
from neon8.errors import CalibrationError, SetupError
from neon8.ir.graph import Activation
from neon8.runtime import library
from numpy_statistics import activated

F = np.float32
SHAPES = [(1, 5), (1, 3, 7, 9), (1, 2, 50, 50), (1, 4, 64, 64), (1, 300, 1, 1),
          (1, 33, 3, 5), (1, 7, 45, 46), (1, 1, 2047), (1, 2, 2049),
          (1, 1), (1, 2, 1, 17), (1, 300, 3, 3), (1, 2, 64, 65)]  # fmt: skip
ACTIVATIONS = [
    Activation(lo=0.0), Activation(lo=0.0, hi=6.0), Activation(slope=0.1),
    Activation(slope=-2.0), Activation(slope=0.25, hi=1.0), Activation(),
]  # fmt: skip


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_same_integers_as_the_twins(shape, activation):
    rng = np.random.default_rng(len(shape) * shape[1])
    samples = []
    for number in range(4):
        x = (rng.normal(size=shape) * 10.0 ** rng.integers(-30, 38)).astype(F)
        x[rng.random(shape) < 0.3] = 0
        x.flat[0] = -0.0
        if number >= 2:
            x.flat[rng.integers(x.size, size=3)] = [np.nan, np.inf, -np.inf]
        samples.append(x)
    after = [activated(x, activation) for x in samples]
    wanted = [
        (
            reduce(histogram.merge, map(numpy_statistics.histogram_of, values)),
            reduce(channels.merge, map(numpy_statistics.channels_of, values)),
        )
        for values in (samples, after)
    ]
    for isa in isas():
        got = taken(samples, isa, activation)
        for statistics, (bins, sums) in zip(got, wanted, strict=True):
            assert facts(statistics.histogram()) == facts(bins)
            assert facts(statistics.channels()) == facts(sums)


def test_a_slope_that_overflows():
    """What becomes infinite is counted apart, and lies in no bin."""
    x = np.array([[[-1e38, 1000, 2]]], dtype=F)
    for isa in isas():
        wanted = native.Wanted(channels=1, histogram=True, per_channel=False)
        raw, after = native.bank([wanted, wanted]).each
        job = native.Job(x.shape, raw, after, Activation(slope=10.0))
        native.Plan([job]).observe((x,), isa=isa)
        with np.errstate(over="ignore"):
            expected = numpy_statistics.histogram_of(
                activated(x, Activation(slope=10.0))
            )
        assert facts(after.histogram()) == facts(expected)


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=str)
def test_histogram_alone(activation):
    """No sums are taken, so the range comes from elsewhere."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(1, 3, 30, 30)).astype(F) * F(9)
    for bad in ([], [np.nan], [-np.inf]):
        x.flat[: len(bad)] = bad
        raw, after = native.bank(
            [
                native.Wanted(channels=3, histogram=False, per_channel=True),
                native.Wanted(channels=3, histogram=True, per_channel=False),
            ]
        ).each
        native.Plan([native.Job(x.shape, raw, after, activation)]).observe([x])
        want = numpy_statistics.histogram_of(activated(x, activation))
        assert facts(after.histogram()) == facts(want)


@pytest.mark.parametrize("slope", [1.0, 10.0])
def test_the_first_channels_of_the_extremes(slope):
    """Infinities and NaN are in none of them; -1e38 becomes one by a slope of 10."""
    rows = [[3, 1], [-2, 7], [7, -2], [np.nan, 9], [-1e38, 0], [np.nan, np.nan]]
    x = np.array(rows, dtype=F)[np.newaxis]
    activation = Activation(slope=slope)
    with np.errstate(over="ignore"):
        after = activated(x, activation)[0]
    after[~np.isfinite(after)] = np.nan
    least, most = np.nanmin(after), np.nanmax(after)
    want = [int(np.argwhere(after == one)[0][0]) for one in (least, most)]
    for isa in isas():
        for per_channel in (True, False):
            wanted = native.Wanted(channels=6, histogram=True, per_channel=per_channel)
            bank = native.bank([wanted])
            job = native.Job(x.shape, None, bank.each[0], activation)
            native.Plan([job]).observe([x], isa=isa)
            assert [bank.sample_minimum[0], bank.sample_maximum[0]] == [least, most]
            assert [bank.sample_argmin[0], bank.sample_argmax[0]] == want


def test_one_bin_many_times():
    x = np.full((1, 1, 300, 300), 0.75, F)
    got = taken([x] * 3, isas()[-1])[0].histogram()
    assert got.positive[1536] == got.total == 3 * x.size


def test_a_sample_of_another_shape_is_refused():
    wanted = native.Wanted(channels=2, histogram=True, per_channel=False)
    taken_ = native.bank([wanted]).each[0]
    plan = native.Plan([native.Job((1, 2, 3), taken_)])
    with pytest.raises(CalibrationError, match=r"\(1, 3, 2\) instead of \(1, 2, 3\)"):
        plan.observe([np.zeros((1, 3, 2), F)])


def histograms():
    rng = np.random.default_rng(2)
    shapes = {
        "gauss": np.abs(rng.normal(size=9000)) * 500,
        "flat": rng.uniform(0, 2047, 9000),
        "tail": np.abs(rng.standard_cauchy(9000)) * 5,
        "few": rng.integers(0, 20, 9000) * 100.0,
        "end": np.array([0.0, 2047.0]),
    }
    for name, values in shapes.items():
        bins = np.clip(values.astype(int), 0, 2047)
        yield pytest.param(np.bincount(bins, minlength=2048).astype(float), id=name)


@pytest.mark.parametrize("counts", list(histograms()))
def test_squared_error_is_that_of_the_twin(counts):
    """Relative: the twin cubes a step through pow()."""
    steps = np.linspace(2048 / 127, 0.1, 50)
    above = np.arange(0, 256, 5)
    other = counts[::-1].copy()
    got = native.squared_error(
        counts, other, steps=steps, above=above, below=255 - above
    )
    want = numpy_solvers.squared_error(counts, steps, above)
    want += numpy_solvers.squared_error(other, steps, 255 - above)
    assert np.abs(got - want).max() <= 1e-11 * want.max()


def test_a_missing_library_names_the_remedy(monkeypatch, tmp_path):
    monkeypatch.setenv("N8_CALIBRATE_LIBRARY", str(tmp_path / "none.so"))
    with pytest.raises(SetupError, match="correct N8_CALIBRATE_LIBRARY"):
        library.find(CALIBRATE)
    monkeypatch.delenv("N8_CALIBRATE_LIBRARY")
    monkeypatch.setattr(library, "PACKAGE", tmp_path / "host" / "neon8")
    with pytest.raises(SetupError, match="run 'make native' or set N8_CAL"):
        library.find(CALIBRATE)
