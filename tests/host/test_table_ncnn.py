# SPDX-License-Identifier: Apache-2.0
"""ncnn's .table."""

from dataclasses import replace

import numpy as np
import pytest

from neon8.errors import TableError
from neon8.table import ncnn
from neon8.table.scale_table import LayerScale, ScaleTable, TensorScale


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


def test_weights_first_then_inputs():
    lines = [line.split(" ") for line in ncnn.dumps(TABLE).splitlines()]
    assert [line[0] for line in lines] == [
        *("conv1_param_0", "conv2_param_0", "fc_param_0"),
        *("conv1", "conv2", "fc"),
    ]
    assert lines[0][1:] == ["1", "0", f"{np.float32(1 / 0.003):.9g}"]
    assert lines[1][1:] == ["4"]
    assert float(lines[3][1]) == pytest.approx(127 / 2.0, rel=1e-6)
    assert float(lines[4][1]) == pytest.approx(127 / 5.0, rel=1e-6)
    assert float(lines[5][1]) == pytest.approx(127 / 4.0, rel=1e-6)
    assert ncnn.dumps(TABLE).endswith("\n")
    assert "\n\n" not in ncnn.dumps(TABLE)


def test_nine_digits_give_the_float_back():
    rng = np.random.default_rng(3)
    scales = (1 / np.exp(rng.uniform(-60, 60, 500))).astype(np.float32)
    layer = LayerScale(input="x", weight_scales=tuple(map(float, scales)))
    line = ncnn.dumps(replace(TABLE, layers={"c": layer})).splitlines()[0]
    values = np.array(line.split()[1:], dtype=np.float32)
    assert np.array_equal(values, (1 / scales.astype(np.float64)).astype(np.float32))


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("a b", "space"),
        ("a\tb", "space"),
        ("a\nb", "space"),
        ("a\0b", "space"),
        ("x_param_y", "_param_"),
        ("n" * 248, "255"),
        ("ü" * 124, "255"),
    ],
)
def test_names_that_ncnn_misreads(name, word):
    layers = {name: TABLE.layers["fc"]}
    with pytest.raises(TableError, match=word) as caught:
        ncnn.dumps(replace(TABLE, layers=layers))
    assert repr(name) in str(caught.value)


def test_longest_name():
    name = "n" * 247
    text = ncnn.dumps(replace(TABLE, layers={name: TABLE.layers["fc"]}))
    assert max(len(line.split(" ")[0]) for line in text.splitlines()) == 255
