# SPDX-License-Identifier: Apache-2.0
"""A report says what evaluate, diagnose, inspect and the table say."""

import io
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

import neon8
from command_lines import succeed
from cut_nets import NETS, samples
from neon8.data.picture import picture
from neon8.data.samples import Sample
from neon8.errors import (
    CalibrationError,
    ModelError,
    SettingsError,
    TableError,
)
from neon8.evaluate.evaluate import Seen
from neon8.evaluate.heads import Heads
from neon8.evaluate.scores import Reading
from neon8.graph.importer import load
from neon8.report.facts import as_json
from neon8.report.html import as_html
from neon8.report.samples import Book
from onnx_nets import save
from open_nets import unet
from refusals import refused

HEAD = '{"format": "neon8 precision", "version": 3, '
MODEL = '"model": {"digest": "DIGEST"}'


def step(**more):
    """The text of a search with one step, of which something is wrong."""
    own = {"tensors": "[]", "best": "true", "cost": "1", "size": "1", **more}
    fields = ", ".join(f'"{name}": {value}' for name, value in own.items())
    return f'{HEAD}{MODEL}, "steps": [{{{fields}}}]}}'


def test_its_figures_are_those_of_evaluate_and_of_the_file(whole, files):
    found = neon8.evaluate_model(files.n8, files.data, reference=files.model)
    assert whole.evaluation == found
    assert whole.figure("top1").value == found.top1
    assert whole.figure("loss").value == -found.change
    assert whole.figure("agreement").low == found.agreement_range.low
    assert whole.figure("sqnr").value == found.outputs[0].judged_db
    assert whole.figure("f1") is None
    assert whole.figure("size").value == files.n8.stat().st_size
    with neon8.Model.open(files.n8) as model:
        assert whole.figure("memory").value == model.memory.total()
        macs = sum(step.macs for step in model.steps)
        assert whole.figure("macs").value == macs


def test_each_command_shows_its_figure(whole, capsys):
    for name in ("agreement", "size", "guards"):
        figure = whole.figure(name)
        text = succeed(capsys, *figure.command.split()[1:])
        assert name == "guards" or f"{figure.value:.0f}"[:3] in text.replace("_", "")


def test_the_command_of_the_diagnosis_repeats_it(whole, capsys):
    text = succeed(capsys, *whole.diagnose.split()[1:], "--json")
    assert json.loads(text)["sqnr_db"] == whole.diagnosis.sqnr_db


def test_a_layer_has_all_that_is_known_of_it(whole, files):
    table = neon8.load_table(files.table)
    layer = next(each for each in whole.layers if each.name == "c1")
    assert (layer.operator, layer.precision, layer.inputs) == (
        "Conv",
        "int8",
        ("image",),
    )
    assert layer.steps[0].kernel.startswith("n8_")
    assert layer.macs == layer.steps[0].macs > 0
    assert layer.weights.scale == table.layers["c1"]
    assert len(layer.weights.low) == len(layer.weights.scale.weight_scales) == 8
    for low, high, scale in zip(
        layer.weights.low,
        layer.weights.high,
        table.layers["c1"].weight_scales,
        strict=True,
    ):
        assert max(-low, high) == pytest.approx(127 * scale, rel=0.01)
    assert layer.split in whole.diagnosis.layers
    assert layer.loss in whole.diagnosis.tensors
    assert layer.remedies
    assert all(each.target in {"c1", *layer.outputs} for each in layer.remedies)
    (tensor,) = layer.tensors
    assert tensor.scale == table.tensors["act1"]
    assert [each.name for each in whole.taken] == ["image"]


def test_a_histogram_counts_what_was_seen(whole, files):
    (tensor,) = whole.taken
    seen = neon8.load_observation(files.calib).tensors["image"].histogram
    assert sum(tensor.values.counts) + tensor.values.zeros == seen.total
    own = np.histogram(np.load(files.data)["x"], 64, (seen.minimum, seen.maximum))[0]
    assert np.abs(np.array(tensor.values.counts) - own).sum() < 0.05 * seen.total
    choices = {each.method: each.threshold for each in tensor.values.choices}
    one = neon8.load_observation(files.calib)
    for method in ("minmax", "kl"):
        table = neon8.solve_observation(one, method=method, plain=True)
        assert choices[method] == table.tensors["image"].threshold


def test_the_samples_that_lose_most_come_first(whole):
    assert len(whole.samples) == 4
    moved = [s.wanted[0].index != s.got[0].index for s in whole.samples]
    assert moved == sorted(moved, reverse=True)
    still = [s.sqnr_db for s, m in zip(whole.samples, moved, strict=True) if not m]
    assert still == sorted(still)
    assert all(each.picture.startswith(b"\xff\xd8") for each in whole.samples)
    assert all(each.label in range(6) for each in whole.samples)


def test_classes_that_change_are_counted(files, tmp_path):
    """With a spoilt bias the int8 network says one class, whatever it sees."""
    table = neon8.load_table(files.table)
    layer = table.layers["fc"]
    shifts = (9.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    layers = {**table.layers, "fc": replace(layer, bias_correction=shifts)}
    spoilt, n8 = tmp_path / "t.json", tmp_path / "m.n8"
    neon8.save_table(replace(table, layers=layers), spoilt)
    neon8.compile_model(files.model, spoilt, output=n8)
    found = neon8.report_model(files.model, spoilt, n8, files.data, top=0)
    evaluation = found.evaluation
    assert {each.got for each in found.confusions} == {0}
    changed = sum(each.samples for each in found.confusions)
    assert 100 * (1 - changed / evaluation.n) == pytest.approx(evaluation.agreement)
    assert sum(each.lost for each in found.confusions) == evaluation.lost
    assert sum(each.gained for each in found.confusions) == evaluation.gained
    assert found.figure("loss").value == -evaluation.change


def test_another_table_is_compared(whole, files):
    (other,) = whole.compared
    assert other.gain.db > 3  # it clips
    assert whole.figure("gain").value == other.gain.db
    assert other.worse == ()
    assert whole.figure("worse").value == 0
    (changed,) = [each for each in other.differences if each.name == "act1"]
    assert "scale" in changed.what
    assert "threshold" in changed.what
    assert "override" in changed.other
    turned = neon8.report_model(
        files.model,
        files.other,
        made_with(files, files.other),
        files.data,
        top=0,
        others=[files.table],
    )
    assert turned.compared[0].gain.db == pytest.approx(-other.gain.db)
    assert turned.figure("worse").value > 0


def made_with(files, table):
    """An .n8 file beside a table."""
    n8 = table.with_suffix(".n8")
    neon8.compile_model(files.model, table, output=n8)
    return n8


def test_times_are_those_of_profile(whole, files):
    first, second = whole.predictions
    for each in (first, second):
        found = neon8.profile_model(files.n8, board=each.board)
        assert (each.core, each.ms, (each.low, each.high)) == (
            found.core,
            pytest.approx(found.ms),
            pytest.approx(found.span),
        )
        assert [e.ms for e in each.layers] == pytest.approx(
            [e.ms for e in found.layers]
        )
        assert sum(each.of(e.name)[2] for e in each.layers) == pytest.approx(1)
    assert first.of("c1")[0] == first.layers[1] != second.of("c1")[0]
    assert first.of("nowhere") is None
    assert whole.figure("ms").value == max(first.ms, second.ms)


def test_the_search_is_read(whole, files):
    steps = json.loads(files.search.read_text())["steps"]
    assert [each.cost for each in whole.curve] == [each["cost"] for each in steps]
    assert whole.curve[0].size == files.n8.stat().st_size
    assert sum(each.best for each in whole.curve) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "is no 'neon8 precision' of version 3"),
        ('{"format": "neon8 precision", "version": 2}', "of version 3"),
        (HEAD + '"model": {"digest": "ab"}}', "is of another network"),
        (HEAD + '"model": 3}', "is of another network"),
        (HEAD + MODEL + "}", "has no steps"),
        (HEAD + MODEL + ', "steps": []}', "has no steps"),
        (HEAD + MODEL + ', "steps": [3]}', "step 0: is no object"),
        (step(best="1"), "expected a list of tensors"),
        (step(tensors="3"), "expected a list of tensors"),
        (step(cost="null"), "cost: None is not a number"),
        (step(cost="-1"), "is no cost"),
        (step(size="0"), "size: 0 is not a whole number from 1"),
        (step(tensors="[3]"), "tensors: expected a string"),
        (step(to="[3]"), "to: expected a string"),
        (step(ms='"a"'), "ms: 'a' is not a number"),
        (step(worst_db='"a"'), "worst_db: 'a' is not a number"),
    ],
)
def test_a_search_that_is_none_is_refused(files, tmp_path, text, said):
    spoilt = tmp_path / "c.json"
    digest = neon8.load_table(files.table).model_digest
    spoilt.write_text(text.replace("DIGEST", digest))
    with refused(TableError, f"{spoilt}:1", said):
        report_of(files, search=spoilt)


def report_of(files, *, n8=None, table=None, **more):
    parts = (files.model, table or files.table, n8 or files.n8, files.data)
    return neon8.report_model(*parts, top=0, **more)


def test_files_of_another_network_are_refused(files, tiny, tmp_path):
    import onnx

    path = tmp_path / "a.onnx"
    onnx.save(tiny.net(seed=5), path)
    x = np.load(tiny.data)["x"]
    table, calib = tmp_path / "a.json", tmp_path / "a.calib"
    neon8.save_table(neon8.calibrate_model(path, x), table)
    neon8.observe_model(path, x, output=calib)
    n8 = tmp_path / "a.n8"
    neon8.compile_model(path, table, output=n8)
    with refused(TableError, table, "is of another network"):
        report_of(files, table=table)
    with refused(TableError, table, "is of another network"):
        report_of(files, others=[table])
    with refused(ModelError, n8, "was compiled from another network"):
        report_of(files, n8=n8)
    with refused(CalibrationError, "", "is of another model"):
        report_of(files, calibration=calib)
    with refused(ModelError, "", "was compiled with another table: 'act1' has scale"):
        report_of(files, n8=made_with(files, files.other))
    with refused(SettingsError, "no board 'rpi99' is known"):
        report_of(files, boards=["rpi99"])


def test_kernels_are_those_of_the_level_that_is_asked_for(files):
    found = report_of(files, isa="c")
    kernels = {step.kernel for each in found.layers for step in each.steps}
    assert kernels
    assert all(each.endswith("_c") for each in kernels if each.startswith("n8_"))


def test_json_is_whole_and_plain(whole):
    text = json.dumps(as_json(whole), allow_nan=False)
    value = json.loads(text)
    assert (value["format"], value["format_version"]) == ("neon8 report", 1)
    assert value["diagnosis"]["n"] == whole.diagnosis.n
    assert "picture" not in value["samples"][0]
    assert {each["name"] for each in value["figures"]} >= {"loss", "size", "gain"}
    assert value["layers"][0]["steps"][0]["kernel"].startswith("n8_")
    assert [each["board"] for each in value["predictions"]] == ["rpi3b+", "rpi5"]


def test_without_labels_the_loss_is_of_agreement(files, tiny):
    found = neon8.report_model(files.model, files.table, files.n8, tiny.data, top=0)
    assert found.figure("top1") is None
    loss, agreement = found.figure("loss"), found.figure("agreement")
    assert loss.value == pytest.approx(100 - agreement.value)
    assert math.isfinite(loss.value)


def seen(name, image, wanted, got, **more):
    """A run, of one row and without tasks unless it says otherwise."""
    usual = {"rows": 1, "tasks": (), "values": [], "floor": 0.0, "heads": None}
    usual["reading"] = Reading("logits", "")
    sample = Sample(name=name, inputs={"x": image}, labels=more.pop("labels", ()))
    return Seen(sample=sample, wanted=wanted, got=got, **usual | more)


@pytest.mark.parametrize("shape", [(1, 3, 50, 100), (1, 50, 100, 3)])
def test_boxes_are_shares_of_the_picture(shape):
    book = Book(3)
    boxes = [[10, 5, 50, 25], [60, -9, 120, 40]]
    wanted, got = (
        {"b": np.float32([boxes]), "s": np.float32([[[0.9, 0], [0, second]]])}
        for second in (0.8, 0.1)
    )
    run = seen(
        *("one", np.zeros(shape, np.float32), wanted, got),
        tasks=("boxes",),
        values=[[0.5]],
        reading=Reading(None, ""),
        heads=Heads(boxes="b", scores="s", form="corners", background="none"),
    )
    book.add(run)
    (kept,) = book.kept()
    first, second = kept.facts.wanted_boxes
    assert (first.left, first.top, first.right, first.bottom) == (0.1, 0.1, 0.5, 0.5)
    assert (second.top, second.right, second.index) == (0, 1, 1)
    assert len(kept.facts.got_boxes) == 1
    assert kept.image.shape == (50, 100, 3)
    assert kept.facts.tasks == {"boxes": 0.5}


def test_a_picture_is_small_and_has_its_colours():
    image = np.zeros((400, 800, 3), np.uint8)
    image[:, :, 0] = 255
    for bgr, wanted in ((False, 0), (True, 2)):
        shown = Image.open(io.BytesIO(picture(image, bgr=bgr)))
        assert shown.size == (192, 96)
        assert int(np.argmax(np.asarray(shown)[50, 50])) == wanted
    gray = np.linspace(-3, 5, 64, dtype=np.float32).reshape(8, 8, 1)
    values = np.asarray(Image.open(io.BytesIO(picture(gray))))
    assert values.min() < 20
    assert values.max() > 235


def test_another_model_file_is_compared(files, whole, tmp_path):
    """As its table would be, but for the entries, which nobody knows."""
    other = tmp_path / "other.n8"
    neon8.compile_model(files.model, files.other, output=other)
    arguments = (files.model, files.table, files.n8, files.data)
    found = neon8.report_model(*arguments, others=[other], top=0).compared[0]
    (by_table,) = whole.compared
    assert found == replace(by_table, table=str(other), differences=())
    net = save(tmp_path, NETS["front"]())
    table = neon8.calibrate_model(net, samples(load(net), count=4))
    neon8.compile_model(net, table, output=other, cut=True)
    with refused(ModelError, f"{other}: was compiled from another network"):
        neon8.report_model(*arguments, others=[other])


def test_open_dimensions(tmp_path):
    """Times are those of the shape that most samples have."""
    net, n8 = save(tmp_path, unet()), tmp_path / "net.n8"
    data = [
        np.ones((1, 3, size, 16), np.float32) * at
        for at, size in enumerate((16, 24, 24))
    ]
    shapes = {"x": (1, 3, "16..24:8", 16)}
    table = neon8.calibrate_model(net, data, shapes=shapes, output=tmp_path / "t.json")
    neon8.compile_model(net, table, output=n8, shapes=shapes)
    found = neon8.report_model(
        net, tmp_path / "t.json", n8, data, shapes=shapes, boards=["rpi4"], top=0
    )
    assert found.evaluation.n == 3
    assert "--shape x=1,3,24,16 --board" in found.predictions[0].command


@pytest.mark.parametrize("name", ["front", "channels-last", "branch", "counted"])
def test_a_network_that_is_cut(name, tmp_path):
    """Measured is all of it, and diagnosed what runs in int8."""
    path, table = save(tmp_path, NETS[name]()), tmp_path / "t.json"
    data, n8 = samples(load(path), count=4), tmp_path / "net.n8"
    neon8.calibrate_model(path, data, output=table)
    neon8.compile_model(path, table, output=n8, cut=True)
    cut = tmp_path / "net.cut.json"
    found = neon8.report_model(
        path, table, cut, data, top=0, others=[table], boards=["rpi4"]
    )
    whole = neon8.evaluate_model(cut, data, reference=path)
    assert found.evaluation == found.compared[0].evaluation == whole
    assert 0 < len(found.layers) < len(load(path).nodes)
    assert as_html(found)
    with refused(ModelError, f"{n8}: is a part of a network; give NET.cut.json"):
        neon8.report_model(path, table, n8, data)


def test_each_row_of_a_batch_is_a_sample():
    image = np.stack([np.full((3, 4, 5), value, np.uint8) for value in (10, 200)])
    scores = np.array([[0, 3, 1], [5, 1, 2]], np.float32)
    run = seen(
        *("x[0] to x[1]", image, {"s": scores}, {"s": scores[:, [0, 2, 1]]}),
        labels=(1, 2),
        rows=2,
        tasks=("top1 of 's'",),
        values=[[0.0, 1.0]],
    )
    book = Book(5)
    book.add(run)
    first, second = book.kept()
    assert first.facts.name == "x[0] to x[1], row 0"
    assert (first.facts.label, second.facts.label) == (1, 2)
    assert [each.index for each in first.facts.wanted] == [1, 2, 0]
    assert (first.facts.tasks, second.facts.tasks) == (
        {"top1 of 's'": 0.0},
        {"top1 of 's'": 1.0},
    )
    assert (int(first.image.max()), int(second.image.max())) == (10, 200)
    (change,) = book.confusions()
    assert (change.wanted, change.got, change.lost, change.gained) == (1, 2, 1, 0)


def test_only_the_worst_are_kept():
    rng = np.random.default_rng(0)
    book, errors = Book(3), rng.permutation(20) + 1
    for at, error in enumerate(errors.tolist()):
        wanted = np.array([[9.0, -4, 2, 1]], np.float32)
        noise = np.array([[1, -1, 0, 0]], np.float32) * error / 100
        book.add(seen(f"{at}", wanted, {"s": wanted}, {"s": wanted + noise}))
    worst = np.argsort(-errors)[:3]
    assert [each.facts.name for each in book.kept()] == [f"{at}" for at in worst]
    assert all(each.image is None for each in book.kept())
