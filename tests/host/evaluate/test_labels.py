# SPDX-License-Identifier: Apache-2.0
"""Labels that count from another number than the network's classes."""

import numpy as np
import pytest

import neon8
from neon8.calibrate.run.reference import Reference
from neon8.cli import main as cli
from neon8.errors import DataError
from neon8.evaluate.labels import hint
from neon8.evaluate.metrics import Tally


@pytest.fixture(scope="module")
def right(tiny, tmp_path_factory):
    """Samples of `tiny` with labels that it gets right, and those plus one."""
    folder = tmp_path_factory.mktemp("labels")
    x = np.load(tiny.data)["x"]
    reference = Reference(tiny.onnx)
    best = [int(reference.run({"image": i[None]})["scores"].argmax()) for i in x]
    inside = [number for number, label in enumerate(best) if label < 5]
    labels = np.array(best)[inside]
    for name, offset in (("right", 0), ("late", 1)):
        np.savez(folder / f"{name}.npz", x=x[inside], y=labels + offset)
    return folder


def test_an_offset_moves_the_labels(tiny, right):
    for name, offset in (("right", 0), ("late", -1)):
        found = neon8.evaluate_model(
            tiny.onnx, right / f"{name}.npz", label_offset=offset
        )
        assert (found.top1, found.hint) == (100.0, None)


def test_labels_that_are_off_by_one_are_noticed(tiny, right, capsys):
    found = neon8.evaluate_model(tiny.onnx, right / "late.npz")
    assert found.top1 == 0
    assert found.hint == (
        "the labels look off by one: top-1 is 100.00 % with --label-offset -1"
    )
    line = ("evaluate", tiny.onnx, "--data", right / "late.npz", "--label-offset", "-1")
    assert cli.main([str(word) for word in line]) == 0
    assert "top-1      100.00 %" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("right", "above", "below", "said"),
    [(0, 20, 1, "offset 3"), (0, 1, 20, "offset 1"), (0, 5, 0, None), (9, 20, 0, None)],
)
def test_a_hint_is_no_accident(right, above, below, said):
    tally = Tally(labelled=30, top1=right, above=above, below=below)
    found = hint(tally, 2)
    assert (found is None) == (said is None)
    assert said is None or found.endswith(said)


@pytest.mark.parametrize(
    ("label", "offset", "said"),
    [
        (6, 0, "label 6, but the first output has 6 values; --label-offset -1 if"),
        (0, -1, "label 0, -1 with the offset of -1, but .*; --label-offset 0 if"),
        (9, 0, "label 9, but the first output has 6 values$"),
    ],
)
def test_labels_that_no_class_has(tiny, tmp_path, label, offset, said):
    np.savez(tmp_path / "x.npz", x=np.zeros((1, 3, 8, 8), np.float32), y=[label])
    with pytest.raises(DataError, match=said):
        neon8.evaluate_model(tiny.n8, tmp_path / "x.npz", label_offset=offset)
