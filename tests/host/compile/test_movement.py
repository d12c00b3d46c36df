# SPDX-License-Identifier: Apache-2.0
"""Moves, linear resize and transposed convolutions, from ONNX to int8 outputs."""

import numpy as np
import pytest

from neon8 import Model, compile_model
from neon8.compile import oracle
from neon8.operators.arithmetic import AddOp
from neon8.operators.convolution import Conv2dOp
from neon8.operators.movement import ConcatOp
from onnx_nets import chain, net, node, save
from whole_nets import built, decibels

F = np.float32
IMAGE = (1, 6, 4, 8)


def ints(*values):
    return np.array(values, np.int64)


def run(folder, model, **options):
    made = built(save(folder, model), **options)
    return made.samples, made.wanted, made.table, made.program


EXACT = {
    "uneven views": [
        ("Reshape", [ints(1, 16, 12)], {}),
        ("Transpose", [], {"perm": [0, 2, 1]}),
        ("Reshape", [ints(1, 32, 6)], {}),
    ],
    "slice": [("Slice", [ints(5, 1), ints(-100, 7), ints(1, 3), ints(-2, 3)], {})],
    "pad with zeros": [("Pad", [ints(0, 1, 2, 0, 0, 0, 1, 3)], {})],
    "rank 6": [
        ("Reshape", [ints(1, 2, 3, 4, 2, 4)], {}),
        ("Transpose", [], {"perm": [4, 2, 0, 5, 1, 3]}),
        ("Slice", [ints(0, 1), ints(9, 3), ints(1, 5), ints(2, 1)], {}),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_a_move_is_exact(tmp_path, name):
    """Each value of the output is the rounded input, wherever it came from."""
    samples, wanted, table, made = run(tmp_path, chain(EXACT[name], IMAGE))
    entry = table.tensors["x"]
    assert table.tensors["y"].scale == entry.scale
    for sample, want in zip(samples, wanted, strict=True):
        got = oracle.run(made, sample)["y"]
        grid = np.rint(want["y"] * F(1 / F(entry.scale))) + entry.zero_point
        q = np.clip(grid, -127 if entry.scheme == "symmetric" else -128, 127)
        real = (q - entry.zero_point) * F(entry.scale)
        np.testing.assert_array_equal(got, real.astype(F))


@pytest.mark.parametrize(
    ("value", "level"),
    [(0.0, 0.0), (0.26, 0.26), (1e30, 1.0), (-np.inf, 0.0), (np.inf, 1.0)],
)
def test_the_constant_of_a_pad(tmp_path, value, level):
    """The nearest level of a tensor that has values in 0 .. 1, at most its ends."""
    steps = [
        ("Clip", [F(0), F(1)], {}),
        ("Pad", [ints(0, 0, 1, 0, 0, 0, 0, 0), F(value)], {}),
    ]
    samples, _, table, made = run(tmp_path, chain(steps, IMAGE))
    got = oracle.run(made, samples[0])["y"][0, :, 0]
    assert np.abs(got - level).max() <= 0.5 * table.tensors["y"].scale
    assert value != 0 or not got.any()


def test_concat_on_every_axis(tmp_path):
    """Tensors of rank 5: along W, in the rows of blocks or of whole images."""
    for axis in range(5):
        nodes = [
            node("Reshape", "x shape", "a", "r"),
            node("Concat", "a a", "y", "c", axis=axis),
        ]
        shape = {"shape": ints(2, 3, 2, 4, 4)}
        samples, wanted, table, made = run(
            tmp_path, net(nodes, {"x": IMAGE}, "y", shape)
        )
        got = oracle.run(made, samples[0])["y"]
        assert np.abs(got - wanted[0]["y"]).max() <= 0.501 * table.tensors["y"].scale


@pytest.mark.parametrize("axis", range(4))
@pytest.mark.parametrize("bits", [8, 16])
def test_concat_with_constants(tmp_path, axis, bits):
    """They are on the grid of the result, one before the tensor and one after it."""
    part = list(IMAGE)
    part[axis] = 2
    rng = np.random.default_rng(axis)
    weights = {name: rng.uniform(-3, 3, part).astype(F) for name in "vw"}
    model = net([node("Concat", "v x w", "y", axis=axis)], {"x": IMAGE}, "y", weights)
    samples, wanted, table, made = run(tmp_path, model, bits=bits)
    got = oracle.run(made, samples[0])["y"]
    assert np.abs(got - wanted[0]["y"]).max() <= 0.501 * table.tensors["y"].scale


def up(weight, *more, **attributes):
    return ("ConvTranspose", [weight, *more], attributes)


CLOSE = {
    "linear": [("Resize", [np.zeros(0, F), np.array([1, 1, 2, 3], F)],
                {"mode": "linear"})],
    "linear, to less": [("Resize", [np.zeros(0, F), np.array([1, 1, 0.5, 0.7], F)],
                         {"mode": "linear"})],
    "transposed, relu": [up((6, 5, 4, 4), (5,), strides=[2, 2]), ("Relu", [], {})],
    "transposed twice": [up((6, 3, 2, 2), (3,), strides=[2, 2]), ("Relu", [], {}),
                         up((3, 4, 2, 2), (4,), strides=[2, 2])],
    "transposed, then leaky": [up((6, 3, 2, 2), (3,), strides=[2, 2]),
                               ("LeakyRelu", [], {"alpha": 0.3})],
    "transposed, softmax": [up((6, 3, 2, 2), (3,), strides=[2, 2]),
                            ("Softmax", [], {"axis": 1})],
}  # fmt: skip


@pytest.mark.parametrize("name", CLOSE)
@pytest.mark.parametrize("scheme", ["symmetric", "auto"])
def test_int8_is_close_to_float(tmp_path, name, scheme):
    samples, wanted, _, made = run(tmp_path, chain(CLOSE[name], IMAGE), scheme=scheme)
    got = np.stack([oracle.run(made, sample)["y"] for sample in samples])
    want = np.stack([each["y"] for each in wanted])
    assert got.shape == want.shape
    assert decibels(got, want) > 30


def test_a_transposed_convolution_adds_nothing_to_a_sum(tmp_path):
    """A residual sum is a step of its own: the pixels are not yet where they belong."""
    nodes = [
        node("ConvTranspose", "x w", "a", "up", strides=[2, 2]),
        node("ConvTranspose", "x v", "b", "up2", strides=[2, 2]),
        node("Add", "a b", "y", "sum"),
    ]
    rng = np.random.default_rng(0)
    weights = {name: rng.normal(size=(6, 3, 2, 2)).astype(F) for name in "wv"}
    model = net(nodes, {"x": IMAGE}, "y", weights)
    samples, wanted, table, made = run(tmp_path, model)
    assert [type(op) for op in made.ops].count(AddOp) == 1
    got = oracle.run(made, samples[0])["y"]
    assert np.abs(got - wanted[0]["y"]).max() < 4 * table.tensors["y"].scale


def test_weight_scales_are_those_of_output_channels(tmp_path):
    """One for each in the table; each phase of the kernel is quantized with its own."""
    model = chain([up((6, 4, 4, 4), (8,), strides=[2, 2], group=2)], IMAGE)
    _, _, table, made = run(tmp_path, model)
    scales = table.layers["n0"].weight_scales
    assert len(scales) == 8
    (conv,) = (op for op in made.ops if isinstance(op, Conv2dOp))
    assert conv.weights.shape == (32, 2, 2, 3)
    ratio = conv.multiplier.reshape(2, 4, 4) / np.array(scales).reshape(2, 1, 4)
    assert np.ptp(ratio) < 1e-6 * ratio.max()


def heads(values, *, order=(0, 1, 3, 4, 2)):
    """Boxes of two maps, the second one of a single pixel, as a detector joins them."""
    rng = np.random.default_rng(5)
    weights = {
        "w": rng.uniform(-1, 1, (2 * values, 6, 1, 1)),
        "v": rng.uniform(-1, 1, (2 * values, 6, 4, 8)),
        "flat": ints(1, -1, values),
        "four": ints(1, 2, values, 4, 8),
        "one": ints(1, 2, values, 1, 1),
    }
    nodes = [node("Conv", "x w", "a", "a"), node("Conv", "x v", "b", "b")]
    for name, view in (("a", "four"), ("b", "one")):
        nodes += [
            node("Reshape", f"{name} {view}", f"{name}_view"),
            node("Transpose", f"{name}_view", f"{name}_turned", perm=order),
            node("Sigmoid", f"{name}_turned", f"{name}_on"),
            node("Reshape", f"{name}_on flat", f"{name}_rows"),
        ]
    joined = node("Concat", "a_rows b_rows", "y", "y", axis=1)
    return net([*nodes, joined], {"x": IMAGE}, "y", weights)


@pytest.mark.parametrize("values", [2, 5, 85])
def test_heads_are_joined_in_rows(tmp_path, values):
    """The values of a box are its channels, up to where the caller has them."""
    path = save(tmp_path, heads(values))
    made = built(path)
    (joined,) = (op for op in made.program.ops if isinstance(op, ConcatOp))
    assert made.program.tensors[joined.output].shape == (66, values, 1, 1)
    for found, want in zip(made.found, made.wanted, strict=True):
        assert decibels(found["y"], want["y"]) > 25
    for io in ("float", "int8"):
        with Model.from_bytes(compile_model(path, made.table, io=io)) as model:
            *_, join, last = model.steps
            assert (join.kernel, last.sharing) == ("none", "caller")
