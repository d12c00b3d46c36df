# SPDX-License-Identifier: Apache-2.0
"""ncnn's .table."""

from dataclasses import replace

import numpy as np
import pytest

from neon8.errors import TableError
from neon8.formats import ncnn
from neon8.formats.foreign_table import ForeignTable, from_scale_table
from neon8.quant.scale_table import LayerScale, ScaleTable, TensorScale


def tensor(threshold, zero_point=0, scheme="symmetric"):
    levels = 127 if scheme == "symmetric" else 255
    scale = float(np.float32((threshold[1] - threshold[0]) / levels))
    scale /= 2 if scheme == "symmetric" else 1
    return TensorScale(
        scale=scale, zero_point=zero_point, scheme=scheme, threshold=threshold,
        min=threshold[0], max=threshold[1],
    )  # fmt: skip


TABLE = ScaleTable(
    model_name="net",
    model_digest="0" * 64,
    method="mse",
    scheme="symmetric",
    samples=1,
    engine="e",
    tensors={
        "x": tensor((-2.0, 2.0)),
        "u": tensor((0.0, 5.0), -128, "unsigned"),
        "a": tensor((-1.0, 4.0), -77, "asymmetric"),
    },
    layers={
        "conv1": LayerScale(
            input="x", weight_scales=(1.0, 0.5, 0.003), reasons=("dead:1", "bias:2")
        ),
        "conv2": LayerScale(input="u", weight_scales=(0.25,)),
        "fc": LayerScale(input="a", weight_scales=(0.125,)),
    },
)


def dumps(table):
    return ncnn.dumps(from_scale_table(table, source="net")).decode()


def loads(text):
    return ncnn.loads(text.encode(), source="t.table")


def test_weights_first_then_inputs():
    lines = [line.split(" ") for line in dumps(TABLE).splitlines()]
    assert [line[0] for line in lines] == [
        *("conv1_param_0", "conv2_param_0", "fc_param_0"),
        *("conv1", "conv2", "fc"),
    ]
    assert lines[0][1:] == ["1", "0", "333.333333"]
    assert lines[1][1:] == ["4"]
    assert float(lines[3][1]) == pytest.approx(127 / 2.0, rel=1e-6)
    assert float(lines[4][1]) == pytest.approx(127 / 5.0, rel=1e-6)
    assert float(lines[5][1]) == pytest.approx(127 / 4.0, rel=1e-6)
    assert dumps(TABLE).endswith("\n")
    assert "\n\n" not in dumps(TABLE)


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("a b", "blank"),
        ("a\tb", "blank"),
        ("a\nb", "blank"),
        ("a\0b", "blank"),
        ("#c", "comment"),
        ("x_param_y", "_param_"),
        ("n" * 248, "255"),
        ("ü" * 124, "255"),
    ],
)
def test_names_that_ncnn_misreads(name, word):
    layers = {name: TABLE.layers["fc"]}
    with pytest.raises(TableError, match=word) as caught:
        dumps(replace(TABLE, layers=layers))
    assert repr(name) in str(caught.value)


FILE = "".join(
    f"{line} \n"
    for line in (
        "conv1_param_0 127.000000 98.443710 0.000000",
        "conv2_param_0 305.120000 288.510000",
        "conv1 48.112000",
        "conv2 10.000000",
    )
)
"""As ncnn2table writes it, blanks at the ends of lines and all."""


def test_a_file_of_ncnn2table():
    table = loads(FILE)
    assert list(table.weights) == list(table.inputs) == ["conv1", "conv2"]
    assert table.weights["conv1"] == (1 / 127, 1 / 98.44371, 0.0)
    assert table.inputs["conv2"].scale == 0.1
    words = [line.split() for line in ncnn.dumps(table).decode().splitlines()]
    assert words == [
        ["conv1_param_0", "127", "98.44371", "0"],
        ["conv2_param_0", "305.12", "288.51"],
        ["conv1", "48.112"],
        ["conv2", "10"],
    ]


def test_our_scales_come_back():
    rng = np.random.default_rng(5)
    scales = np.exp(rng.uniform(-60, 60, 2000)).astype(np.float32).tolist()
    layer = LayerScale(input="x", weight_scales=tuple(scales))
    back = loads(dumps(replace(TABLE, layers={"c": layer}))).weights["c"]
    assert [float(np.float32(scale)) for scale in back] == scales


def test_digits_that_ncnn_lost_are_told():
    table = loads("c_param_0 0.000005 127.000000 0.000000\nc 0.001234\n")
    (note,) = table.notes
    assert "1 scale" in note
    assert "%f" in note


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("a_param_0 1\n\na 1\n", 2, "empty; ncnn stops reading"),
        ("a_param_0 1\n   \na 1\n", 2, "loses 1 more"),
        ("a_param_0 1\na\n", 2, "no scales"),
        ("a_param_0 1\na inf\n", 2, "127 / 0"),
        ("a_param_0 1 inf\na 1\n", 1, "write 0"),
        ("a_param_0 nan\n", 1, "127 / 0"),
        ("a_param_0 -1\n", 1, "negative"),
        ("a_param_0 1\na 0\n", 2, "not 0"),
        ("a_param_0 1\na 1 2\n", 2, "one scale"),
        ("a_param_0 1,5\n", 1, "'1,5' is not a number"),
        ("a_param_0 0x10\n", 1, "not a number"),
        ("a_param_0 1e39\n", 1, "too large"),
        ("a_param_0 1e-39\n", 1, "too large"),
        ("a_param_0 1e31\n", 1, "at least 1e-30"),
        ("a_param_0 1\na_param_0 1\n", 2, "twice, first in line 1"),
        ("x_param_y 1\n", 1, "rename the layer"),
        ("a\tb_param_0 1\n", 1, "first blank"),
        ("n" * 248 + "_param_0 1\n", 1, "255"),
        ("a_param_0 1\na 1\nb 1\n", 3, "every later layer in float"),
        ("a_param_0 1\n#b_param_0 1\na 1\nb 1\n", 4, "both lines"),
        ("a_param_0 1\n\xff 1\n", 2, "UTF-8"),
    ],
)
def test_what_ncnn_would_swallow(text, line, word):
    with pytest.raises(TableError, match=f"^t.table:{line}: .*{word}"):
        ncnn.loads(text.encode("latin1"), source="t.table")


def test_both_lines_of_a_layer_may_be_comments():
    table = loads("#a_param_0 1\nb_param_0 2\n#a 1\nb 2\r\n\n")
    assert list(table.weights) == ["b"]
    assert list(table.inputs) == ["b"]


def test_lines_of_other_layers_stay_as_they_are():
    text = (
        "c_param_0 1\nc 1\nmha_param_0 1 2\nmha_param_1 3\nmha 7\n"
        "gemm_0_param_1 bits=4 block=64 method=mseclip 1.5 2.5\n"
    )
    table = loads(text.replace("mha 7\n", ""))
    assert list(table.weights) == ["c"]
    assert ncnn.dumps(table).decode() == text.replace("mha 7\n", "")


def test_weights_alone_are_a_table():
    table = loads("a_param_0 4 2\n")
    assert table.contents == "weight scales"
    assert ncnn.dumps(table) == b"a_param_0 4 2\n"


@pytest.mark.parametrize(
    ("table", "word"),
    [
        (ForeignTable(source="s", format="trt"), "needs the weight scales"),
        (
            ForeignTable(source="s", format="qdq", weights={"a": (1.0,)}),
            "layer 'a': ncnn needs the scale of its input",
        ),
    ],
)
def test_what_is_missing_is_named(table, word):
    with pytest.raises(TableError, match=word):
        ncnn.dumps(table)


def test_a_dead_input_takes_any_multiplier():
    dead = replace(TABLE.tensors["x"], reasons=("dead",))
    table = replace(TABLE, tensors={**TABLE.tensors, "x": dead})
    assert dumps(table).splitlines()[3] == "conv1 1"
