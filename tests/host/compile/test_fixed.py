# SPDX-License-Identifier: Apache-2.0
"""Requantization in integers (10): the arithmetic of gemmlowp, and its cost."""

import numpy as np
import pytest
from onnxruntime.quantization import QuantFormat, QuantType

import quantized_nets
from neon8.compile import oracle
from neon8.compile.compiler import compile_model
from neon8.compile.lower import lower
from neon8.errors import CompileError
from neon8.ir.program import Tensor
from neon8.operators.convolution import fixed_point, requantize_fixed
from neon8.operators.reference import quantize
from neon8.rewrite.own_scales import load_quantized
from neon8.runtime import Model
from quantized_nets import noise
from small_graphs import RELU, conv, graph_of, kinds, table_of
from table_nets import case, residual

ENDS = (-(2**31), 2**31 - 1)


def gemmlowp(x, m0, n, zero_point, lo, hi):
    """MultiplyByQuantizedMultiplier, with C's division and shifts."""
    x = min(max(x * 2 ** max(-n, 0), ENDS[0]), ENDS[1])
    product = x * m0
    nudge = 2**30 if product >= 0 else 1 - 2**30
    total = product + nudge
    high = abs(total) // 2**31 * (1 if total >= 0 else -1)
    right = max(n, 0)
    mask = (1 << right) - 1
    threshold = (mask >> 1) + (1 if high < 0 else 0)
    rounded = (high >> right) + (1 if (high & mask) > threshold else 0)
    return min(max(rounded + zero_point, lo), hi)


def test_the_oracle_is_gemmlowp():
    rng = np.random.default_rng(0)
    count = 4000
    acc = rng.integers(-(2**31) + 1, 2**31, count) >> rng.integers(0, 31, count)
    m0 = np.where(
        rng.random(count) < 0.4, 2**30, rng.integers(2**30, 2**31, count)
    ).astype(np.int32)
    n = rng.integers(-31, 32, count).astype(np.int32)
    out = Tensor(name="y", dims=(1, count, 1, 1), zero_point=-7)
    fixed = np.stack([m0, n], axis=1)
    found = requantize_fixed(acc.reshape(1, -1, 1, 1), fixed, out, -100, 90)
    for at, value in enumerate(found.ravel()):
        assert value == gemmlowp(int(acc[at]), int(m0[at]), int(n[at]), -7, -100, 90)
    assert len(np.unique(found)) > 50


@pytest.mark.parametrize(
    ("real", "pair"),
    [
        (0.5, (2**30, 0)),
        (1.0, (2**30, -1)),
        (0.75, (3 * 2**29, 0)),
        (0.1, (1717986918, 3)),
        (1 - 2.0**-40, (2**30, -1)),  # rounds up to 1
        (2.0**-32, (2**30, 31)),
        (2.0**-33, (0, 0)),
        (0.0, (0, 0)),
        (2.0**30, (2**30, -31)),
    ],
)
def test_multipliers(real, pair):
    assert fixed_point("c", np.array([real])).tolist() == [list(pair)]


@pytest.mark.parametrize("real", [2.0**31, np.inf, np.nan])
def test_multipliers_that_are_too_large(real):
    with pytest.raises(CompileError, match="layer 'c': channel 0: multiplier"):
        fixed_point("c", np.array([real]))


def both(program, other, samples):
    """The largest difference in steps of int8 outputs, of two programs."""
    worst = 0
    for sample in samples:
        inputs = {
            name: quantize(value, program.tensors[name])
            for name, value in sample.items()
        }
        one, two = (oracle.run(p, inputs) for p in (program, other))
        for name, value in one.items():
            worst = max(worst, np.abs(value.astype(int) - two[name].astype(int)).max())
    return worst


def test_it_is_float_to_a_step_a_layer(tmp_path):
    """On a network with depthwise layers and residual sums, and the library agrees."""
    made = case(tmp_path, residual())
    floats = lower(made.graph, made.table, io="int8")
    fixed = lower(made.graph, made.table, io="int8", requantize="fixed")
    assert both(floats, fixed, made.samples) <= 4
    convolutions = [op for op in fixed.ops if op.operation == "CONV2D"]
    assert all(op.multiplier is None and len(op.inputs) == 1 for op in convolutions)
    assert len(convolutions) == 6
    assert sum(op.operation == "ADD" for op in fixed.ops) == 2
    data = compile_model(made.graph, made.table, requantize="fixed")
    program = lower(made.graph, made.table, requantize="fixed")
    with Model.from_bytes(data, source="x") as model, model.session() as session:
        assert [s.fixed for s in model.steps if s.operation == "conv2d"] == [True] * 6
        for sample in made.samples:
            found, expected = session.run(sample), oracle.run(program, sample)
            for name, value in expected.items():
                assert found[name].tobytes() == value.tobytes()


def test_a_network_of_integers_only(tmp_path):
    """QLinearConv and its likes: within a step of onnxruntime in either way."""
    shape = (1, 3, 16, 16)
    path = quantized_nets.quantized_by_ort(
        tmp_path,
        residual(),
        noise(shape, 6),
        quant_format=QuantFormat.QOperator,
        per_channel=True,
        activation_type=QuantType.QUInt8,
        reduce_range=True,
    )
    graph, table = load_quantized(path)
    program = lower(graph, table, requantize="fixed")
    (name,) = graph.outputs
    step = table.tensors[name].scale
    for sample in noise(shape):
        theirs = quantized_nets.ort(path, sample)[name]
        ours = oracle.run(program, sample)[name]
        assert np.rint(np.abs(ours - theirs) / step).max() <= 1


def test_a_leaky_activation_is_refused():
    graph = graph_of(conv("y", activation=leaky()))
    with pytest.raises(CompileError, match="'layer_y': a leaky activation cannot be"):
        lower(graph, table_of(graph), io="int8", requantize="fixed")


def leaky():
    return type(RELU)(slope=0.1)


def test_another_word():
    graph = graph_of(conv("y"))
    with pytest.raises(CompileError, match="'double' is not one of float, fixed"):
        lower(graph, table_of(graph), requantize="double")


def test_a_last_layer_in_float_is_as_before():
    graph = graph_of(conv("h", activation=RELU), conv("y", "h"))
    program = lower(graph, table_of(graph), requantize="fixed")
    assert kinds(program) == ["Quantize", "Conv2d", "Conv2d"]
    first, last = program.ops[1:]
    assert (first.multiplier is None, last.multiplier is None) == (True, False)
    assert (first.indices is None, last.indices is None) == (False, True)
