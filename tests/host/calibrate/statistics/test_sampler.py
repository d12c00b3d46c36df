# SPDX-License-Identifier: Apache-2.0
"""Rows of layers: which are drawn, and that they are what the layers read."""

import numpy as np
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import sliding_window_view

import numpy_statistics
from layer_kits import RNG, F, conv, image, sampled
from neon8.calibrate.statistics.native_library import load
from neon8.calibrate.statistics.patches import CHANNELS, ROWS, merge, outputs
from neon8.calibrate.statistics.sampler import Sampler
from neon8.ir.graph import Activation
from onnx_nets import net, node, save

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
    "transposed": (conv(spread=(2, 3), pads=(2, 2, 1, 2)), (4, 3)),
    "transposed, cropped": (conv(spread=(3, 1), pads=(-1, 1, 1, -2)), (4, 6)),
}


def spread(layer, x):
    """(1, I, H, W) with the zeros between its pixels of a transposed convolution."""
    height, width = ((x.shape[2 + a] - 1) * layer.spread[a] + 1 for a in (0, 1))
    wide = np.zeros((*x.shape[:2], height, width), F)
    wide[:, :, :: layer.spread[0], :: layer.spread[1]] = x
    return wide


def by_onnxruntime(layer, x, tmp_path):
    """(C, pixels) the chosen channels of the layer's output before the activation."""
    wide = spread(layer, x)
    height, width = wide.shape[2:]
    top, before, bottom, after = (max(-pad, 0) for pad in layer.pads)
    x = wide[:, :, top : height - bottom, before : width - after]
    attributes = {
        "pads": [max(pad, 0) for pad in layer.pads],
        "strides": list(layer.strides),
        "dilations": list(layer.dilations),
        "group": layer.groups,
    }
    weights = {"w": layer.weight, "b": layer.bias}
    nodes = [node("Conv", "x w b", "y", **attributes)]
    made = net(nodes, {"x": x.shape}, "y", weights)
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


def test_c_keeps_as_many_rows():
    assert load().lib.N8C_ROWS == ROWS


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


def test_rows_that_are_not_finite_are_left_out():
    layer, size = GEOMETRY["plain"]
    x = image(layer, size)
    x[0, 1] = np.nan
    assert len(sampled(layer, [x]).keys) == 0


def test_a_bad_row_leaves_the_good_one_of_its_sample():
    """Each of the two is written and kept by itself."""
    layer = conv(kernel=(1, 1))
    images = [image(layer, (4, 4)) for _ in range(60)]
    whole = sampled(layer, images)
    for x in images:
        x[:, :, :, :2] = np.inf
    left = sampled(layer, images)
    fine = np.isin(whole.keys, left.keys)
    assert 0 < len(left.keys) < 120
    assert fine.any()
    assert np.isfinite(left.rows).all()
    kept = np.isin(left.keys, whole.keys)
    assert left.rows[kept].tobytes() == whole.rows[fine].tobytes()


@pytest.mark.parametrize("name", GEOMETRY)
def test_rows_are_those_of_the_twin(name):
    """Rows of an input of two tensors, each with an activation, with the same keys."""
    layer, size = GEOMETRY[name]
    x = image(layer, size)
    x.flat[::7] = -0.0
    cut = x.shape[1] // 3
    parts = {
        "a": (x[:, :cut], Activation(slope=0.25)),
        "b": (x[:, cut:], Activation(lo=0.1, hi=1)),
    }
    sampler = Sampler([layer], {"x": [(name, act) for name, (_, act) in parts.items()]})
    both = np.concatenate(
        [numpy_statistics.activated(*part) for part in parts.values()], axis=1
    )
    values = {name: np.ascontiguousarray(part) for name, (part, _) in parts.items()}
    wide, want = by_pixel(layer, both), []
    for digest in map(str, range(40)):
        sampler.add(values, digest=digest)
        offers = numpy_statistics.draws(digest, layer.name, len(wide))
        want += [(key, wide[pixel]) for key, pixel in offers]
    found = sampler.result()[layer.name]
    rows = [row.tobytes() for row in found.rows]
    assert list(zip(found.keys.tolist(), rows, strict=True)) == sorted(want)[:ROWS]


def by_pixel(layer, values):
    """What the chosen groups of the layer read for each pixel, as bytes."""
    out, _, height, width = layer.weight.shape
    chosen = np.arange(min(CHANNELS, out)) * out // min(CHANNELS, out)
    real = np.unique(chosen // (out // layer.groups))
    top, left, bottom, right = layer.pads
    wide = [(0, 0), (max(top, 0), max(bottom, 0)), (max(left, 0), max(right, 0))]
    around = np.pad(spread(layer, values)[0], wide)
    around = around[:, max(-top, 0) :, max(-left, 0) :]
    around = around[:, : around.shape[1] + min(bottom, 0)]
    around = around[:, :, : around.shape[2] + min(right, 0)]
    (down, across), (rows, columns) = layer.dilations, layer.strides
    taps = (height - 1) * down + 1, (width - 1) * across + 1
    windows = sliding_window_view(around, taps, axis=(1, 2))
    windows = windows[:, ::rows, ::columns, ::down, ::across].transpose(1, 2, 0, 3, 4)
    return [
        window.reshape(layer.groups, -1)[real].tobytes()
        for window in windows.reshape(-1, *windows.shape[2:])
    ]


@pytest.mark.parametrize("name", ["padded", "grouped", "pointwise"])
def test_rows_of_a_batch_are_those_of_its_elements(name):
    layer, size = GEOMETRY[name]
    images = [image(layer, size) for _ in range(3)]
    got = sampled(layer, [np.concatenate(images)], ["ab"])
    want = sampled(layer, images, ["ab", "ab 1", "ab 2"])
    assert got.keys.tolist() == want.keys.tolist()
    assert got.rows.tobytes() == want.rows.tobytes()
    assert len(got.keys) == 6
