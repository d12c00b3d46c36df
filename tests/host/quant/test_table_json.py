# SPDX-License-Identifier: Apache-2.0
"""The scale table as JSON."""

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neon8.errors import TableError
from neon8.quant import table_json as json_format
from neon8.quant.scale_table import BITS, ROUNDINGS, LayerScale, ScaleTable, TensorScale
from refusals import refused

TENSOR = TensorScale(
    scale=float(np.float32(0.1)),
    zero_point=-128,
    scheme="unsigned",
    threshold=(0.0, 25.5),
    min=0.0,
    max=float(np.float32(30.1)),
    reasons=("guard",),
)
TABLE = ScaleTable(
    model_name="net",
    model_digest="0" * 64,
    method="mse",
    scheme="auto",
    samples=100,
    engine="onnxruntime 1.2.3",
    tensors={"a": TENSOR, 'b "quoted" ü\n': replace(TENSOR, reasons=())},
    layers={"conv": LayerScale(input="a", weight_scales=(0.5, 0.25))},
)
TEXT = json_format.dumps(TABLE)


def chosen(levels):
    """TEXT with such levels of its layer."""
    more = f', "rounding": "chosen", "levels": {json.dumps(levels)}'
    return TEXT.replace("0.25]", f"0.25]{more}")


def with_shapes(text):
    """TEXT with such shapes of inputs."""
    return TEXT.replace('"tensors"', f'"shapes": {text},\n  "tensors"', 1)


def f32(lowest=-3e38, highest=3e38):
    return st.floats(
        float(np.float32(lowest)), float(np.float32(highest)), width=32
    ).map(float)


names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
reasons = st.lists(names, max_size=2).map(tuple)
scales = f32(1.1e-30)
sizes = st.lists(st.integers(1, 2**31 - 1), max_size=4).map(tuple)
pairs = st.tuples(f32(), f32()).map(lambda pair: (min(pair), max(pair)))


@st.composite
def tensor_scales(draw):
    scheme = draw(st.sampled_from(["symmetric", "unsigned", "asymmetric"]))
    bits = draw(st.sampled_from(BITS))
    lowest = -(2 ** (bits - 1))
    zero_points = {"symmetric": st.just(0), "unsigned": st.just(lowest)}
    lo, hi = draw(pairs)
    return TensorScale(
        scale=draw(scales),
        bits=bits,
        float32=draw(st.booleans()),
        zero_point=draw(zero_points.get(scheme, st.integers(lowest, -lowest - 1))),
        scheme=scheme,
        threshold=draw(pairs),
        min=lo,
        max=hi,
        reasons=draw(reasons),
    )


@st.composite
def tables(draw):
    tensors = draw(st.dictionaries(names, tensor_scales(), max_size=3))
    layers = st.builds(
        LayerScale,
        input=st.sampled_from(list(tensors)) if tensors else st.nothing(),
        weight_scales=st.lists(scales, min_size=1, max_size=3).map(tuple),
        reasons=reasons,
        rounding=st.sampled_from(ROUNDINGS[:2]),
        sqnr_loss=st.none() | f32(),
    )
    chosen = st.builds(
        lambda layer, rounding, levels: replace(
            layer, rounding=rounding, levels=levels
        ),
        layers,
        st.sampled_from(ROUNDINGS[1:3]),
        st.binary(min_size=1, max_size=20),
    )
    wide = layers.map(lambda layer: replace(layer, bits=16, rounding=ROUNDINGS[0]))
    return ScaleTable(
        model_name=draw(names),
        model_digest=draw(st.text("0123456789abcdef", min_size=64, max_size=64)),
        method=draw(names),
        scheme=draw(st.sampled_from(["auto", "symmetric"])),
        samples=draw(st.integers(0, 2**40)),
        engine=draw(names),
        tensors=tensors,
        layers=draw(st.dictionaries(names, layers | chosen | wide, max_size=3))
        if tensors
        else {},
        shapes=draw(st.dictionaries(names, sizes, max_size=2)),
    )


@given(tables())
def test_parse_of_format_is_the_table(table):
    text = json_format.dumps(table)
    assert json_format.loads(text) == table
    assert json_format.dumps(json_format.loads(text)) == text


def test_one_tensor_to_a_line():
    lines = TEXT.splitlines()
    assert len(lines) == 16
    assert lines[9] == (
        '    "a": {"scale": 0.1, "zero_point": -128, "scheme": "unsigned", '
        '"threshold": [0.0, 25.5], "min": 0.0, "max": 30.1, "reasons": ["guard"]},'
    )
    assert '    "conv": {"input": "a", "weight_scales": [0.5, 0.25]}' in lines
    assert json.loads(TEXT)["model"]["digest"] == "sha256:" + "0" * 64


def test_a_person_may_edit_a_scale(tmp_path):
    path = tmp_path / "net.scales.json"
    path.write_text(TEXT.replace('"scale": 0.1', '"scale":\n 1', 1), encoding="utf-8")
    table = json_format.load(path)
    assert table.tensors["a"].scale == 1.0
    assert table.tensors['b "quoted" ü\n'] == TABLE.tensors['b "quoted" ü\n']


def test_load_names_the_file(tmp_path):
    path = tmp_path / "t.json"
    path.write_text(TEXT, encoding="utf-8")
    assert json_format.load(path) == TABLE
    path.write_bytes(b"\xff\xfe")
    for file, word in ((path, "UTF-8"), (tmp_path, "cannot be read")):
        with refused(TableError, f"{file}:", word):
            json_format.load(file)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("bits", "6", "bits: 6 is not one of 7 to 16"),
        ("bits", "17", "bits: 17 is not one of 7 to 16"),
        ("bits", "true", "bits: True is not"),
        ("bits", "16.0", "bits: 16.0 is not"),
        ("float32", "1", "float32: expected true or false"),
        ("bits", "16", "zero_point: -128, but the scheme 'unsigned' has -32768"),
    ],
)
def test_bad_precision(key, value, message):
    text = TEXT.replace('"max": 30.1', f'"max": 30.1, "{key}": {value}', 1)
    with pytest.raises(TableError, match=re.escape(f"tensor 'a': {message}")):
        json_format.loads(text)


BAD_SCALES = ["0", "-0.0", "-1", "1e-31", "1e-400", "1e39", "1e999", "true", '"1"',
              "null", "[1]", "1" + "0" * 400, "NaN", "Infinity"]  # fmt: skip


@pytest.mark.parametrize("scale", BAD_SCALES)
@pytest.mark.parametrize(
    ("old", "where"),
    [
        ('"scale": 0.1', "tensor 'a': scale"),
        ("0.25]", "layer 'conv': weight_scales[1]"),
    ],
)
def test_bad_scales(scale, old, where):
    new = f'"scale": {scale}' if "scale" in old else f"{scale}]"
    line = 10 if "tensor" in where else 14
    with refused(TableError, f"t.json:{line}: {where}: "):
        json_format.loads(TEXT.replace(old, new, 1), source="t.json")


BAD_TEXTS = {
    "empty": ("", "t.json:1: is not JSON"),
    "cut": (TEXT[:300], "is not JSON"),
    "line": (TEXT.replace('"method": "mse",', '"method": "mse"'), "t.json:6: is not"),
    "list": ("[1, 2]", "expected an object"),
    "deep": ("[" * 100000, "t.json:1: is nested too deeply"),
    "digits": ('{"format": ' + "9" * 9999 + "}", "t.json:1: has a number of too"),
    "nan": (TEXT.replace('"min": 0.0', '"min": NaN', 1), "nan is not a number"),
    "inf": (TEXT.replace('"max": 30.1', '"max": Infinity', 1), "max: inf is too large"),
    "-inf": (
        TEXT.replace('"max": 30.1', '"max": -Infinity', 1),
        "max: -inf is too large",
    ),
    "twice": (
        TEXT.replace('"conv": {', '"conv": {}, "conv": {'),
        "'conv' occurs twice",
    ),
    "format": (TEXT.replace("neon8 scale table", "x"), "format: expected"),
    "version": (TEXT.replace('"version": 1', '"version": 2'), "this neon8 reads 1"),
    "version type": (TEXT.replace('"version": 1', '"version": true'), "version"),
    "missing": (TEXT.replace('"method": "mse",', ""), "method is missing"),
    "unknown": (
        TEXT.replace('"method"', '"methods": 1, "method"'),
        "'methods' is unkn",
    ),
    "digest": (TEXT.replace("sha256:0", "sha256:z"), "64 hexadecimal digits"),
    "digest kind": (TEXT.replace("sha256:", "md5:"), "expected sha256:"),
    "name": (TEXT.replace('"net"', '""'), "model: name"),
    "model": (TEXT.replace('"model": {', '"model": {"x": 1, '), "model: key 'x'"),
    "scheme": (
        TEXT.replace('"scheme": "auto"', '"scheme": "none"'),
        "scheme: expected",
    ),
    "groups": (TEXT.replace("0.25]", '0.25], "groups": 3'), "3 do not divide 2 weight"),
    "no groups": (TEXT.replace("0.25]", '0.25], "groups": 0'), "groups: 0 is not a"),
    "rounding": (
        TEXT.replace("0.25]", '0.25], "rounding": "up"'),
        "rounding: 'up' is not one of nearest, lattice, chosen",
    ),
    "rounding type": (TEXT.replace("0.25]", '0.25], "rounding": []'), "rounding: []"),
    "levels alone": (TEXT.replace("0.25]", '0.25], "levels": "AA=="'), "belong"),
    "chosen alone": (TEXT.replace("0.25]", '0.25], "rounding": "chosen"'), "belong"),
    "no levels": (chosen(""), "levels: expected a string that is not empty"),
    "levels type": (chosen(["AA=="]), "levels: expected a string"),
    "levels cut off": (chosen("AA="), "levels: is no base64"),
    "levels of no alphabet": (chosen("A\u00e4A="), "levels: is no base64"),
    "levels of two lines": (chosen("AA==\n"), "levels: is no base64"),
    "bits of weights": (TEXT.replace("0.25]", '0.25], "bits": 12'), "have 8 or 16"),
    "bits in words": (TEXT.replace("0.25]", '0.25], "bits": 16.0'), "bits: 16.0"),
    "bits and rounding": (
        TEXT.replace("0.25]", '0.25], "bits": 16, "rounding": "lattice"'),
        "rounding: 'lattice' is for weights of 8 bits",
    ),
    "loss": (TEXT.replace("0.25]", '0.25], "sqnr_loss": "a"'), "sqnr_loss: 'a'"),
    "samples": (TEXT.replace('"samples": 100', '"samples": -1'), "samples: -1"),
    "samples type": (TEXT.replace('"samples": 100', '"samples": 1.5'), "samples: 1.5"),
    "tensors": (TEXT.replace('"a": {', '"c": 3, "a": {'), "tensor 'c': expected"),
    "zero point": (TEXT.replace("-128", "128", 1), "tensor 'a': zero_point: 128"),
    "zero point type": (TEXT.replace("-128", "-128.0", 1), "zero_point: -128.0"),
    "unsigned": (TEXT.replace("-128", "-127", 1), "the scheme 'unsigned' has -128"),
    "symmetric": (TEXT.replace("unsigned", "symmetric", 1), "'symmetric' has 0"),
    "tensor scheme": (TEXT.replace("unsigned", "u8", 1), "'u8' is unknown"),
    "threshold": (TEXT.replace("[0.0, 25.5]", "[1, 2, 3]", 1), "expected [lo, hi]"),
    "threshold order": (TEXT.replace("[0.0, 25.5]", "[1, 0]", 1), "wrong way round"),
    "min": (TEXT.replace('"min": 0.0', '"min": "a"', 1), "min: 'a' is not a number"),
    "order": (TEXT.replace('"min": 0.0', '"min": 31', 1), "wrong way round"),
    "reasons": (TEXT.replace('["guard"]', '"guard"'), "reasons: expected a list"),
    "reason": (TEXT.replace('["guard"]', "[1]"), "reasons: expected a string"),
    "shapes": (with_shapes("[1, 2]"), "shapes: expected lists of dimensions"),
    "shape": (with_shapes('{"x": 3}'), "shapes: expected lists of dimensions"),
    "dimension": (with_shapes('{"x": [1, 0]}'), "shapes: 0 is not a whole number from"),
    "input": (TEXT.replace('"input": "a"', '"input": "c"'), "no tensor 'c'"),
    "weights": (TEXT.replace("[0.5, 0.25]", "[]"), "expected a list"),
    "weights type": (TEXT.replace("[0.5, 0.25]", "0.5"), "expected a list"),
    "surrogate": (TEXT.replace('"net"', '"\\ud800"'), "surrogate"),
}


@pytest.mark.parametrize(("text", "word"), BAD_TEXTS.values(), ids=BAD_TEXTS)
def test_bad_texts(text, word):
    assert text != TEXT
    with refused(TableError, "t.json:", word):
        json_format.loads(text, source="t.json")


def test_an_unknown_key_is_told_all_that_there_are():
    """Those that may be missing, too: a key that was misspelt is mostly one of them."""
    text = TEXT.replace('"scale"', '"factor": [1], "scale"', 1)
    with pytest.raises(TableError, match=r"unknown; there are scale.* factors"):
        json_format.loads(text, source="t.json")


@pytest.mark.parametrize("factor", [1e9, 1e-6])
def test_absurd_factors_are_named(factor):
    text = TEXT.replace('"scale"', f'"factors": [1, {factor}], "scale"', 1)
    said = f"factors[1]: is {factor:g}; a channel has 1/65536 to 65536"
    with pytest.raises(TableError, match=re.escape(said)):
        json_format.loads(text, source="t.json")


def test_what_was_seen_may_be_unknown():
    table = replace(
        TABLE, tensors={"a": replace(TENSOR, min=None, max=None)}, layers={}
    )
    text = json_format.dumps(table)
    assert '"min": null, "max": null' in text
    assert json_format.loads(text) == table


@given(f32(1e-30))
def test_a_scale_is_the_shortest_decimal(scale):
    table = replace(TABLE, tensors={"a": replace(TENSOR, scale=scale)})
    text = json_format.dumps(table).split('"scale": ')[1].split(",")[0]
    assert np.float32(text) == scale
    assert len(text.split("e")[0].strip("0").replace(".", "")) <= 9
    assert math.isclose(float(text), scale, rel_tol=1e-7)
