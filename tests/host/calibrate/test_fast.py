# SPDX-License-Identifier: Apache-2.0
"""calibrate(fast=): which inputs and weights change, at what price, and what not."""

import math
from dataclasses import replace

import numpy as np
import pytest

import neon8
from neon8.calibrate.fast import fast
from neon8.errors import CalibrationError, CompileError
from neon8.graph.signs import never_negative
from neon8.quant.lattice import HALF_REACH, on_lattice, reaches
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
    return neon8.calibrate_model(path, iter(SAMPLES[:, np.newaxis]), **options)


def test_a_layer_behind_a_relu_gets_both(path):
    plain, table = calibrated(path), calibrated(path, ANY_LOSS)
    assert plain.tensors["t1"].scheme == "unsigned"
    assert table.tensors["t1"].scheme == "symmetric"
    assert table.tensors["t1"].reasons[:1] == ("fast",)
    found = {name: layer.rounding for name, layer in table.layers.items()}
    # The inputs of a and d have both signs.
    assert found == {"a": "nearest", "b": "lattice", "c": "nearest", "d": "nearest"}
    # c reads the same tensor, and so loses as well.
    prices = {name: layer.sqnr_loss for name, layer in table.layers.items()}
    assert [name for name, loss in prices.items() if loss is not None] == ["b", "c"]
    assert prices["b"] > 1
    assert prices["c"] > 1
    others = [name for name in plain.tensors if name != "t1"]
    assert all(table.tensors[name] == plain.tensors[name] for name in others)
    assert all(table.layers[name] == plain.layers[name] for name in ("a", "d"))


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
        if layer.rounding == "lattice":
            levels = on_lattice(conv.weight, steps).reshape(16, -1)
        else:
            levels = np.rint(flat / steps[:, np.newaxis])
        codes = np.rint(rows / tensor.scale) + tensor.zero_point
        lowest = -127 if tensor.scheme == "symmetric" else -128
        codes = np.clip(codes, lowest, 127) - tensor.zero_point
        found = (codes * tensor.scale) @ (levels * steps[:, np.newaxis]).T
        found = np.where(found < 0, np.float32(0.1) * found, found)
        return 10 * math.log10(np.square(exact).sum() / np.square(found - exact).sum())

    loss = ratio(plain) - ratio(table)
    assert table.layers["b"].sqnr_loss == pytest.approx(loss, abs=0.006)


def test_nothing_changes_where_it_costs_too_much(path):
    plain, table = calibrated(path), calibrated(path, ANY_LOSS)
    assert calibrated(path, 0.01) == plain
    dearest = max(table.layers[name].sqnr_loss for name in "bc")
    assert calibrated(path, dearest) == plain  # less than the limit, not as much
    assert calibrated(path, dearest + 0.01) == table


def test_symmetric_tensors_stay_as_they_are(path):
    plain = calibrated(path, scheme="symmetric")
    table = calibrated(path, ANY_LOSS, scheme="symmetric")
    assert table.tensors == plain.tensors
    changed = [
        name for name in plain.layers if table.layers[name] != plain.layers[name]
    ]
    assert changed == ["b"]


def test_the_users_own_range_wins(path):
    own = neon8.calibrate.overrides.loads('{"tensors": {"t1": {"scheme": "unsigned"}}}')
    plain = calibrated(path, overrides=own)
    assert calibrated(path, ANY_LOSS, overrides=own) == plain


def test_what_cannot_be_judged_stays(path):
    observation = neon8.observe_model(
        path, iter(np.zeros_like(SAMPLES[:2, np.newaxis]))
    )
    table = neon8.solve_observation(observation)
    graph = neon8.load_graph(path)
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
    assert {name: form for name, form in forms.items() if form} == {"b": "half"}
    # ... and its input has 128 codes at most.
    (maker,) = (op for op in program.ops if op.output == step.inputs[0])
    assert (maker.lo, maker.hi) == (0, 127)


def test_the_file_gives_what_the_definition_says(path):
    """The oracle's bytes, with weights on the lattice."""
    from neon8.compile.oracle import run

    table = calibrated(path, ANY_LOSS)
    program = neon8.compile.lower.lower(neon8.load_graph(path), table)
    data = neon8.compile_model(path, table)
    with neon8.Model.from_bytes(data) as model, model.session() as session:
        for sample in SAMPLES[:3, np.newaxis]:
            found = session.run({"x": sample})
            for name, expected in run(program, {"x": sample}).items():
                assert found[name].tobytes() == expected.tobytes()


def test_a_lattice_that_does_not_fit_the_layer(tmp_path):
    nodes = [node("Conv", "x w", "y", "only")]
    model = net(nodes, {"x": (1, 2, 4, 4)}, "y", {"w": weight(2, 2, 1, 1)})
    other = save(tmp_path, model, "other.onnx")
    plain = neon8.calibrate_model(other, iter(RNG.normal(size=(4, 1, 2, 4, 4))))
    entry = replace(plain.layers["only"], rounding="lattice")
    broken = replace(plain, layers={"only": entry})
    with pytest.raises(CompileError, match="'only': its weights cannot be rounded to"):
        neon8.compile_model(other, broken)


def test_sixteen_bits_are_refused_before_anything_runs(path):
    def never():
        raise AssertionError
        yield

    with pytest.raises(CalibrationError, match="fast needs activations of 8 bits"):
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
    assert {"pool", "both", "most", "zeros", "turned", "clipped", "r"} <= found
    assert not found & {"mean", "mixed", "least", "negative", "leaky", "x", "c"}
