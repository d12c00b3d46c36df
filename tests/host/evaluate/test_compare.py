# SPDX-License-Identifier: Apache-2.0
"""neon8 compare: methods and schemes on one's own network."""

import json
import shlex

import numpy as np
import onnx
import pytest

from neon8 import observe_model
from neon8.calibrate import calib_file, overrides
from neon8.calibrate.solve import solve
from neon8.cli import main as cli
from neon8.cli.compare import as_json, as_text
from neon8.compile.compiler import compile_model
from neon8.errors import CalibrationError
from neon8.evaluate.compare import compare
from neon8.evaluate.evaluate import evaluate_model
from neon8.evaluate.measure import before_softmax
from neon8.graph.importer import load
from neon8.quant import table_json
from neon8.quant.reasons import guards_of
from neon8.settings.stages import SolveSettings
from onnx_nets import net, node, save

F = np.float32


@pytest.fixture(scope="module")
def calib(tiny, tmp_path_factory):
    path = tmp_path_factory.mktemp("compare") / "tiny.calib"
    with np.load(tiny.data) as data:
        calib_file.save(observe_model(tiny.onnx, data["x"]), path)
    return path


@pytest.fixture(scope="module")
def observation(calib):
    return calib_file.load(calib)


def test_figures_are_those_of_evaluate(tiny, observation, tmp_path):
    found = compare(
        observation,
        tiny.onnx,
        tiny.labelled,
        methods=("mse", "minmax"),
        schemes=("auto", "symmetric"),
    )
    assert len(found.rows) == 4
    for row in found.rows:
        graph = load(tiny.onnx)
        table = solve(
            observation, graph, SolveSettings(method=row.method, scheme=row.scheme)
        )
        path = tmp_path / "one.n8"
        path.write_bytes(compile_model(graph, table))
        alone = evaluate_model(path, tiny.labelled, reference=tiny.onnx)
        assert row.result == alone
        fired = [guards_of(entry.reasons) for entry in table.tensors.values()]
        assert row.guards == sum(map(bool, fired))
    plain = evaluate_model(tiny.onnx, tiny.labelled)
    assert (found.reference.top1, found.reference.n) == (plain.top1, 24)
    values = [row.result.sqnr_db for row in found.rows]
    assert values == sorted(values, reverse=True)


def test_the_same_every_time(tiny, observation):
    some = {"methods": ("mse", "eq"), "schemes": ("auto",), "everything": True}
    (found, text), again = (shown(tiny, observation, **some) for _ in range(2))
    assert (found, text) == again


def test_overrides_take_part(tiny, observation):
    text = '{"tensors": {"image": {"threshold": 0.01}}}'
    own = overrides.loads(text)
    options = {"methods": ("mse",), "schemes": ("auto",)}
    plain = compare(observation, tiny.onnx, tiny.data, **options)
    worse = compare(observation, tiny.onnx, tiny.data, overrides=own, **options)
    assert worse.rows[0].result.sqnr_db < plain.rows[0].result.sqnr_db - 10


def test_what_does_not_compile_is_a_row_too(tiny, observation):
    """A range so small that a multiplier leaves float32's range."""
    text = '{"tensors": {"act1": {"scale": 1e30, "zero_point": -128}}}'
    found = compare(
        observation,
        tiny.onnx,
        tiny.data,
        methods=("mse",),
        schemes=("auto",),
        overrides=overrides.loads(text.replace("1e30", "3e35")),
    )
    (row,) = found.rows
    assert row.result is None
    assert "act1" in row.failure
    assert f"mse, auto: {row.failure}" in as_text(found, str)
    written = json.loads(as_json(found, str))
    (one,) = written["rows"]
    assert (one["method"], one["failure"]) == ("mse", row.failure)
    assert written["advised"] is None


def with_softmax(folder, *, logits_too=False):
    weights = {"w": np.random.default_rng(1).normal(size=(6, 3, 1, 1)).astype(F)}
    nodes = [
        node("Conv", "x w", "c", "conv"),
        node("GlobalAveragePool", "c", "pooled"),
        node("Flatten", "pooled", "logits"),
        node("Softmax", "logits", "y", axis=1),
    ]
    outputs = "y logits" if logits_too else "y"
    return save(folder, net(nodes, {"x": (1, 3, 8, 8)}, outputs, weights))


def test_before_softmax(tmp_path):
    path = with_softmax(tmp_path)
    graph = before_softmax(load(path))
    assert graph.outputs == ("pooled",)  # which the Flatten after it only renames
    assert [type(n).__name__ for n in graph.nodes] == ["Conv2d", "Pool"]
    x = np.random.default_rng(2).normal(size=(30, 3, 8, 8)).astype(F)
    observation = observe_model(path, x)
    found = compare(observation, path, x, methods=("mse",), schemes=("auto",))
    assert 25 < found.rows[0].result.sqnr_db < 70
    both = load(with_softmax(tmp_path, logits_too=True))
    assert before_softmax(both) == both


def test_of_another_model(tiny, observation, tmp_path):
    other = tmp_path / "other.onnx"
    onnx.save(tiny.net(seed=7), other)
    with pytest.raises(CalibrationError, match="is of another model, tiny"):
        compare(observation, other, tiny.data)


def run(capsys, *arguments):
    status = cli.main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return status, out, err


def test_command(tiny, calib, capsys, tmp_path):
    base = ("compare", calib, tiny.onnx, "--data", tiny.labelled)
    some = ("--methods", "mse", "percentile:99:all", "--schemes", "auto", "unsigned")
    status, out, err = run(capsys, *base, *some)
    assert (status, err) == (0, "")
    assert out.splitlines()[-1].startswith(f"  neon8 solve {calib} {tiny.onnx} ")
    assert "top-1 %" in out
    status, out, err = run(capsys, *base, *some, "--all")
    assert len(out.splitlines()) == 2 + 4 + 1 + 2
    status, out, _ = run(capsys, *base, *some, "--limit", 3, "--json")
    found = json.loads(out)
    assert status == 0
    assert [row["n"] for row in found["rows"]] == [3] * 4
    assert found["reference"]["agreement"] == 100
    own = tmp_path / "own.json"
    own.write_text('{"tensors": {"imag": {"threshold": 1}}}')
    status, out, err = run(capsys, *base, "--override", own)
    assert (status, out) == (2, "")
    assert err == (
        f"neon8: error: {own}:1: tensor 'imag': the network has no such tensor; did "
        "you mean 'image'?\n"
    )


def shown(tiny, observation, *, everything=False, **options):
    found = compare(observation, tiny.onnx, tiny.data, **options)
    text = as_text(found, lambda row: f"take {row.method}", everything=everything)
    return found, text.splitlines()


def test_a_clear_winner_is_advised(tiny, observation):
    """1 % of the values say nothing of a range."""
    schemes = {"methods": ("mse", "minmax"), "schemes": ("auto", "symmetric")}
    found, lines = shown(tiny, observation, **schemes)
    assert (found.baseline.method, found.baseline.scheme) == ("mse", "auto")
    assert found.advised.contender
    wide = {"methods": ("percentile:1:all", "mse"), "schemes": ("auto",)}
    found, lines = shown(tiny, observation, **wide)
    assert found.baseline == found.advised  # the default, although it was asked last
    assert not found.rows[-1].contender
    assert found.rows[-1].gain.db < -found.rows[-1].gain.range
    assert "it is sure to be the best of these settings" in lines[-2]
    wide = {"methods": ("percentile:1:all", "minmax"), "schemes": ("auto",)}
    found, lines = shown(tiny, observation, **wide)
    assert found.baseline.method == "percentile:1:all"
    assert (found.advised.method, found.advised.gain.least > 0) == ("minmax", True)
    gain = f"{found.advised.gain.db:+.2f} +- {found.advised.gain.range:.2f} dB"
    over = (
        f"take minmax with scheme auto: {gain} over percentile:1:all with scheme auto"
    )
    assert lines[-2].startswith(over)
    assert lines[-1] == "  take minmax"


def test_the_command_that_takes_it(tiny, calib, capsys, tmp_path, monkeypatch):
    """What compare prints can be run as it is."""
    monkeypatch.chdir(tmp_path)
    own = tmp_path / "a range.json"
    own.write_text('{"tensors": {"image": {"threshold": 1}}}')
    methods = ("--methods", "minmax", "percentile:1:all", "--schemes", "symmetric")
    base = ("compare", calib, tiny.onnx, "--data", tiny.data, "--override", own)
    status, out, _ = run(capsys, *base, *methods)
    command = out.splitlines()[-1].strip()
    assert (status, "a range.json'" in command) == (0, True)
    _, out, _ = run(capsys, *base, *methods, "--json")
    advised = json.loads(out)["advised"]
    assert advised["command"] == command
    assert (advised["method"], advised["scheme"]) == ("minmax", "symmetric")
    program, *words = shlex.split(command)
    assert (program, cli.main(words)) == ("neon8", 0)
    table = table_json.load(tmp_path / f"{tiny.onnx.stem}.scales.json")
    assert (table.method, table.scheme) == ("minmax", "symmetric")
    assert "override" in table.tensors["image"].reasons
