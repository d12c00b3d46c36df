# SPDX-License-Identifier: Apache-2.0
"""Rows of the report: measured as a user would, and once."""

import json

import numpy as np
import onnx
import pytest

from bench.accuracy import rows as measuring
from bench.accuracy.networks import Network
from bench.accuracy.rows import FP32, Rows, cases
from neon8 import calibrate_model, compile_model, evaluate_model
from neon8.data.preprocess import Preprocess


@pytest.fixture
def network(tiny, tmp_path):
    model, data = tmp_path / "net.onnx", tmp_path / "data.npz"
    onnx.save(tiny.net(), model)
    rng = np.random.default_rng(4)
    x = rng.integers(0, 256, (24, 8, 8, 3), np.uint8)
    np.savez(data, x=x, y=np.arange(24) % 6)
    return Network(
        name="net",
        model=model,
        data=data,
        calibrate=10,
        evaluate=14,
        preprocess="mean = [128]\nstd = [64]\n",
        harden=("lattice_tensor",),
    )


def test_a_row_is_what_the_commands_give(network, tmp_path):
    (case, _) = cases(network, tmp_path / "models")
    row = Rows(tmp_path / "rows").measured(case, "default")
    made = tmp_path / "net.n8"
    given = {"data": network.data, "preprocess": Preprocess(mean=(128,), std=(64,))}
    table = calibrate_model(case.model, limit=10, **given)
    made.write_bytes(compile_model(case.model, table))
    wanted = evaluate_model(made, reference=case.model, skip=10, **given)
    assert row["n"] == 14
    assert row["sqnr_db"] == wanted.sqnr_db
    assert row["dnll"] == wanted.dnll


def test_a_rewritten_network_is_compared_with_what_it_computes(network, tmp_path):
    first, rewritten = cases(network, tmp_path / "models")
    assert rewritten.name == "net lattice_tensor"
    assert rewritten.reference == rewritten.model != first.model
    row = measuring.measure(rewritten, FP32)
    assert row["agreement"] == 100
    assert row["sqnr_db"] is None  # no error at all


def test_a_row_is_measured_once_and_again_when_something_changed(
    network, tmp_path, monkeypatch
):
    rows, seen = Rows(tmp_path / "rows"), []

    def measure(case, recipe):
        seen.append((case.name, recipe))
        return {"n": len(seen)}

    monkeypatch.setattr(measuring, "measure", measure)
    case, _ = cases(network, tmp_path / "models")
    assert rows.known(case, FP32) is None
    assert rows.measured(case, FP32) == rows.measured(case, FP32) == {"n": 1}
    assert rows.measured(case, "plain") == {"n": 2}
    onnx.save(onnx.load(case.model), case.model)
    measuring.file_digest.cache_clear()
    assert rows.measured(case, FP32) == {"n": 1}
    case.model.write_bytes(case.model.read_bytes() + b"\0")
    measuring.file_digest.cache_clear()
    assert rows.measured(case, FP32) == {"n": 3}


def test_what_is_refused_is_said(network, tmp_path, monkeypatch):
    monkeypatch.setitem(measuring.OPTIONS, "plain", ("--method", "none such"))
    case, _ = cases(network, tmp_path / "models")
    row = measuring.measure(case, "plain")
    assert "none such" in row["refused"]
    assert json.loads(json.dumps(row)) == row


def test_pictures_that_change_are_other_data(tmp_path):
    (tmp_path / "1.jpg").write_bytes(b"12")
    first = measuring.data_digest(tmp_path)
    measuring.data_digest.cache_clear()
    (tmp_path / "1.jpg").write_bytes(b"123")
    assert measuring.data_digest(tmp_path) != first
