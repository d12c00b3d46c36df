# SPDX-License-Identifier: Apache-2.0
"""The user's own ranges: what they do, and what is refused."""

import json
import logging
from dataclasses import replace

import numpy as np
import pytest

from neon8 import observe_model
from neon8.calibrate import overrides
from neon8.calibrate.solve import solve
from neon8.calibrate.thresholds.guards import FEWEST_SAMPLES
from neon8.errors import TableError
from neon8.quant import table_json as json_format
from neon8.quant.reasons import MEANINGS, lines, meaning
from neon8.settings.stages import SolveSettings
from onnx_nets import net, node, save
from refusals import refused

F = np.float32
RNG = np.random.default_rng(3)
SHAPE = (1, 3, 12, 12)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """x -> conv1 -> relu r1 -> max pool p1 -> conv2 y; a channel has no weights."""
    weights = {
        "w1": RNG.normal(size=(4, 3, 3, 3)).astype(F),
        "b1": RNG.normal(size=4).astype(F),
        "w2": RNG.normal(size=(5, 4, 1, 1)).astype(F),
    }
    weights["w2"][2] = 0
    nodes = [
        node("Conv", "x w1 b1", "c1", "conv1", pads=[1] * 4),
        node("Relu", "c1", "r1"),
        node("MaxPool", "r1", "p1", kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", "p1 w2", "y", "conv2"),
    ]
    folder = tmp_path_factory.mktemp("overrides")
    return save(folder, net(nodes, {"x": SHAPE}, "y", weights))


@pytest.fixture(scope="module")
def observation(model):
    return observe_model(model, RNG.normal(size=(20, *SHAPE[1:])).astype(F))


def solved(observation, entries, **options):
    own = overrides.loads(json.dumps({"tensors": entries}), source="own.json")
    return solve(observation, None, SolveSettings(overrides=own, **options))


SET = [  # tensor, entry, scheme, threshold
    ("x", {"min": -1, "max": 3}, "asymmetric", (-1, 3)),
    ("x", {"min": -1, "max": 3, "scheme": "symmetric"}, "symmetric", (-3, 3)),
    ("x", {"min": 1, "max": 3}, "unsigned", (0, 3)),
    ("x", {"min": -3, "max": -1}, "asymmetric", (-3, 0)),
    ("x", {"min": 0, "max": 3, "scheme": "unsigned"}, "unsigned", (0, 3)),
    ("x", {"min": 0, "max": 3, "scheme": "asymmetric"}, "asymmetric", (0, 3)),
    ("x", {"threshold": 2}, "symmetric", (-2, 2)),
    ("x", {"threshold": 2, "scheme": "asymmetric"}, "asymmetric", (-2, 2)),
    ("r1", {"threshold": 2}, "unsigned", (0, 2)),
    ("r1", {"threshold": 2, "scheme": "symmetric"}, "symmetric", (-2, 2)),
    ("x", {"scale": 0.5, "zero_point": 0}, "symmetric", (-63.5, 63.5)),
    ("x", {"scale": 0.5, "zero_point": -128}, "unsigned", (0, 127.5)),
    ("x", {"scale": 0.5, "zero_point": 3}, "asymmetric", (-65.5, 62)),
    (
        "x",
        {"scale": 0.5, "zero_point": 0, "scheme": "asymmetric"},
        "asymmetric",
        (-64, 63.5),
    ),
]


@pytest.mark.parametrize(("name", "entry", "scheme", "threshold"), SET)
def test_what_is_set_wins(observation, name, entry, scheme, threshold):
    plain = solve(observation)
    table = solved(observation, {name: entry})
    found = table.tensors[name]
    assert found.scheme == scheme
    # Half a step: the zero point is an integer.
    assert found.threshold == pytest.approx(threshold, abs=found.scale / 2 + 1e-6)
    assert found.reasons == ("override",)
    assert (found.min, found.max) == (plain.tensors[name].min, plain.tensors[name].max)
    assert table.tensors["y"] == plain.tensors["y"]
    assert json_format.loads(json_format.dumps(table)) == table


def test_method_and_scheme_of_one_tensor(observation):
    kinds = {"x": {"method": "minmax"}, "r*": {"scheme": "symmetric"}}
    table = solved(observation, kinds)
    other = solve(observation, None, SolveSettings(method="minmax"))
    assert table.tensors["x"].scale == other.tensors["x"].scale
    assert table.tensors["x"].method == "minmax"
    assert table.tensors["r1"].scheme == "symmetric"
    assert table.tensors["r1"].method is None
    assert table.tensors["y"].reasons == ()


def test_a_group_takes_what_is_set_for_one(observation):
    for name in ("r1", "p1", "p*"):
        table = solved(observation, {name: {"threshold": 2}})
        assert table.tensors["r1"] == table.tensors["p1"]
        assert table.tensors["r1"].threshold[1] == pytest.approx(2)
    same = solved(observation, {"r1": {"threshold": 2}, "p1": {"threshold": 2.0}})
    assert same.tensors["p1"].reasons == ("override",)


def test_a_name_wins_over_patterns(observation):
    entries = {"*": {"threshold": 9}, "p1": {"threshold": 2}}
    for order in (entries, dict(reversed(entries.items()))):
        tensors = solved(observation, order).tensors
        ends = {name: round(tensors[name].threshold[1]) for name in ("x", "r1", "y")}
        assert ends == {"x": 9, "r1": 2, "y": 9}


def test_weights_follow_the_scale_of_the_input(observation):
    """The bias must fit int32 with the user's scale, too."""
    table = solved(observation, {"x": {"scale": 1e-7, "zero_point": 0}})
    assert any(code.startswith("bias:") for code in table.layers["conv1"].reasons)


BAD = {
    "{": (":1: is not JSON",),
    "[]": ('expected an object with "tensors"',),
    '{"tensors": {}, "x": 1}': ('"tensors" and no more',),
    '{"tensors": []}': ("tensors: expected an object",),
    '{"tensors": {"x": 3}}': ("tensor 'x'", "expected an object with min, max"),
    '{"tensors": {"x": {}}}': ("tensor 'x'",),
    '{"tensors": {\n"x": {"treshold": 3}}}': (":2: tensor 'x'", "'treshold'"),
    '{"tensors": {"x": {"min": 0}}}': ("tensor 'x'", "max is missing"),
    '{"tensors": {"x": {"scale": 1}}}': ("zero_point is missing",),
    '{"tensors": {"x": {"zero_point": 1}}}': ("scale is missing",),
    '{"tensors": {"x": {"threshold": 1, "scale": 1, "zero_point": 0}}}': (
        "threshold contradict scale and zero_point",
    ),
    '{"tensors": {"x": {"min": 0, "max": 1, "method": "kl"}}}': (
        "min and max contradict method",
    ),
    '{"tensors": {"x": {"min": 2, "max": 1}}}': ("min 2 is above max 1",),
    '{"tensors": {"x": {"min": 0, "max": 0}}}': ("the range is empty",),
    '{"tensors": {"x": {"min": -1, "max": 1, "scheme": "unsigned"}}}': (
        "min -1 is negative",
    ),
    '{"tensors": {"x": {"min": -3e38, "max": 3e38}}}': ("too large",),
    '{"tensors": {"x": {"min": NaN, "max": 1}}}': ("min: nan is not a number",),
    '{"tensors": {"x": {"threshold": Infinity}}}': ("threshold: inf is too large",),
    '{"tensors": {"x": {"threshold": 1e999}}}': ("tensor 'x'", "too large"),
    '{"tensors": {"x": {"threshold": 0}}}': ("0 is not positive",),
    '{"tensors": {"x": {"threshold": -1}}}': ("-1 is not positive",),
    '{"tensors": {"x": {"threshold": "1"}}}': ("'1' is not a number",),
    '{"tensors": {"x": {"threshold": true}}}': ("True is not a number",),
    '{"tensors": {"x": {"scale": 0, "zero_point": 0}}}': ("a scale is a positive",),
    '{"tensors": {"x": {"scale": 1, "zero_point": 0.5}}}': ("0.5 is not a whole",),
    '{"tensors": {"x": {"scale": 1, "zero_point": 200}}}': (
        "zero_point 200 does not fit asymmetric int8; -128 to 127 does",
    ),
    '{"tensors": {"x": {"scale": 1, "zero_point": 1, "scheme": "symmetric"}}}': (
        "zero_point 1 does not fit symmetric int8; 0 does",
    ),
    '{"tensors": {"x": {"scale": 3e38, "zero_point": 0}}}': ("too large",),
    '{"tensors": {"x": {"scheme": "signed"}}}': ("'signed' is not one of auto",),
    '{"tensors": {"x": {"scheme": ["auto"]}}}': ("is not one of auto",),
    '{"tensors": {"x": {"method": "best"}}}': ("tensor 'x'", "'best' is unknown"),
    '{"tensors": {"x": {"method": 3}}}': ("method: expected a string",),
    '{"tensors": {"x": {"threshold": 1}, "x": {"threshold": 1}}}': ("occurs twice",),
    '{"tensors": {"X1": {"threshold": 1}}}': ("'X1'", "no such tensor"),
    '{"tensors": {"r11": {"threshold": 1}}}': ("did you mean 'r1'?",),
    '{"tensors": {"conv*": {"threshold": 1}}}': ("'conv*'", "fits no tensor"),
    '{"tensors": {"c1": {"threshold": 1}}}': ("'c1'", "no such tensor"),
    '{"tensors": {"r1": {"threshold": 1}, "p1": {"threshold": 2}}}': (
        "tensor 'p1': contradicts own.json:1: tensor 'r1'",
    ),
    '{"tensors": {"r?": {"threshold": 1}, "[pq]1": {"threshold": 2}}}': (
        "'[pq]1': contradicts",
    ),
    '{"tensors": {"x": {"scheme": "unsigned"}}}': ("values down to -", "set min"),
    '{"tensors": {"x": {"threshold": 2, "scheme": "unsigned"}}}': ("values down to",),
    '{"tensors": {"x": {"scale": 1e-30, "zero_point": 0}}}': (
        "'x': the range -1.27e-28 .. 1.27e-28 is not a millionth of the values seen, -",
        "enlarge it",
    ),
    '{"tensors": {"r1": {"min": 0, "max": 1e-9}}}': ("'r1': the range 0 .. 1e-09",),
    '{"tensors": {"x": {"threshold": 1e-9}}}': ("enlarge it",),
}


@pytest.mark.parametrize("text", BAD)
def test_what_is_refused(observation, text):
    with refused(TableError, "own.json:", *BAD[text]):
        own = overrides.loads(text, source="own.json")
        solve(observation, None, SolveSettings(overrides=own))


@pytest.mark.parametrize(
    ("data", "part"), [(None, "cannot be read"), (b"\xff{}", "is not UTF-8")]
)
def test_files_that_cannot_be_read(tmp_path, data, part):
    path = tmp_path / "own.json"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(TableError, match=part):
        overrides.load(path)


def test_a_file(observation, tmp_path):
    path = tmp_path / "own.json"
    path.write_text('{"tensors": {"x": {"threshold": 2}}}')
    table = solve(observation, None, SolveSettings(overrides=overrides.load(path)))
    assert table.tensors["x"].threshold[1] == pytest.approx(2)


def test_every_guard_is_a_code_and_each_kind_a_line_in_the_log(observation, caplog):
    hist = observation.tensors["x"].histogram
    sick = {
        "x": replace(hist, nans=2, infs=1),
        "r1": replace(
            hist, positive=hist.positive * 0, negative=hist.negative * 0,
            minimum=np.inf, maximum=-np.inf, zeros=0,
        ),
    }  # fmt: skip
    tensors = {
        name: replace(tensor, histogram=sick.get(name, tensor.histogram))
        for name, tensor in observation.tensors.items()
    }
    few = replace(
        observation,
        tensors=tensors,
        samples=observation.samples[: FEWEST_SAMPLES - 1],
    )
    with caplog.at_level(logging.WARNING, logger="neon8"):
        table = solved(few, {"y": {"threshold": 2}}, scheme="unsigned")
    assert table.reasons == ("few:samples",)
    assert table.tensors["x"].reasons == ("nonfinite", "signed")
    assert table.tensors["r1"].reasons == table.tensors["p1"].reasons == ("dead",)
    assert (table.tensors["r1"].min, table.tensors["r1"].max) == (0, 0)
    assert table.tensors["y"].reasons == ("override",)
    assert table.layers["conv2"].reasons == ("dead:2",)
    assert [record.message for record in caplog.records] == [
        f"7 samples: few:samples: {MEANINGS['few:samples']}",
        f"tensor 'x': nonfinite: {MEANINGS['nonfinite']}",
        f"tensor 'x': signed: {MEANINGS['signed']}",
        f"2 tensors, 'r1' the first: dead: {MEANINGS['dead']}",
        f"layer 'conv2', 1 of 5 channels: dead: {meaning('dead:2')}",
    ]
    one = next(lines(replace(table, samples=1)))
    assert one.startswith("1 sample: few:samples: ")
    assert json_format.loads(json_format.dumps(table)) == table
