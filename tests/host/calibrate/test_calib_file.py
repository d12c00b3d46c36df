# SPDX-License-Identifier: Apache-2.0
"""The .calib file: canonical, exact, and an error for everything else."""

import hashlib
import json
import struct
from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from calib_nets import branchy, samples
from neon8.calibrate import calib_file
from neon8.calibrate.run.collect import Collector, open_network
from neon8.errors import CalibrationError, SetupError
from onnx_nets import save

HEAD = 16
"""Magic, version and the header's length."""


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    network = open_network(save(tmp_path_factory.mktemp("net"), branchy()))
    collector = Collector(network)
    for sample in samples(5):
        collector.add(sample, sample.digest)
    return calib_file.dumps(collector.result())


def signed(body):
    return body + hashlib.sha256(body).digest()


def length(data):
    return struct.unpack("<I", data[12:16])[0]


def with_header(data, change):
    """The file with another header, its digest right."""
    size = length(data)
    header = json.loads(data[HEAD : HEAD + size])
    change(header)
    text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    body = data[:12] + struct.pack("<I", len(text)) + text + data[HEAD + size : -32]
    return signed(body)


def refused(data, *words):
    with pytest.raises(CalibrationError) as caught:
        calib_file.loads(data, source="a.calib")
    text = str(caught.value)
    assert text.startswith("a.calib: ")
    assert "\n" not in text
    for word in words:
        assert word in text


def test_what_is_read_is_what_was_written(data, tmp_path):
    observation = calib_file.loads(data, source="x")
    assert calib_file.dumps(observation) == data
    calib_file.save(observation, tmp_path / "a.calib")
    again = calib_file.load(tmp_path / "a.calib")
    assert again.samples == tuple(sorted(sample.digest for sample in samples(5)))
    assert again.engine["engine"] == "onnxruntime"
    assert {"version", "provider", "optimization", "machine"} < set(again.engine)


def test_the_layout_is_that_of_the_documentation(data):
    assert data[:8] == b"n8calib\n"
    version, size = struct.unpack("<II", data[8:16])
    assert version == 2
    header = json.loads(data[16 : 16 + size])
    at = 16 + size + 32 * header["samples"]
    # The first tensor is the input: exponent, min, max, four marks, three counts.
    exponent, low, high = struct.unpack_from("<iff", data, at)
    values = np.concatenate([s.inputs["x"].reshape(-1) for s in samples(5)])
    assert (low, high) == (values.min(), values.max())
    assert 2.0 ** (exponent - 1) <= np.abs(values).max() < 2.0**exponent
    zeros, nans, infs = struct.unpack_from("<QQQ", data, at + 28)
    assert (zeros, nans, infs) == (np.count_nonzero(values == 0), 0, 0)
    positive = np.frombuffer(data, "<u8", 2048, at + 52)
    negative = np.frombuffer(data, "<u8", 2048, at + 52 + 16384)
    bins = np.abs(values.astype(np.float64)) * 2.0 ** (11 - exponent)
    want = np.bincount(bins[values > 0].astype(int), minlength=2048)
    assert np.array_equal(positive, want)
    want = np.bincount(bins[values < 0].astype(int), minlength=2048)
    assert np.array_equal(negative, want)
    tensors, counts = len(header["tensors"]), [c for _, c in header["channels"]]
    at += tensors * (52 + 2 * 16384) + sum(counts) * (8 + 4 + 4 + 2 * 32)
    for layer in header["layers"]:
        out, inputs, height, width = layer["weight_shape"]
        rows, groups = layer["rows"]
        taps, chosen = inputs * height * width, min(out, 16)
        at += 8 * out + 24 + 4 * chosen * (taps + 2) + rows * (8 + 4 * groups * taps)
    assert at == len(data) - 32


def test_every_truncation_is_refused(data):
    for size in (*range(64), *range(64, len(data), 997), len(data) - 1):
        refused(data[:size])
        refused(signed(data[:size]))
    refused(data + b"\0")
    refused(signed(data[:-32] + b"\0"), "1 bytes too many")


@settings(max_examples=300)
@given(st.data())
def test_no_change_of_the_content_gets_through(data_of, draw):
    """With the digest made right: refused, or it is another sound file."""
    data = bytearray(data_of[:-32])
    for _ in range(draw.draw(st.integers(1, 3))):
        where = draw.draw(
            st.one_of(
                st.integers(8, 16 + length(data_of)), st.integers(8, len(data) - 1)
            )
        )
        data[where] = draw.draw(st.integers(0, 255))
    changed = signed(bytes(data))
    try:
        observation = calib_file.loads(changed, source="a.calib")
    except CalibrationError:
        refused(changed)
    else:
        assert calib_file.dumps(observation) == changed


@pytest.fixture(scope="module")
def data_of(data):
    return data


def test_a_flipped_bit_is_damage(data):
    for at in range(16, len(data), 4099):
        changed = bytearray(data)
        changed[at] ^= 1
        refused(bytes(changed), "damaged")


def set_key(*path, value):
    def change(header):
        for key in path[:-1]:
            header = header[key]
        header[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (set_key("more", value=1), ["the header", "keys"]),
        (lambda h: h.pop("engine"), ["the header", "keys"]),
        (set_key("engine", value=[]), ["engine"]),
        (set_key("engine", "version", value=3), ["engine.version"]),
        (set_key("model", "digest", value="AB"), ["model.digest", "hexadecimal"]),
        (set_key("model", "name", value="\ud800"), ["model.name"]),
        (set_key("preprocess", value="x"), ["preprocess"]),
        (set_key("samples", value=-1), ["samples"]),
        (set_key("samples", value=True), ["samples"]),
        (set_key("samples", value=1 << 40), ["samples"]),
        (set_key("samples", value=1 << 30), ["truncated"]),
        (set_key("tensors", value="x"), ["tensors"]),
        (lambda h: h["tensors"].append("x"), ["tensors", "'x'", "twice"]),
        (lambda h: h["tensors"].append("new"), ["tensors", "'new'", "leader"]),
        (lambda h: h["tensors"].pop(), ["leaders", "nothing was observed"]),
        (set_key("leaders", 0, 1, value="nobody"), ["leaders", "no leader"]),
        (set_key("leaders", 0, value=["x"]), ["leaders", "pairs"]),
        (set_key("channels", 0, 1, value=0), ["channels"]),
        (set_key("channels", 0, 1, value=4), ["layer 'c1'", "channels of its input"]),
        (set_key("channels", 0, 0, value="z"), ["layer 'c1'", "channels"]),
        (set_key("layers", 0, "weight_shape", value=[8, 3, 3]), ["layer 'c1'"]),
        (set_key("layers", 0, "weight_shape", 0, value=7), ["layer 'c1'"]),
        (set_key("layers", 0, "groups", value=5), ["layer 'c1'"]),
        (set_key("layers", 0, "rows", value=[65, 1]), ["layer 'c1'", "rows"]),
        (set_key("layers", 0, "rows", value=[9, 2]), ["layer 'c1'", "rows"]),
        (set_key("layers", 0, "input", value="z"), ["layer 'c1'", "unknown"]),
        (set_key("layers", 0, "strides", value=[0, 1]), ["layer 'c1'"]),
        (set_key("layers", 1, "name", value="c1"), ["layers", "twice"]),
    ],
)
def test_a_lying_header_is_refused(data, change, words):
    refused(with_header(data, change), *words)


def test_other_files_are_refused(data, tmp_path):
    refused(b"", "is not a .calib file")
    refused(b"PK\3\4" + bytes(100), "is not a .calib file")
    newer = data[:8] + struct.pack("<I", 3) + data[12:-32]
    refused(signed(newer), "format version 3; this neon8 reads 2")
    deep = b"[" * 100_000
    body = data[:12] + struct.pack("<I", len(deep)) + deep
    refused(signed(body), "not JSON")
    spaced = data[:12] + struct.pack("<I", length(data) + 1) + b" " + data[16:-32]
    refused(signed(spaced), "not canonical")
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
    refused(edited(data, "x", **fields), "tensor 'x'")
