# SPDX-License-Identifier: Apache-2.0
"""TensorRT's calibration cache."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neon8.errors import TableError
from neon8.formats import trt
from neon8.formats.foreign_table import ForeignTable, QuantParams, Range
from neon8.formats.format import Context

CACHE = b"""\
TRT-8601-EntropyCalibration2
input: 3caa54fc
conv1: 3d418306
a name: with: colons: 3c010204
(Unnamed Layer* 64) [Shuffle]_output: 0
"""


def loads(data):
    return trt.loads(data, source="c")


def dumped(table, version):
    context = Context(options={"trt_version": version})
    return trt.dumps(trt.prepare(table, context))


def table_of(**tensors):
    return ForeignTable(source="t", format="x", tensors=tensors)


def test_bits_of_a_float():
    table = loads(CACHE)
    assert list(table.tensors) == [
        *("input", "conv1", "a name: with: colons"),
        "(Unnamed Layer* 64) [Shuffle]_output",
    ]
    scales = [step.scale for step in table.tensors.values()]
    assert scales[0] * 127 == pytest.approx(2.6406, abs=1e-4)
    assert scales[1:] == [
        float(np.float32(6 / 127)), float(np.float32(1 / 127)), 0.0
    ]  # fmt: skip
    assert trt.dumps(table) == CACHE


names = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\n"), min_size=1
).filter(lambda name: not name.endswith("\r"))
finite = st.floats(0, width=32, allow_infinity=False, allow_subnormal=True)


@given(st.dictionaries(names, finite, min_size=1, max_size=5))
def test_round_trip(scales):
    steps = {name: QuantParams(scale=scale) for name, scale in scales.items()}
    assert loads(trt.dumps(table_of(**steps))).tensors == steps


@pytest.mark.parametrize(
    ("version", "number"),
    [
        ("7.1.3", "7103"),
        ("8.6.1", "8601"),
        ("9.3.0", "9300"),
        ("10.14.1", "101401"),
        ("8601", "8601"),
        ("101401", "101401"),
    ],
)
def test_versions(version, number):
    data = dumped(table_of(x=QuantParams(scale=1.0)), version)
    assert data.split(b"\n")[0] == f"TRT-{number}-EntropyCalibration2".encode()


@pytest.mark.parametrize(
    "version", ["", "8.6", "x", "86", "8.6.1.6", "8601\n", "999.9.9", "٨.6.1"]
)
def test_no_versions(version):
    with pytest.raises(TableError, match="--trt-version"):
        dumped(table_of(x=QuantParams(scale=1.0)), version)


def test_the_header_stays():
    data = CACHE.replace(b"Entropy", b"MinMax").replace(b"8601", b"101401")
    assert trt.dumps(loads(data)) == data
    assert dumped(loads(data), "7103").startswith(b"TRT-7103-MinMax")


@pytest.mark.parametrize(
    ("entry", "scale"),
    [
        (QuantParams(scale=0.5, zero_point=-128, scheme="unsigned"), 255 * 0.5 / 127),
        (QuantParams(scale=0.5, zero_point=27, scheme="asymmetric"), 155 * 0.5 / 127),
        (Range(lo=-10.0, hi=1.0), 10 / 127),
        (Range(lo=0.0, hi=1.0), 1 / 127),
        (Range(lo=2.0, hi=4.0), 4 / 127),
        (Range(lo=-3.0, hi=-1.0), 3 / 127),
    ],
)
def test_the_larger_end_counts(entry, scale):
    back = loads(trt.dumps(table_of(x=entry))).tensors["x"]
    assert back == QuantParams(scale=float(np.float32(scale)))


@pytest.mark.parametrize(
    ("data", "line", "word"),
    [
        (b"", 1, "no line TRT-"),
        (b"input: 3caa54fc\n", 1, "no line TRT-"),
        (b"TRT--EntropyCalibration2\n", 1, "no line TRT-"),
        (CACHE.replace(b"conv1: ", b"conv1:"), 3, "expected <tensor>:"),
        (CACHE.replace(b"conv1: 3d418306", b""), 3, "expected <tensor>:"),
        (CACHE.replace(b"conv1: ", b": "), 3, "expected <tensor>:"),
        (CACHE.replace(b"3d418306", b"0x3d4183"), 3, "not a hexadecimal float32"),
        (CACHE.replace(b"3d418306", b"03d418306"), 3, "not a hexadecimal float32"),
        (CACHE.replace(b"3d418306", b"3d4183 6"), 3, "not a hexadecimal float32"),
        (CACHE.replace(b"3d418306", b"7f800000"), 3, "is inf"),
        (CACHE.replace(b"3d418306", b"7fc00000"), 3, "is nan"),
        (CACHE.replace(b"3d418306", b"bd418306"), 3, "is -0.04"),
        (CACHE.replace(b"conv1", b"input"), 3, "twice, first in line 2"),
        (CACHE.replace(b"conv1", b"\xff"), 3, "UTF-8"),
    ],
)
def test_bad_caches(data, line, word):
    with pytest.raises(TableError, match=f"^c:{line}: .*{word}"):
        loads(data)


@pytest.mark.parametrize("name", ["a\nb", "a\r"])
def test_names_it_cannot_hold(name):
    with pytest.raises(TableError, match="line break"):
        trt.dumps(table_of(**{name: QuantParams(scale=1.0)}))


def test_layers_alone_are_not_enough():
    table = ForeignTable(source="t", format="ncnn", weights={"c": (1.0,)})
    with pytest.raises(TableError, match=r"needs scales .* it has weight scales"):
        trt.dumps(table)


def test_windows_line_ends():
    assert loads(CACHE.replace(b"\n", b"\r\n")).tensors == loads(CACHE).tensors
