# SPDX-License-Identifier: Apache-2.0
"""Lowering: which steps come out for which layers, at the ends and between."""

import dataclasses

import numpy as np
import pytest

from neon8.compile import writer
from neon8.compile.lower import lower
from neon8.errors import CompileError
from neon8.ir.graph import Activation
from neon8.operators.activation import Activate, Prelu
from neon8.operators.arithmetic import Add, Divide, Maximum, Multiply, Subtract, Sum
from neon8.operators.functions import X, call
from neon8.operators.layer_norm import Normalization
from neon8.operators.movement import Concat, Reshape
from neon8.operators.normalization import InstanceNorm
from neon8.operators.pointwise import Pointwise
from neon8.operators.pooling import Pool
from neon8.operators.softmax import Softmax
from neon8.runtime import Model
from small_graphs import ADD, RELU, conv, graph_of, lowered, scale, table_of

LEAKY = Activation(slope=0.5)
ONES = np.ones(4, np.float32)
SLOPES = np.array([0.125, -0.5, 2.0, 0.25], np.float32)
WIDE = scale(0.5 / 256, bits=16)


def layer(kind, inputs="x", output="y", /, **options):
    return kind(name="n", inputs=tuple(inputs.split()), output=output, **options)


def pool(kind, source="x", output="y", *, kernel=(3, 3), pads=(0,) * 4, **options):
    return layer(Pool, source, output, kind=kind, kernel=kernel, pads=pads, **options)


def same(kind, **options):
    """A pool whose output is as large as its input."""
    return pool(kind, pads=(1,) * 4, **options)


TYPES = {"float32": "f", "int8": "8", "int16": "16"}


def steps(program):
    """Each step with the types of its inputs and output: "Quantize f>8"."""
    said = []
    for op in program.ops:
        given, made = (
            "+".join(TYPES[program.tensors[name].dtype] for name in names)
            for names in (op.inputs, (op.output,))
        )
        said.append(f"{type(op).__name__.removesuffix('Op')} {given}>{made}")
    return ", ".join(said)


TWO = conv("h"), conv("y", "h")
LINE = dict.fromkeys("xhpyz", (1, 4, 1, 1))
SOFT = layer(Softmax, "h", "p")
PRELU = layer(Prelu, "h", slopes=SLOPES)
NORM = {"gamma": ONES, "beta": ONES, "epsilon": 1e-5}
FLOAT = {"io": "float"}
FLAT = {"shapes": {"y": (1, 100, 1, 1)}}
MEAN = {"shapes": {"y": (1, 4, 1, 1), "p": (1, 4, 1, 1)}}
ROW = {"shapes": {"b": (5, 5)}, "inputs": ("x", "b")}
PIXEL = {"shapes": {"b": (1, 4, 1, 1)}, "inputs": ("x", "b")}
DROPPED = {"shapes": {"y": (1, 4, 5)}}
JOINED = {"shapes": {"y": (1, 12, 5, 5)}, "inputs": ("a", "b")}
PIECES = {"shapes": {"y": (1, 8, 5, 5)}, "inputs": ("x", "z")}
MANY = {"shapes": {"x": (1, 1, 256, 129), "y": (1, 1, 1, 1)}}
WIDE_X, WIDE_Y = {"scales": {"x": WIDE}}, {"scales": {"y": WIDE}}
WIDE_BOTH = {"scales": {"x": WIDE, "y": WIDE}}
APART = "Conv2d 8>8, Conv2d 8>8, Add 8+8>8"
STEPS = [
    # The ends of a network.
    ([conv("h", activation=RELU), TWO[1]], FLOAT,
     "Quantize f>8, Conv2d 8>8, Conv2d 8>f"),
    ([conv("y")], {}, "Conv2d 8>8"),
    ([conv("y")], {"layout": "nhwc"}, "Permute 8>8, Conv2d 8>8, Permute 8>8"),
    ([*TWO], FLOAT | {"layout": "nhwc"},
     "Permute f>f, Quantize f>8, Conv2d 8>8, Conv2d 8>f, Permute f>f"),
    ([conv("y", activation=RELU)], FLOAT, "Quantize f>8, Conv2d 8>8, Dequantize 8>f"),
    ([conv("y", groups=4)], FLOAT, "Quantize f>8, Conv2d 8>f"),
    ([layer(Add, "x x")], FLOAT, "Quantize f>8, Add 8+8>8, Dequantize 8>f"),
    ([*TWO], FLOAT | {"outputs": ("h", "y")},
     "Quantize f>8, Conv2d 8>8, Dequantize 8>f, Conv2d 8>f"),
    ([*TWO], {"outputs": ("h", "y")}, "Conv2d 8>8, Conv2d 8>8"),
    ([conv("y")], FLOAT | {"inputs": ("x", "z"), "without": ("z",)},
     "Quantize f>8, Conv2d 8>f"),
    # A maximum has the scale of its input, an average may have any.
    ([same("max", activation=RELU)], {}, "Pool 8>8"),
    ([same("max")], {"scales": {"y": scale(0.5, 1)}}, "Pool 8>8, Requantize 8>8"),
    ([same("max")], {"scales": {"y": scale(0.25)}}, "Pool 8>8, Requantize 8>8"),
    ([same("max")], {"scales": {"y": scale(0.5, 0, "symmetric")}},
     "Pool 8>8, Requantize 8>8"),
    ([same("max", activation=LEAKY)], {}, "Pool 8>8, Requantize 8>8"),
    ([same("average")], {"scales": {"x": scale(0.25)}}, "Pool 8>8"),
    ([same("average", activation=LEAKY)], {}, "Pool 8>8, Requantize 8>8"),
    # So has what only moves values.
    ([layer(Concat, "a b a", axis=1)], JOINED | {"scales": {"b": scale(0.25, -9)}},
     "Requantize 8>8, Concat 8+8+8>8"),
    ([layer(Reshape)], FLAT, "Reshape 8>8"),
    ([layer(Reshape)], FLAT | {"scales": {"x": scale(1.0, 1)}},
     "Requantize 8>8, Reshape 8>8"),
    # A softmax is int8 between layers, else float32 of the sums of a layer.
    ([conv("h"), SOFT], FLOAT | {"outputs": ("p",)},
     "Quantize f>8, Conv2d 8>f, Softmax f>f"),
    ([conv("h"), SOFT], {"outputs": ("p",)}, "Conv2d 8>f, Softmax f>f, Quantize f>8"),
    ([conv("h"), SOFT], FLOAT | {"outputs": ("p", "h")},
     "Quantize f>8, Conv2d 8>f, Softmax f>f"),
    ([conv("h"), SOFT], {"outputs": ("p", "h")},
     "Conv2d 8>8, Dequantize 8>f, Softmax f>f, Quantize f>8"),
    ([conv("h", activation=RELU), SOFT], FLOAT | {"outputs": ("p",)},
     "Quantize f>8, Conv2d 8>8, Dequantize 8>f, Softmax f>f"),
    ([conv("h"), SOFT, conv("y", "p")], {}, "Conv2d 8>8, SoftmaxQ 8>8, Conv2d 8>8"),
    ([conv("h"), SOFT, conv("y", "p")], FLOAT | {"outputs": ("y", "p")},
     "Quantize f>8, Conv2d 8>f, Softmax f>f, Quantize f>8, Conv2d 8>f"),
    ([layer(Softmax)], FLOAT, "Softmax f>f"),
    ([layer(Softmax)], {}, "Dequantize 8>f, Softmax f>f, Quantize f>8"),
    ([layer(Softmax, axis=1, flattens=True)], FLOAT,
     "Reshape f>f, Softmax f>f, Reshape f>f"),
    ([layer(Softmax, axis=3, flattens=True)], FLOAT, "Softmax f>f"),
    # What a layer takes in, and what stays a step.
    ([layer(Multiply, "x b")], ROW, "Reshape 8>8, Multiply 8+8>8"),
    ([conv("h"), layer(Add, "h b")], PIXEL, "Conv2d 8>8, Add 8+8>8"),
    ([conv("h"), layer(Multiply, "h b")], PIXEL, "Conv2d 8>8, Multiply 8+8>8"),
    ([conv("h"), layer(Subtract, "h x")], {}, "Conv2d 8+8>8"),
    ([conv("h"), layer(Subtract, "x h")], {}, "Conv2d 8>8, Add 8+8>8"),
    ([conv("h"), PRELU], {}, "Conv2d 8>8"),
    ([conv("h"), PRELU], {"outputs": ("h", "y")}, "Conv2d 8>8, Conv2d 8>8"),
    ([conv("g"), layer(Add, "g x", "h"), PRELU], {}, "Conv2d 8+8>8"),
    ([conv("a"), layer(Add, "a x", "h"), conv("b", "h"), layer(Add, "h b")],
     {"without": ("a", "b")}, "Conv2d 8+8>8, Conv2d 8+8>8"),
    ([conv("a"), conv("b", groups=4), ADD], {}, APART),
    ([conv("a"), conv("b", activation=RELU), ADD], {}, APART),
    ([conv("a"), conv("b"), ADD], {"outputs": ("y", "b")}, APART),
    ([conv("a"), conv("b"), conv("z", "b"), ADD], {"outputs": ("y", "z")},
     f"Conv2d 8>8, {APART}"),
    ([conv("a"), layer(Add, "a a")], {}, "Conv2d 8>8, Add 8+8>8"),
    ([pool("max", kernel=(5, 1))], DROPPED, "Pool 8>8, Reshape 8>8"),
    ([pool("max", kernel=(5, 1), activation=LEAKY)], DROPPED,
     "Pool 8>8, Requantize 8>8, Reshape 8>8"),
    ([conv("h"), layer(Normalization, "h", **NORM), conv("z", "y")],
     FLOAT | {"outputs": ("z",)},
     "Quantize f>8, Conv2d 8>8, Normalization 8>8, Conv2d 8>f"),
    ([conv("h"), layer(Add, "h r", activation=LEAKY)],
     {"inputs": ("x", "r"), "scales": {"r": WIDE, "y": WIDE}}, "Conv2d 8+16>16"),
    # Without int16 (24) of their own, steps read a copy of 8 bits and make one.
    ([layer(Pointwise, function=call("floor", X))], WIDE_BOTH,
     "Requantize 16>8, Table 8>8, Requantize 8>16"),
    ([pool("min", kernel=(1, 1))], WIDE_BOTH,
     "Requantize 16>8, Table 8>8, Pool 8>8, Table 8>8, Requantize 8>16"),
    ([pool("average", kernel=(256, 129))], WIDE_BOTH | MANY,
     "Requantize 16>8, Pool 8>8, Requantize 8>16"),
    # Others are of one type.
    ([layer(Reshape)], WIDE_BOTH, "Reshape 16>16"),
    ([same("max")], WIDE_BOTH, "Pool 16>16"),
    ([layer(Maximum, "x x")], WIDE_BOTH, "Maximum 16+16>16"),
    ([pool("average", kernel=(5, 5))], WIDE_Y | MEAN, "Requantize 8>16, Pool 16>16"),
    ([pool("average", kernel=(5, 5))], WIDE_X | MEAN, "Pool 16>16, Requantize 16>8"),
    ([layer(Concat, "x z", axis=1)], WIDE_BOTH | PIECES,
     "Requantize 8>16, Concat 16+16>16"),
    ([layer(Concat, "x z", axis=1)], WIDE_X | PIECES, "Requantize 16>8, Concat 8+8>8"),
    # An average that only floats read is one, too.
    ([pool("average", kernel=(5, 5), output="p"), layer(Softmax, "p")], FLOAT | MEAN,
     "Quantize f>8, Pool 8>f, Softmax f>f"),
    ([pool("average", kernel=(5, 5), output="p"), layer(Softmax, "p")],
     FLOAT | MEAN | WIDE_X, "Quantize f>16, Pool 16>f, Softmax f>f"),
    ([pool("average", kernel=(5, 5), output="p"), conv("y", "p")], MEAN,
     "Pool 8>8, Conv2d 8>8"),
    ([pool("average", kernel=(5, 5), activation=RELU)], FLOAT | MEAN,
     "Quantize f>8, Pool 8>8, Dequantize 8>f"),
]  # fmt: skip
MIXED = {
    "Conv2d": [conv("y"), conv("y", groups=4), conv("y", activation=LEAKY),
               layer(Prelu, slopes=SLOPES)],
    "Requantize": [layer(Activate, activation=RELU)],
    "Interpolate": [layer(Pointwise, function=call("sigmoid", X))],
    "Add": [layer(Add, "x x")],
    "Multiply": [layer(Multiply, "x x")],
    "Sum": [layer(Sum, "x x x")],
}  # fmt: skip
"""Steps that take int8 or int16, and make int8 or int16."""
for kind, nodes in MIXED.items():
    for node in nodes:
        for options, given, made in (
            (WIDE_BOTH, "16", "16"),
            (WIDE_X, "16", "8"),
            (WIDE_Y, "8", "16"),
        ):
            inputs = "+".join([given] * len(node.inputs))
            STEPS.append(([node], options, f"{kind} {inputs}>{made}"))


@pytest.mark.parametrize(("nodes", "options", "expected"), STEPS)
def test_steps(nodes, options, expected):
    """Which the library opens."""
    shapes = LINE if SOFT in nodes else None
    program = lowered(*nodes, **{"shapes": shapes} | options)
    assert steps(program) == expected
    assert program.inputs == options.get("inputs", program.inputs)
    assert program.outputs == options.get("outputs", program.outputs)
    Model.from_bytes(writer.dumps(program)).close()


@pytest.mark.parametrize(
    "nodes",
    [
        [conv("y", activation=RELU)],
        [conv("a"), conv("b"), dataclasses.replace(ADD, activation=RELU)],
        [layer(Activate, activation=RELU)],
        [layer(Add, "x x", activation=RELU)],
        [layer(InstanceNorm, activation=RELU, **NORM)],
        [layer(Normalization, activation=RELU, **NORM)],
        [same("average", activation=RELU)],
        [same("max", activation=RELU)],
    ],
)
def test_an_activation_is_the_clamp_of_the_last_step(nodes):
    *_, op = lowered(*nodes, scales={"y": scale(0.25, 9)}).ops
    assert (op.lo, op.hi) == (9, 127)


def test_what_has_another_scale_is_rescaled():
    options = JOINED | {"scales": {"b": scale(0.25, -9)}}
    program = lowered(layer(Concat, "a b a", axis=1), **options)
    assert program.ops[0].scale == 0.5
    assert program.ops[1].inputs == ("a", program.ops[0].output, "a")
    (op,) = lowered(conv("h"), layer(Subtract, "h x"), scales={"y": scale(0.25)}).ops
    assert op.residual_scale == -2.0


@pytest.mark.parametrize("before", [[conv("h")], [conv("g"), layer(Add, "g x", "h")]])
def test_a_convolution_takes_the_slopes_in(before):
    (op,) = lowered(*before, PRELU).ops
    assert op.slopes.tolist() == SLOPES.tolist()


def test_names_stay_unique():
    prog = lowered(conv("x_int8"), conv("y", "x_int8"), io="float")
    assert prog.ops[0].output not in {"x", "x_int8", "y"}
    assert prog.ops[1].output == "x_int8"


def test_ends_that_lie_channels_last_have_their_shape():
    shapes = {"x": (2, 4, 5, 7), "y": (2, 4, 5, 7)}
    program = lowered(conv("y"), layout="nhwc", shapes=shapes)
    assert {program.tensors[name].dims for name in ("x", "y")} == {(2, 5, 7, 4)}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"outputs": ("x", "y")}, "output 'x' is an input as well"),
        ({"outputs": ("y", "y")}, "output 'y' is listed 2 times"),
        ({"inputs": ("x", "x")}, "input 'x' is listed 2 times"),
        ({"outputs": ()}, "has no output"),
        ({"outputs": ("lost",)}, "nothing computes output 'lost'"),
        ({"io": "uint8"}, "io 'uint8' is not one of float, int8"),
        ({"layout": "chwn"}, "layout 'chwn' is not one of nchw, nhwc"),
    ],
)
def test_refused_ends(options, message):
    with pytest.raises(CompileError, match=message):
        lowered(conv("y"), **options)


NEAR, FAR = scale(1e-20), scale(1e20)
SLOPE = 1e30


@pytest.mark.parametrize(
    ("node", "scales", "message"),
    [
        (pool("average", kernel=(3, 3), dilations=(7, 1), pads=(1, 1, 13, 1)), {},
         "layer 'n': a pooling window lies outside"),
        (conv("y", activation=Activation(slope=SLOPE)), {}, "leaky slope 1e"),
        (layer(Prelu, slopes=SLOPE * ONES), {}, "leaky slope"),
        (ADD, {"a": NEAR, "y": FAR}, "layer 'add': scale 1e-20 .* too far from"),
        (layer(Multiply, "a b"), {"a": NEAR, "b": NEAR, "y": FAR}, "too far from"),
        (layer(Divide, "a b"), {"a": NEAR, "b": FAR, "y": FAR}, "too far from"),
    ],
)  # fmt: skip
def test_refused_layers(node, scales, message):
    inputs = tuple(dict.fromkeys(node.inputs))
    with pytest.raises(CompileError, match=message):
        lowered(node, inputs=inputs, scales=scales)


def test_the_same_every_time():
    nodes = (conv("a"), conv("b", kernel=3, activation=RELU), ADD)
    graph = graph_of(*nodes)
    table = table_of(graph)
    first = writer.dumps(lower(graph, table))
    backwards = dict(reversed(table.tensors.items()))
    table = dataclasses.replace(table, tensors=backwards)
    assert writer.dumps(lower(graph, table)) == first
