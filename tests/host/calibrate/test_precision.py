# SPDX-License-Identifier: Apache-2.0
"""Tensors that the user wants as int16 or float32: names, groups, what compiles."""

import json
import logging

import numpy as np
import pytest

import neon8
from neon8.cli.main import main
from neon8.compile.lower import lower
from neon8.errors import CalibrationError, CompileError, SettingsError, TableError
from onnx_nets import net, node, save

F = np.float32


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """x -> conv1 h, relu r, max pool p -> conv2 y and, of 2048 large inputs, conv3 z.

    The model, samples and an observation.
    """
    rng = np.random.default_rng(4)
    folder = tmp_path_factory.mktemp("precision")
    weights = {
        "w1": rng.normal(size=(2048, 3, 1, 1)).astype(F),
        "b1": rng.normal(size=2048).astype(F),
        "w2": rng.normal(size=(4, 2048, 1, 1)).astype(F),
        "w3": rng.uniform(0.9, 1, size=(4, 2048, 1, 1)).astype(F),
    }
    nodes = [
        node("Conv", "x w1 b1", "h", "conv1"),
        node("Relu", "h", "r", "relu1"),
        node("MaxPool", "r", "p", "pool", kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", "p w2", "y", "conv2"),
        node("Conv", "p w3", "z", "conv3"),
    ]
    path = save(folder, net(nodes, {"x": (1, 3, 4, 4)}, "y z", weights))
    samples = rng.normal(size=(20, 3, 4, 4)).astype(F)
    return path, samples, neon8.observe_model(path, list(samples[:, None]))


def solved(made, *, network=True, **options):
    path, _, observation = made
    return neon8.solve_observation(observation, path if network else None, **options)


@pytest.mark.parametrize("name", ["r", "p", "conv1", "pool"])
def test_a_group_gets_the_most_bits(made, name):
    """By any of its tensors or of the layers that make them."""
    table = solved(made, precision={name: "int16"})
    assert {key: e.bits for key, e in table.tensors.items()} == {
        **dict.fromkeys("xyz", 8),
        **dict.fromkeys("rp", 13),
    }
    assert "int16" in table.tensors["p"].reasons
    prog = lower(neon8.load_graph(made[0]), table)
    assert prog.tensors["p"].dtype == "int16"
    before = solved(made).tensors["p"]  # which clips some of it
    assert 24 < before.scale / table.tensors["p"].scale < 33


def test_it_is_what_observe_and_solve_do(made, tmp_path):
    path, samples, _ = made
    precision = {"p": "int16", "x": "float"}
    table = neon8.calibrate_model(
        path, list(samples[:, None]), precision=precision, output=tmp_path / "t"
    )
    assert table == solved(made, precision=precision)
    assert neon8.load_table(tmp_path / "t") == table


def test_weights_of_16_bits(made):
    """A layer that is named, beside int16 for what it reads."""
    table = solved(made, precision={"conv2": "weights16", "r": "int16"})
    assert {n: e.bits for n, e in table.layers.items()} == {
        "conv1": 8,
        "conv2": 16,
        "conv3": 8,
    }
    layer = table.layers["conv2"]
    assert (layer.reasons, layer.bias_correction) == (("weights16",), ())
    assert table.tensors["r"].bits == 13  # as without it
    prog = lower(neon8.load_graph(made[0]), table)
    kinds = {op.name: op.weights.dtype for op in prog.ops if hasattr(op, "weights")}
    assert kinds == {"conv1": np.int8, "conv2": np.int16, "conv3": np.int8}


def test_without_the_network_bits_are_as_asked(made):
    """And the compiler says what is too much for the sums."""
    table = solved(made, network=False, precision={"conv1": "int16"})
    assert table.tensors["p"].bits == 16
    with pytest.raises(CompileError, match=r"'conv3'.* with the network"):
        lower(neon8.load_graph(made[0]), table)
    with pytest.raises(CalibrationError, match="no such tensor or layer"):
        solved(made, network=False, precision={"pool": "int16"})
    with pytest.raises(CalibrationError, match="without the network; give it, too"):
        solved(made, network=False, precision={"conv1": "weights16"})


def test_plain_too(made):
    table = solved(made, plain=True, precision={"r": "int16"})
    assert table.tensors["r"].bits == 13


@pytest.mark.parametrize("bits", [12, 16])
def test_all_tensors(made, bits):
    table = solved(made, bits=bits)
    assert {key: e.bits for key, e in table.tensors.items()} == {
        **dict.fromkeys("xyz", bits),
        **dict.fromkeys("rp", min(bits, 13)),
    }
    assert lower(neon8.load_graph(made[0]), table, io="int8")


def test_float32(made):
    table = solved(made, precision={"conv1": "float"})
    assert [key for key, e in table.tensors.items() if e.float32] == ["r", "p"]
    prog = lower(neon8.load_graph(made[0]), table)
    assert set(prog.islands) == {"conv1", "pool", "conv2", "conv3"}


@pytest.mark.parametrize(
    ("precision", "message"),
    [
        ({"conv9": "int16"}, "int16:conv9: the network has no such .*mean 'conv"),
        ({"relu1": "int16"}, "an activation belongs to the layer before it"),
        ({"q": "float"}, "precision float:q: the network has no such tensor or layer"),
        ({"p": "int16", "conv1": "float"}, "float:conv1: contradicts int16:p"),
        ({"p": "int8"}, "precision: 'int8' is unknown; did you mean 'int16'"),
        ({"conv4": "weights16"}, "no such layer with weights"),
        ({"p": "weights16"}, "weights16:p: the network has no such layer"),
    ],
)
def test_what_cannot_be_meant(made, precision, message):
    with pytest.raises((CalibrationError, SettingsError), match=message):
        solved(made, precision=precision)


def ranges(tmp_path, **entry):
    path = tmp_path / "ranges.json"
    path.write_text(json.dumps({"tensors": {"r": entry}}))
    return path


def test_bits_in_overrides(made, tmp_path):
    for bits, found in ((7, 7), (12, 12), (16, 13)):
        own = ranges(tmp_path, bits=bits, min=0, max=5)
        entry = solved(made, overrides=own).tensors["p"]
        assert entry.bits == found
        assert "override" in entry.reasons
        assert entry.threshold[1] == pytest.approx(5, rel=1e-3)
    own = ranges(tmp_path, min=0, max=5)
    entry = solved(made, overrides=own, precision={"r": "int16"}).tensors["p"]
    assert entry.bits == 13
    assert entry.threshold[1] == pytest.approx(5, rel=1e-3)
    own = ranges(tmp_path, bits=16, scale=0.001, zero_point=-32768)
    assert solved(made, network=False, overrides=own).tensors["p"].scale == F(0.001)
    with pytest.raises(TableError, match="bits: 17 is not a whole number from 7 to 16"):
        solved(made, overrides=ranges(tmp_path, bits=17))


def test_the_command_line(made, tmp_path, capsys):
    path, _, observation = made
    neon8.save_observation(observation, tmp_path / "c")
    command = ["solve", tmp_path / "c", path, "-o", tmp_path / "t"]
    options = ["--precision", "int16:pool", "--precision", "float:x"]
    assert main([*map(str, command), *options]) == 0
    first, *rest = capsys.readouterr().out.splitlines()[-5:]
    assert first.startswith("  precision: 3 tensors with more than 8 bits; those that")
    assert rest == [
        "    tensor  precision",
        "    x       float32",
        "    r       int16 of 13 bits",
        "    p       int16 of 13 bits",
    ]
    for option, message in (
        ("int16", "'int16' is not of the form int16:NAME, float:NAME, weights"),
        ("int8:x", "is not of the form"),
        ("int16:", "is not of the form"),
        ("float:pool", "--precision: 'pool' is given two values"),
        ("int16:poool", "did you mean 'pool'"),
    ):
        assert main([*map(str, command), *options, "--precision", option]) == 2
        assert message in capsys.readouterr().err


def test_nothing_is_logged(made, caplog):
    with caplog.at_level(logging.WARNING, "neon8"):
        solved(made, precision={"r": "int16"})
    assert not [r for r in caplog.records if "int16" in r.message]
