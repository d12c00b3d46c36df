# SPDX-License-Identifier: Apache-2.0
"""Factors through functions and products (5c), from the table to the bytes."""

import math
from dataclasses import replace

import numpy as np
import onnxruntime
import pytest

import neon8
from neon8.calibrate.run.reference import Reference
from neon8.compile import oracle
from neon8.compile.lower import lower
from neon8.errors import CompileError
from neon8.evaluate.measure import sqnr_of, squares_of
from neon8.evaluate.network import open_network
from neon8.formats.qdq import write as qdq
from neon8.graph.importer import load
from neon8.operators.arithmetic import Multiply
from neon8.operators.convolution import convolutions
from neon8.operators.factors import MultiplyOp
from neon8.operators.functions import X, call
from neon8.operators.interpolation import InterpolateOp
from neon8.operators.pointwise import Pointwise, TableOp
from neon8.quant.grid import at_bits
from neon8.refine.diagnosis import diagnose_model
from neon8.refine.sensitivity import Meter
from neon8.rewrite.equalization import equalized
from onnx_nets import net, node, save
from small_graphs import conv, graph_of, kinds, with_entries

CHANNELS = 24
SIZES = np.exp2(-(np.arange(CHANNELS) % 9)).astype(np.float32)
"""The sizes of channels, in no order, as SiLU has them in a network trained long."""
GOOD, BAD = 30.0, 22.0
"""dB."""


def gated_net():
    """SiLU, depthwise, SiLU, squeeze and excite, each channel of another size."""
    rng = np.random.default_rng(5)
    shapes = {
        "w0": (CHANNELS, 3, 3, 3),
        "w1": (CHANNELS, 1, 3, 3),
        "w2": (8, CHANNELS, 1, 1),
        "w3": (CHANNELS, 8, 1, 1),
        "w4": (4, CHANNELS, 1, 1),
    }
    weights = {
        name: rng.normal(0, 0.5, s).astype(np.float32) for name, s in shapes.items()
    }
    sizes = SIZES[:, None, None, None]
    weights["w0"] *= 8 * sizes
    weights["w4"] /= SIZES[None, :, None, None]
    nodes = [
        node("Conv", "x w0", "c0", pads=[1] * 4),
        node("Sigmoid", "c0", "h0"),
        node("Mul", "c0 h0", "s0"),
        node("Conv", "s0 w1", "c1", pads=[1] * 4, group=CHANNELS),
        node("Sigmoid", "c1", "h1"),
        node("Mul", "h1 c1", "s1"),
        node("GlobalAveragePool", "s1", "m"),
        node("Conv", "m w2", "c2"),
        node("Relu", "c2", "r"),
        node("Conv", "r w3", "c3"),
        node("HardSigmoid", "c3", "g"),
        node("Mul", "g s1", "p"),
        node("Conv", "p w4", "y"),
    ]
    return net(nodes, {"x": [1, 3, 12, 12]}, "y", weights)


EVERY = ("c0", "s0", "c1", "s1", "m", "g", "p")
"""Tensors that get factors."""


def samples(count):
    rng = np.random.default_rng(9)
    return [rng.normal(0, 1, (1, 3, 12, 12)).astype(np.float32) for _ in range(count)]


def fitted(path, table, data, least=2.0**-12):
    """`table` with the factors that let each channel fill the range of its tensor."""
    graph = load(path)
    run = Reference(path, EVERY)
    found = [run.run({"x": x}) for x in data]
    tensors = dict(table.tensors)
    for name in EVERY:
        values = np.concatenate([each[name] for each in found]).swapaxes(0, 1)
        most = np.abs(values.reshape(CHANNELS, -1)).max(axis=1)
        factors = np.maximum(most / most.max(), least).tolist()
        tensors[name] = replace(
            tensors[name],
            scale=float(np.float32(most.max() / 127)),
            zero_point=0,
            scheme="symmetric",
            factors=tuple(factors),
        )
    # The mean has the factors of what it is of.
    tensors["m"] = replace(tensors["m"], factors=tensors["s1"].factors)
    table = replace(table, tensors=tensors)
    layers = dict(table.layers)
    for layer in convolutions(equalized(graph, table)):
        most = np.abs(layer.weight).reshape(len(layer.weight), -1).max(axis=1)
        scales = (most.astype(np.float64) / 127).astype(np.float32)
        layers[layer.name] = replace(
            layers[layer.name], weight_scales=tuple(scales.astype(float).tolist())
        )
    return replace(table, layers=layers)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The file, its plain table, and one with factors everywhere."""
    path = save(tmp_path_factory.mktemp("factors"), gated_net())
    data = samples(8)
    plain = neon8.calibrate_model(path, data, method="minmax", plain=True)
    return path, plain, fitted(path, plain, data)


def int8_db(path, table):
    """SQNR of the int8 network on the samples, by the oracle."""
    program, run = lower(load(path), table), Reference(path)
    squares = sum(
        squares_of(run.run({"x": x}), oracle.run(program, {"x": x})) for x in samples(8)
    )
    return sqnr_of(squares)


def test_channels_of_all_sizes_cost_nothing(made):
    """Two functions, their inputs and outputs, and a product have factors each."""
    path, plain, table = made
    assert int8_db(path, plain) < BAD
    assert int8_db(path, table) > GOOD
    program = lower(load(path), table)
    tables = [len(op.table) for op in steps_of(program)]
    assert len(tables) == 3
    assert min(tables) > CHANNELS / 3
    (product,) = (op for op in program.ops if isinstance(op, MultiplyOp))
    assert product.scale == 0
    assert len(set(product.multiplier.tolist())) > CHANNELS / 2


def steps_of(program):
    return [op for op in program.ops if isinstance(op, TableOp)]


def test_in_float32_the_factors_stay(made):
    path, _, table = made
    nodes = load(path).nodes
    kept = {n.name for n in nodes if isinstance(n, Pointwise | Multiply)}
    program = lower(load(path), table, keep_float=frozenset(kept))
    assert "Unary" in kinds(program)
    assert "Table" not in kinds(program)
    run = Reference(path)
    squares = sum(
        squares_of(run.run({"x": x}), oracle.run(program, {"x": x})) for x in samples(4)
    )
    assert sqnr_of(squares) > GOOD


def test_qdq_file_computes_the_same(made):
    """But for a step here and there, as of any function."""
    path, _, table = made
    program = lower(load(path), table)
    session = onnxruntime.InferenceSession(qdq.dumps(table, load(path), path))
    squares = sum(
        squares_of(
            oracle.run(program, {"x": x}), {"y": session.run(["y"], {"x": x})[0]}
        )
        for x in samples(4)
    )
    assert sqnr_of(squares) > GOOD + 6


def test_simulation_and_diagnosis_know_them(made):
    path, plain, table = made
    inputs = [{"x": x} for x in samples(8)]
    meter = Meter(open_network(path), table, inputs)
    (simulated,) = meter.sqnr([meter.plain])
    assert abs(simulated - int8_db(path, table)) < 1
    assert min(meter.alone().values()) > GOOD
    bad = {each.name: each for each in diagnose_model(path, plain, samples(4)).tensors}
    good = {each.name: each for each in diagnose_model(path, table, samples(4)).tensors}
    for name in ("s0", "s1", "p"):
        worst = bad[name].channels[0].sqnr_db
        assert good[name].channels[0].sqnr_db > worst + 15
    assert math.isclose(good["s1"].high, bad["s1"].high, rel_tol=0.05)


WIDER = [("c0",), ("s0",), ("c0", "s0"), EVERY]
"""Tensors that get int16."""


def of_int16(table, names):
    """`table` with all these of int16."""
    tensors = {name: at_bits(table.tensors[name], 16) for name in names}
    return replace(table, tensors=table.tensors | tensors)


@pytest.mark.parametrize("names", WIDER, ids="+".join)
def test_of_int16_products_stand_around_the_lines(made, names):
    """No copy of 8 bits is left."""
    path, plain, _ = made
    wide = of_int16(fitted(path, plain, samples(8), 2.0**-8), names)
    program = lower(load(path), wide)
    assert "Requantize" not in kinds(program)
    lines = [op for op in program.ops if isinstance(op, InterpolateOp)]
    assert len(lines) == (3 if names is EVERY else 1)
    assert int8_db(path, wide) > BAD + 5


def test_of_int16_channels_keep_the_steps_of_int8(made):
    """Those 2^-9 as large would have fewer without factors: tables serve them."""
    path, _, table = made
    assert min(table.tensors["c0"].factors) < 2.0**-8
    found = kinds(lower(load(path), of_int16(table, ("c0",))))
    assert "Interpolate" not in found
    assert {"Requantize", "Table"} <= set(found)


SQUARE = Pointwise(name="f", inputs=("a",), output="b", function=call("multiply", X, X))


def steps_with(**factors):
    """The steps of a square between convolutions whose tensors have these."""
    graph = graph_of(conv("a"), SQUARE, conv("y", "b"))
    entries = {name: {"factors": each} for name, each in factors.items()}
    return lower(graph, with_entries(graph, **entries), io="int8").ops


@pytest.mark.parametrize(
    ("given", "indices"),
    [
        ({}, None),
        ({"a": (2.0,) * 4}, None),
        ({"a": (2.0, 1.0, 2.0, 4.0)}, [0, 1, 0, 2]),
        ({"a": (2.0, 1.0, 1.0, 1.0), "b": (4.0, 1.0, 1.0, 1.0)}, None),  # (2 x)^2 / 4
    ],
)
def test_channels_share_tables(given, indices):
    (step,) = (op for op in steps_with(**given) if isinstance(op, TableOp))
    assert (step.indices if indices is None else step.indices.tolist()) == indices
    assert step.table.shape == ((256,) if indices is None else (max(indices) + 1, 256))


def test_too_many_tables():
    channels = 300
    shapes = dict.fromkeys("xaby", (1, channels, 1, 1))
    nodes = (
        conv("a", channels=channels, out=channels, groups=channels),
        SQUARE,
        conv("y", "b", channels=channels, out=channels, groups=channels),
    )
    graph = graph_of(*nodes, shapes=shapes)
    each = tuple(
        np.linspace(0.2, 1, channels).astype(np.float32).astype(float).tolist()
    )
    table = with_entries(graph, a={"factors": each}, b={"scale": 2.0**-5})
    with pytest.raises(CompileError, match=r"'f': needs \d+ tables, of at most 256"):
        lower(graph, table, io="int8")
