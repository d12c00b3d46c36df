# SPDX-License-Identifier: Apache-2.0
"""calibrate(fast=): which inputs and weights change, at what price, and what not."""

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest

import neon8
from neon8.calibrate.fast import fast
from neon8.errors import CompileError, SettingsError
from neon8.ir.groups import never_negative
from neon8.quant.lattice import HALF_REACH, reaches
from neon8.rewrite.rounding import balanced, integers, on_lattice_scales
from onnx_nets import net, node, save

RNG = np.random.default_rng(4)
SHAPE = (1, 8, 9, 9)
SAMPLES = RNG.normal(size=(12, *SHAPE[1:])).astype(np.float32)
ANY_LOSS = 100.0


def weight(*shape):
    return RNG.normal(0, 1 / np.sqrt(np.prod(shape[1:])), shape).astype(np.float32)


def network():
    """a (both signs) -> relu -> b, and c of stride 2 beside it; b -> leaky -> d."""
    weights = {
        "wa": weight(8, 8, 3, 3),
        "wb": weight(16, 8, 3, 3),
        "wc": weight(4, 8, 3, 3),
        "wd": weight(4, 16, 3, 3),
    }
    nodes = [
        node("Conv", "x wa", "s1", "a", pads=[1] * 4),
        node("Relu", "s1", "t1"),
        node("Conv", "t1 wb", "s2", "b", pads=[1] * 4),
        node("LeakyRelu", "s2", "t2", alpha=0.1),
        node("Conv", "t1 wc", "y", "c", strides=[2, 2], pads=[1] * 4),
        node("Conv", "t2 wd", "z", "d", pads=[1] * 4),
    ]
    return net(nodes, {"x": SHAPE}, "y z", weights)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return save(tmp_path_factory.mktemp("fast"), network())


def calibrated(path, limit=None, **options):
    if limit is not None:
        options |= {"fast": True, "max_sqnr_loss": limit}
    seen = neon8.observe_model(path, iter(SAMPLES[:, np.newaxis]))
    return neon8.solve_observation(seen, path, **options)


def test_a_layer_gets_a_range_and_a_lattice(path):
    plain, table = calibrated(path), calibrated(path, ANY_LOSS)
    grids = {n: (t.scheme, t.bits, t.reasons[:1]) for n, t in table.tensors.items()}
    assert plain.tensors["t1"].scheme == "unsigned"
    assert grids["t1"] == ("symmetric", 8, ("fast",))
    assert grids["t2"] == ("asymmetric", 7, ("fast",))  # it has both signs
    assert -64 <= table.tensors["t2"].zero_point <= 63
    found = {name: layer.rounding for name, layer in table.layers.items()}
    # What a reads comes from outside.
    assert found == {"a": "nearest", "b": "lattice", "c": "nearest", "d": "lattice"}
    # c reads the same tensor as b, and so loses as well.
    prices = {name: layer.sqnr_loss for name, layer in table.layers.items()}
    assert prices.pop("a") is None
    assert min(prices.values()) > 1
    others = [name for name in plain.tensors if name not in ("t1", "t2")]
    assert all(table.tensors[name] == plain.tensors[name] for name in others)
    assert table.layers["a"] == plain.layers["a"]


def test_the_price_is_what_the_output_loses(path):
    """The same with the compiled layer: its weights, and its input on the grid."""
    plain, table = calibrated(path), calibrated(path, ANY_LOSS)
    graph = neon8.load_graph(path)
    patches = (
        neon8.observe_model(path, iter(SAMPLES[:, np.newaxis])).layers["b"].patches
    )
    (conv,) = (each for each in graph.nodes if each.name == "b")
    flat = conv.weight.reshape(16, -1).astype(float)
    rows = patches.rows[:, 0].astype(float)
    exact = rows @ flat.T
    exact = np.where(exact < 0, np.float32(0.1) * exact, exact)

    def ratio(scales):
        tensor, layer = scales.tensors["t1"], scales.layers["b"]
        steps = np.array(layer.weight_scales)
        levels = integers(layer, conv.weight, steps).reshape(16, -1)
        codes = np.rint(rows / tensor.scale) + tensor.zero_point
        lowest = -127 if tensor.scheme == "symmetric" else -128
        codes = np.clip(codes, lowest, 127) - tensor.zero_point
        found = (codes * tensor.scale) @ (levels * steps[:, np.newaxis]).T
        found = np.where(found < 0, np.float32(0.1) * found, found)
        return 10 * math.log10(np.square(exact).sum() / np.square(found - exact).sum())

    loss = ratio(plain) - ratio(table)
    assert table.layers["b"].sqnr_loss == pytest.approx(loss, abs=0.006)


def test_errors_cancel_over_a_kernel(path):
    """The best of all points of the lattice within a step, one by one."""
    graph = neon8.load_graph(path)
    (conv,) = (each for each in graph.nodes if each.name == "b")
    plain = calibrated(path).layers["b"]
    entry = on_lattice_scales(conv, plain)
    (found,) = balanced(conv, entry)
    scales = np.array(entry.weight_scales)
    first, levels = (integers(e, conv.weight, scales) for e in (entry, found))
    assert (levels.astype(int).sum(axis=-1) % 2 == 0).all()
    assert reaches(levels).max() <= HALF_REACH
    assert (levels != first).any()
    real = conv.weight.astype(float) / scales[:, None, None, None]
    assert (np.abs(levels - real) < 1).all()

    def price(integers):
        errors = (real - integers).reshape(16, 8, 9)
        return np.square(errors).sum(axis=-1) + np.square(errors.sum(axis=-1))

    assert (price(levels) <= price(first)).all()
    picks = np.array([*itertools.product([0, 1], repeat=9)]).reshape(-1, 3, 3)
    for exact, least in zip(real[0], price(levels)[0], strict=True):
        points = np.floor(exact) + picks
        points = points[(points.sum(axis=-1) % 2 == 0).all(axis=-1)]
        errors = (exact - points).reshape(-1, 9)
        all_of_them = np.square(errors).sum(axis=1) + np.square(errors.sum(axis=1))
        assert least == pytest.approx(all_of_them.min())


def test_nothing_changes_where_it_costs_too_much(path):
    plain, table = calibrated(path), calibrated(path, ANY_LOSS)
    assert calibrated(path, 0.01) == plain
    dearest = max(table.layers[name].sqnr_loss for name in "bcd")
    half = calibrated(path, dearest)  # less than the limit, not as much
    changed = [name for name in "abcd" if half.layers[name] != plain.layers[name]]
    assert changed == (["d"] if dearest != table.layers["d"].sqnr_loss else ["b", "c"])
    assert calibrated(path, dearest + 0.01) == table


@pytest.mark.parametrize("scheme", ["symmetric", "unsigned", "symmetric_with_uint8"])
def test_symmetric_tensors_stay_so(path, scheme):
    plain, table = (calibrated(path, loss, scheme=scheme) for loss in (None, ANY_LOSS))
    assert (table.tensors["t2"].scheme, table.tensors["t2"].bits) == ("symmetric", 7)
    if scheme == "symmetric":
        assert table.tensors["t1"] == plain.tensors["t1"]
        layers = [n for n in plain.layers if table.layers[n] != plain.layers[n]]
        assert layers == ["b", "d"]


def test_the_users_own_range_wins(path):
    own = {"t1": {"scheme": "unsigned"}, "t2": {"scale": 0.05, "zero_point": 100}}
    own = neon8.calibrate.overrides.loads(json.dumps({"tensors": own}))
    plain = calibrated(path, overrides=own)
    assert calibrated(path, ANY_LOSS, overrides=own) == plain


@pytest.mark.parametrize("value", [0, np.nan])
def test_rows_of_zeros_or_nan_say_nothing(path, value):
    observation = neon8.observe_model(path, iter(SAMPLES[:, np.newaxis]))
    table = neon8.solve_observation(observation, scheme="symmetric")
    graph = neon8.load_graph(path)
    assert fast(observation, graph, table, table, limit=ANY_LOSS) != table
    spoilt = {
        name: replace(facts, patches=replace(facts.patches, rows=rows))
        for name, facts in observation.layers.items()
        for rows in [np.full_like(facts.patches.rows, value)]
    }
    observation = replace(observation, layers=spoilt)
    assert fast(observation, graph, table, table, limit=ANY_LOSS) == table


def test_the_file_follows_the_table(path, tmp_path):
    table = calibrated(path, ANY_LOSS)
    neon8.save_table(table, tmp_path / "t.json")
    text = (tmp_path / "t.json").read_text()
    neon8.save_table(calibrated(path, ANY_LOSS), tmp_path / "again.json")
    assert text == (tmp_path / "again.json").read_text()
    assert neon8.load_table(tmp_path / "t.json") == table
    data = neon8.compile_model(path, tmp_path / "t.json")
    assert data == neon8.compile_model(path, table)
    assert data != neon8.compile_model(path, calibrated(path))
    program = neon8.compile.lower.lower(neon8.load_graph(path), table)
    (step,) = (op for op in program.ops if op.name == "b")
    rows = step.weights.transpose(0, 3, 1, 2)
    assert (rows.astype(int).sum(axis=-1) % 2 == 0).all()
    assert reaches(rows).max() <= HALF_REACH
    assert step.winograd == "half"
    with neon8.Model.from_bytes(data) as model:
        forms = {each.name: each.winograd for each in model.steps}
    assert {n: form for n, form in forms.items() if form} == {"b": "half", "d": "half"}
    # ... and its input has 128 codes at most.
    makers = {op.output: (op.lo, op.hi) for op in program.ops if hasattr(op, "lo")}
    assert makers[step.inputs[0]] == (0, 127)
    assert makers["t2"] == (-64, 63)


def test_any_levels_are_rounded_to_the_lattice(path):
    table = calibrated(path, ANY_LOSS)
    count = len(table.layers["b"].levels)
    assert count == 16 * 8 * 9 // 8
    for bits in (b"\x00", b"\xff", b"\x4d"):
        entry = replace(table.layers["b"], levels=bits * count)
        changed = replace(table, layers=table.layers | {"b": entry})
        program = neon8.compile.lower.lower(neon8.load_graph(path), changed)
        (step,) = (op for op in program.ops if op.name == "b")
        assert step.winograd == "half"
    short = replace(table.layers["b"], levels=b"\x00")
    with pytest.raises(CompileError, match=r"has bits for 8 levels .* 1152 weights"):
        neon8.compile_model(path, replace(table, layers={**table.layers, "b": short}))


def test_a_lattice_that_does_not_fit_the_layer(tmp_path):
    nodes = [node("Conv", "x w", "y", "only")]
    model = net(nodes, {"x": (1, 2, 4, 4)}, "y", {"w": weight(2, 2, 1, 1)})
    other = save(tmp_path, model, "other.onnx")
    plain = neon8.calibrate_model(other, iter(RNG.normal(size=(4, 1, 2, 4, 4))))
    entry = replace(plain.layers["only"], rounding="lattice")
    broken = replace(plain, layers={"only": entry})
    with pytest.raises(CompileError, match=r"cannot be .* for rows of three .* delete"):
        neon8.compile_model(other, broken)


def test_sixteen_bits_are_refused_before_anything_runs(path):
    def never():
        raise AssertionError
        yield

    with pytest.raises(SettingsError, match="fast needs activations of 7 or 8 bits"):
        neon8.calibrate_model(path, never(), bits=16, fast=True)


def test_what_is_never_negative(tmp_path):
    constants = {
        "w": np.eye(4, dtype=np.float32).reshape(4, 4, 1, 1),
        "pads": np.array([0, 0, 1, 1, 0, 0, 1, 1]),
        "below": np.float32(-1),
    }
    nodes = [
        node("Conv", "x w", "c", "c"),
        node("Relu", "c", "r"),
        node("LeakyRelu", "x", "leaky"),
        node("MaxPool", "r", "pool", kernel_shape=[2, 2]),
        node("AveragePool", "r", "mean", kernel_shape=[2, 2]),
        node("Concat", "r r", "both", axis=1),
        node("Concat", "r leaky", "mixed", axis=1),
        node("Max", "leaky r", "most"),
        node("Min", "leaky r", "least"),
        node("Pad", "r pads", "zeros"),
        node("Pad", "r pads below", "negative"),
        node("Transpose", "r", "turned", perm=[0, 1, 3, 2]),
        node("Add", "leaky x", "sum"),
        node("Clip", "sum low", "clipped"),
    ]
    outputs = "pool mean both mixed most least zeros negative turned clipped"
    constants["low"] = np.float32(0)
    model = net(nodes, {"x": (1, 4, 6, 6)}, outputs, constants)
    found = never_negative(neon8.load_graph(save(tmp_path, model)))
    assert {"pool", "both", "zeros", "turned", "clipped", "r"} <= found
    others = {"mean", "mixed", "most", "least", "negative", "leaky", "x", "c"}
    assert not found & others
