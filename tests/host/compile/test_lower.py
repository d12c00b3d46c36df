# SPDX-License-Identifier: Apache-2.0
"""Lowering: which ops come out for which layers, at the ends and between."""

import dataclasses

import pytest

from neon8.compile import writer
from neon8.compile.lower import lower
from neon8.errors import CompileError
from neon8.ir.graph import Activation
from neon8.operators.activation import Activate
from neon8.operators.arithmetic import Add
from neon8.operators.conversion import RequantizeOp
from neon8.operators.movement import Concat, Reshape
from neon8.operators.pooling import Pool
from neon8.operators.softmax import Softmax
from small_graphs import ADD, RELU, conv, graph_of, kinds, lowered, scale, table_of

# Inputs and outputs -------------------------------------------------------------------


def test_float_ends():
    prog = lowered(conv("h", activation=RELU), conv("y", "h"), io="float")
    assert kinds(prog) == ["Quantize", "Conv2d", "Conv2d"]
    assert prog.inputs == ("x",)
    assert prog.outputs == ("y",)
    assert prog.tensors["x"].dtype == "float32"
    assert prog.tensors["y"].dtype == "float32"
    assert prog.tensors[prog.ops[0].output].dtype == "int8"
    assert prog.tensors["h"].dtype == "int8"


def test_int8_ends():
    prog = lowered(conv("y"), scales={"y": scale(0.25, 7)})
    assert kinds(prog) == ["Conv2d"]
    assert {tensor.dtype for tensor in prog.tensors.values()} == {"int8"}
    assert (prog.tensors["y"].scale, prog.tensors["y"].zero_point) == (0.25, 7)


def test_ends_that_lie_channels_last():
    prog = lowered(conv("h"), conv("y", "h"), io="float", layout="nhwc")
    assert kinds(prog) == ["Permute", "Quantize", "Conv2d", "Conv2d", "Permute"]
    assert (prog.inputs, prog.outputs) == (("x",), ("y",))
    plain = lowered(conv("h"), conv("y", "h"), io="float")
    for name in ("x", "y"):
        n, c, h, w = plain.tensors[name].dims
        assert prog.tensors[name].dims == (n, h, w, c)
    prog = lowered(conv("y"), outputs=("y",), layout="nhwc")
    assert kinds(prog) == ["Permute", "Conv2d", "Permute"]
    with pytest.raises(CompileError, match="layout 'chwn' is not one of nchw, nhwc"):
        lowered(conv("y"), layout="chwn")


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (conv("y", activation=RELU), ["Quantize", "Conv2d", "Dequantize"]),
        (conv("y", groups=4), ["Quantize", "Conv2d"]),
        (
            Add(name="a", inputs=("x", "x"), output="y"),
            ["Quantize", "Add", "Dequantize"],
        ),
    ],
)
def test_last_layer_with_float_ends(node, expected):
    assert kinds(lowered(node, io="float")) == expected


def test_output_that_is_read_on():
    nodes = conv("h"), conv("y", "h")
    prog = lowered(*nodes, outputs=("h", "y"), io="float")
    assert kinds(prog) == ["Quantize", "Conv2d", "Dequantize", "Conv2d"]
    assert prog.tensors["h"].dtype == "float32"
    assert prog.ops[3].inputs == prog.ops[2].inputs == (prog.ops[1].output,)
    prog = lowered(*nodes, outputs=("h", "y"))
    assert kinds(prog) == ["Conv2d", "Conv2d"]
    assert prog.ops[1].inputs == ("h",)


def test_names_stay_unique():
    prog = lowered(conv("x_int8"), conv("y", "x_int8"), io="float")
    assert prog.ops[0].output not in {"x", "x_int8", "y"}
    assert prog.ops[1].output == "x_int8"


def test_unused_float_input_needs_no_scale():
    prog = lowered(conv("y"), inputs=("x", "z"), without=("z",), io="float")
    assert prog.inputs == ("x", "z")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"outputs": ("x", "y")}, "output 'x' is an input as well"),
        ({"outputs": ("y", "y")}, "output 'y' is listed 2 times"),
        ({"inputs": ("x", "x")}, "input 'x' is listed 2 times"),
        ({"outputs": ()}, "has no output"),
        ({"outputs": ("lost",)}, "nothing computes output 'lost'"),
        ({"io": "uint8"}, "io 'uint8' is not one of float, int8"),
    ],
)
def test_refused_ends(options, message):
    with pytest.raises(CompileError, match=message):
        lowered(conv("y"), **options)


# The other layers ---------------------------------------------------------------------


def test_lone_activation():
    node = Activate(name="act", inputs=("x",), output="y", activation=RELU)
    prog = lowered(node, scales={"x": scale(0.5, 1), "y": scale(0.25, 2)})
    (op,) = prog.ops
    assert isinstance(op, RequantizeOp)
    assert (op.scale, op.slope, op.lo, op.hi) == (2.0, 1.0, 2, 127)


def pool(kind, activation=RELU, **options):
    return Pool(
        name="pool",
        inputs=("x",),
        output="y",
        kind=kind,
        kernel=(3, 3),
        pads=(1, 1, 1, 1),
        activation=activation,
        **options,
    )


@pytest.mark.parametrize(
    ("node", "x", "expected"),
    [
        (pool("max"), scale(0.5, 1), ["Pool"]),
        (pool("max"), scale(0.5, 2), ["Pool", "Requantize"]),
        (pool("max"), scale(0.25, 1), ["Pool", "Requantize"]),
        (pool("max", Activation(slope=0.5)), scale(0.5, 1), ["Pool", "Requantize"]),
        (pool("average"), scale(0.25, 1), ["Pool"]),
        (pool("average", Activation(slope=0.5)), scale(0.5, 1), ["Pool", "Requantize"]),
    ],
)
def test_pools(node, x, expected):
    prog = lowered(node, scales={"x": x, "y": scale(0.5, 1)})
    assert kinds(prog) == expected
    assert (prog.ops[-1].lo, prog.ops[-1].hi) == (
        (1, 127) if node.activation.lo == 0 else (-128, 127)
    )
    pooled = prog.tensors[prog.ops[0].output]
    if len(expected) == 2:
        assert (pooled.scale, pooled.zero_point) == (x.scale, x.zero_point)
        assert (prog.ops[0].lo, prog.ops[0].hi) == (-128, 127)


def test_symmetric_maximum_never_gives_the_lowest_level():
    """-128 is no level of a symmetric tensor, even where the scales are the same."""
    x, y = scale(0.5), scale(0.5, 0, "symmetric")
    prog = lowered(pool("max", Activation()), scales={"x": x, "y": y})
    assert kinds(prog) == ["Pool", "Requantize"]
    assert prog.ops[1].lo == -127


def test_pool_window_outside_its_input():
    node = dataclasses.replace(pool("average"), dilations=(7, 1), pads=(1, 1, 13, 1))
    with pytest.raises(
        CompileError, match="layer 'pool': a pooling window lies outside"
    ):
        lowered(node)


def test_concat_rescales_what_differs():
    node = Concat(name="join", inputs=("a", "b", "a"), output="y", axis=1)
    shapes = {"y": (1, 12, 5, 5)}
    prog = lowered(
        node, inputs=("a", "b"), shapes=shapes, scales={"b": scale(0.25, -9)}
    )
    assert kinds(prog) == ["Requantize", "Concat"]
    assert prog.ops[0].scale == 0.5
    assert prog.ops[1].inputs == ("a", prog.ops[0].output, "a")
    assert prog.ops[1].axis == 1
    tensors = [prog.tensors[name] for name in (*prog.ops[1].inputs, "y")]
    assert {(tensor.scale, tensor.zero_point) for tensor in tensors} == {(0.5, 0)}


def test_reshape():
    node = Reshape(name="flat", inputs=("x",), output="y")
    shapes = {"y": (1, 100, 1, 1)}
    assert kinds(lowered(node, shapes=shapes)) == ["Reshape"]
    prog = lowered(node, shapes=shapes, scales={"x": scale(1.0, 1)})
    assert kinds(prog) == ["Requantize", "Reshape"]


VECTOR = dict.fromkeys("xhypz", (1, 4, 1, 1))
SOFTMAX = Softmax(name="soft", inputs=("h",), output="p")


@pytest.mark.parametrize(
    ("nodes", "io", "outputs", "expected"),
    [
        ((conv("h"), SOFTMAX), "float", ("p",), ["Quantize", "Conv2d", "Softmax"]),
        ((conv("h"), SOFTMAX), "int8", ("p",), ["Conv2d", "Softmax", "Quantize"]),
        (
            (conv("h"), SOFTMAX),
            "float",
            ("p", "h"),
            ["Quantize", "Conv2d", "Softmax"],
        ),
        (
            (conv("h"), SOFTMAX),
            "int8",
            ("p", "h"),
            ["Conv2d", "Dequantize", "Softmax", "Quantize"],
        ),
        (
            (conv("h", activation=RELU), SOFTMAX),
            "float",
            ("p",),
            ["Quantize", "Conv2d", "Dequantize", "Softmax"],
        ),
        (
            (conv("h"), SOFTMAX, conv("y", "p")),
            "int8",
            ("y",),
            ["Conv2d", "SoftmaxQ", "Conv2d"],
        ),
        (
            (conv("h"), SOFTMAX, conv("y", "p")),
            "float",
            ("y", "p"),
            ["Quantize", "Conv2d", "Softmax", "Quantize", "Conv2d"],
        ),
    ],
)
def test_softmax(nodes, io, outputs, expected):
    prog = lowered(*nodes, io=io, outputs=outputs, shapes=VECTOR)
    assert kinds(prog) == expected
    dtypes = {prog.tensors[name].dtype for name in prog.outputs}
    assert dtypes == {"float32" if io == "float" else "int8"}
    writer.dumps(prog)


def test_softmax_of_an_input():
    node = dataclasses.replace(SOFTMAX, inputs=("x",))
    prog = lowered(node, outputs=("p",), shapes=VECTOR, io="float")
    assert kinds(prog) == ["Softmax"]
    prog = lowered(node, outputs=("p",), shapes=VECTOR)
    assert kinds(prog) == ["Dequantize", "Softmax", "Quantize"]


@pytest.mark.parametrize(
    ("axis", "expected"),
    [(1, ["Reshape", "Softmax", "Reshape"]), (3, ["Softmax"])],
)
def test_softmax_over_several_axes(axis, expected):
    node = dataclasses.replace(SOFTMAX, inputs=("x",), axis=axis, flattens=True)
    prog = lowered(node, outputs=("p",), shapes={"p": (1, 4, 5, 5)}, io="float")
    assert kinds(prog) == expected
    writer.dumps(prog)


def test_absurd_slope():
    node = conv("y", activation=Activation(slope=1e30))
    with pytest.raises(CompileError, match="leaky slope 1e"):
        lowered(node)


def test_far_apart_scales_name_the_layer():
    scales = {"a": scale(1e-20), "y": scale(1e20)}
    with pytest.raises(CompileError, match=r"layer 'add': scale 1e-20 .* too far from"):
        lowered(ADD, inputs=("a", "b"), scales=scales)


# The whole ----------------------------------------------------------------------------


def test_the_same_every_time():
    nodes = (conv("a"), conv("b", kernel=3, activation=RELU), ADD)
    graph = graph_of(*nodes)
    table = table_of(graph)
    first = writer.dumps(lower(graph, table))
    backwards = dict(reversed(table.tensors.items()))
    table = dataclasses.replace(table, tensors=backwards)
    assert writer.dumps(lower(graph, table)) == first
