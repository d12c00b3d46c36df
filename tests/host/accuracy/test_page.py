# SPDX-License-Identifier: Apache-2.0
"""docs/accuracy.md, of figures that are made up."""

from pathlib import Path

from bench.accuracy.networks import Network
from bench.accuracy.page import figures, page
from bench.accuracy.rows import FP32, Case

FACTS = {"command": "report.py zoo", "neon8": "1", "onnxruntime": "2", "bins": 2048}


def row(**known):
    keys = ("top1", "top1_error", "change", "change_range", "agreement", "sqnr_db")
    return (
        dict.fromkeys((*keys, "sqnr_centred_db", "dnll", "dnll_error", "detection"))
        | known
    )


def case(rewriting="", notes=()):
    network = Network(
        name="net",
        model=Path("net.onnx"),
        data=Path("x.npz"),
        calibrate=1,
        evaluate=1,
        notes=dict(notes),
    )
    return Case(network, rewriting, network.model, network.model)


def test_the_cells_of_a_row():
    full = row(
        top1=71.84,
        top1_error=1.4,
        change=-0.25,
        agreement=98.5,
        sqnr_db=30.0,
        sqnr_centred_db=27.14,
        dnll=0.0123,
        dnll_error=0.004,
        change_range={"low": -1.23, "high": 0.73},
    )
    assert figures(full) == [
        *("71.8 ± 1.4", "-0.2 ± 0.5", "98.5", "27.1", "+0.012 ± 0.004")
    ]
    assert figures(row(sqnr_db=25.55)) == ["-", "-", "-", "25.6", "-"]
    assert figures(row()) == ["-", "-", "-", "equal", "-"]
    assert figures(row(detection={"found": 96.06}))[2] == "96.1 of boxes"
    assert figures({"refused": "a | b"})[0] == "refused: a \\| b"


def test_rewritten_networks_are_held_to_the_first():
    notes = {"outliers": "no remedy"}
    chosen = [case(by, notes) for by in ("", "dense", "outliers", "biases")]
    values = {"": 30.0, "dense": 29.6, "outliers": 29.4}
    results = {
        (one.name, "default"): row(sqnr_db=values.get(one.rewriting)) for one in chosen
    }
    results["net biases", "default"] = {"refused": "why"}
    text = page(chosen, results, ["default"], FACTS)
    assert "as it was: net dense.\n" in text
    assert "- net outliers loses 0.6 dB: no remedy.\n- net biases is refused.\n" in text
    assert "| net dense | 29.6 |" in text
    assert "    report.py zoo\n" in text


def test_the_order_is_that_of_the_recipes():
    results = {("net", name): row(sqnr_db=1.0) for name in (FP32, "plain", "default")}
    text = page([case()], results, ["default", "plain", FP32], FACTS)
    assert "| network | plain | default |" in text
    assert text.index("| net | FP32 |") < text.index("| net | plain |")
