# SPDX-License-Identifier: Apache-2.0
"""Tensors of 9 to 16 bits (24): their ranges, and what they gain."""

from dataclasses import replace

import numpy as np
import pytest

import graph_executor
from neon8.compile import oracle
from neon8.compile.lower import lower
from neon8.errors import CompileError
from neon8.operators.conversion import RequantizeOp
from neon8.operators.convolution import Conv2dOp
from neon8.operators.pooling import Pool
from small_graphs import conv, graph_of, lowered, scale, table_of
from whole_nets import decibels

WIDE = scale(0.5 / 256, bits=16)
POOL = Pool(
    name="pool", inputs=("x",), output="y", kind="min", kernel=(1, 1), pads=(0,) * 4
)


@pytest.mark.parametrize(
    ("entry", "scheme"),
    [
        (scale(2.0**-10, 0, "symmetric", bits=16), (np.float32(32767 / 1024 / 127), 0)),
        (scale(0.25, -2048, "unsigned", bits=12), (np.float32(4095 / 4 / 255), -128)),
        (scale(0.25, 1024, bits=12), (np.float32(4095 / 4 / 255), 63)),
    ],
)
def test_the_copy_covers_the_same_values(entry, scheme):
    prog = lowered(POOL, scales={"x": entry}, io="float")
    copy = prog.tensors[prog.ops[0].output]
    assert (copy.scale, copy.zero_point) == scheme
    wide = lowered(conv("y"), scales={"x": entry}).tensors["x"]
    ends = [
        [float(t.scale) * (q - t.zero_point) for q in (t.lo, t.hi)]
        for t in (wide, copy)
    ]
    assert np.abs(np.subtract(*ends)).max() <= copy.scale


@pytest.mark.parametrize(
    ("entry", "clamp"),
    [
        (WIDE, None),
        (scale(0.25, 0, "symmetric", bits=16), (-32767, 32767)),
        (scale(0.25, 0, "symmetric", bits=9), (-255, 255)),
        (scale(0.25, -2048, "unsigned", bits=12), (-2048, 2047)),
    ],
)
@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_int16_ends(entry, clamp, layout):
    """What comes from outside is clamped to the range that the proof is about."""
    scales = {"x": entry, "y": WIDE}
    prog = lowered(conv("y"), scales=scales, layout=layout)
    for name in ("x", "y"):
        assert prog.tensors[name].dtype == "int16"
    steps = [op for op in prog.ops if isinstance(op, RequantizeOp)]
    assert [(op.lo, op.hi) for op in steps] == ([] if clamp is None else [clamp])
    (op,) = (op for op in prog.ops if isinstance(op, Conv2dOp))
    source = prog.tensors[op.inputs[0]]
    sums = np.abs(op.weights.astype(int)).sum(axis=(1, 2, 3))
    assert op.acc_bound == (sums * max(-source.lo, source.hi) + abs(op.bias)).max()
    if clamp is not None:
        ends = np.iinfo(np.int16)
        given = np.resize(
            np.array([ends.min, ends.max], np.int16), prog.tensors["x"].dims
        )
        inside = given.clip(*clamp)
        outputs = [oracle.run(prog, {"x": x})["y"] for x in (given, inside)]
        assert (outputs[0] == outputs[1]).all()


def test_an_accumulator_that_does_not_fit():
    """At 16 bits; at 15, which the error asks for, it does."""
    shapes = {"x": (1, 600, 1, 1), "y": (1, 4, 1, 1)}
    node = conv("y", channels=600)
    with pytest.raises(CompileError, match=r"'layer_y': channel \d: .* less \"bits\""):
        lowered(node, scales={"x": scale(2**-12, bits=16)}, shapes=shapes, io="float")
    prog = lowered(node, scales={"x": scale(2**-11, bits=15)}, shapes=shapes)
    assert 2**29 < prog.ops[-1].acc_bound < 2**31


def test_what_it_gains():
    """Between layers whose weights and input are exact, 8 bits are 48 dB."""
    rng = np.random.default_rng(5)
    first, second = (
        rng.integers(-127, 128, (4, 4, 3, 3)).astype(np.float32) / 127 for _ in range(2)
    )
    nodes = [conv("h", kernel=3, weight=first), conv("y", "h", kernel=3, weight=second)]
    graph = graph_of(*nodes)
    x = rng.integers(-128, 128, (1, 4, 5, 5)).astype(np.int8)
    real = x.astype(np.float64) / 2
    exact = graph_executor.run(graph, {"x": real})["y"]
    found = {}
    for bits in (8, 12, 16):
        table = table_of(graph, h=scale(8.0 / 2 ** (bits - 8), bits=bits))
        prog = lower(graph, table)
        made = oracle.run(prog, {"x": real.astype(np.float32)})["y"]
        found[bits] = decibels(made, exact)
    assert found[8] < 40
    assert 22 < found[12] - found[8] < 26
    assert 44 < found[16] - found[8] < 52


def test_an_average_that_only_floats_read():
    """Pools whose sums differ by one have results that differ."""
    node = replace(POOL, kind="average", kernel=(5, 5))
    x = np.zeros((1, 4, 5, 5), np.float32)
    x[0, :, 0, 0] = np.arange(4) * 0.5
    prog = lowered(node, shapes={"y": (1, 4, 1, 1)}, io="float")
    result = oracle.run(prog, {"x": x})["y"].reshape(-1)
    assert (result == np.arange(4, dtype=np.float32) * np.float32(0.5 / 25)).all()
