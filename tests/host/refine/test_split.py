# SPDX-License-Identifier: Apache-2.0
"""The error of a layer by its causes: networks in which only one of them is wrong."""

from dataclasses import replace

import numpy as np
import onnx
import pytest

from neon8 import calibrate_model
from neon8.data.samples import Sample
from neon8.evaluate.network import open_network
from neon8.graph.importer import load
from neon8.operators.reference import centred, quantize
from neon8.quant.scale_table import LayerScale, ScaleTable, TensorScale
from neon8.refine import split
from neon8.refine.diagnosis import diagnose_model
from neon8.refine.inner import floats, pair, steps
from neon8.refine.remedies import with_bias
from onnx_nets import net, node

SHAPE = (1, 3, 6, 6)
EDGE = 127.0


def whole(*shape, seed=4):
    """Integers, of which each channel has one that is 127: int8 holds them exactly."""
    values = np.random.default_rng(seed).integers(-90, 90, shape).astype(np.float32)
    values.reshape(shape[0], -1)[:, 0] = EDGE
    return values


def conv(weight, bias, folder, **attributes):
    """x -> conv -> y as a file."""
    nodes = [node("Conv", "x w b", "y", "c", pads=[1] * 4, **attributes)]
    path = folder / "net.onnx"
    onnx.save(net(nodes, {"x": SHAPE}, "y", {"w": weight, "b": bias}), path)
    return path


def grid(scale=1.0, zero_point=0, scheme="symmetric"):
    lo, hi = (scale * (q - zero_point) for q in (-127, 127))
    return TensorScale(
        scale=scale,
        zero_point=zero_point,
        scheme=scheme,
        threshold=(lo, hi),
        min=None,
        max=None,
    )


def table(path, weight, *, x, correction=()):
    """x: its grid.  Weight scales are those of the largest weight."""
    scales = np.abs(weight).reshape(len(weight), -1).max(axis=1) / np.float32(127)
    layer = LayerScale(
        input="x", weight_scales=tuple(scales.tolist()), bias_correction=correction
    )
    graph = load(path)
    return ScaleTable(
        model_name=graph.name,
        model_digest=graph.digest,
        method="minmax",
        scheme="auto",
        samples=1,
        engine="",
        tensors={"x": x, "y": grid()},
        layers={"c": layer},
    )


def integers(count=3):
    rng = np.random.default_rng(8)
    return rng.integers(-100, 100, (count, *SHAPE[1:])).astype(np.float32)


def real(count=3):
    rng = np.random.default_rng(8)
    return rng.uniform(-100, 100, (count, *SHAPE[1:])).astype(np.float32)


CAUSES = ("rounding", "clipping", "weights", "bias_shift")
ONLY = {
    "rounding": {"data": real()},
    "clipping": {"x": grid(0.5)},
    "weights": {"weight": whole(4, 3, 3, 3) + np.float32(0.25)},
    "bias_shift": {"correction": (300.0, -200.0, 100.0, 50.0)},
    None: {},
}


@pytest.mark.parametrize("cause", ONLY)
def test_the_only_cause_is_found(cause, tmp_path):
    given = {
        "data": integers(),
        "weight": whole(4, 3, 3, 3),
        "x": grid(),
        "correction": (),
        **ONLY[cause],
    }
    bias = np.array([1, -2, 3, -4], np.float32)
    path = conv(given["weight"], bias, tmp_path)
    scales = table(path, given["weight"], x=given["x"], correction=given["correction"])
    (found,) = diagnose_model(path, scales, given["data"], top=0).layers
    shares = {name: getattr(found, name).share for name in CAUSES}
    if cause is None:
        assert found.sqnr_db == np.inf
    elif cause == "bias_shift":
        assert shares[cause] == pytest.approx(1, abs=1e-6)
        assert max(shares[name] for name in CAUSES[:3]) == 0
    else:
        assert shares[cause] == pytest.approx(1, abs=1e-4)
        assert getattr(found, cause).sqnr_db == pytest.approx(found.sqnr_db, abs=1e-3)
        assert all(shares[name] == 0 for name in CAUSES[:3] if name != cause)


KINDS = {
    "plain": ("Conv", (4, 3, 3, 3), {"pads": [1] * 4}),
    "strides": ("Conv", (4, 3, 3, 2), {"pads": [0, 1, 1, 0], "strides": [2, 1]}),
    "dilations": ("Conv", (4, 3, 2, 2), {"dilations": [2, 3]}),
    "groups": ("Conv", (6, 1, 3, 3), {"group": 3}),
    "depthwise": ("Conv", (3, 1, 3, 3), {"group": 3, "pads": [1] * 4}),
    "transposed": ("ConvTranspose", (3, 4, 4, 4), {"strides": [2, 2]}),
    "grouped transposed": (
        "ConvTranspose",
        (3, 2, 4, 4),
        {"strides": [2, 2], "group": 3},
    ),
}


@pytest.fixture(params=KINDS)
def lone(request, tmp_path):
    """A convolution alone, and its table: its output is float32."""
    operator, shape, attributes = KINDS[request.param]
    rng = np.random.default_rng(3)
    weight = rng.normal(0, 1, shape).astype(np.float32)
    channels = shape[0]
    if operator == "ConvTranspose":
        channels = shape[1] * attributes.get("group", 1)
    bias = rng.normal(0, 1, channels).astype(np.float32)
    path = tmp_path / "lone.onnx"
    nodes = [node(operator, "x w b", "y", "c", **attributes)]
    onnx.save(net(nodes, {"x": SHAPE}, "y", {"w": weight, "b": bias}), path)
    return path, calibrate_model(path, real())


def test_a_layer_alone_adds_all_that_is_lost(lone):
    found = diagnose_model(*lone, real(), top=0)
    (layer,) = found.layers
    assert layer.sqnr_db == pytest.approx(found.sqnr_db, abs=1e-3)
    assert found.tensors[-1].sqnr_db == pytest.approx(found.sqnr_db)


def test_parts_and_the_error_of_the_bias_make_the_total(lone):
    both = pair(open_network(lone[0]), lone[1])
    ((name, layer),) = split.layers(both).items()
    x = real(1)
    q = quantize(x, layer.source)
    taken = centred(q, layer.source) * layer.source.scale
    cut = np.clip(x, *lone[1].tensors["x"].threshold)
    rounding, clipping, exact = (
        split.convolved(layer, each) for each in (taken - cut, cut - x, x)
    )
    bias = (layer.rounded_bias - layer.bias)[:, np.newaxis, np.newaxis]
    parts = (*rounding, *clipping, exact[1], bias)
    sample = Sample(name="0", inputs={"x": x})
    wanted = floats(both, sample)["y"]
    got = [values[op.output] for op, values in steps(both, sample) if op.name == name]
    if layer.phases == 1:  # else the channels are pixels yet
        assert np.abs(got[0] - wanted - sum(parts)).max() < 1e-4 * np.abs(wanted).max()


def test_a_bias_takes_the_drift_back(lone):
    both = pair(open_network(lone[0]), lone[1])
    ((name, layer),) = split.layers(both).items()
    sums = split.empty(layer)
    errors = []
    for table in (lone[1], None):
        if table is None:
            entry = both.table.layers[name]
            entry = with_bias(layer, entry, sums.drift / sums.count)
            both = pair(open_network(lone[0]), replace(lone[1], layers={name: entry}))
        error = 0.0
        for image in real():
            sample = Sample(name="", inputs={"x": image[np.newaxis]})
            *_, (op, values) = steps(both, sample)
            wanted = floats(both, sample)
            if table is not None:
                q = quantize(wanted["x"], layer.source)
                split.add(sums, layer, wanted["x"], q)
            got = values[op.output]
            error += (got - wanted["y"]).sum(axis=(0, 2, 3))
        errors.append(np.abs(error).max())
    assert errors[1] < 1e-3 * errors[0]
