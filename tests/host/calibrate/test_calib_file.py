# SPDX-License-Identifier: Apache-2.0
"""The .calib file: canonical, exact, and an error for everything else."""

from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from calib_nets import branchy, samples
from neon8.calibrate import calib_file, container
from neon8.calibrate.run.collector import Collector, open_network
from neon8.errors import CalibrationError, SetupError
from onnx_nets import save
from refusals import refused


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    network = open_network(save(tmp_path_factory.mktemp("net"), branchy()))
    collector = Collector(network)
    for sample in samples(5):
        collector.add(sample, sample.digest)
    return calib_file.dumps(collector.result())


def with_contents(data, change):
    """The file after change(facts, arrays), its digest right."""
    facts, arrays = container.loads(calib_file.KIND, data)
    change(facts, arrays)
    return container.dumps(calib_file.KIND, facts, arrays)


def damaged(data, *words):
    with refused(CalibrationError, "a.calib: ", *words):
        calib_file.loads(data, source="a.calib")


def test_what_is_read_is_what_was_written(data, tmp_path):
    observation = calib_file.loads(data, source="x")
    assert calib_file.dumps(observation) == data
    calib_file.save(observation, tmp_path / "a.calib")
    again = calib_file.load(tmp_path / "a.calib")
    assert again.samples == tuple(sorted(sample.digest for sample in samples(5)))
    assert again.engine["engine"] == "onnxruntime"
    assert {"version", "provider", "optimization", "cpu"} < set(again.engine)


def test_the_contents_are_those_of_the_documentation(data):
    assert data[:12] == b"n8calib\n\3\0\0\0"
    facts, arrays = container.loads(calib_file.KIND, data)
    assert sorted(facts) == [
        "channels", "engine", "layers", "model", "preprocess", "scale_groups", "tensors"
    ]  # fmt: skip
    digests = [sample.digest for sample in samples(5)]
    assert [row.tobytes().hex() for row in arrays["samples"]] == sorted(digests)
    # The first tensor is the input.
    values = np.concatenate([s.inputs["x"].reshape(-1) for s in samples(5)])
    exponent = arrays["tensors.exponent"][0]
    assert facts["tensors"][0] == "x"
    assert arrays["tensors.limits"][0].tolist() == [values.min(), values.max()]
    assert 2.0 ** (exponent - 1) <= np.abs(values).max() < 2.0**exponent
    zeros = np.count_nonzero(values == 0)
    assert arrays["tensors.apart"][0].tolist() == [zeros, 0, 0]
    bins = np.abs(values.astype(np.float64)) * 2.0 ** (11 - exponent)
    for side, own in enumerate((values > 0, values < 0)):
        want = np.bincount(bins[own].astype(int), minlength=2048)
        assert np.array_equal(arrays["tensors.counts"][0, side], want)
    most = int(np.argmax([s.inputs["x"].max() for s in samples(5)]))
    sample, channel = arrays["tensors.extremes"][0, 1]
    assert sorted(digests)[sample] == digests[most]
    assert samples(5)[most].inputs["x"][0, channel].max() == values.max()
    assert facts["channels"][0] == ["x", 3]
    assert arrays["channels.count"][:3].tolist() == [5 * 64] * 3
    for number, layer in enumerate(facts["layers"]):
        out, inputs, height, width = layer["weight_shape"]
        taps, chosen = inputs * height * width, min(out, 16)
        rows = arrays[f"layers.{number}.patches.rows"]
        assert rows.shape[2] == taps
        assert arrays[f"layers.{number}.patches.keys"].shape == rows.shape[:1]
        assert arrays[f"layers.{number}.patches.weights"].shape == (chosen, taps)
        assert arrays[f"layers.{number}.weight_absmax"].shape == (out,)


@settings(max_examples=300)
@given(st.data())
def test_no_change_of_the_content_gets_through(data, draw):
    """Refused, or it is another sound file."""

    def change(_facts, arrays):
        name = draw.draw(st.sampled_from([*arrays]))
        array = arrays[name].copy()
        what = draw.draw(st.sampled_from(("bytes", "drop", "shape", "type", "order")))
        if what == "bytes" and array.size:
            flat = array.reshape(-1).view(np.uint8)
            flat[draw.draw(st.integers(0, flat.size - 1))] = draw.draw(
                st.integers(0, 255)
            )
        elif what == "drop":
            del arrays[name]
            return
        elif what == "shape":
            array = array.reshape(-1)[:-1]
        elif what == "type":
            array = array.astype(draw.draw(st.sampled_from(container.TYPES)))
        elif what == "order":
            del arrays[name]
        arrays[name] = array

    with np.errstate(all="ignore"):
        changed = with_contents(data, change)
    try:
        observation = calib_file.loads(changed, source="a.calib")
    except CalibrationError:
        damaged(changed)
    else:
        assert calib_file.dumps(observation) == changed


def set_key(*path, value):
    def change(facts, _arrays):
        for key in path[:-1]:
            facts = facts[key]
        facts[path[-1]] = value

    return change


def set_array(name, value):
    return lambda _facts, arrays: arrays.update({name: value})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (set_key("more", value=1), ["the header", "keys"]),
        (lambda h, _: h.pop("engine"), ["the header", "keys"]),
        (set_key("engine", value=[]), ["engine"]),
        (set_key("engine", "version", value=3), ["engine.version"]),
        (set_key("model", "digest", value="AB"), ["model.digest", "hexadecimal"]),
        (set_key("model", "name", value="\ud800"), ["model.name"]),
        (set_key("preprocess", value="x"), ["preprocess"]),
        (set_array("samples", np.zeros((2, 32), "u1")), ["samples", "twice"]),
        (set_array("samples", np.zeros((0, 32), "u1")), ["tensor 'x'", "no sample"]),
        (set_array("samples", np.zeros((2, 31), "u1")), ["'samples'", "shape"]),
        (set_array("samples", np.zeros((5, 32), "<i4")), ["'samples'", "type"]),
        (set_array("more", np.zeros(2, "u1")), ["'more'", "belongs to nothing"]),
        (lambda _, a: a.pop("tensors.limits"), ["'tensors.limits'", "missing"]),
        (set_key("tensors", value="x"), ["tensors"]),
        (lambda h, _: h["tensors"].append("x"), ["tensors", "'x'", "twice"]),
        (lambda h, _: h["tensors"].append("new"), ["'tensors.exponent'", "shape"]),
        (lambda h, _: h["tensors"].pop(), ["'tensors.exponent'", "shape"]),
        (set_key("tensors", 0, value="new"), ["'new'", "no scale group"]),
        (lambda h, _: h["scale_groups"].append(["z", "z"]), ["nothing was", "'z'"]),
        (set_key("scale_groups", 0, 1, value="nobody"), ["has no group"]),
        (set_key("scale_groups", 0, value=["x"]), ["scale_groups", "pairs"]),
        (set_key("shapes", value=3), ["shapes: expected pairs"]),
        (set_key("shapes", value=[[3, 1]]), ["shapes: expected lists"]),
        (set_key("shapes", value=[[[["x", 8]], 1]]), ["shapes: expected lists"]),
        (
            set_key("shapes", value=[[[["x", [0]]], 1]]),
            ["x: expected an integer"],
        ),
        (
            set_key("shapes", value=[[[["x", [8]]], 6]]),
            ["of more samples than there"],
        ),
        (set_key("shapes", value=[]), ["is not canonical"]),
        (
            set_key("shapes", value=[[[["x", [8]]], 1], [[["x", [8]]], 2]]),
            ["is not canonical"],
        ),
        (set_key("channels", 0, 1, value=0), ["channels"]),
        (set_key("channels", 0, 1, value=4), ["'channels.count'", "shape"]),
        (set_key("channels", 0, 0, value="z"), ["layer 'c1'", "channels"]),
        (set_key("layers", 0, "weight_shape", value=[8, 3, 3]), ["layer 'c1'"]),
        (
            set_key("layers", 0, "weight_shape", 0, value=7),
            ["'layers.0.weight_absmax'"],
        ),
        (set_key("layers", 0, "groups", value=5), ["layer 'c1'"]),
        (
            set_array("layers.0.patches.rows", np.zeros((10, 0, 27), "<f4")),
            ["layer 'c1'", "rows are out of range"],
        ),
        (
            set_array("layers.0.patches.rows", np.zeros((10, 2, 27), "<f4")),
            ["layer 'c1'", "rows are out of range"],
        ),
        (set_key("layers", 0, "input", value="z"), ["layer 'c1'", "unknown"]),
        (set_key("layers", 0, "strides", value=[0, 1]), ["layer 'c1'"]),
        (set_key("layers", 1, "name", value="c1"), ["layers", "twice"]),
    ],
)
def test_contents_that_lie_are_refused(data, change, words):
    damaged(with_contents(data, change), *words)


def test_other_files_are_refused(data, tmp_path):
    damaged(b"", "is not a .calib file")
    damaged(b"PK\3\4" + bytes(100), "is not a .calib file")
    older = data[:8] + b"\1" + data[9:]
    damaged(older, "format version 1; this neon8 reads 3: observe again")
    with pytest.raises(CalibrationError, match="cannot be read"):
        calib_file.load(tmp_path / "missing.calib")
    observation = calib_file.loads(data, source="x")
    with pytest.raises(SetupError, match="cannot be written"):
        calib_file.save(observation, tmp_path / "nowhere" / "a.calib")


def edited(data, name, **fields):
    """The bytes of the observation with another histogram of one tensor."""
    observation = calib_file.loads(data, source="x")
    tensor = observation.tensors[name]
    tensor = replace(tensor, histogram=replace(tensor.histogram, **fields))
    tensors = {**observation.tensors, name: tensor}
    return calib_file.dumps(replace(observation, tensors=tensors))


@pytest.mark.parametrize(
    "fields",
    [
        {"exponent": 100},
        {"exponent": -100},
        {"minimum": -1e30},
        {"minimum": np.nan},
        {"maximum": np.inf},
        {"maximum": -1.0},
        {"zeros": 1 << 63},
        {"positive": np.zeros(2048, np.uint64)},
        {"negative": np.full(2048, 1 << 63, np.uint64)},
    ],
)
def test_a_histogram_that_contradicts_itself_is_refused(data, fields):
    damaged(edited(data, "x", **fields), "tensor 'x'")


@pytest.mark.parametrize("peak", [-1.0, -0.0, np.nan, np.inf, 1e30])
def test_a_peak_that_no_sample_can_have_is_refused(data, peak):
    observation = calib_file.loads(data, source="x")
    peaks = replace(observation.channels["x"], quietest=np.full(3, peak, np.float32))
    channels = {**observation.channels, "x": peaks}
    damaged(
        calib_file.dumps(replace(observation, channels=channels)),
        "the statistics of channels contradict themselves",
    )
