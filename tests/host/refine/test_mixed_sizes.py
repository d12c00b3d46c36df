# SPDX-License-Identifier: Apache-2.0
"""What tries tables on samples takes samples of several sizes, each at its own."""

import numpy as np
import pytest

import neon8
import open_nets
from neon8.calibrate.run import shaped
from neon8.data.few import Kept
from neon8.errors import CompileError
from neon8.evaluate.compare import compare
from neon8.evaluate.measure import MixedBench, by_shape
from neon8.evaluate.network import bench_of, logits_of, open_network
from neon8.profile.profile import timer
from neon8.quant import table_json
from neon8.refine import budget, thorough
from neon8.refine.faster import made_faster
from neon8.settings.shapes import shape
from neon8.settings.stages import DEFAULTS, ProfileSettings, RefineSettings
from onnx_nets import save

BOUNDS = {"x": (1, 3, "16..64:4", "16..64:4")}
SIZES = [(16, 16), (32, 20), (24, 48), (32, 20), (20, 32), (32, 20)]


def samples_of(count, seed=1):
    chance = np.random.default_rng(seed)
    return [
        chance.normal(0, 1, (1, 3, *SIZES[at % len(SIZES)])).astype("f4")
        for at in range(count)
    ]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A network, what was observed, and its table."""
    path = save(tmp_path_factory.mktemp("mixed"), open_nets.unet())
    observation = neon8.observe_model(path, samples_of(12), shapes=BOUNDS)
    return path, observation, neon8.solve_observation(observation, path)


def kept(samples):
    return tuple(Kept(f"{at:064x}", {"x": x}) for at, x in enumerate(samples))


def network_of(path, table):
    given = dict([shape("x=1,3,16..64:4,16..64:4")])
    return open_network(path, shapes=given, usual=table.shapes)


def test_a_bench_measures_each_sample_at_its_size(made):
    path, _, table = made
    samples = [{"x": x} for x in samples_of(7)]
    network = network_of(path, table)
    wanted = logits_of(network, samples)
    bench = bench_of(network, samples, DEFAULTS.judge)
    assert isinstance(bench, MixedBench)
    together = bench.measure(table)
    costs = []
    for at, (sample, want) in enumerate(zip(samples, wanted, strict=True)):
        alone = open_network(path, shapes={"x": sample["x"].shape})
        one = bench_of(alone, [sample], DEFAULTS.judge, wanted=[want]).measure(table)
        np.testing.assert_array_equal(together.squares[at], one.squares[0])
        costs.append(one.cost)
    assert together.cost == bench.cost(table) == sum(costs) // len(costs)
    assert len(by_shape(samples)) == 4


def test_compare(made, monkeypatch):
    path, observation, _ = made
    samples = samples_of(8, seed=2)
    found = compare(observation, path, samples, shapes=BOUNDS)
    assert len(found.rows) > 10
    assert all(row.result is not None and row.result.n == 8 for row in found.rows)
    monkeypatch.setattr(shaped, "KEPT", 1)
    again = compare(
        observation, path, samples, shapes=BOUNDS, methods=("mse", "minmax")
    )
    rows = {(row.method, row.scheme): row.result for row in found.rows}
    for row in again.rows:
        assert row.result == rows[row.method, row.scheme]
    table = neon8.solve_observation(observation, path, method="minmax")
    blob = neon8.compile_model(path, table, shapes=BOUNDS)
    file = path.with_name("minmax.n8")
    neon8.save_model(blob, file)
    whole = neon8.evaluate_model(file, samples, reference=path)
    minmax = next(r for r in again.rows if (r.method, r.scheme) == ("minmax", "auto"))
    assert minmax.result.sqnr_db == whole.sqnr_db


def test_diagnose(made):
    path, _, table = made
    samples = samples_of(6, seed=3)
    found = neon8.diagnose_model(path, table, samples, shapes=BOUNDS, top=1)
    assert found.n == len(samples)
    blob = neon8.compile_model(path, table, shapes=BOUNDS)
    neon8.save_model(blob, path.with_name("net.n8"))
    whole = neon8.evaluate_model(path.with_name("net.n8"), samples, reference=path)
    assert found.sqnr_db == pytest.approx(whole.sqnr_db, abs=1e-6)
    assert found.remedies
    assert "--shape x=1,3,16..64:4,16..64:4" in found.remedies[0].how


def test_thorough(made):
    path, _, table = made
    samples = kept(samples_of(60, seed=4))
    network = network_of(path, table)
    found = thorough.best_of(network, table, samples)
    usual = [s for s in samples[:48] if s.inputs["x"].shape == (1, 3, 32, 20)]
    assert (found.choosing, found.judging) == (len(usual), 12)
    assert len(found.trials) == 4
    assert len(found.best.figures.squares) == 12


def test_search(made):
    path, _, table = made
    samples = kept(samples_of(30, seed=5))
    network = network_of(path, table)
    goal = RefineSettings(target_sqnr=45.0)
    found = budget.more_bits(network, table, samples, goal)
    assert found.best.sqnr_db > found.curve[0].sqnr_db + 1


def test_layers_are_made_faster_for_the_mean_time_of_all_sizes(made):
    path, _, table = made
    samples = kept(samples_of(30, seed=5))
    network = network_of(path, table)
    times = timer(ProfileSettings(core="cortex-a55", ghz=1.0))
    goal = RefineSettings(max_ms=1e3)
    found = made_faster(network, table, (), samples, goal, times=times, sparing=False)
    assert found.fastest == pytest.approx(found.steps[0].figures.ms)


def test_calibrate_with_all_of_it_in_any_order(made):
    path, _, _ = made
    samples = samples_of(24, seed=6)
    texts = set()
    for order in (samples, samples[::-1]):
        table = neon8.calibrate_model(
            path, order, shapes=BOUNDS, thorough=True, target_sqnr=40.0
        )
        texts.add(table_json.dumps(table))
    assert len(texts) == 1


def test_what_wants_a_part_of_the_network_wants_one_size(tmp_path):
    b = open_nets.Block()
    b.conv("x", "a", 3, 4)
    b("NonZero", "a", "i")
    b("Cast", "i", "y", to=1)
    path = save(tmp_path, b.model((1, 3, "h", "w")))
    samples = samples_of(4)
    with pytest.raises(CompileError, match="leave bounds out of --shape"):
        neon8.calibrate_model(path, samples, shapes=BOUNDS, thorough=True)
