# SPDX-License-Identifier: Apache-2.0
"""The methods that look at what the layers make of them."""

import numpy as np
import pytest

from layer_kits import RNG, F, conv, image, sampled
from neon8.calibrate.statistics.patches import empty, outputs
from neon8.calibrate.thresholds.choose import solve
from neon8.calibrate.thresholds.eq import best, error_share
from neon8.calibrate.thresholds.guards import MAX_CLIPPED_ENERGY, clipped_energy
from neon8.ir.graph import Activation
from neon8.quant.grid import Grid
from numpy_statistics import histogram_of


def measured(layer, images, method, scheme="symmetric", **options):
    """(the scale, the error of the whole layer's output with it)."""
    values = np.concatenate([x.ravel() for x in images])
    found = solve(
        histogram_of(values),
        method=method,
        scheme=scheme,
        layers=[sampled(layer, images)],
        **options,
    )
    grid = Grid(found.scheme, found.bits)
    rows = [
        sampled(layer, images, [f"{s} {i}" for i in range(len(images))])
        for s in range(8)
    ]
    total = 0.0
    for patches in rows:  # other rows than those that the method looked at
        rounded = grid.rounded(patches.rows, found.scale, found.zero_point)
        total += error_share(outputs(patches), outputs(patches, rounded))
    return found, total / len(rows)


def unequal_channels():
    """Half of the channels hold large values that the layer hardly reads."""
    layer = conv(out=16, channels=8, kernel=(1, 1))
    layer.weight[:, :4] *= F(1e-3)
    layer.bias[:] = 0
    images = [RNG.normal(size=(1, 8, 10, 10)).astype(F) for _ in range(40)]
    for x in images:
        x[:, :4] = RNG.laplace(size=x[:, :4].shape) * 4
    return layer, images


@pytest.mark.parametrize("scheme", ["symmetric", "auto"])
@pytest.mark.parametrize("method", ["eq", "eq:cosine"])
def test_what_the_layer_reads_decides(method, scheme):
    """mse spends its levels on the large channels, whose weights are nearly nothing."""
    layer, images = unequal_channels()
    usual, error = measured(layer, images, "mse", scheme)
    found, less = measured(layer, images, method, scheme)
    assert found.threshold[1] < usual.threshold[1]
    assert less < error * 0.95
    values = np.concatenate([x.ravel() for x in images])
    clipped = clipped_energy(histogram_of(values), *found.threshold)
    # One level of rounding at the ends may clip a little more than the guard allows.
    assert clipped <= 1.05 * MAX_CLIPPED_ENERGY


def test_rare_values_that_no_row_holds_count():
    """The rows alone would vote for the smallest range that the guard allows."""
    layer = conv(out=16, channels=8, kernel=(1, 1))
    images = [RNG.normal(size=(1, 8, 20, 20)).astype(F) for _ in range(40)]
    for x in images[::4]:
        x[0, 0, 0, 0] = 11
    values = np.concatenate([x.ravel() for x in images])
    rows = sampled(layer, images)
    assert rows.rows.max() < 6
    found = solve(histogram_of(values), method="eq", scheme="symmetric", layers=[rows])
    usual = solve(histogram_of(values), method="mse", scheme="symmetric")
    assert found.threshold[1] == pytest.approx(usual.threshold[1], rel=0.15)


@pytest.mark.parametrize("method", ["eq", "eq:cosine"])
def test_saturated_values_are_not_clipped(method):
    """As in a photograph: many values are the largest there can be."""
    layer = conv(out=16, channels=8, kernel=(1, 1))
    images = [
        np.clip(RNG.normal(0, 3, size=(1, 8, 20, 20)), -2, 4).astype(F)
        for _ in range(40)
    ]
    found, _ = measured(layer, images, method, "auto")
    assert found.threshold == pytest.approx((-2, 4), rel=0.02)


@pytest.mark.parametrize("dead", [False, True])
def test_without_a_layer_the_histogram_decides(dead):
    """Also where the layer's output is nothing but zeros."""
    layer = conv(activation=Activation(lo=0.0))
    layer.bias[:] = -1e6
    x = image(layer, (20, 20))
    rows = [sampled(layer, [x])] if dead else []
    values = histogram_of(x)
    found = solve(values, method="eq", scheme="symmetric", layers=rows)
    usual = solve(values, method="mse", scheme="symmetric")
    assert "unread" in found.reasons
    assert found.scale == usual.scale


def test_a_layer_without_samples():
    values = histogram_of(RNG.normal(size=5000).astype(F))
    found = solve(values, method="eq", scheme="auto", layers=[empty(conv())])
    assert found.reasons == ("unread",)


def test_equal_errors_mean_the_larger_range():
    ranges = [(-1.0, 1.0), (-3.0, 3.0), (-2.0, 2.0), (-9.0, 9.0)]
    assert best(ranges, [1.0, 1.0 + 5e-13, 1.0, 2.0]) == (-3.0, 3.0)
    assert best(ranges, [1.0, 1.0 + 5e-12, 1.0, 2.0]) == (-2.0, 2.0)
    assert best(ranges, [0.0, 0.0, 0.0, 0.0]) == (-9.0, 9.0)
