# SPDX-License-Identifier: Apache-2.0
"""Logits and probabilities: told apart, and the same figures from both."""

import numpy as np
import pytest

import neon8
from neon8.evaluate.metrics import Tally, summary, tally_of
from neon8.evaluate.scores import LOGITS, PROBABILITIES, Reading, reading, tied
from onnx_nets import net, node, save

F = np.float32


@pytest.mark.parametrize(
    ("operator", "scores", "kind"),
    [
        ("Gemm", [1.0, 2.0], LOGITS),
        ("", [1.0, 2.0], LOGITS),
        ("", [0.25, 0.75], PROBABILITIES),
        ("", [-0.25, 1.25], LOGITS),
        ("Div", [0.25, 0.75], PROBABILITIES),
        ("LogSoftmax", [-0.7, -0.7], LOGITS),
        ("Softmax", [0.25, 0.75], PROBABILITIES),
        ("Softmax", [[0.25, 0.75], [0.5, 0.5]], None),
        ("Sigmoid", [0.25, 0.75], None),
        ("Gemm", [0.5], None),
    ],
)
def test_reading(operator, scores, kind):
    assert reading(operator, np.array(scores, F)).kind == kind


@pytest.mark.parametrize(
    ("scores", "is_tied"),
    [([1, 2, 2], True), ([2, 1, 1], False), ([0.0, -0.0], True), ([3], False)],
)
def test_ties(scores, is_tied):
    assert tied(np.array(scores, F)) == is_tied


def softmax(logits):
    powers = np.exp(logits - logits.max())
    return powers / powers.sum()


def figures(wanted, got, labels, kind):
    total = Tally()
    for want, mine, label in zip(wanted, got, labels, strict=True):
        total += tally_of(
            [mine], labels=[label], reference=[want], reading=Reading(kind, "")
        )
    return summary(total, names=("y",), reading=Reading(kind, ""))


def test_probabilities_have_the_figures_of_their_logits():
    rng = np.random.default_rng(3)
    wanted = rng.normal(0, 4, (20, 7))
    got = wanted + rng.normal(0, 0.3, wanted.shape) + rng.normal(0, 3, (20, 1))
    labels = rng.integers(0, 7, 20).tolist()
    logits = figures(wanted, got, labels, LOGITS)
    both = [np.array([softmax(row) for row in rows]) for rows in (wanted, got)]
    shares = figures(*both, labels, PROBABILITIES)
    centred = [rows - rows.mean(axis=1, keepdims=True) for rows in (wanted, got)]
    noise = np.sum((centred[0] - centred[1]) ** 2)
    plain = 10 * np.log10(np.sum(centred[0] ** 2) / noise)
    assert logits.sqnr_centred_db == pytest.approx(plain)
    assert logits.sqnr_db < plain - 10  # what all classes share counts there
    rises = [
        np.log(softmax(want)[label]) - np.log(softmax(mine)[label])
        for want, mine, label in zip(wanted, got, labels, strict=True)
    ]
    assert logits.dnll == pytest.approx(np.mean(rises))
    assert logits.dnll_error == pytest.approx(np.std(rises, ddof=1) / np.sqrt(20))
    assert shares.sqnr_centred_db == pytest.approx(logits.sqnr_centred_db)
    assert shares.dnll == pytest.approx(logits.dnll)


def test_gained_and_lost_are_told_apart():
    wanted = np.array([[1, 0], [1, 0], [0, 1], [0, 1.0]])
    got = np.array([[0, 1], [1, 0], [1, 0], [1, 1.0]])
    found = figures(wanted, got, [1, 0, 1, 1], LOGITS)
    assert (found.gained, found.lost, found.change) == (1, 2, -25.0)
    assert (found.top1, found.reference_top1) == (50.0, 75.0)
    assert (found.ties, found.reference_ties) == (1, 0)
    assert found.agreement == 25.0
    assert found.agreement_range.low < 25 < found.agreement_range.high
    assert found.change_range.low < -25 < found.change_range.high


def test_int8_probabilities_have_a_floor(tmp_path):
    """With a step of 1/128, what int8 calls 0 has no logarithm."""
    rng = np.random.default_rng(5)
    weights = {"w": rng.normal(size=(6, 3, 1, 1)).astype(F) * 9}
    nodes = [
        node("Conv", "x w", "c", "conv"),
        node("GlobalAveragePool", "c", "pooled"),
        node("Flatten", "pooled", "logits"),
        node("Softmax", "logits", "y", axis=1),
    ]
    path = save(tmp_path, net(nodes, {"x": (1, 3, 4, 4)}, "y", weights))
    x = rng.normal(size=(30, 3, 4, 4)).astype(F)
    np.savez(tmp_path / "t.npz", x=x, y=rng.integers(0, 6, 30))
    table = neon8.calibrate_model(path, x)
    found = {}
    for io in ("float", "int8"):
        neon8.save_model(neon8.compile_model(path, table, io=io), tmp_path / "n.n8")
        found[io] = neon8.evaluate_model(
            tmp_path / "n.n8", tmp_path / "t.npz", reference=path
        )
    assert found["float"].scores.kind == PROBABILITIES
    assert "Softmax" in found["float"].scores.why
    assert found["float"].sqnr_centred_db > 25
    assert found["int8"].sqnr_centred_db > 10
    assert abs(found["int8"].dnll) < 1
