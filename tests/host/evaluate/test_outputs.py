# SPDX-License-Identifier: Apache-2.0
"""Outputs are told apart by name, whatever their size and order."""

import numpy as np
import pytest

import neon8
from neon8.evaluate.compare import compare
from neon8.pipeline import calibrate
from neon8.refine.diagnosis import diagnose_model
from neon8.runtime.session import SMALL
from onnx_nets import net, node, save
from settings_kits import settings_with

F = np.float32
SHAPE = (3, 40, 40)


def two_outputs(outputs):
    """Scores of 5 classes and the map that they are pooled from, which is large."""
    weight = np.random.default_rng(1).normal(size=(5, 3, 1, 1)).astype(F)
    nodes = [
        node("Conv", "x w", "map", "conv"),
        node("GlobalAveragePool", "map", "pooled"),
        node("Flatten", "pooled", "scores"),
    ]
    return net(nodes, {"x": (1, *SHAPE)}, outputs, {"w": weight})


@pytest.fixture(scope="module")
def images():
    """Pictures of one colour and some noise, so that no class is a near miss."""
    rng = np.random.default_rng(2)
    colours = rng.normal(0, 2, (30, 3, 1, 1))
    return (colours + 0.1 * rng.normal(size=(30, *SHAPE))).astype(F)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return save(tmp_path_factory.mktemp("outputs"), two_outputs("scores map"))


@pytest.fixture(scope="module")
def table(path, images):
    return neon8.calibrate_model(path, images)


def test_a_session_gives_them_in_the_order_of_the_model(path, table, images):
    with neon8.Model.from_bytes(neon8.compile_model(path, table)) as model:
        assert list(model.outputs) == ["scores", "map"]
        sizes = [4 * np.prod(info.shape) for info in model.outputs.values()]
        assert sizes[0] <= SMALL < sizes[1]
        with model.session() as session:
            assert list(session.run({"x": images[:1]})) == ["scores", "map"]


@pytest.mark.parametrize("outputs", ["scores map", "map scores"])
def test_evaluate(path, table, images, tmp_path, outputs):
    """The reference decides which output is classified."""
    neon8.save_model(neon8.compile_model(path, table), tmp_path / "net.n8")
    reference = save(tmp_path, two_outputs(outputs))
    found = neon8.evaluate_model(tmp_path / "net.n8", images, reference=reference)
    assert [each.name for each in found.outputs] == outputs.split()
    assert min(each.sqnr_db for each in found.outputs) > 25
    classified = {each.name for each in found.outputs if each.agreement is not None}
    assert classified == {"scores"}
    assert found.agreement == (100 if outputs == "scores map" else None)


def test_outputs_of_other_names_are_paired_in_order(path, table, images, tmp_path):
    neon8.save_model(neon8.compile_model(path, table), tmp_path / "net.n8")
    renamed = two_outputs("scores map")
    renamed.graph.node[-1].output[0] = renamed.graph.output[0].name = "logits"
    reference = save(tmp_path, renamed)
    found = neon8.evaluate_model(tmp_path / "net.n8", images, reference=reference)
    assert [each.name for each in found.outputs] == ["logits", "map"]
    assert found.agreement == 100


def heads(seed):
    """Two to four outputs in any order: vectors of 5 values, maps of 5 channels."""
    rng = np.random.default_rng(seed)
    nodes, weights, names = [], {}, []
    for each in ("a", "b"):
        weights[f"w_{each}"] = rng.normal(size=(5, 3, 1, 1)).astype(F)
        nodes += [
            node("Conv", f"x w_{each}", f"map_{each}"),
            node("GlobalAveragePool", f"map_{each}", f"pooled_{each}"),
            node("Flatten", f"pooled_{each}", f"vector_{each}"),
        ]
        names += [f"map_{each}", f"vector_{each}"]
    outputs = rng.permutation(names)[: rng.integers(2, 5)]
    return net(nodes, {"x": (1, *SHAPE)}, " ".join(outputs), weights)


@pytest.mark.parametrize("seed", range(4))
def test_several_outputs_of_any_sizes(images, tmp_path, seed):
    """Two of one size are another network's noise where they are mixed up."""
    model = heads(seed)
    outputs = [each.name for each in model.graph.output]
    path = save(tmp_path, model)
    done = calibrate(path, images, settings_with(thorough=True))
    assert min(trial.sqnr_db for trial in done.chosen.trials) > 25
    neon8.save_model(neon8.compile_model(path, done.table), tmp_path / "net.n8")
    found = neon8.evaluate_model(tmp_path / "net.n8", images, reference=path)
    assert [each.name for each in found.outputs] == outputs
    assert min(each.sqnr_db for each in found.outputs) > 25
    observation = neon8.observe_model(path, images)
    rows = compare(observation, path, images, methods=("mse",), schemes=("auto",)).rows
    assert rows[0].result.sqnr_db > 25
    remedies = diagnose_model(path, done.table, images, top=1).remedies
    assert max(each.gain_db for each in remedies if each.gain_db is not None) > 10
