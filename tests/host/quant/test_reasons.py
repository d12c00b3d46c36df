# SPDX-License-Identifier: Apache-2.0
"""What is said of the reason codes in a table: a line of each kind, however many."""

from dataclasses import replace

import pytest

from neon8.inspection.describe import inspect_file as describe
from neon8.inspection.guards import described
from neon8.quant import table_json
from neon8.quant.reasons import MEANINGS, condensed, guards_of, lines
from neon8.quant.scale_table import LayerScale, ScaleTable, TensorScale

TENSOR = TensorScale(
    scale=0.5,
    zero_point=0,
    scheme="symmetric",
    threshold=(-63.5, 63.5),
    min=-1.0,
    max=1.0,
)


def table_of(tensors, layers):
    """layers: name to the number of channels and the codes."""
    return ScaleTable(
        model_name="net",
        model_digest="0" * 64,
        method="mse",
        scheme="auto",
        samples=100,
        engine="none",
        tensors={name: replace(TENSOR, reasons=codes) for name, codes in tensors},
        layers={
            name: LayerScale(
                input="x", weight_scales=(1.0,) * count, groups=1, reasons=codes
            )
            for name, (count, codes) in layers.items()
        },
    )


def dead(*channels):
    return tuple(f"dead:{channel}" for channel in channels)


def test_hundreds_of_channels_are_one_line(tmp_path):
    layers = {
        "a": (64, ("corrected", *dead(*range(10)))),
        "b": (512, ("step", *dead(*range(3, 503)), "bias:511")),
        "c": (512, dead(*range(390))),
    }
    table = table_of([("x", ()), ("y", ("few:bins", "int16x"))], layers)
    assert list(lines(table)) == [
        f"tensor 'y': few:bins: {MEANINGS['few:bins']}",
        "tensor 'y': int16x: ?",
        "900 channels of 3 layers, most of them in 'b', 500 of 512: dead: "
        + MEANINGS["dead"],
        f"layer 'b', 1 of 512 channels: bias: {MEANINGS['bias']}",
    ]
    text = described(table)
    assert len(text.splitlines()) == 6
    assert text.endswith("`neon8 inspect` shows the table with each of them")
    path = tmp_path / "net.scales.json"
    table_json.save(table, path)
    shown = describe(path)
    assert "corrected dead:0-9" in shown
    assert "step dead:3-502 bias:511" in shown


@pytest.mark.parametrize("code", ["step", "equalized", "corrected", "override", "fast"])
def test_what_was_done_on_purpose_is_no_warning(code):
    assert guards_of((code, "dead", code)) == ("dead",)
    table = table_of([("x", (code,)), ("y", (code,))], {"a": (2, (code,))})
    assert list(lines(table)) == []
    assert len(described(table).splitlines()) == 1


def test_names_from_a_file_do_no_harm_to_the_terminal():
    table = table_of([("x\n\x1b[2J", ("guard",)), ("y", ("guard",))], {})
    assert all(line.isprintable() for line in described(table).splitlines())
    assert len(described(table).splitlines()) == 3


@pytest.mark.parametrize(
    ("codes", "text"),
    [
        ((), ""),
        (("few:bins", "override"), "few:bins override"),
        (dead(7), "dead:7"),
        (dead(0, 1, 2, 5, 7, 8), "dead:0-2,5,7-8"),
        (("dead:1", "floor:2", "dead:3"), "dead:1,3 floor:2"),
        (("dead:x", "other:1"), "dead:x other:1"),
        (("dead:" + "1" * 5000,), "dead:" + "1" * 5000),
    ],
)
def test_condensed(codes, text):
    assert condensed(codes) == text


@pytest.mark.parametrize(("count", "most"), [(12, 15), (900, 2)])
def test_many_tensors_of_16_bits_are_one_line(count, most):
    table = table_of([(f"t{number}", ("int16",)) for number in range(count)], {})
    tensors = {name: replace(each, bits=16) for name, each in table.tensors.items()}
    text = described(replace(table, tensors=tensors))
    assert f"{count} tensors with more than 8 bits" in text
    assert len(text.splitlines()) == most
