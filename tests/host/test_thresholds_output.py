# SPDX-License-Identifier: Apache-2.0
"""Rows of layers, and the methods that look at what the layers make of them."""

import numpy as np
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx_nets import net, node, save

from neon8.calibrate.grids import Grid
from neon8.calibrate.guards import MAX_CLIPPED_ENERGY, clipped_energy
from neon8.calibrate.patches import CHANNELS, ROWS, Sampler, empty, merge, outputs
from neon8.calibrate.thresholds import RIVALS, solve
from neon8.calibrate.thresholds_output import best, cosine_loss, error_share, judge
from neon8.calibrate.twins import histogram_of
from neon8.graph.graph import Activation, Conv2d

F = np.float32
RNG = np.random.default_rng(5)


def conv(*, out=4, channels=4, kernel=(3, 3), groups=1, name="conv", **options):
    weight = RNG.normal(size=(out, channels // groups, *kernel)).astype(F)
    return Conv2d(
        name=name,
        inputs=("x",),
        output="y",
        pre_activation="y",
        weight=weight,
        bias=RNG.normal(size=out).astype(F),
        groups=groups,
        **options,
    )


GEOMETRY = {
    "plain": (conv(), (9, 8)),
    "padded": (conv(pads=(1, 2, 3, 0)), (5, 4)),
    "all padding": (conv(pads=(4, 4, 4, 4)), (2, 2)),
    "strided": (conv(strides=(2, 3), pads=(1, 1, 1, 1)), (9, 11)),
    "dilated": (conv(dilations=(2, 3), pads=(2, 3, 2, 3)), (7, 9)),
    "dilated, padded unevenly": (conv(dilations=(3, 2), pads=(2, 1, 4, 3)), (6, 5)),
    "tall": (conv(kernel=(5, 1), pads=(2, 0, 2, 0)), (6, 3)),
    "pointwise": (conv(kernel=(1, 1), strides=(2, 2)), (6, 6)),
    "many channels": (conv(out=40, channels=3), (5, 5)),
    "grouped": (conv(out=12, channels=6, groups=3, pads=(1, 1, 1, 1)), (5, 6)),
    "depthwise": (conv(out=40, channels=40, groups=40), (5, 5)),
    "multiplier": (conv(out=12, channels=6, groups=6), (4, 4)),
    "relu6": (conv(activation=Activation(lo=0.0, hi=6.0)), (5, 5)),
    "leaky": (conv(activation=Activation(slope=0.1)), (5, 5)),
    "one pixel": (conv(), (3, 3)),
}


def image(layer, size):
    channels = layer.weight.shape[1] * layer.groups
    return RNG.normal(size=(1, channels, *size)).astype(F)


def sampled(layer, images, names=None):
    sampler = Sampler(layer)
    for name, x in zip(names or range(len(images)), images, strict=True):
        sampler.add(x, digest=f"{name}")
    return sampler.result()


def by_onnxruntime(layer, x, tmp_path):
    """(C, pixels) the chosen channels of the layer's output before the activation."""
    t, left, b, r = layer.pads
    made = net(
        [
            node(
                "Conv",
                "x w b",
                "y",
                pads=[t, left, b, r],
                strides=list(layer.strides),
                dilations=list(layer.dilations),
                group=layer.groups,
            )
        ],
        {"x": x.shape},
        "y",
        {"w": layer.weight, "b": layer.bias},
    )
    session = onnxruntime.InferenceSession(str(save(tmp_path, made)))
    return session.run(None, {"x": x})[0][0].reshape(len(layer.weight), -1)


@pytest.mark.parametrize("name", GEOMETRY)
def test_rows_give_what_the_layer_gives(name, tmp_path):
    """Every row's outputs are those of one pixel of the layer, and all get their turn.

    1e-5: onnxruntime adds in float32, this in double.
    """
    layer, size = GEOMETRY[name]
    x = image(layer, size)
    whole = by_onnxruntime(layer, x, tmp_path)
    act = layer.activation
    whole = np.where(whole < 0, whole * act.slope, whole).clip(act.lo, act.hi)
    chosen = np.arange(min(CHANNELS, len(whole))) * len(whole) // min(16, len(whole))
    met = set()
    for number in range(60):
        found = outputs(sampled(layer, [x], [number]))
        assert len(found) == min(2, whole.shape[1])
        for row in found:
            distance = np.abs(whole[chosen].T - row).max(axis=1)
            assert distance.min() < 1e-5
            met.add(int(distance.argmin()))
    assert len(met) > 0.6 * min(np.unique(whole, axis=1).shape[1], 60)


def test_a_vector_is_one_row():
    layer = conv(kernel=(1, 1))
    x = RNG.normal(size=(1, 4)).astype(F)
    found = sampled(layer, [x])
    assert found.rows.tolist() == [x.tolist()]


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 90), st.integers(0, 90))
def test_order_and_division_do_not_matter(seed, count, cut):
    rng = np.random.default_rng(seed)
    layer = GEOMETRY["padded"][0]
    images = [rng.normal(size=(1, 4, 5, 4)).astype(F) for _ in range(count)]
    whole = sampled(layer, images)
    order = rng.permutation(count)
    pieces = [order[:cut], order[cut:]]
    first, second = (sampled(layer, [images[i] for i in p], list(p)) for p in pieces)
    for found in (merge(first, second), merge(second, first)):
        assert found.keys.tolist() == whole.keys.tolist()
        assert found.rows.tobytes() == whole.rows.tobytes()
    assert whole.keys.tolist() == sorted(whole.keys.tolist())
    assert len(whole.keys) == min(2 * count, ROWS)


def test_a_sample_that_is_not_wanted_changes_nothing():
    layer, size = GEOMETRY["plain"]
    images = [image(layer, size) for _ in range(200)]
    sampler, refused = Sampler(layer), 0
    for number, x in enumerate(images):
        if sampler.wants(digest=f"{number}"):
            sampler.add(x, digest=f"{number}")
        else:
            refused += 1
    assert sampler.result().rows.tobytes() == sampled(layer, images).rows.tobytes()
    assert refused > 50


def test_rows_that_are_not_finite_are_left_out():
    layer, size = GEOMETRY["plain"]
    x = image(layer, size)
    x[0, 1] = np.nan
    assert len(sampled(layer, [x]).keys) == 0


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
@pytest.mark.parametrize("method", ["eq", "auto", "eq:cosine"])
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


@pytest.mark.parametrize("method", ["eq", "eq:cosine", "auto"])
def test_saturated_values_are_not_clipped(method):
    """As in a photograph: many values are the largest there can be."""
    layer = conv(out=16, channels=8, kernel=(1, 1))
    images = [
        np.clip(RNG.normal(0, 3, size=(1, 8, 20, 20)), -2, 4).astype(F)
        for _ in range(40)
    ]
    found, _ = measured(layer, images, method, "auto")
    assert found.threshold == pytest.approx((-2, 4), rel=0.02)


def test_auto_says_what_it_took():
    layer, images = unequal_channels()
    values = histogram_of(np.concatenate([x.ravel() for x in images]))
    rows = [sampled(layer, images)]
    found = solve(values, method="auto", scheme="auto", layers=rows)
    assert found.method in RIVALS
    again = solve(values, method=found.method, scheme="auto")
    assert (found.scale, found.zero_point) == (again.scale, again.zero_point)
    error = judge(values, rows)
    grid = Grid(found.scheme)
    errors = {
        name: error(grid, solve(values, method=name, scheme="auto").threshold)
        for name in RIVALS
    }
    assert errors[found.method] <= min(errors.values()) * 1.001


@pytest.mark.parametrize("method", ["eq", "auto"])
@pytest.mark.parametrize("dead", [False, True])
def test_without_a_layer_the_histogram_decides(method, dead):
    """Also where the layer's output is nothing but zeros."""
    layer = conv(activation=Activation(lo=0.0))
    layer.bias[:] = -1e6
    x = image(layer, (20, 20))
    rows = [sampled(layer, [x])] if dead else []
    values = histogram_of(x)
    found = solve(values, method=method, scheme="symmetric", layers=rows)
    usual = solve(values, method="mse", scheme="symmetric")
    assert "unread" in found.reasons
    assert found.scale == usual.scale
    assert found.method == ("mse" if method == "auto" else None)


def test_a_layer_without_samples():
    values = histogram_of(RNG.normal(size=5000).astype(F))
    found = solve(values, method="eq", scheme="auto", layers=[empty(conv())])
    assert found.reasons == ("unread",)


def test_equal_errors_mean_the_larger_range():
    ranges = [(-1.0, 1.0), (-3.0, 3.0), (-2.0, 2.0), (-9.0, 9.0)]
    assert best(ranges, [1.0, 1.0 + 5e-13, 1.0, 2.0]) == (-3.0, 3.0)
    assert best(ranges, [1.0, 1.0 + 5e-12, 1.0, 2.0]) == (-2.0, 2.0)
    assert best(ranges, [0.0, 0.0, 0.0, 0.0]) == (-9.0, 9.0)


def test_metrics():
    a, b = np.array([[3.0, 4.0]]), np.array([[4.0, -3.0]])
    assert error_share(a, a) == cosine_loss(a, 2 * a) == pytest.approx(0)
    assert error_share(a, 2 * a) == pytest.approx(1)
    assert cosine_loss(a, b) == pytest.approx(1)
    assert cosine_loss(a, 0 * a) == 1
