# SPDX-License-Identifier: Apache-2.0
"""Layers whose integers may leave int32 are named, and no others."""

import itertools

import numpy as np
import pytest

import neon8
from neon8.cli.main import main
from neon8.compile.lower import lower
from neon8.compile.whole_numbers import INT32, wrapping
from neon8.graph.importer import load
from neon8.operators.integer import INTEGERS_OF, IntegerOp
from onnx_nets import net, node, save

KINDS = {"int64": 7, "int32": 6, "uint8": 2, "bool": 9}


def calibrated(tmp_path, kind, nodes, weights):
    """A network of integers i, whose "j" becomes real and is added to x."""
    nodes = [*nodes, node("Cast", "j", "r", to=1), node("Add", "x r", "y")]
    weights = {name: np.array(value, np.int64) for name, value in weights.items()}
    inputs = {"x": (1, 4), "i": (1, 4)}
    model = net(nodes, inputs, "y", weights, opset=18, types={"i": KINDS[kind]})
    path = save(tmp_path, model)
    given = {"x": np.ones((1, 4), np.float32), "i": np.ones((1, 4), kind)}
    return path, neon8.calibrate_model(path, [given])


CASES = {
    "sum": ("int64", [node("Add", "i c", "j", "n")], {"c": 1}, {"n"}),
    "product": ("int64", [node("Mul", "i i", "j", "n")], {}, {"n"}),
    "of int32": ("int32", [node("Mul", "i i", "j", "n")], {}, set()),
    "quotient": ("int64", [node("Div", "i c", "j", "n")], {"c": 3}, set()),
    "remainder": (
        "int64",
        [node("Mod", "i c", "k", "m"), node("Mul", "k k", "j", "n")],
        {"c": 1000},
        set(),
    ),
    "clipped": (
        "int64",
        [node("Clip", "i low high", "k", "m"), node("Mul", "k k", "j", "n")],
        {"low": -1000, "high": 1000},
        set(),
    ),
    "clipped too late": (
        "int64",
        [node("Mul", "i i", "k", "m"), node("Clip", "k low high", "j", "n")],
        {"low": -1000, "high": 1000},
        {"m"},
    ),
    "bytes": (
        "uint8",
        [node("Cast", "i", "k", to=7), node("Mul", "k c", "j", "n")],
        {"c": 2**23},
        set(),
    ),
    "large bytes": (
        "uint8",
        [node("Cast", "i", "k", to=7), node("Mul", "k c", "j", "n")],
        {"c": 2**24},
        {"n"},
    ),
    "places": (
        "int64",
        [node("ArgMax", "x", "k", "m", axis=1), node("Mul", "k c", "j", "n")],
        {"c": 2000},
        set(),
    ),
    "places of boxes": (
        "int64",
        [
            node("Reshape", "x box", "b"),
            node("ReduceMax", "b", "s"),
            node("NonMaxSuppression", "b s one", "k", "m"),
            node("Gather", "k two", "g", axis=1),
            node("Mul", "g c", "j", "n"),
        ],
        {"c": 2000, "one": 1, "two": 2, "box": [1, 1, 4]},
        set(),
    ),
    "a condition, moved": (
        "int64",
        [
            node("Greater", "i c", "b", "m"),
            node("Transpose", "b", "t", perm=[1, 0]),
            node("Where", "t high low", "w"),
            node("Reshape", "w shape", "s"),
            node("Mul", "s s", "j", "n"),
        ],
        {"c": 1, "high": 40000, "low": -40000, "shape": [1, 4]},
        set(),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_named(tmp_path, case):
    kind, nodes, weights, layers = CASES[case]
    path, table = calibrated(tmp_path, kind, nodes, weights)
    graph = load(path)
    assert set(wrapping(lower(graph, table), graph)) == layers


def test_compile_says_so_once(tmp_path, capsys):
    kind, nodes, weights, _ = CASES["sum"]
    path, table = calibrated(tmp_path, kind, nodes, weights)
    neon8.save_table(table, tmp_path / "t.json")
    command = ["compile", str(path), "--scales", str(tmp_path / "t.json")]
    assert main([*command, "-o", str(tmp_path / "x.n8")]) == 0
    said = "integers may leave int32 in 'n': they wrap then, where ONNX has 64 bits"
    assert capsys.readouterr().out.count(said) == 1


@pytest.mark.parametrize("function", INTEGERS_OF)
def test_bounds_hold(function):
    """For all pairs of small ranges, by trying every value."""
    op = IntegerOp(name="n", inputs=("a", "b"), output="y", function=function)
    ranges = [(-5, -2), (-3, 4), (0, 0), (0, 6), (2, 7)]
    for first, second in itertools.product(ranges, ranges):
        x, y = (np.arange(low, high + 1) for low, high in (first, second))
        found = INTEGERS_OF[function](x[:, None], y[None])
        low, high = op.bounds((first, second)) or INT32
        if function in ("power", "shift_left"):  # which wrap themselves
            found = found[(found >= 0) & (found < 2**31)]
        assert low <= found.min(initial=low) <= found.max(initial=low) <= high
