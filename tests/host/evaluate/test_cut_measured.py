# SPDX-License-Identifier: Apache-2.0
"""Networks that are compiled with --cut: the part that neon8 runs is measured."""

import numpy as np
import pytest

import neon8
from cut_nets import NETS, run_by_hand, run_onnx, samples
from neon8.cli.main import main
from neon8.errors import CompileError
from neon8.evaluate.compare import compare
from neon8.evaluate.measure import sqnr_of, squares_of
from neon8.evaluate.network import open_network
from neon8.graph.importer import load
from neon8.graph.part import Parts
from neon8.refine.diagnosis import diagnose_model
from onnx_nets import net, node, save


class Made:
    def __init__(self, folder, model):
        self.onnx = save(folder, model)
        self.graph = load(self.onnx)
        self.samples = samples(self.graph, count=20)
        self.table = neon8.calibrate_model(self.onnx, self.samples)


KINDS = ("front", "tail", "middle-second", "channels-last", "branch", "counted")
"""Parts before, after and on both sides, in another order, and with scalars between."""


@pytest.fixture(scope="module", params=KINDS)
def made(request, tmp_path_factory):
    return Made(tmp_path_factory.mktemp(request.param), NETS[request.param]())


def by_hand(made, table, folder):
    """SQNR in dB at what the .n8 file gives, of the three files and the ONNX file."""
    n8 = folder / "net.n8"
    neon8.compile_model(made.onnx, table, cut=True, output=n8)
    with neon8.Model.open(n8) as model:
        names = list(model.outputs)
    network = open_network(made.onnx)
    whole = Parts(network.file).part(names, made.graph.inputs).model
    total = 0
    for sample in made.samples:
        got = run_by_hand(n8, sample)
        want = run_onnx(whole, sample)
        total = total + squares_of(
            {name: want[name] for name in names}, {name: got[name] for name in names}
        )
    return sqnr_of(total)


def test_diagnose_and_compare_say_what_the_files_by_hand_give(made, tmp_path, caplog):
    want = by_hand(made, made.table, tmp_path)
    found = diagnose_model(made.onnx, made.table, made.samples, top=1)
    assert found.sqnr_db == pytest.approx(want, abs=1e-3)
    (how,) = {r.how.split(" --keep")[0] for r in found.remedies if "keep" in r.how}
    assert how.endswith("--cut")
    observation = neon8.observe_model(made.onnx, made.samples)
    found = compare(
        observation,
        made.onnx,
        made.samples,
        methods=("mse", "minmax"),
        schemes=("auto",),
    )
    (row,) = (row for row in found.rows if row.method == "mse")
    assert row.sqnr_db == pytest.approx(want, abs=1e-3)
    (said,) = {each for each in caplog.messages if "measured is the part" in each}
    assert str(made.onnx) in said


def test_diagnose_tries_the_default_recipe(made):
    """For the part, whose file is there only then."""
    plain = neon8.calibrate_model(made.onnx, made.samples, plain=True)
    found = diagnose_model(made.onnx, plain, made.samples, top=1)
    (recipe,) = (r for r in found.remedies if r.kind == "the default recipe")
    assert recipe.how.startswith(f"neon8 calibrate {made.onnx} --data")
    best = diagnose_model(made.onnx, made.table, made.samples, top=0)
    assert recipe.sqnr_db == pytest.approx(best.sqnr_db, abs=1.5)


def test_a_target_is_reached_by_the_files(made, tmp_path):
    """As the search says it, on samples that are all of them."""
    table = neon8.calibrate_model(made.onnx, made.samples, target_sqnr=55.0)
    assert any(entry.bits > 8 for entry in table.tensors.values())
    assert by_hand(made, table, tmp_path) > by_hand(made, made.table, tmp_path) + 6


def test_thorough_chooses_inside(made):
    table = neon8.calibrate_model(made.onnx, made.samples, thorough=True)
    assert table.reasons[0].partition(":")[0] in ("thorough", "default")
    assert table.tensors.keys() == made.table.tensors.keys()


def test_all_settings_are_measured_at_the_same_tensors(tmp_path):
    """What one table gives factors (5c) is handed on with none."""
    spread = np.geomspace(1, 100, 8, dtype=np.float32)
    rng = np.random.default_rng(1)
    nodes = [
        node("Conv", "x w0", "c", "c1", pads=[1] * 4),
        node("Relu", "c", "a"),
        node("Conv", "a w1", "b", "c2"),
        node("NonZero", "a", "places"),
        node("NonZero", "b", "y"),
    ]
    constants = {
        "w0": rng.normal(0, 0.3, (8, 3, 3, 3)).astype(np.float32)
        * spread.reshape(-1, 1, 1, 1),
        "w1": rng.normal(0, 0.3, (4, 8, 1, 1)).astype(np.float32)
        / spread.reshape(1, -1, 1, 1),
    }
    model = net(nodes, {"x": (1, 3, 8, 8)}, "y places", constants,
                types={"y": 7, "places": 7})  # fmt: skip
    made = Made(tmp_path, model)
    plain = neon8.calibrate_model(made.onnx, made.samples, plain=True)
    network = open_network(made.onnx)
    both = network.runnable(made.table, plain)
    assert both.graph.outputs == network.runnable(made.table).graph.outputs
    for table in (made.table, plain):
        for name in both.graph.outputs:
            assert not table.tensors[name].factors


def test_nothing_is_left_to_measure(tmp_path):
    model = net([node("NonZero", "x", "y", "n")], {"x": (1, 4)}, "y", types={"y": 7})
    path = save(tmp_path, model)
    table = neon8.calibrate_model(path, [np.ones(4, np.float32)])
    for call in (
        lambda: diagnose_model(path, table, [np.ones(4)]),
        lambda: neon8.calibrate_model(path, [np.ones(4)], thorough=True),
    ):
        with pytest.raises(CompileError, match=f"{path}: no part of the network is"):
            call()


def test_the_command_line(tmp_path, capsys):
    made = Made(tmp_path, NETS["front"]())
    table, x, calib = (tmp_path / name for name in ("t.json", "x.npy", "c.calib"))
    neon8.save_table(made.table, table)
    np.save(x, np.concatenate([each["x"] for each in made.samples]))
    for words in (
        ["observe", made.onnx, "--data", x, "-o", calib],
        ["compare", calib, made.onnx, "--data", x, "--methods", "mse"],
        ["diagnose", made.onnx, table, "--data", x],
        ["calibrate", made.onnx, "--data", x, "-o", table, "--max-cost", "1.5"],
    ):
        assert main([str(word) for word in words]) == 0
    assert capsys.readouterr().err.count("measured is the part") == 3
