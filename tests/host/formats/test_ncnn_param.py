# SPDX-License-Identifier: Apache-2.0
"""ncnn's text .param: which layers a table is about."""

import pytest

from neon8.errors import TableError
from neon8.formats import ncnn_param
from neon8.formats.foreign_table import ForeignTable

PARAM = """\
7767517
6 6
Input                    in0      0 1 in0
Convolution              conv_3   1 1 in0 1 0=8 1=3 4=1 5=1 6=216 9=1
ConvolutionDepthWise     convdw_7 1 1 1 2 0=8 1=3 4=1 5=1 6=72 7=8
Pooling                  gap_0    1 1 2 3 0=1 4=1
Split                    splitncnn_0 1 2 3 4 5 -23303=2,1,2
InnerProduct             fc_1     1 1 4 out0 0=6 1=1 2=48
"""
TABLE = ForeignTable(
    source="t",
    format="neon8",
    weights={"c1": (0.5,) * 8, "dw": (0.25,), "fc": (1.0,) * 6},
    reads={"c1": "x", "dw": "y", "fc": "z"},
)
SIZES = {"c1": 216, "dw": 72, "fc": 48}


def layers(text=PARAM):
    return ncnn_param.loads(text.encode(), source="n.param")


def named(table=TABLE, text=PARAM, sizes=None):
    return ncnn_param.to_param_names(
        table, layers(text), source="n.param", sizes=sizes or SIZES
    )


def test_entries_take_the_names_and_one_scale_serves_all():
    table = named()
    assert list(table.weights) == ["conv_3", "convdw_7", "fc_1"]
    assert table.weights["convdw_7"] == (0.25,) * 8
    assert table.reads == {"conv_3": "x", "convdw_7": "y", "fc_1": "z"}


@pytest.mark.parametrize(
    ("old", "new", "line", "word"),
    [
        ("7767517", "7767518", 1, "is not a text .param"),
        ("6 6", "6", 2, "numbers of layers"),
        ("6 6", "7 6", 9, "line 2 says 7 layers, there are 6"),
        ("0=8 1=3 4=1 5=1 6=216", "0=x", 4, "0=x is no count"),
        ("0=6 1=1", "1=1", 8, "0=missing"),
        ("gap_0    1", "gap_0    x", 6, "two numbers"),
        ("4 out0", "4", 8, "names of blobs"),
        ("9=1", "9", 4, "'9' is no key=value"),
        ("convdw_7", "conv_3", 5, "twice, first in line 4"),
        ("0=8 1=3 4=1 5=1 6=216", "0=9 6=216", 4, "takes 9 weight scales"),
        ("6=216", "6=217", 4, "has 217 weights"),
        ("7=8", "7=4", 5, ""),
    ],
)
def test_what_does_not_fit(old, new, line, word):
    assert PARAM.count(old) == 1
    text = PARAM.replace(old, new)
    if not word:
        assert named(text=text).weights["convdw_7"] == (0.25,) * 4
        return
    with pytest.raises(TableError, match=f"^n.param:{line}: .*{word}"):
        named(text=text)


def test_another_number_of_layers():
    table = ForeignTable(source="t", format="neon8", weights={"c1": (0.5,) * 8})
    with pytest.raises(TableError, match=r"has 3 convolutions .* goes with 1 layers"):
        named(table)


def test_layers_in_another_order_are_found_by_their_size():
    with pytest.raises(TableError, match="another order of layers"):
        named(sizes={"c1": 216, "dw": 48, "fc": 72})
