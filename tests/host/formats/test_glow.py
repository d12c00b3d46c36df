# SPDX-License-Identifier: Apache-2.0
"""Glow's profile."""

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from neon8.errors import TableError
from neon8.formats import glow
from neon8.formats.foreign_table import ForeignTable, QuantParams, Range, to_params

PROFILE = """\
---
GlowToolsVersion: ''
...
---
GraphPreLowerHash: 0x1A2B3C4D5E6F7788
...
---
- NodeOutputName:  'conv1__1:0'
  Min:             -1.5
  Max:             2.25
  Histogram:       [ 12, 40, 310, 95, 3 ]
- NodeOutputName:  'split:1'
  Min:             0.0
  Max:             0.1000000014901161193847656250
  Histogram:       [ ]
...
"""


def loads(text):
    return glow.loads(text.encode(), source="p")


def test_a_profile():
    table = loads(PROFILE)
    assert table.tensors == {
        "conv1__1": Range(lo=-1.5, hi=2.25, histogram=(12, 40, 310, 95, 3)),
        "split:1": Range(lo=0.0, hi=float(np.float32(0.1))),
    }
    assert table.header == {"tools": "", "hash": "0x1A2B3C4D5E6F7788"}
    again = glow.dumps(table)
    assert glow.loads(again, source="p") == table
    documents = list(yaml.safe_load_all(again))
    assert documents[1] == {"GraphPreLowerHash": 0x1A2B3C4D5E6F7788}
    assert [entry["NodeOutputName"] for entry in documents[2]] == [
        "conv1__1:0",
        "split:1",
    ]


def test_two_documents_of_older_tools():
    table = loads(PROFILE.split("...\n", 1)[1])
    assert len(table.tensors) == 2


reals = st.floats(
    -(2.0**100), 2.0**100, width=32, allow_nan=False, allow_infinity=False
)
names = st.text(st.characters(exclude_categories=("Cs",)), min_size=1)


@given(
    st.dictionaries(
        names,
        st.tuples(reals, reals, st.lists(st.integers(0, 2**40), max_size=4)),
        min_size=1,
        max_size=4,
    )
)
def test_round_trip(entries):
    spans = {
        name: Range(lo=min(a, b), hi=max(a, b), histogram=tuple(map(float, counts)))
        for name, (a, b, counts) in entries.items()
    }
    table = ForeignTable(source="t", format="x", tensors=spans)
    assert glow.loads(glow.dumps(table), source="p").tensors == spans


@given(
    st.floats(2.0**-90, 2.0**90, width=32),
    st.sampled_from(["symmetric", "unsigned", "asymmetric"]),
    st.integers(-127, 127),
)
def test_steps_come_back_from_the_range(scale, scheme, zero_point):
    zero_point = {"symmetric": 0, "unsigned": -128}.get(scheme, zero_point)
    step = QuantParams(scale=scale, zero_point=zero_point, scheme=scheme)
    table = ForeignTable(source="t", format="x", tensors={"x": step})
    back = to_params(glow.loads(glow.dumps(table), source="p").tensors["x"])
    assert back == step


@pytest.mark.parametrize(
    ("old", "new", "line", "word"),
    [
        ("Min:             -1.5", "Min: 3", 9, "Min 3 is above Max 2.25"),
        ("Min:             -1.5", "Min: .nan", 9, "'.nan' is not a number"),
        ("Min:             -1.5", "Min: [1]", 9, "expected one value"),
        ("Min:             -1.5", "Min: 1e39", 9, "too large"),
        ("  Max:             2.25\n", "", 8, "Max is missing"),
        ("  Max:             2.25", "  Max: 1\n  Max: 1", 11, "'Max' occurs twice"),
        ("  Max:             2.25", "  Mux: 1", 10, "'Mux' is unknown"),
        ("  Histogram:       [ 12", "  Histogram: [ -12", 11, "a count is negative"),
        ("[ 12, 40, 310, 95, 3 ]", "7", 11, "Histogram: no list"),
        ("[ 12, 40, 310, 95, 3 ]", "[ x ]", 11, "'x' is not a number"),
        ("[ 12, 40, 310, 95, 3 ]", "[[[[1]]]]", 11, "nested deeper"),
        ("[ 12, 40, 310, 95, 3 ]", "[ 12", 13, "is not YAML"),
        ("'split:1'", "'conv1__1:0'", 12, "'conv1__1' occurs twice"),
        ("'split:1'", "''", 12, "expected a string that is not empty"),
        ("'split:1'", "*a", 12, "alias"),
        ("0x1A2B3C4D5E6F7788", "0x1A2B3C4D5E6F778800", 5, "no 64-bit hash"),
        ("0x1A2B3C4D5E6F7788", "zz", 5, "no 64-bit hash"),
        ("0x1A2B3C4D5E6F7788", "0123", 5, "no 64-bit hash"),
        ("Min:             -1.5", "Min: ٨", 9, "is not a number"),
        ("GraphPreLowerHash", "Hash", 5, "'Hash' is unknown"),
        ("...\n---\nGraph", "Graph", 2, "is unknown; expected GraphPreLowerHash"),
        ("GlowToolsVersion: ''", "'\x07'", 2, "is not YAML"),
    ],
)
def test_bad_profiles(old, new, line, word):
    assert PROFILE.count(old) == 1
    with pytest.raises(TableError, match=word) as caught:
        loads(PROFILE.replace(old, new))
    assert "\n" not in str(caught.value)
    if line:
        assert str(caught.value).split(" ")[0] in {f"p:{line}:", f"p:{line - 1}:"}


@pytest.mark.parametrize("text", ["", "x", "[" * 100000, "- a\n---\n- b", "a: &a [*a]"])
def test_no_profiles(text):
    with pytest.raises(TableError, match=r"^p:\d+: "):
        loads(text)
