# SPDX-License-Identifier: Apache-2.0
"""Arrays and JSON as bytes: the same again, or one error, whatever the bytes are."""

import hashlib
import json
import struct
import tracemalloc

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from neon8.calibrate import container
from neon8.calibrate.container import Kind
from neon8.errors import CalibrationError
from refusals import refused

KIND = Kind("a test file", b"n8tests\n", 3)
FACTS = {"b": [1, None, "ä\ud800"], "a": {"x": 0.1}}
ARRAYS = {
    "one": np.arange(6, dtype="<f4").reshape(2, 3),
    "none": np.zeros((0, 7), "<u8"),
    "": np.array(-5, "<i4"),
    "bytes": np.frombuffer(b"abc", "u1"),
}
DATA = container.dumps(KIND, FACTS, ARRAYS)


def signed(body):
    return body + hashlib.sha256(body).digest()


def made(table, content=b"", facts=None):
    """A file with this table of arrays, its digest right."""
    text = json.dumps(
        {"arrays": table, "facts": facts}, sort_keys=True, separators=(",", ":")
    ).encode()
    return with_header(text, content)


def with_header(text, content=b""):
    start = struct.pack("<8sII", KIND.magic, KIND.version, len(text))
    return signed(start + text + content)


def damaged(data, *words):
    with refused(CalibrationError, "", *words):
        container.loads(KIND, data)


def test_what_is_read_is_what_was_written():
    facts, arrays = container.loads(KIND, DATA)
    assert facts == FACTS
    assert list(arrays) == list(ARRAYS)
    for name, array in arrays.items():
        assert array.dtype == ARRAYS[name].dtype
        assert array.shape == ARRAYS[name].shape
        assert np.array_equal(array, ARRAYS[name])
        assert array.flags.aligned
    assert container.dumps(KIND, facts, arrays) == DATA


def test_the_layout_is_that_of_the_documentation():
    magic, version, length = struct.unpack_from("<8sII", DATA)
    assert (magic, version) == (b"n8tests\n", 3)
    header = json.loads(DATA[16 : 16 + length])
    assert header["facts"] == FACTS
    assert header["arrays"][0] == ["one", "<f4", [2, 3]]
    content = b"".join(array.tobytes() for array in ARRAYS.values())
    assert DATA[16 + length :] == content + hashlib.sha256(DATA[:-32]).digest()


def test_every_truncation_is_refused():
    for size in range(len(DATA)):
        damaged(DATA[:size])
        if size != len(DATA) - 32:
            damaged(signed(DATA[:size]))
    damaged(DATA + b"\0")
    damaged(signed(DATA[:-32] + b"\0"), "1 bytes too many")


@settings(max_examples=300)
@given(st.data())
def test_no_other_bytes_for_the_same_content(draw):
    """With the digest made right: refused, or it is another sound file."""
    data = bytearray(DATA[:-32])
    for _ in range(draw.draw(st.integers(1, 3))):
        where = draw.draw(st.integers(8, len(data) - 1))
        data[where] = draw.draw(st.integers(0, 255))
    changed = signed(bytes(data))
    try:
        facts, arrays = container.loads(KIND, changed)
    except CalibrationError:
        return
    assert container.dumps(KIND, facts, arrays) == changed


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=100)
@given(JSON | st.lists(st.tuples(st.text(), st.sampled_from(container.TYPES), JSON)))
def test_any_table_is_an_error_or_correct(table):
    data = made(table, bytes(64))
    try:
        facts, arrays = container.loads(KIND, data)
    except CalibrationError:
        return
    assert container.dumps(KIND, facts, arrays) == data


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"", "is not a test file"),
        (b"n8calib\n" + DATA[8:], "is not a test file"),
        (DATA[:8] + b"\2" + DATA[9:], "format version 2; this neon8 reads 3: observe"),
        (DATA[:40] + b"?" + DATA[41:], "SHA-256"),
        (with_header(b"[" * 100_000), "not JSON"),
        (with_header(b'{"arrays":[],"facts":1e999}'), "not JSON"),
        (with_header(b'{"arrays":[],"facts":' + b"9" * 9999 + b"}"), "not JSON"),
        (with_header('{"arrays":[],"facts":"ä"}'.encode()), "not JSON"),
        (with_header(b'{"arrays":[], "facts":1}'), "not canonical"),
        (with_header(b'{"facts":1,"arrays":[]}'), "not canonical"),
        (with_header(b'{"arrays":[],"facts":1,"facts":1}'), "not canonical"),
        (with_header(b'{"arrays":[],"facts":1e5}'), "not canonical"),
        (with_header(b'{"arrays":[]}'), "not an object of arrays and facts"),
        (made({}), "not a list"),
        (made([["a", "<f4"]]), "not [name, type, shape]"),
        (made([["a", "<f2", [1]]], bytes(2)), "not [name, type, shape]"),
        (made([["a", "O", [1]]], bytes(8)), "not [name, type, shape]"),
        (made([["a", ["<f4"], [1]]], bytes(4)), "not [name, type, shape]"),
        (made([["a", "<f4", [-1]]]), "makes no sense"),
        (made([["a", "<f4", [True]]], bytes(4)), "makes no sense"),
        (made([["a", "<f4", [1.0]]], bytes(4)), "makes no sense"),
        (made([["a", "<f4", [0, 1 << 62]]]), "makes no sense"),
        (made([["a", "<f4", [1] * 99]], bytes(4)), "makes no sense"),
        (made([["a", "<f4", [1 << 40]]], bytes(4)), "truncated in array 'a'"),
        (made([["a", "|u1", [1]]] * 2, bytes(2)), "there twice"),
    ],
)
def test_what_is_wrong_is_named(data, word):
    damaged(data, word)


def test_no_memory_is_taken_for_what_is_not_there():
    data = made([["a", "<f8", [1 << 33]]], bytes(8))
    tracemalloc.start()
    try:
        damaged(data, "truncated")
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
