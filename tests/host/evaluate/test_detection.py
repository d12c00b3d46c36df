# SPDX-License-Identifier: Apache-2.0
"""Boxes of two networks: how they are read, and which are one object."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as hnp

import neon8
from neon8.cli import main as cli
from neon8.errors import DataError
from neon8.evaluate.detection import Matching, find, iou, matched
from neon8.evaluate.heads import Option, parse, recognise
from onnx_nets import net, node, save

F = np.float32
N = 40
SOME = hnp.arrays(np.float64, (5, 4), elements={"min_value": -9, "max_value": 9})


def scene(seed=1, classes=3):
    """Corners (N, 4) in pixels on a grid, and scores (N, C), of which one is high."""
    rng = np.random.default_rng(seed)
    corner = np.stack(np.divmod(np.arange(N), 8), axis=1)[:, ::-1] * 30.0 + 5
    size = rng.uniform(12, 25, (N, 2))
    scores = rng.uniform(0, 0.3, (N, classes))
    scores[np.arange(N), rng.integers(0, classes, N)] += rng.uniform(0.1, 0.65, N)
    return np.concatenate((corner, corner + size), axis=1), scores


def centres(corners):
    low, high = corners[:, :2], corners[:, 2:]
    return np.concatenate(((low + high) / 2, high - low), axis=1)


def with_background(scores, place):
    """As a Softmax gives them: classes / 2 and what is left."""
    rest = 1 - scores.sum(axis=1, keepdims=True) / 2
    parts = (rest, scores / 2) if place == "first" else (scores / 2, rest)
    return np.concatenate(parts, axis=1)


def forms():
    """The same scene as several kinds of detectors give it, for one sample."""
    corners, scores = scene()
    box = centres(corners)
    with_object = np.concatenate((box, np.ones((N, 1)), scores), axis=1)
    without = np.concatenate((box, scores), axis=1).T
    first, last = (with_background(scores, place) for place in ("first", "last"))
    return {
        "corners": {"s": scores[None], "b": corners[None]},
        "normalised": {"b": corners[None] / 300, "s": scores[None]},
        "y first": {"s": scores[None], "b": corners[None][..., [1, 0, 3, 2]]},
        "middle axis": {"b": corners[None, :, None], "s": scores[None]},
        "centre": {"s": scores[None], "b": box[None]},
        "objectness": {"y": with_object[None]},
        "turned": {"y": without[None]},
        "background first": {"s": first[None], "b": corners[None]},
        "background last": {"s": last[None], "b": corners[None]},
    }


@pytest.mark.parametrize("form", list(forms()))
def test_what_detectors_give_is_recognised(form):
    outputs = forms()[form]
    background = form.startswith("background")
    option = Option(threshold=0.3 if background else 0.5)
    heads = recognise(outputs, option)
    corners, scores = scene()
    found = find(heads, outputs)
    best = scores.max(axis=1) / (2 if background else 1)
    assert sorted(found.anchors) == np.flatnonzero(best >= option.threshold).tolist()
    assert len(found.anchors) > 5
    assert found.classes.tolist() == scores.argmax(axis=1)[found.anchors].tolist()
    if form not in ("normalised", "y first"):
        np.testing.assert_allclose(found.boxes, corners[found.anchors], atol=1e-9)
    assert len(matched(heads, found, found)) == len(found.anchors)


RNG = np.random.default_rng(8)


@pytest.mark.parametrize(
    "outputs",
    [
        {"y": RNG.uniform(0, 1, (1, 10))},
        {"y": RNG.uniform(0, 1, (1, 1, 64, 64))},
        {"y": RNG.uniform(0, 1, (1, 50, 20))},
        {"y": RNG.normal(size=(1, 50, 20))},
        {"a": RNG.normal(size=(1, 40, 4)), "b": RNG.normal(size=(1, 40, 3))},
        {"a": RNG.uniform(0, 1, (1, 40, 4)), "b": RNG.uniform(0, 1, (1, 40, 4))},
        {"a": RNG.uniform(0, 1, (1, 40, 4)), "b": RNG.uniform(0, 1, (1, 30, 2))},
        {"a": RNG.uniform(0, 1, (1, 4)), "b": RNG.uniform(0, 1, (1, 10))},
        {"a": RNG.uniform(0, 1, ()), "b": RNG.uniform(0, 1, (1,))},
    ],
)
def test_other_networks_are_no_detectors(outputs):
    assert recognise(outputs, Option()) is None


def test_offsets_are_compared_in_units_of_the_anchor():
    """Decoded with any anchors, by the formula of SSD, the IoU is the same."""
    rng = np.random.default_rng(2)
    offsets = rng.normal(0, 2, (N, 4))
    moved = offsets + rng.normal(0, 0.3, (N, 4))
    scores = with_background(rng.uniform(0.6, 0.9, (N, 1)), "first")
    scores[10:] = [0.9, 0.1]
    pair = {"s": scores[None]}
    outputs, other = pair | {"b": offsets[None]}, pair | {"b": moved[None]}
    heads = recognise(outputs, Option(threshold=0.3))
    assert (heads.form, heads.background) == ("offsets", "first")
    got = matched(heads, find(heads, outputs), find(heads, other))
    centre, size = rng.uniform(0, 300, (N, 2)), rng.uniform(10, 90, (N, 2))

    def decoded(each):
        middle = centre + each[:, :2] * 0.1 * size
        half = np.exp(each[:, 2:] * 0.2) * size / 2
        return np.concatenate((middle - half, middle + half), axis=1)

    wanted = np.diag(iou(decoded(offsets), decoded(moved)))[:10]
    assert sorted(got) == pytest.approx(sorted(wanted[wanted >= 0.5]))
    assert len(got) > 5


@given(SOME, SOME)
def test_iou(ours, theirs):
    found = iou(ours, theirs)
    assert (found >= 0).all()
    assert (found <= 1 + 1e-12).all()
    np.testing.assert_array_equal(found, iou(theirs, ours).T)
    real = (ours[:, 2:] - ours[:, :2] > 1e-3).all(axis=1)
    assert np.diag(iou(ours, ours))[real] == pytest.approx(1)


def test_iou_of_known_boxes():
    ours = np.array([[0, 0, 2, 2.0]])
    theirs = np.array([[1, 1, 3, 3], [0, 0, 1, 2], [2, 0, 3, 2], [1, 1, 0, 0.0]])
    assert iou(ours, theirs)[0] == pytest.approx([1 / 7, 1 / 2, 0, 0])


def test_what_each_network_finds():
    corners, scores = scene(classes=1)
    corners, scores = corners[:10], np.full((10, 1), 0.9)
    got = corners.copy()
    got[0] += 40 * np.array([1, 0, 1, 0])  # away, onto no other's place for long
    got[1] += [0, 0, 2, 0]  # a little wider
    less = scores.copy()
    less[2] = 0.45  # below the threshold
    matching = Matching(Option())
    matching.add({"b": corners[None], "s": scores[None]}, [got[None], less[None]])
    found = matching.result()
    assert (found.reference_boxes, found.boxes) == (10, 9)
    assert found.matched == 8 - (iou(got[:1], corners).max() >= 0.5)
    assert found.found == 10 * found.matched
    assert found.confirmed == pytest.approx(100 * found.matched / 9)
    assert 0.95 < found.iou < 1


def test_a_class_is_part_of_an_object():
    corners, scores = scene()
    turned = scores[:, [1, 2, 0]]
    matching = Matching(Option())
    matching.add({"b": corners[None], "s": scores[None]}, [corners[None], turned[None]])
    assert matching.result().matched == 0
    assert matching.result().found == 0


def test_the_worse_of_two_boxes_goes_and_no_box_is_two_objects():
    corners = np.tile([[10, 10, 30, 30.0]], (8, 1))
    corners[4:] += 100
    scores = np.linspace(0.9, 0.55, 8)[:, None]
    outputs = {"b": corners[None], "s": scores[None]}
    heads = recognise(outputs, Option())
    found = find(heads, outputs)
    assert found.anchors.tolist() == [0, 4]
    all_of_them = recognise(outputs, parse("boxes=b,scores=s,form=offsets"))
    assert len(find(all_of_them, outputs).anchors) == 8


def test_samples_of_a_fixed_batch_are_apart():
    corners, scores = scene()
    pair = {"b": np.stack((corners, corners)), "s": np.stack((scores, scores * 0.1))}
    matching = Matching(Option())
    matching.add(pair, list(pair.values()), rows=2)
    alone = Matching(Option())
    alone.add({"b": corners[None], "s": scores[None]}, [corners[None], scores[None]])
    assert matching.result() == alone.result()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("boxes", "'boxes' is not KEY=VALUE; the keys are boxes, scores, output"),
        ("off=1", "'off=1' is not KEY=VALUE"),
        ("colour=red", "is not KEY=VALUE"),
        ("boxes=b", "boxes and scores are given together"),
        ("output=y,boxes=b,scores=s", "give either it, or those two"),
        ("form=round", "form 'round' is not one of corners, centre, offsets"),
        ("threshold=1", "threshold '1' is not a number between 0 and 1"),
        ("threshold=nan", "threshold 'nan' is not"),
    ],
)
def test_options_that_cannot_be_meant(text, said):
    with pytest.raises(DataError, match=said):
        parse(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("boxes=b,scores=x", "no output 'x'; there are 'b', 's'"),
        ("boxes=s,scores=b", "are no boxes"),
        ("output=s", r"'s' \[1, 40, 3\] has no boxes and scores"),
        ("boxes=b,scores=b", "holds values outside 0 .. 1"),
    ],
)
def test_outputs_that_are_not_what_is_said(text, said):
    corners, scores = scene()
    outputs = {"b": corners[None], "s": scores[None]}
    with pytest.raises(DataError, match=said):
        recognise(outputs, parse(text))


def test_no_class_but_background():
    corners, scores = scene(classes=1)
    outputs = {"b": corners[None], "s": scores[None]}
    heads = recognise(outputs, parse("background=first"))
    with pytest.raises(DataError, match="'s' has no class but background"):
        find(heads, outputs)


def detector(folder):
    """16 anchors of an 8x8 image, as an SSD has them."""
    rng = np.random.default_rng(4)
    weights = {
        "wb": rng.normal(size=(4, 3, 3, 3)).astype(F),
        "ws": rng.normal(size=(2, 3, 3, 3)).astype(F),
        "four": np.array([1, 16, 4]),
        "two": np.array([1, 16, 2]),
    }
    ends = {"pads": [1] * 4, "strides": [2, 2]}
    nodes = [
        node("Conv", "x wb", "cb", "boxes", **ends),
        node("Transpose", "cb", "tb", perm=[0, 2, 3, 1]),
        node("Reshape", "tb four", "b"),
        node("Conv", "x ws", "cs", "scores", **ends),
        node("Transpose", "cs", "ts", perm=[0, 2, 3, 1]),
        node("Reshape", "ts two", "rs"),
        node("Softmax", "rs", "s", axis=2),
    ]
    return save(folder, net(nodes, {"x": (1, 3, 8, 8)}, "s b", weights))


def test_command(tmp_path, capsys):
    path = detector(tmp_path)
    x = np.random.default_rng(5).normal(size=(6, 3, 8, 8)).astype(F)
    np.save(tmp_path / "x.npy", x)
    table = neon8.calibrate_model(path, x)
    neon8.save_model(neon8.compile_model(path, table), tmp_path / "n.n8")
    base = ["evaluate", tmp_path / "n.n8", "--data", tmp_path / "x.npy"]
    base += ["--reference", path]

    def run(*words):
        status = cli.main([str(word) for word in (*base, *words)])
        return status, *capsys.readouterr()

    status, out, _ = run()
    assert status == 0
    assert "boxes are offsets" in out
    assert "compared anchor by anchor; scores from 0.5" in out
    found = json.loads(run("--json")[1])["detection"]
    assert found["found"] > 80
    assert found["confirmed"] > 80
    assert found["iou"] > 0.8
    assert json.loads(run("--json", "--detection", "none")[1])["detection"] is None
    status, out, err = run("--detection", "form=round")
    assert (status, out) == (2, "")
    assert "form 'round' is not one of" in err
    del base[-2:]
    assert (
        "boxes are matched with those of a --reference"
        in run("--detection", "threshold=0.3")[2]
    )
