# SPDX-License-Identifier: Apache-2.0
"""calibrate --thorough: what is chosen, what judges it, and what is kept."""

from dataclasses import replace

import numpy as np
import pytest

import neon8
from neon8.calibrate.run.reference import Reference
from neon8.cli.main import main
from neon8.data.few import Kept
from neon8.errors import CompileError, DataError
from neon8.evaluate.measure import Bench, before_softmax
from neon8.evaluate.network import open_network
from neon8.graph.importer import load
from neon8.graph.onnx_file import open_onnx
from neon8.pipeline import calibrate
from neon8.refine.thorough import as_text, best_of, divided
from neon8.rewrite.rounding import moved
from onnx_nets import net, node, save
from quantized_nets import quantized_by_ort
from settings_kits import settings_with

F = np.float32
SHAPE = (1, 4, 6, 6)


def images(count, seed=0):
    """Channels that go together, as those of pictures do."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(count, 1, 1, 6, 6))
    return (common + 0.05 * rng.normal(size=(count, *SHAPE))).astype(F)


def network(*, exact=False):
    """conv, relu, conv, pooled to scores; exact: all weights are -1, 0 or 1."""
    rng = np.random.default_rng(1)

    def weight(*shape):
        if exact:
            return rng.integers(-1, 2, shape).astype(F)
        return rng.normal(size=shape).astype(F)

    weights = {"a": weight(8, 4, 3, 3), "b": weight(64, 8, 3, 3)}
    nodes = [
        node("Conv", "x a", "s", "a", pads=[1] * 4),
        node("Relu", "s", "r"),
        node("Conv", "r b", "t", "b", pads=[1] * 4),
        node("GlobalAveragePool", "t", "p"),
        node("Flatten", "p", "f"),
        node("Softmax", "f", "y", axis=1),
    ]
    return net(nodes, {"x": SHAPE}, "y", weights)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return save(tmp_path_factory.mktemp("thorough"), network())


def refined(path, data):
    done = calibrate(path, data, settings_with(thorough=True))
    return done.table, done.chosen


@pytest.fixture(scope="module")
def made(path):
    """The table and what was found."""
    return refined(path, iter(images(100)))


def test_it_helps_on_samples_that_nobody_saw(path, made):
    table, found = made
    assert [trial.name for trial in found.trials] == [
        *("default", "means", "levels", "levels and means"),
    ]
    assert (found.choosing, found.judging) == (50, 50)
    best = found.best
    assert best.sqnr_db > found.trials[0].sqnr_db + 0.5
    gain = best.sqnr_db - found.trials[0].sqnr_db
    assert table == replace(best.table, reasons=(f"thorough:{gain:+.2f}",))
    assert all(moved(layer) for layer in table.layers.values())
    logits = before_softmax(load(path))
    unseen = [{"x": x} for x in images(200, 9)]
    reference = Reference(open_onnx(path), logits.outputs)
    floats = [reference.run(each) for each in unseen]
    wanted = [{name: each[name] for name in logits.outputs} for each in floats]
    bench = Bench(graph=logits, samples=unseen, wanted=wanted)
    plain, chosen = (bench.measure(t).sqnr_db for t in (found.trials[0].table, table))
    assert chosen > plain + 0.3


def test_the_users_metric_has_its_say(path, made):
    """What gains dB and is sure to lose by the metric is named, and not taken."""

    def noise(wanted, got, _labels):
        logs = [np.log(each["y"] + 1e-30) for each in (wanted, got)]
        return float(np.square(logs[1] - logs[0]).sum())

    settings = settings_with(thorough=True, metric=noise)
    done = calibrate(path, iter(images(100)), settings)
    assert done.table.reasons == ("default",)
    best = [trial.name for trial in made[1].trials].index(made[1].best.name)
    assert done.chosen.ranking.losses[best] == ("noise",)
    assert "sure to lose in" in as_text(done.chosen)
    with pytest.raises(DataError, match="'nowhere' cannot be imported"):
        calibrate(path, unread(), settings_with(thorough=True, metric="nowhere:f"))


def unread():
    """Samples that nobody asks for."""
    raise AssertionError
    yield


def test_int16_keeps_what_its_sums_allow(path):
    """Other levels may add up to more than those that the bits were chosen for."""
    table = neon8.calibrate_model(
        path, images(100), precision={"a": "int16"}, thorough=True
    )
    assert any(entry.rounding == "chosen" for entry in table.layers.values())
    assert table.tensors["r"].bits > 8
    assert neon8.compile_model(path, table)


def test_who_judges_has_not_chosen():
    for count in (0, 1, 2, 7, 16, 39, 40, 63, 100, 130):
        samples = [Kept(f"{number:064x}", {}) for number in range(count)]
        choosing, judging = divided(samples)
        assert not {each.digest for each in choosing} & {e.digest for e in judging}
        assert (len(choosing) > 0) == (len(judging) > 0) == (count > 1)
        if count >= 16:
            assert len(judging) >= max(8, min(count, 100) // 5)
            assert 8 <= len(choosing) <= 50


def test_the_default_stays_where_nothing_helps(tmp_path):
    """Weights that int8 has exactly lose nothing that others could win."""
    path = save(tmp_path, network(exact=True))
    plain = neon8.calibrate_model(path, iter(images(40)))
    samples = [Kept(f"{i:064x}", {"x": each}) for i, each in enumerate(images(40))]
    levels = best_of(open_network(path), plain, samples).trials[2].table
    assert not any(map(moved, levels.layers.values()))
    table, found = refined(path, iter(images(40)))
    assert found.best is found.trials[0]
    assert table == replace(plain, reasons=("default",))


@pytest.mark.parametrize("axes", [[0, 1, 2, 3], [0, 2, 3], [0, 1], [1], [2, 3]])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_layers_whose_outputs_have_any_rank(tmp_path, axes, keepdims):
    """A mean over channels is a convolution, of rank 0 where nothing else is left."""
    weights = {"w": np.random.default_rng(3).normal(size=(8, 4, 3, 3)).astype(F)}
    nodes = [
        node("Conv", "x w", "c", "conv", pads=[1] * 4),
        node("ReduceMean", "c", "m", "mean", axes=axes, keepdims=keepdims),
    ]
    path = save(tmp_path, net(nodes, {"x": SHAPE}, "m c", weights))
    table, found = refined(path, iter(images(20)))
    assert ("mean" in table.layers) == (1 in axes)
    assert len(found.trials) == 4


def test_too_few_samples_choose_nothing(path):
    table, found = refined(path, iter(images(1)))
    assert found.trials == ()
    assert table == neon8.calibrate_model(path, iter(images(1)))
    assert as_text(found).startswith("thorough: nothing to choose, or too few samples")


def test_the_command(path, made, tmp_path, capsys):
    np.savez(tmp_path / "x.npz", x=images(100)[:, 0])
    words = ["calibrate", path, "--data", tmp_path / "x.npz", "--thorough"]
    words = [str(word) for word in (*words, "-o", tmp_path / "t.json")]
    assert main(words) == 0
    out, error = capsys.readouterr()
    assert error == ""
    assert as_text(made[1]) in out
    assert f"  *  {made[1].best.name}" in out
    assert neon8.load_table(tmp_path / "t.json") == made[0]
    assert list(tmp_path.glob("*journal*")) == []
    assert main([*words, "--plain"]) == 2
    said = capsys.readouterr().err
    assert "--thorough and --plain contradict each other" in said


def test_networks_that_cannot_be_chosen(tmp_path):
    other = quantized_by_ort(tmp_path, network(), [{"x": each} for each in images(4)])
    with pytest.raises(CompileError, match="was quantized elsewhere"):
        open_network(other)
    nodes = [node("Det", "x", "y")]
    model = net(nodes, {"x": (1, 4, 4)}, "y", {})
    with pytest.raises(CompileError, match="Det"):
        open_network(save(tmp_path, model))
