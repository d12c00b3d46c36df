# SPDX-License-Identifier: Apache-2.0
"""Damaged files: an error with file and line, or a table that is written and read."""

import json
import re

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from neon8.errors import TableError
from neon8.formats import ncnn_param
from neon8.formats.conversion import read
from neon8.formats.registry import NAMES, detect
from table_nets import in_every_format

TEXTS = tuple(name for name in NAMES if name != "qdq")
PARAM = b"""\
7767517
3 3
Input           in0    0 1 in0
ConvolutionDepthWise d_1 1 1 in0 2 0=8 1=3 4=1 5=1 6=72 7=8
InnerProduct    f_0    1 1 2 5 0=10 1=1 2=480 -23303=2,1,2
"""
WORDS = [b"", b" ", b"\n", b"\n\n", b"\r\n", b"\t", b"\0", b"\xff", b"\x80", b"'", b'"',
         b"\\", b"{", b"}", b"[", b"[[[[", b"]", b":", b": ", b",", b"#", b"-",
         b"---\n",
         b"...\n", b"&a ", b"*a", b"!!python/object:os.system ", b"<<: ", b"? ", b"| ",
         b"0", b"-1", b"1e39", b"1e-39", b"1e400", b"nan", b"inf", b"NaN", b"Infinity",
         b"-Infinity", b".inf", b"null", b"true", b"9" * 500, b"0x", b"ffffffff",
         b"_param_", b"_param_0", b"CLS", b"scale", b"\xed\xa0\x80", b"\xe2\x80\xa8",
         b"\\ud800", b"="]  # fmt: skip
edits = st.lists(
    st.tuples(
        st.floats(0, 1),
        st.integers(0, 12),
        st.sampled_from(WORDS) | st.binary(max_size=3),
    ),
    min_size=1,
    max_size=4,
)
copies = st.lists(st.tuples(*[st.floats(0, 1)] * 3), max_size=1)


def damaged(data, changes, moves):
    """`data` with pieces cut out, put in and moved about."""
    for start, end, to in moves:
        a, b = sorted((int(start * len(data)), int(end * len(data))))
        at = int(to * len(data))
        data = data[:at] + data[a:b] + data[at:]
    for place, cut, word in changes:
        at = int(place * len(data))
        data = data[:at] + word + data[at + cut :]
    return data


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A file of each format, and those that go with it."""
    folder = tmp_path_factory.mktemp("fuzz")
    in_every_format(folder, symmetric=False)
    return folder


def attempt_file(folder, name, data):
    """attempt() of a file of this format with these bytes."""
    path = folder / "damaged"
    path.write_bytes(data)
    start = re.escape(f"{path}:") + (" " if name == "qdq" else r"\d+: ")
    return attempt(lambda: read(path, source_format=name)[0], start)


def attempt(load, start=r"file:\d+: "):
    """What load() gives, or None after an error of one line that begins so."""
    try:
        return load()
    except TableError as error:
        text = str(error)
        assert re.match(start, text), text
        assert "\n" not in text
        assert len(text) < 2000
        return None


def entries(name, data):
    """How many entries a reader without any checks would see; None: not counted."""
    text = data.decode()
    lines = [line for line in text.split("\n") if line.strip(" \r")]
    if name == "trt":
        return len(lines) - 1
    if name == "ncnn":
        return sum(not line.lstrip(" ").startswith("#") for line in lines)
    if name == "glow":
        return len(list(yaml.load_all(text, Loader=yaml.BaseLoader))[-1])
    if not text.lstrip().startswith("{"):
        return None
    root = json.loads(text)
    if name == "neon8":
        return len(root["tensors"]) + len(root["layers"])
    return len(root["data"] if name == "ort-cache" else root)


def known(table):
    parts = (table.tensors, table.inputs, table.weights, table.constants, table.other)
    return sum(map(len, parts))


@pytest.mark.parametrize("name", TEXTS)
@settings(max_examples=80, deadline=None)
@given(changes=edits, moves=copies)
def test_damaged_texts(files, name, changes, moves):
    data = damaged((files / name).read_bytes(), changes, moves)
    table = attempt_file(files, name, data)
    if table is not None:
        assert entries(name, data) in {None, known(table)} or table.notes


@pytest.mark.parametrize("name", TEXTS)
def test_every_truncation_of_a_text(files, name):
    data = (files / name).read_bytes()
    for end in range(0, len(data), max(1, len(data) // 120)):
        attempt_file(files, name, data[:end])


@settings(max_examples=80, deadline=None)
@given(changes=edits, moves=copies)
def test_damaged_params(changes, moves):
    data = damaged(PARAM, changes, moves)
    layers = attempt(lambda: ncnn_param.loads(data, source="file")) or ()
    assert all(layer.scales > 0 and layer.size > 0 for layer in layers)


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from(NAMES), changes=edits, moves=copies)
def test_the_format_of_damaged_files(files, name, changes, moves):
    data = damaged((files / name).read_bytes(), changes, moves)
    assert attempt(lambda: detect(data, source="file")) in {None, *NAMES}


@settings(max_examples=60, deadline=None)
@given(changes=edits, moves=copies)
def test_damaged_networks(files, changes, moves):
    """A file of protobuf has no lines; the error is one line with the file's name."""
    data = damaged((files / "qdq").read_bytes(), changes, moves)
    table = attempt_file(files, "qdq", data)
    assert table is None or table.tensors or table.weights
