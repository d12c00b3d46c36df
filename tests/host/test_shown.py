# SPDX-License-Identifier: Apache-2.0
"""Public objects in a line, and as tables in a notebook."""

import pytest

import neon8
from html_pages import Page
from neon8 import text
from neon8.calibrate import calib_file
from neon8.cli.main import main
from neon8.evaluate.compare import compare


@pytest.fixture(scope="module")
def objects(tiny, tmp_path_factory):
    """One of each, by its class."""
    calib = tmp_path_factory.mktemp("shown") / "tiny.calib"
    data = ("--data", str(tiny.data), "--limit", "3")
    assert main(["observe", str(tiny.onnx), *data, "-o", str(calib)]) == 0
    seen = calib_file.load(calib)
    made = [
        neon8.load_table(tiny.table),
        seen,
        neon8.load_graph(tiny.onnx),
        neon8.evaluate_model(tiny.n8, tiny.labelled, reference=tiny.onnx),
        neon8.diagnose_model(tiny.onnx, tiny.table, tiny.data, limit=3, top=1),
        neon8.profile_model(tiny.n8, board="rpi4"),
        neon8.report_model(tiny.onnx, tiny.table, tiny.n8, tiny.data, limit=3, top=0),
        compare(seen, tiny.onnx, tiny.data, methods=("mse",), schemes=("auto",)),
    ]
    return {type(each).__name__: each for each in made}


@pytest.mark.parametrize(
    ("name", "line", "cell"),
    [
        (
            "ScaleTable",
            "model=tiny, method=minmax, scheme=auto, samples=",
            "zero point",
        ),
        ("Observation", "model=tiny, samples=3, tensors=", "3"),
        ("Graph", "inputs=image 1x3x8x8, outputs=", "image 1x3x8x8"),
        ("Evaluation", "n=24, top1=", "centred dB"),
        ("Diagnosis", "n=3, sqnr_db=", "alone dB"),
        ("Profile", "core=cortex-a72, ", "bound by"),
        ("Report", "tiny.onnx", "figures"),
        ("Comparison", "n=24, take=mse, auto", "agreement %"),
    ],
)
def test_objects_show_themselves(objects, name, line, cell):
    each = objects[name]
    assert repr(each).startswith(f"{name}(")
    assert line in repr(each)
    assert len(repr(each)) < 400
    page = each._repr_html_()
    assert len(page) < 20_000
    found = Page(page)
    assert cell in found.words
    assert not any(values for _, values in found.seen), "colours are the notebook's"


def test_names_do_no_harm():
    parts = [
        text.Fields([("<b>", "a & b")]),
        text.Table("x", [("</td><script>",)], ("<i>",)),
        text.Below("more", [text.Listed("y", ["<u>"]), "<p>"]),
    ]
    page = text.as_html(parts)
    assert {"<b>", "a & b", "</td><script>", "<i>", "<u>", "<p>"} <= set(
        Page(page).words
    )


def test_long_tables_end_early():
    rows = [(number,) for number in range(1000)]
    words = Page(text.as_html([text.Table("many", rows, ("n",))])).words
    assert words[-2:] == ["29", "... and 970 more"]
    assert len(words) == 33
