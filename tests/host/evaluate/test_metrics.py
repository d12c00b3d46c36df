# SPDX-License-Identifier: Apache-2.0
"""The metrics, one by one, and evaluation as a whole against a plain computation."""

import math

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import neon8
from neon8.calibrate.run.reference import Reference
from neon8.errors import DataError
from neon8.evaluate.metrics import rank, sqnr_db, summary, tally_of, top1
from onnx_nets import net, node, save

F = np.float32
SCORES = hnp.arrays(
    np.float32,
    st.integers(1, 12),
    elements=st.sampled_from([-2.0, -0.0, 0.0, 1.0, 1.5, np.inf, -np.inf, np.nan]),
)


@given(SCORES)
def test_ranks_are_the_places_of_a_stable_order(scores):
    """The largest first, of equal ones that with the lowest index; NaN is the least."""
    values = np.where(np.isnan(scores), -np.inf, scores)
    order = np.argsort(-values, kind="stable").tolist()
    assert [rank(scores, index) for index in order] == list(range(scores.size))
    assert top1(scores.reshape(1, -1, 1)) == order[0]


@pytest.mark.parametrize(
    ("signal", "noise", "db"),
    [
        (1.0, 1.0, 0.0),
        (100.0, 1.0, 20.0),
        (1.0, 1000.0, -30.0),
        (5.0, 0.0, math.inf),
        (0.0, 0.0, math.inf),
        (0.0, 1.0, -math.inf),
        (1e-200, 1e-300, 1000.0),
    ],
)
def test_sqnr(signal, noise, db):
    assert sqnr_db(signal, noise) == pytest.approx(db, abs=1e-9)


def test_int8_outputs_do_not_overflow():
    low = np.array([-128, 127], np.int8)
    tally = tally_of([low], reference=[-low.astype(np.int32)])
    assert tally.whole.noise == 256**2 + 254**2


def test_a_tally_knows_what_it_has_not_seen():
    nothing = summary(tally_of([np.zeros(3)]))
    assert (nothing.n, nothing.top1, nothing.agreement) == (1, None, None)
    assert nothing.sqnr_db is None


@pytest.mark.parametrize("model", ["onnx", "n8", "n8_int8"])
def test_evaluation_is_what_a_plain_computation_gives(tiny, model):
    got = neon8.evaluate_model(
        getattr(tiny, model), tiny.labelled, reference=tiny.onnx, skip=3, limit=16
    )
    data = np.load(tiny.labelled)
    x, y = data["x"][3:19], data["y"][3:19]
    run = Reference(tiny.onnx).run
    wanted = np.concatenate([run({"image": image[None]})["scores"] for image in x])
    outputs = wanted
    if model != "onnx":
        with neon8.Model.open(tiny.n8) as net, net.session() as session:
            rows = [session.run({"image": image[None]})["scores"] for image in x]
        outputs = np.concatenate(rows)
    order = np.argsort(-outputs, axis=1, kind="stable")
    assert got.n == 16
    if model == "n8_int8":  # its outputs are rounded to int8 once more
        assert got.sqnr_db > 20
        return
    assert got.top1 == 100 * np.mean(order[:, 0] == y)
    assert got.top5 == 100 * np.mean((order[:, :5] == y[:, None]).any(axis=1))
    assert got.agreement == 100 * np.mean(outputs.argmax(1) == wanted.argmax(1))
    if model == "onnx":
        assert got.sqnr_db == math.inf
    else:
        noise = np.sum((wanted.astype(np.float64) - outputs) ** 2)
        db = 10 * np.log10(np.sum(wanted.astype(np.float64) ** 2) / noise)
        assert got.sqnr_db == pytest.approx(db, rel=1e-12)


def in_both_layouts(folder, path, data, **options):
    """Compiled with ends as N C H W, and as N H W C."""
    table = neon8.calibrate_model(path, data)
    for layout in ("nchw", "nhwc"):
        file = neon8.compile_model(path, table, layout=layout, **options)
        neon8.save_model(file, folder / f"{layout}.n8")
    return folder / "nchw.n8", folder / "nhwc.n8"


def test_outputs_in_another_order_are_refused(tmp_path):
    """They have the same size, but N H W C: what was measured would be nonsense."""
    weights = {
        "w": np.random.default_rng(4).normal(size=(4, 18)).astype(F),
        "shape": np.array([1, 2, 3, 3]),
    }
    nodes = [node("MatMul", "x w", "flat", "fc"), node("Reshape", "flat shape", "y")]
    path = save(tmp_path, net(nodes, {"x": (1, 4)}, "y", weights))
    data = list(np.random.default_rng(5).normal(size=(8, 1, 4)).astype(np.float32))
    right, wrong = in_both_layouts(tmp_path, path, data)
    assert neon8.evaluate_model(right, data, reference=path).sqnr_db > 20
    said = r"an output of \[1, 3, 3, 2\], the reference has .*; compare one that lies"
    with pytest.raises(DataError, match=said):
        neon8.evaluate_model(wrong, data, reference=path)


@pytest.mark.parametrize("io", ["float", "int8"])
@pytest.mark.parametrize("end", ["input", "output", "both"])
def test_a_layout_that_dimensions_do_not_show_is_refused(tmp_path, io, end):
    """1x4x4x4 is N C H W and N H W C alike; a Transpose of the network's own is not."""
    weights = {"w": np.random.default_rng(6).normal(size=(4, 4, 3, 3)).astype(F)}
    flat = {"shape": np.array([1, 64])}
    nodes = {
        "input": [
            node("Conv", "x w", "c", "conv", pads=[1] * 4),
            node("Reshape", "c shape", "y"),
        ],
        "output": [
            node("Reshape", "x shape4", "i"),
            node("Conv", "i w", "y", "conv", pads=[1] * 4),
        ],
        "both": [
            node("Transpose", "x", "t", perm=[0, 2, 3, 1]),
            node("Conv", "t w", "u", "conv", pads=[1] * 4),
            node("Transpose", "u", "y", perm=[0, 3, 1, 2]),
        ],
    }[end]
    flat["shape4"] = np.array([1, 4, 4, 4])
    shape = (1, 64) if end == "output" else (1, 4, 4, 4)
    path = save(tmp_path, net(nodes, {"x": shape}, "y", weights | flat))
    data = list(np.random.default_rng(7).normal(size=(8, *shape)).astype(F))
    right, wrong = in_both_layouts(tmp_path, path, data, io=io)
    assert neon8.evaluate_model(right, data, reference=path).sqnr_db > 20
    with pytest.raises(DataError, match="which the dimensions do not show; compare"):
        neon8.evaluate_model(wrong, data, reference=path)
    assert neon8.evaluate_model(wrong, data, reference=wrong).sqnr_db == math.inf


def test_an_empty_output_is_named(tmp_path):
    """No box: what a NonMaxSuppression may leave."""
    types = {"y": onnx.TensorProto.INT64}
    model = net([node("NonZero", "x", "y")], {"x": (1, 4)}, "y", types=types)
    path = save(tmp_path, model)
    with pytest.raises(DataError, match=r"output 'y' of .* is empty"):
        neon8.evaluate_model(path, [np.zeros((1, 4), F)])
