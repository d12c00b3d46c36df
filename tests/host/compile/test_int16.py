# SPDX-License-Identifier: Apache-2.0
"""Tensors of 9 to 16 bits (24): who reads and makes them, and what that gains."""

import numpy as np
import pytest

import graph_executor
from neon8.compile import oracle
from neon8.compile.lower import lower
from neon8.errors import CompileError
from neon8.ir.graph import Activation
from neon8.operators.activation import Activate, Prelu
from neon8.operators.arithmetic import Add, Maximum, Multiply, Sum
from neon8.operators.conversion import RequantizeOp
from neon8.operators.convolution import Conv2dOp
from neon8.operators.functions import X, call
from neon8.operators.movement import Concat, Reshape
from neon8.operators.pointwise import Pointwise
from neon8.operators.pooling import Pool
from neon8.operators.softmax import Softmax
from small_graphs import RELU, conv, graph_of, kinds, lowered, scale, table_of

WIDE = scale(0.5 / 256, bits=16)
LEAKY = Activation(slope=0.1)


def pool(kind, *, source="x", output="y", kernel=(5, 5), **options):
    return Pool(
        name=f"pool_{output}",
        inputs=(source,),
        output=output,
        kind=kind,
        kernel=kernel,
        **options,
    )


def types(prog):
    """Each step: what it is, the types of its inputs and of its output."""
    return [
        (
            type(op).__name__.removesuffix("Op"),
            *(prog.tensors[name].dtype for name in op.inputs),
            prog.tensors[op.output].dtype,
        )
        for op in prog.ops
    ]


IN_PLACE = {
    "conv": conv("y"),
    "depthwise": conv("y", groups=4),
    "leaky conv": conv("y", activation=LEAKY),
    "prelu": Prelu(
        name="p", inputs=("x",), output="y", slopes=np.full(4, 0.1, np.float32)
    ),
    "activate": Activate(name="a", inputs=("x",), output="y", activation=RELU),
    "max": pool("max", kernel=(3, 3), pads=(1, 1, 1, 1)),
    "average": pool("average", kernel=(3, 3), pads=(1, 1, 1, 1)),
    "reshape": Reshape(name="r", inputs=("x",), output="y"),
    "add": Add(name="s", inputs=("x", "x"), output="y"),
    "product": Multiply(name="m", inputs=("x", "x"), output="y"),
    "larger": Maximum(name="l", inputs=("x", "x"), output="y"),
    "sum of three": Sum(name="s", inputs=("x", "x", "x"), output="y"),
    "function": Pointwise(
        name="f", inputs=("x",), output="y", function=call("sigmoid", X)
    ),
}


@pytest.mark.parametrize("node", IN_PLACE.values(), ids=IN_PLACE)
def test_these_take_and_give_int16(node):
    prog = lowered(node, scales={"x": WIDE, "y": WIDE})
    assert {tensor.dtype for tensor in prog.tensors.values()} == {"int16"}
    assert len(prog.ops) == 1
    (op,) = prog.ops
    assert getattr(op, "int16_depth", 2) == 2
    assert getattr(op, "winograd", "") == ""
    assert (prog.tensors["y"].lo, prog.tensors["y"].hi) == (-32768, 32767)


@pytest.mark.parametrize("names", [("x",), ("y",)])
@pytest.mark.parametrize(
    "what",
    [
        *("conv", "depthwise", "prelu", "activate", "add", "function"),
        *("product", "sum of three"),
    ],
)
def test_these_take_one_type_and_give_the_other(what, names):
    prog = lowered(IN_PLACE[what], scales=dict.fromkeys(names, WIDE))
    assert len(prog.ops) == 1
    for name, tensor in prog.tensors.items():
        assert tensor.dtype == ("int16" if name in names else "int8")


COPIES = {
    "function with jumps": Pointwise(
        name="t", inputs=("x",), output="y", function=call("floor", X)
    ),
    "min": pool("min", kernel=(1, 1)),
}


@pytest.mark.parametrize("node", COPIES.values(), ids=COPIES)
def test_these_take_a_copy_of_8_bits_and_give_one(node):
    """One copy, however often it is read."""
    prog = lowered(node, scales={"x": WIDE, "y": WIDE})
    first, *_, last = types(prog)
    assert first == ("Requantize", "int16", "int8")
    assert last == ("Requantize", "int8", "int16")
    assert types(prog).count(first) == 1
    copy = prog.tensors[prog.ops[0].output]
    assert (copy.lo, copy.hi) == (-128, 127)
    assert copy.scale == np.float32(65535 * (0.5 / 256) / 255)


@pytest.mark.parametrize(
    ("entry", "scheme"),
    [
        (scale(2.0**-10, 0, "symmetric", bits=16), (np.float32(32767 / 1024 / 127), 0)),
        (scale(0.25, -2048, "unsigned", bits=12), (np.float32(4095 / 4 / 255), -128)),
        (scale(0.25, 1024, bits=12), (np.float32(4095 / 4 / 255), 63)),
    ],
)
def test_the_copy_covers_the_same_values(entry, scheme):
    node = pool("min", kernel=(1, 1))
    prog = lowered(node, scales={"x": entry}, io="float")
    (copy,) = [t for t in prog.tensors.values() if t.name == prog.ops[0].output]
    assert types(prog)[0] == ("Quantize", "float32", "int8")
    assert (copy.scale, copy.zero_point) == scheme
    wide = lowered(conv("y"), scales={"x": entry}).tensors["x"]
    ends = [
        [float(t.scale) * (q - t.zero_point) for q in (t.lo, t.hi)]
        for t in (wide, copy)
    ]
    assert np.abs(np.subtract(*ends)).max() <= copy.scale


def test_pools_between_the_types():
    """Averages are of one type: int8 is widened exactly, int16 rounded at the end."""
    prog = lowered(pool("average"), scales={"y": WIDE}, shapes={"y": (1, 4, 1, 1)})
    assert types(prog) == [("Requantize", "int8", "int16"), ("Pool", "int16", "int16")]
    assert prog.ops[0].scale == 1
    prog = lowered(pool("average"), scales={"x": WIDE}, shapes={"y": (1, 4, 1, 1)})
    assert types(prog) == [("Pool", "int16", "int16"), ("Requantize", "int16", "int8")]
    assert prog.ops[1].scale == np.float32(1 / 256)


def test_an_average_of_very_many_takes_8_bits():
    shapes = {"x": (1, 1, 256, 129), "y": (1, 1, 1, 1)}
    node = pool("average", kernel=(256, 129))
    prog = lowered(node, scales={"x": WIDE, "y": WIDE}, shapes=shapes)
    assert [kind[-1] for kind in types(prog)] == ["int8", "int8", "int16"]


def test_pieces_of_a_concatenation_become_what_it_is():
    node = Concat(name="c", inputs=("x", "z"), output="y", axis=1)
    shapes = {"y": (1, 8, 5, 5)}
    options = {"inputs": ("x", "z"), "shapes": shapes}
    prog = lowered(node, scales={"x": WIDE, "y": WIDE}, **options)
    assert types(prog) == [
        ("Requantize", "int8", "int16"),
        ("Concat", "int16", "int16", "int16"),
    ]
    prog = lowered(node, scales={"x": WIDE}, **options)
    assert types(prog)[0] == ("Requantize", "int16", "int8")


def test_a_convolution_with_everything():
    """int8 in, an int16 residual, a leaky sum, int16 out."""
    nodes = conv("h"), Add(name="s", inputs=("h", "r"), output="y", activation=LEAKY)
    scales = {"r": WIDE, "y": WIDE}
    prog = lowered(*nodes, inputs=("x", "r"), scales=scales)
    assert types(prog) == [("Conv2d", "int8", "int16", "int16")]
    (op,) = prog.ops
    assert op.residual_scale == 1
    assert op.slopes is not None


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


def sqnr(result, exact):
    noise = np.square(result.astype(np.float64) - exact).sum()
    return 10 * np.log10(np.square(exact).sum() / noise)


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
        found[bits] = sqnr(oracle.run(prog, {"x": real.astype(np.float32)})["y"], exact)
    assert found[8] < 40
    assert 22 < found[12] - found[8] < 26
    assert 44 < found[16] - found[8] < 52


def test_an_average_that_only_floats_read():
    """It is float32: pools whose sums differ by one have results that differ."""
    shapes = {"p": (1, 4, 1, 1), "y": (1, 4, 1, 1)}
    nodes = (
        pool("average", output="p"),
        Softmax(name="s", inputs=("p",), output="y", axis=1),
    )
    for entry, kind in ((scale(), "int8"), (WIDE, "int16")):
        prog = lowered(*nodes, shapes=shapes, scales={"x": entry}, io="float")
        assert types(prog) == [
            ("Quantize", "float32", kind),
            ("Pool", kind, "float32"),
            ("Softmax", "float32", "float32"),
        ]
    x = np.zeros((1, 4, 5, 5), np.float32)
    x[0, :, 0, 0] = np.arange(4) * 0.5
    prog = lowered(nodes[0], shapes=shapes, outputs=("p",), io="float")
    result = oracle.run(prog, {"x": x})["p"].reshape(-1)
    assert (result == np.arange(4, dtype=np.float32) * np.float32(0.5 / 25)).all()


def test_an_average_that_others_read():
    """It is rounded where an integer step reads it, an activation clamps it, or the
    outside wants integers.
    """
    shapes = {"p": (1, 4, 1, 1), "y": (1, 4, 1, 1)}
    nodes = pool("average", output="p"), conv("y", "p")
    assert "float32" not in [kind[-1] for kind in types(lowered(*nodes, shapes=shapes))]
    prog = lowered(pool("average"), shapes=shapes)
    assert kinds(prog) == ["Pool"]
    assert prog.tensors["y"].dtype == "int8"
    prog = lowered(pool("average", activation=RELU), shapes=shapes, io="float")
    assert kinds(prog) == ["Quantize", "Pool", "Dequantize"]
