# SPDX-License-Identifier: Apache-2.0
"""Weights whose levels stand in the table: what they are, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest

import neon8
from neon8.compile.lower import lower
from neon8.compile.oracle import run
from neon8.errors import CompileError
from neon8.operators.convolution import Conv2dF32Op
from neon8.quant.weights import neighbours
from neon8.rewrite.rounding import moved, packed, rounded
from onnx_nets import net, node, save

F = np.float32
RNG = np.random.default_rng(3)


def test_neighbours():
    scales = np.array([0.5, 2.0])
    real = [[0.0, 0.3, 0.5, 1.5, -0.7, 3.0, -3.0, 127.4, 126.6, -126.8, 300.0]]
    weight = (np.array(real * 2) * scales[:, None]).astype(F)
    nearest, other, exact = neighbours(weight, scales)
    for row in range(2):
        assert nearest[row].tolist() == [0, 0, 0, 2, -1, 3, -3, 127, 127, -127, 127]
        assert other[row].tolist() == [0, 1, 1, 1, 0, 2, -2, 127, 126, -126, 127]
    np.testing.assert_allclose(exact, real * 2, rtol=1e-6)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A path and its table: 3x3, depthwise, transposed, and a matrix of floats out."""
    weights = {
        "w": RNG.normal(size=(4, 2, 3, 3)).astype(F),
        "d": RNG.normal(size=(4, 1, 3, 3)).astype(F),
        "t": RNG.normal(size=(4, 3, 2, 2)).astype(F),
        "m": RNG.normal(size=(3, 5)).astype(F),
    }
    nodes = [
        node("Conv", "x w", "a", "a", pads=[1] * 4),
        node("Relu", "a", "r"),
        node("Conv", "r d", "b", "b", group=4, pads=[1] * 4),
        node("ConvTranspose", "b t", "c", "c", strides=[2, 2]),
        node("GlobalAveragePool", "c", "g"),
        node("Flatten", "g", "f"),
        node("MatMul", "f m", "y", "m"),
    ]
    model = net(nodes, {"x": (1, 2, 5, 5)}, "y", weights)
    path = save(tmp_path_factory.mktemp("rounding"), model)
    return path, neon8.calibrate_model(path, iter(samples(8)))


def samples(count):
    return np.random.default_rng(1).normal(size=(count, 1, 2, 5, 5)).astype(F)


def with_levels(table, chosen):
    """Layer -> which weights take the other neighbour."""
    layers = {
        name: replace(table.layers[name], rounding="chosen", levels=packed(bits))
        for name, bits in chosen.items()
    }
    return replace(table, layers=table.layers | layers)


def some(graph, seed):
    rng = np.random.default_rng(seed)
    return {
        each.name: rng.random(each.weight.shape) < 0.3
        for each in graph.nodes
        if hasattr(each, "weight")
    }


def test_the_program_has_the_levels(made):
    path, table = made
    graph = neon8.load_graph(path)
    chosen = some(graph, 1)
    table = with_levels(table, chosen)
    assert moved(table.layers["a"]) == chosen["a"].sum()
    steps = {op.name: op for op in lower(graph, table).ops if hasattr(op, "weights")}
    for each in graph.nodes:
        if each.name not in chosen or each.transposed:
            continue
        scales = np.array(table.layers[each.name].weight_scales)
        nearest, other, _ = neighbours(each.weight, scales)
        want = np.where(chosen[each.name], other, nearest)
        assert (nearest != want).any()
        assert (steps[each.name].weights.transpose(0, 3, 1, 2) == want).all()
    assert len(steps["c"].weights) == 4 * 3  # its phases, of chosen weights


def test_one_scale_serves_all_channels(made):
    path, table = made
    graph = neon8.load_graph(path)
    entry = table.layers["a"]
    scale = max(entry.weight_scales)
    table = with_levels(table, {"a": some(graph, 2)["a"]})
    one, all_ = (
        replace(table.layers["a"], weight_scales=scales)
        for scales in ((scale,), (scale,) * 4)
    )
    first, second = (
        lower(graph, replace(table, layers=table.layers | {"a": each}))
        for each in (one, all_)
    )
    assert (first.ops[1].weights == second.ops[1].weights).all()


def test_the_file_gives_what_the_definition_says(made, tmp_path):
    """The oracle's bytes, after a way through JSON; and they are others."""
    path, plain = made
    graph = neon8.load_graph(path)
    neon8.save_table(with_levels(plain, some(graph, 3)), tmp_path / "t.json")
    table = neon8.load_table(tmp_path / "t.json")
    data = neon8.compile_model(path, tmp_path / "t.json")
    assert data != neon8.compile_model(path, plain)
    program = lower(graph, table)
    with neon8.Model.from_bytes(data) as model, model.session() as session:
        for sample in samples(3):
            found = session.run({"x": sample})["y"]
            assert found.tobytes() == run(program, {"x": sample})["y"].tobytes()


def test_a_layer_in_float32_has_its_own_weights(made):
    path, table = made
    graph = neon8.load_graph(path)
    table = with_levels(table, some(graph, 6))
    ops = lower(graph, table, keep_float=frozenset("a")).ops
    (op,) = (op for op in ops if isinstance(op, Conv2dF32Op))
    assert (op.values.transpose(0, 3, 1, 2) == graph.nodes[0].weight).all()


def test_no_levels_change_nothing(made):
    path, table = made
    graph = neon8.load_graph(path)
    assert rounded(graph, table) is graph
    nothing = {"a": np.zeros(graph.nodes[0].weight.shape, bool)}
    same = with_levels(table, nothing)
    assert neon8.compile_model(path, same) == neon8.compile_model(path, table)


def test_scales_do_not_grow_for_int16(made):
    """--accumulator-aware would round the weights anew."""
    path, table = made
    table = with_levels(table, some(neon8.load_graph(path), 4))
    plain, aware = (
        neon8.compile_model(path, table, accumulator_aware=each, max_sqnr_loss=99)
        for each in (False, True)
    )
    assert plain == aware


@pytest.mark.parametrize(
    ("levels", "said"),
    [
        (b"\0" * 8, r"bits for 64 levels in the table, but 72 weights; delete"),
        (b"\0" * 10, r"bits for 80 levels in the table, but 72 weights; delete"),
    ],
)
def test_levels_of_another_layer(made, levels, said):
    path, table = made
    entry = replace(table.layers["a"], rounding="chosen", levels=levels)
    with pytest.raises(CompileError, match=said):
        neon8.compile_model(path, replace(table, layers=table.layers | {"a": entry}))


def test_bits_beyond_the_last_weight(made):
    """36 weights have 40 bits; a hand that sets the last ones changes nothing."""
    path, table = made
    levels = packed(np.zeros(36, bool))
    assert len(levels) == 5
    entry = replace(table.layers["b"], rounding="chosen", levels=b"\0\0\0\0\x0f")
    found = replace(table, layers=table.layers | {"b": entry})
    assert neon8.compile_model(path, found) == neon8.compile_model(path, table)


def test_weights_that_come_as_integers(made):
    path, table = made
    graph = neon8.load_graph(path)
    first = replace(graph.nodes[0], weight_scales=np.ones(4, F))
    graph = replace(graph, nodes=(first, *graph.nodes[1:]))
    with pytest.raises(CompileError, match=r"'a': .* integers, which cannot be chosen"):
        rounded(graph, with_levels(table, {"a": np.zeros(72, bool)}))


@pytest.mark.parametrize("rounding", ["chosen", "lattice"])
def test_inspect_counts_them(made, tmp_path, rounding):
    path, table = made
    bits = some(neon8.load_graph(path), 5)["a"]
    table = with_levels(table, {"a": bits})
    entry = replace(table.layers["a"], rounding=rounding)
    table = replace(table, layers={**table.layers, "a": entry})
    neon8.save_table(table, tmp_path / "t.json")
    shown = neon8.inspect_file(tmp_path / "t.json").splitlines()
    (row,) = (line for line in shown if line.split()[:2] == ["a", "x"])
    before = "" if rounding == "chosen" else "lattice, "
    assert f"  {before}{bits.sum()} moved" in row
