# SPDX-License-Identifier: Apache-2.0
"""What networks are for, told by their outputs, and what int8 does to it."""

import json
import math
import shlex

import numpy as np
import pytest

import neon8
from neon8.cli import main as cli
from neon8.evaluate.grids import cells
from neon8.evaluate.measure import Figures, after_softmax, before_softmax
from neon8.evaluate.ranking import rank_figures
from neon8.evaluate.tasks import Setup, edit_distance, tasks_of
from neon8.graph.importer import load
from onnx_nets import net, node, save

F = np.float32
IMAGE = (64, 96)


def softmax(values, axis):
    shares = np.exp(values - values.max(axis=axis, keepdims=True))
    return shares / shares.sum(axis=axis, keepdims=True)


def heat(rng, channels, rows=16, columns=24):
    """A peak of height 1 in each map."""
    y, x = np.mgrid[:rows, :columns]
    at = rng.integers(2, 14, (channels, 2, 1, 1))
    return np.exp(-((y - at[:, 0]) ** 2 + (x - at[:, 1]) ** 2) / 3)[None]


def on_grid(rng, *, objects=6, classes=3):
    """(N, 4) centres and log sizes in cells, and (N, classes) scores."""
    count = len(cells(IMAGE).corners)
    boxes = np.concatenate(
        (rng.uniform(-0.4, 1.8, (count, 2)), rng.uniform(-0.3, 1, (count, 2))), axis=1
    )
    scores = rng.uniform(0, 0.3, (count, classes))
    scores[rng.permutation(count)[:objects], rng.integers(0, classes, objects)] = 0.9
    return boxes, scores


def networks():
    """Task -> outputs of one sample of a network for it, of an image of IMAGE."""
    rng = np.random.default_rng(1)
    boxes, scores = on_grid(rng)
    whole = np.concatenate((boxes, np.ones((len(boxes), 1)), scores), axis=1)
    each = [slice(0, 96), slice(96, 120), slice(120, 126)]
    sides = np.abs(boxes) + 0.5
    scrfd = {f"s{k}": scores[part, :1] for k, part in enumerate(each)}
    scrfd |= {f"b{k}": sides[part] for k, part in enumerate(each)}
    scrfd |= {f"k{k}": np.tile(sides[part], 3)[:, :10] for k, part in enumerate(each)}
    yunet = {f"c{k}": scores[None, part, :1] for k, part in enumerate(each)}
    yunet |= {f"o{k}": scores[None, part, :1] for k, part in enumerate(each)}
    yunet |= {f"b{k}": boxes[None, part] for k, part in enumerate(each)}
    centres = {"hm": heat(rng, 3), "wh": rng.uniform(1, 6, (1, 2, 16, 24))}
    centres["reg"] = rng.uniform(0, 1, (1, 2, 16, 24))
    lines = softmax(rng.normal(0, 4, (1, 30, 37)), 2)
    face = rng.normal(size=(1, 512))
    return {
        "yolox": ("boxes", {"y": whole[None]}),
        "scrfd": ("boxes", scrfd),
        "yunet": ("boxes", yunet),
        "centernet": ("boxes", centres),
        "classes": ("top1 of 'y'", {"y": rng.normal(size=(1, 10))}),
        "segments": ("masks of 'y'", {"y": rng.normal(size=(1, 21, *IMAGE))}),
        "shares": ("masks of 'y'", {"y": softmax(rng.normal(size=(1, 5, 9, 9)), 1)}),
        "pose": ("keypoints of 'y'", {"y": heat(rng, 17)}),
        "face": ("embedding of 'y'", {"y": face}),
        "unit": (
            "embedding of 'y'",
            {"y": face[:, :300] / np.linalg.norm(face[:, :300])},
        ),
        "ctc": ("text of 'y'", {"y": lines}),
        "log ctc": ("text of 'y'", {"y": np.log(lines).transpose(1, 0, 2)}),
    }


@pytest.mark.parametrize("name", networks())
def test_a_task_is_told_by_the_outputs(name):
    """It is perfect where nothing changes, and worse where the values are others."""
    wanted, outputs = networks()[name]
    (task,) = tasks_of(outputs, Setup(image=IMAGE))
    assert task.name == wanted
    (best,) = task.values(outputs, outputs)
    assert best == pytest.approx(0.0 if task.kind == "keypoints" else 1.0)
    rng = np.random.default_rng(2)
    others = {
        n: rng.permutation(a.ravel()).reshape(a.shape) for n, a in outputs.items()
    }
    assert task.values(outputs, others)[0] < best - 0.2
    asked = f"{task.kind}={task.output}" if task.output else task.kind
    (same,) = tasks_of(outputs, Setup(image=IMAGE, metric=asked))
    assert same.values(outputs, others) == task.values(outputs, others)
    assert tasks_of(outputs, Setup(image=IMAGE, metric="sqnr")) == ()


@pytest.mark.parametrize(
    "output",
    [
        np.random.default_rng(3).normal(size=(1, 3, *IMAGE)),  # a picture
        np.random.default_rng(3).normal(size=(1, 1, *IMAGE)),
        np.maximum(np.random.default_rng(3).normal(size=(1, 32, 16, 16)), 0),
        np.random.default_rng(3).normal(size=(1, 40, 60)),
        np.random.default_rng(3).normal(size=(1, 4)).reshape(2, 2),
        np.zeros(()),
    ],
)
def test_what_may_be_anything_is_judged_by_sqnr(output):
    assert tasks_of({"y": output}, Setup(image=IMAGE)) == ()


def test_boxes_of_a_grid_are_where_they_are():
    """f1 of boxes that moved by a cell falls to 0; those that did not are all found."""
    outputs = networks()["yolox"][1]
    (task,) = tasks_of(outputs, Setup(image=IMAGE))
    moved = outputs["y"].copy()
    moved[..., 2:4] += 0.05
    assert task.values(outputs, {"y": moved}) == [1.0]
    moved[..., :2] += 4
    assert task.values(outputs, {"y": moved})[0] < 0.4
    gone = outputs["y"].copy()
    gone[..., 4] = 0
    assert task.values(outputs, {"y": gone}) == [0.0]
    assert task.values({"y": gone}, {"y": gone}) == [1.0]


def test_edit_distance():
    assert edit_distance("kitten", "sitting") == 3
    assert edit_distance("", "abc") == edit_distance("abc", "") == 3
    assert edit_distance("abc", "abc") == 0


def test_labels_decide_where_there_are_any():
    (task,) = tasks_of({"y": np.eye(4)}, Setup(rows=4, labelled=True))
    right = {"y": np.eye(4)}
    assert task.values(right, right, (0, 1, 3, 3), rows=4) == [1, 1, 0, 1]


def test_a_softmax_that_was_cut_off_is_computed(tmp_path):
    for log, kind in ((False, "Softmax"), (True, "LogSoftmax")):
        nodes = [
            node("Conv", "x w", "c", "conv"),
            node("Reshape", "c s", "r"),
            node(kind, "r", "y", axis=2),
        ]
        weights = {
            "w": np.random.default_rng(1).normal(size=(6, 3, 1, 1)).astype(F),
            "s": np.array([1, 6, 64]),
        }
        path = save(tmp_path, net(nodes, {"x": (1, 3, 8, 8)}, "y", weights))
        graph = load(path)
        cut = before_softmax(graph)
        assert cut.outputs != graph.outputs
        values = np.random.default_rng(2).normal(size=(1, 6, 64)).astype(F)
        found = after_softmax(graph, {cut.outputs[0]: values})["y"]
        wanted = softmax(values.astype(np.float64), 2)
        np.testing.assert_allclose(found, np.log(wanted) if log else wanted)


def figures(*, db=20.0, task=None, n=40, seed=1, outputs=1):
    """Figures of n samples with so many dB and these values of a task."""
    rng = np.random.default_rng(seed)
    hard = rng.lognormal(0, 0.3, (n, outputs))
    dbs = np.broadcast_to(db, (outputs,))
    squares = np.stack((np.ones((n, outputs)), hard * 10.0 ** (-dbs / 10)), axis=2)
    values = (
        np.zeros((n, 0)) if task is None else np.reshape(task, (n, 1)).astype(float)
    )
    names = () if task is None else ("boxes",)
    outs = tuple("abc"[:outputs])
    return Figures(squares=squares, outputs=outs, tasks=values, task_names=names)


def test_a_gain_in_sqnr_does_not_pay_for_boxes():
    """As of a detector whose SQNR rose while 31 boxes became 4."""
    rng = np.random.default_rng(4)
    before = figures(db=8.01, task=rng.uniform(0.4, 1, 40))
    after = figures(db=8.5, task=rng.uniform(0, 0.2, 40))
    found = rank_figures([before, after], 0)
    assert found.gains[1].least > 0.3
    assert (found.advised, found.losses[1]) == (0, ("boxes",))
    assert rank_figures([before, figures(db=8.5, task=before.tasks)], 0).advised == 1


def test_no_output_pays_for_another():
    before, after = figures(db=[20, 30], outputs=2), figures(db=[26, 29], outputs=2)
    found = rank_figures([before, after], 0)
    assert found.gains[1].least > 1
    assert (found.advised, found.losses[1]) == (0, ("output 'b'",))


def test_a_task_that_gains_is_enough_where_sqnr_cannot_tell():
    rng = np.random.default_rng(5)
    low = rng.uniform(0.2, 0.4, 40)
    before = figures(task=low)
    after = figures(task=low + rng.uniform(0.2, 0.5, 40), seed=2)
    found = rank_figures([before, figures(seed=3, task=low), after], 0)
    assert found.advised == 2
    chance = figures(task=low + rng.normal(0, 0.3, 40), seed=2)
    assert rank_figures([before, chance], 0).advised == 0


METRIC = """
def same(wanted, got, labels):
    return -abs(float(wanted["y"].sum() - got["y"].sum())) - len(labels)

def broken(wanted, got, labels):
    return wanted["z"]

def endless(wanted, got, labels):
    return float("inf")

number = 3
"""


@pytest.fixture
def network(tmp_path, monkeypatch):
    """A command line to evaluate a small network, in a folder with a metric."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_metric.py").write_text(METRIC)
    weight = np.random.default_rng(1).normal(size=(5, 3, 3, 3)).astype(F)
    path = save(
        tmp_path,
        net([node("Conv", "x w", "y")], {"x": (1, 3, 9, 9)}, "y", {"w": weight}),
    )
    x = np.random.default_rng(2).normal(size=(30, 3, 9, 9)).astype(F)
    np.save("x.npy", x)
    neon8.save_model(neon8.compile_model(path, neon8.calibrate_model(path, x)), "n.n8")
    return ["evaluate", "n.n8", "--data", "x.npy", "--reference", str(path)]


def test_much_is_lost(network, capsys):
    """The command that brings more is ready to paste, and only where much is lost."""
    assert cli.main(network) == 0
    assert "hint" not in capsys.readouterr().out
    path, x = network[-1], np.load("x.npy")
    table = neon8.calibrate_model(path, x / 8)  # ranges that are far too small
    neon8.save_model(neon8.compile_model(path, table), "n.n8")
    assert cli.main(network) == 0
    hint, line = capsys.readouterr().out.splitlines()[-2:]
    assert hint.startswith("hint: output 'y' ")
    words = shlex.split(line)
    assert words[:2] == ["neon8", "calibrate"]
    words[words.index("CALIBRATION_DATA")] = "x.npy"
    assert cli.main([*words[1:], "--quiet"]) == 0
    neon8.save_model(neon8.compile_model(path, words[-1]), "n.n8")
    capsys.readouterr()
    assert cli.main(network) == 0
    assert "hint" not in capsys.readouterr().out


def test_the_users_function(network, capsys):
    assert cli.main([*network, "--metric", "own_metric:same", "--json"]) == 0
    (task,) = json.loads(capsys.readouterr().out)["tasks"]
    assert task["name"] == "own_metric:same"
    assert task["low"] < task["mean"] < task["high"] < 0

    def distance(wanted, got, _labels):
        return -math.dist(wanted["y"].ravel(), got["y"].ravel())

    path = network[-1]
    found = neon8.evaluate_model("n.n8", "x.npy", reference=path, metric=distance)
    assert [each.name for each in found.tasks] == ["distance"]


def test_the_users_function_may_change_its_arrays(network):
    """A function that decodes boxes in place changes no other figure."""

    def centred(wanted, got, _labels):
        wanted["y"] -= wanted["y"].mean()
        got["y"] -= got["y"].mean()
        return -float(np.square(wanted["y"] - got["y"]).sum())

    def evaluated(metric):
        return neon8.evaluate_model(
            "n.n8", "x.npy", reference=network[-1], metric=metric
        )

    assert evaluated(centred).sqnr_db == evaluated("sqnr").sqnr_db


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        ("own_metric:none", "'own_metric' has no function 'none'"),
        ("own_metric:number", "'own_metric' has no function 'number'"),
        (
            "no_such_module:f",
            "'no_such_module' cannot be imported: ModuleNotFoundError",
        ),
        ("own_metric:broken", "metric own_metric:broken: KeyError: 'z'"),
        ("own_metric:endless", "it returned inf, which is no number"),
        ("accuracy", "metric 'accuracy' is none of top1, boxes, keypoints"),
        ("=y", "metric '=y' is not of the form KIND=OUTPUT"),
        ("sqnr=", "metric 'sqnr=' is not of the form KIND=OUTPUT"),
        ("masks=z", "no output 'z'; there are 'y'"),
        ("masks", "no output is of that kind: 'y' [1, 5, 7, 7]"),
        ("boxes", "not those of a known detector; see --detection"),
    ],
)
def test_a_metric_that_cannot_be_had_is_named(network, capsys, metric, said):
    assert cli.main([*network, "--metric", metric]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("seed", [1, 2])
def test_calibrate_asks_the_users_function(network, seed):
    """What a metric says is worse is not taken, whatever it does for SQNR."""
    path = network[-1]

    def noise_is_fine(wanted, got, _labels):
        return float(np.square(got["y"] - wanted["y"]).sum())

    x = np.random.default_rng(seed).normal(size=(60, 3, 9, 9)).astype(F)
    plain = neon8.calibrate_model(path, x)
    assert neon8.calibrate_model(path, x, max_cost=4.0).tensors != plain.tensors
    kept = neon8.calibrate_model(path, x, max_cost=4.0, metric=noise_is_fine)
    assert kept.tensors == plain.tensors
