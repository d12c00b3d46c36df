# SPDX-License-Identifier: Apache-2.0
"""More bits for the tensors that need them, and for no others."""

import json
from dataclasses import replace

import numpy as np
import pytest

from hard_nets import HARD, images
from neon8 import calibrate_model, load_table
from neon8.cli.main import main
from neon8.compile.compiler import compile_model
from neon8.data.few import Kept
from neon8.errors import CompileError, SettingsError
from neon8.evaluate.measure import cost_of
from neon8.evaluate.network import open_network
from neon8.graph.importer import load
from neon8.profile.profile import pricer
from neon8.quant import table_json
from neon8.refine.budget import divided, more_bits
from neon8.refine.curve import as_text, missed
from neon8.runtime import Model
from neon8.settings.stages import ProfileSettings, RefineSettings
from onnx_nets import chain, net, node, save

SAMPLES = images(24)


def found(made, *, price=None, samples=SAMPLES, **goal):
    path, _, table = made
    kept = [Kept(f"{at:064x}", {"x": x[np.newaxis]}) for at, x in enumerate(samples)]
    goal = RefineSettings(**goal)
    return more_bits(open_network(path), table, kept, goal, price=price)


def test_finds_the_one_tensor(hard):
    result = found(hard, target_sqnr=22.0)
    assert result.reached
    assert dict(result.best.chosen) == {HARD: "int16"}
    assert [(step.changed, step.to) for step in result.curve] == [
        ((), ""),
        ((HARD,), "int16"),
    ]
    plain, best = result.curve
    assert plain.cost == 1
    assert 1 < best.cost < 1.5
    assert plain.sqnr_db < 15
    assert best.sqnr_db >= 22.5
    changed = {n for n, e in result.table.tensors.items() if e != hard[2].tensors[n]}
    assert changed == {HARD}
    assert result.table.tensors[HARD].bits == 16
    assert "int16" in result.table.tensors[HARD].reasons


def test_nothing_is_chosen_where_nothing_is_needed(hard):
    result = found(hard, target_sqnr=1.0)
    assert result.reached
    assert result.best.chosen == {}
    assert result.table == hard[2]


def test_out_of_reach(hard):
    result = found(hard, target_sqnr=90.0)
    assert not result.reached
    assert result.best.sqnr_db > 22
    assert result.best.sqnr_db >= max(s.sqnr_db for s in result.curve) - 0.1
    text = missed(result, RefineSettings(target_sqnr=90.0))
    assert text.startswith("90 dB are out of reach: ")
    assert "weights of 8 bits alone leave" in text


@pytest.mark.parametrize(("cost", "chosen"), [(1.0, set()), (1.3, {HARD})])
def test_a_budget(hard, cost, chosen):
    result = found(hard, max_cost=cost)
    assert result.reached
    assert result.best.cost <= cost
    assert all(step.cost <= cost for step in result.curve)
    assert chosen <= set(result.best.chosen)
    if not chosen:
        assert result.table == hard[2]


def test_a_target_that_costs_too_much(hard):
    result = found(hard, target_sqnr=22.0, max_cost=1.001)
    assert not result.reached
    assert "at a cost of up to 1.001" in missed(
        result, RefineSettings(target_sqnr=22, max_cost=1.001)
    )


def test_a_budget_of_milliseconds(hard):
    price = pricer(ProfileSettings(board="rpi3b+"))
    plain, best = found(hard, price=price, target_sqnr=22.0).curve
    fast, slow = plain.figures.ms, best.figures.ms
    assert 0 < fast < slow
    result = found(hard, price=price, max_ms=slow)
    assert HARD in result.best.chosen
    assert all(step.figures.ms <= slow for step in result.curve)
    assert "ms" in as_text(result)
    less = found(hard, price=price, max_ms=(fast + slow) / 2)
    assert HARD not in less.best.chosen
    goal = RefineSettings(max_ms=fast / 2)
    none = found(hard, price=price, max_ms=fast / 2)
    assert not none.reached
    assert "ms are out of reach" in missed(none, goal)
    assert missed(none, goal).endswith("take a smaller network")
    text = missed(replace(none, fastest_ms=fast / 3), goal)
    assert f"and {fast / 3:.3g} whatever it loses; take" in text


def test_milliseconds_take_a_clock():
    with pytest.raises(SettingsError, match="--ghz"):
        pricer(ProfileSettings(core="cortex-a53"))


def test_what_has_more_bits_already_stays(hard):
    wide = found(hard, target_sqnr=22.0).table
    again = found((*hard[:2], wide), target_sqnr=22.0)
    assert again.table == wide
    assert len(again.curve) == 1


def all_kinds(folder):
    """A tensor for int16, one that only a table reads, and weights of many sizes."""
    rng = np.random.default_rng(4)
    weights = {
        name: rng.normal(0, 0.4, (12, 12, 1, 1)).astype(np.float32) for name in "abcd"
    }
    weights["a"][3] *= 60
    weights["b"][:, 3] = 0
    weights["b"][5] *= 300
    weights["c"][:, 5] = 0
    weights["d"][:, 0] *= 40
    nodes = [
        node("Conv", "x a", "p", "first"),
        node("Relu", "p", "q"),
        node("Conv", "q b", "r", "second"),
        node("Sigmoid", "r", "s"),
        node("Conv", "s c", "t", "third"),
        node("Relu", "t", "u"),
        node("Conv", "u d", "y", "fourth"),
    ]
    return save(folder, net(nodes, {"x": [1, 12, 6, 6]}, "y", weights))


def test_predictions_hold_on_samples_that_nobody_saw(tmp_path):
    """For each kind of candidate: what is simulated is what the library gives."""
    path = all_kinds(tmp_path)
    data = np.random.default_rng(6).normal(0, 1, (100, 12, 6, 6)).astype(np.float32)
    table = calibrate_model(path, data, method="minmax", plain=True)
    result = found((path, None, table), samples=data[40:], target_sqnr=41.0)
    predicted = [step for step in result.curve if not np.isnan(step.predicted_db)]
    assert {step.to for step in predicted} == {"", "int16", "float", "weights16"}
    for step in predicted:
        assert step.predicted_db == pytest.approx(step.sqnr_db, abs=0.4)
    assert predicted[-1].sqnr_db > predicted[0].sqnr_db + 10
    # Only a Sigmoid reads r, which is a table of 8 bits.
    assert (result.best.chosen["r"], result.table.tensors["r"].float32) == ("float", 1)


def run(path, folder, *words):
    np.save(folder / "x.npy", images(40))
    data = ["--data", folder / "x.npy", "--method", "minmax", "--plain", *words]
    output = folder / "net.scales.json"
    words = ["calibrate", path, *data, "-o", output]
    return main(list(map(str, words))), output


def test_the_command(hard, tmp_path, capsys):
    status, output = run(
        hard[0], tmp_path, "--target-sqnr", 22, "--curve", tmp_path / "c.json"
    )
    said = capsys.readouterr()
    assert status == 0
    assert said.err == ""
    assert "SQNR dB" in said.out
    curve = json.loads((tmp_path / "c.json").read_text())
    assert (curve["format"], curve["version"]) == ("neon8 precision", 3)
    assert (curve["target_sqnr"], curve["max_cost"], curve["reached"]) == (
        22,
        None,
        True,
    )
    first, last = curve["steps"]
    assert 0 < first["size"] <= last["size"]
    assert (first["groups"], first["chosen"], first["cost"]) == ([], {}, 1.0)
    assert (last["tensors"], last["to"], last["best"]) == ([HARD], "int16", True)
    assert last["sqnr_db"] > 22.5
    assert load_table(output).tensors[HARD].bits == 16


def test_a_missed_target_is_a_status_and_a_warning(hard, tmp_path, capsys, caplog):
    status, output = run(hard[0], tmp_path, "--target-sqnr", 90)
    said = capsys.readouterr()
    assert status == 3
    assert said.err.startswith("neon8: missed: 90 dB are out of reach: ")
    assert len(said.err.splitlines()) == 1
    assert "SQNR dB" in said.out
    table = calibrate_model(
        hard[0], images(40), method="minmax", plain=True, target_sqnr=90
    )
    assert "90 dB are out of reach" in caplog.text
    assert table_json.load(output) == table


def test_a_network_that_does_not_run_is_refused_at_once(tmp_path):
    path = save(tmp_path, chain([("Det", [], {})], [1, 4, 4]))

    def data():
        raise AssertionError
        yield

    with pytest.raises(CompileError, match="Det"):
        calibrate_model(path, data(), target_sqnr=20)


def test_others_measure_than_rank():
    for count, sizes in ((60, (20, 40)), (30, (10, 20)), (24, (8, 16)), (23, (23, 23))):
        samples = [Kept(str(i), {"x": np.array(i)}) for i in range(count)]
        ranking, held = divided(samples)
        assert (len(ranking), len(held)) == sizes
        same = {int(each["x"]) for each in ranking} & {int(each["x"]) for each in held}
        assert len(same) == (0 if count >= 24 else count)


def hard_weights(folder):
    """A layer of which one weight is far larger than those that matter."""
    rng = np.random.default_rng(5)
    first, second = (
        rng.normal(0, 0.4, (8, 8, 1, 1)).astype(np.float32) for _ in range(2)
    )
    second[:, 3] = rng.choice([-100, 100], (8, 1, 1))
    first[3] = 0
    model = net(
        [node("Conv", "x w", "a", "first"), node("Conv", "a v", "y", "second")],
        {"x": [1, 8, 6, 6]},
        "y",
        {"w": first, "v": second},
    )
    path = save(folder, model)
    return path, load(path), calibrate_model(path, images(40), plain=True)


def test_weights_of_16_bits_where_they_lose_most(tmp_path):
    result = found(hard_weights(tmp_path), target_sqnr=30.0)
    assert result.reached
    assert dict(result.best.chosen) == {"weights16:second": "weights16"}
    assert result.tensors["weights16:second"] == ("weights16:second",)
    assert {n: e.bits for n, e in result.table.layers.items()} == {
        "first": 8,
        "second": 16,
    }
    assert 1 < result.best.cost < 1.6


def test_weights_of_16_bits_for_what_they_cost(tmp_path):
    """As the library reckons the compiled network, and not a little more."""
    path, graph, table = made = hard_weights(tmp_path)
    result = found(made, max_cost=1.6)
    assert "weights16:second" in dict(result.best.chosen)
    step = next(s for s in result.curve if s.to == "weights16")
    wide = calibrate_model(
        path, images(40), plain=True, precision={"second": "weights16"}
    )
    before, after = (cost(graph, each) for each in (table, wide))
    assert step.changed == ("weights16:second",)
    assert step.cost == pytest.approx(after / before)
    less = found(made, max_cost=step.cost - 1e-6)
    assert "weights16:second" not in dict(less.best.chosen)


def cost(graph, table):
    with Model.from_bytes(compile_model(graph, table)) as model:
        return cost_of(model)
