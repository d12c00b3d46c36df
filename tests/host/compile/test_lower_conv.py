# SPDX-License-Identifier: Apache-2.0
"""Lowering of convolutions: constants, proofs, residuals, and what is refused."""

import dataclasses
import logging

import numpy as np
import pytest

from neon8.compile.lower import lower
from neon8.errors import CompileError
from neon8.ir.graph import Activation
from neon8.operators.convolution import Conv2dOp
from neon8.quant.fused import channels_of, prove
from neon8.quant.proof import winograd_form
from neon8.quant.scale_table import LayerScale
from small_graphs import ADD, RELU, conv, graph_of, kinds, lowered, scale, table_of

# Convolutions -------------------------------------------------------------------------


def test_constants_by_hand():
    """(5): x = 0.5 (q + 3), weights +-1 at scale 1/127, y = 0.25 (q - 7)."""
    prog = lowered(conv("y"), scales={"x": scale(0.5, -3), "y": scale(0.25, 7)})
    (op,) = prog.ops
    step = np.float64(np.float32(1 / 127))
    assert op.weights.shape == (4, 1, 1, 4)
    assert op.weights.dtype == np.int8
    assert set(np.unique(op.weights)) == {-127, 127}
    total = op.weights.astype(int).sum(axis=(1, 2, 3))
    expected = np.rint(np.arange(1, 5) / (0.5 * step)) + 3 * total
    assert op.bias.tolist() == expected.tolist()
    assert op.multiplier.tolist() == [np.float32(0.5 * step / 0.25)] * 4
    assert op.acc_bound == 4 * 127 * 128 + np.abs(op.bias).max()
    assert op.bias_f32 is None
    assert op.slopes is None


def test_float_constants_by_hand():
    """(4): the bias stays in float."""
    prog = lowered(conv("y"), scales={"x": scale(0.5, -3)}, io="float")
    op = prog.ops[1]
    total = op.weights.astype(int).sum(axis=(1, 2, 3))
    assert op.bias.tolist() == (3 * total).tolist()
    step = np.float64(np.float32(1 / 127))
    assert op.multiplier.tolist() == [np.float32(0.5 * step)] * 4
    assert op.bias_f32.tolist() == [1, 2, 3, 4]


def test_denormal_bias_of_a_float_output_is_0():
    smallest = np.finfo(np.float32).tiny
    bias = np.array([1e-39, -1e-45, smallest, -smallest], np.float32)
    op = lowered(conv("y", bias=bias), scales={"x": scale(0.5)}, io="float").ops[1]
    assert op.bias_f32.tolist() == [0, 0, smallest, -smallest]
    assert op.bias_f32.dtype == np.float32


@pytest.mark.parametrize(
    ("activation", "clamp"),
    [
        (Activation(), (-128, 127)),
        (RELU, (-20, 127)),
        (Activation(lo=0.0, hi=6.0), (-20, -8)),
        (Activation(lo=-1.0, hi=1.25), (-22, -18)),  # 2.5 steps round to even
        (Activation(lo=900.0, hi=1000.0), (127, 127)),
        (Activation(slope=0.1), (-128, 127)),
    ],
)
def test_clamp(activation, clamp):
    prog = lowered(conv("y", activation=activation), scales={"y": scale(0.5, -20)})
    assert (prog.ops[0].lo, prog.ops[0].hi) == clamp
    assert (prog.ops[0].slopes is not None) == (activation.slope != 1)


@pytest.mark.parametrize(
    ("scheme", "zero_point", "bounds"),
    [
        ("symmetric", 0, (-127, 127)),
        ("unsigned", -128, (-128, 127)),
        ("asymmetric", 44, (-128, 127)),
    ],
)
def test_schemes(scheme, zero_point, bounds):
    prog = lowered(conv("y"), scales={"y": scale(0.5, zero_point, scheme)})
    tensor = prog.tensors["y"]
    assert (tensor.lo, tensor.hi) == bounds
    assert (prog.ops[0].lo, prog.ops[0].hi) == bounds


def wide(output, *, taps, bias):
    """A fully connected layer, all weights 1, so sum|w| is 127 * taps."""
    return conv(
        output,
        channels=taps,
        out=2,
        weight=np.ones((2, taps, 1, 1), np.float32),
        bias=np.array([0, bias], np.float32),
    )


def test_sum_that_fits_is_left_alone(caplog):
    # 2**31 = 127 * 128 * 132104.06 + ..., so this many taps just fit.
    shapes = {"x": (1, 132104, 1, 1), "y": (1, 2, 1, 1)}
    prog = lowered(wide("y", taps=132104, bias=0), shapes=shapes)
    assert prog.ops[0].acc_bound == 132104 * 127 * 128 < 2**31
    assert caplog.records == []


@pytest.mark.parametrize(("taps", "bias"), [(132105, 0.0), (300000, 0.0), (8, 1e8)])
def test_sum_that_does_not_fit_gets_a_larger_scale(caplog, taps, bias):
    shapes = {"x": (1, taps, 1, 1), "y": (1, 2, 1, 1)}
    with caplog.at_level(logging.WARNING, "neon8"):
        prog = lowered(wide("y", taps=taps, bias=bias), shapes=shapes)
    (op,) = prog.ops
    sums = np.abs(op.weights.astype(int)).sum(axis=(1, 2, 3)) * 128
    assert op.acc_bound == (sums + np.abs(op.bias.astype(int))).max() < 2**31
    assert op.acc_bound > 0.98 * 2**31  # and no larger than needed
    (said,) = caplog.messages  # of both channels, where both do not fit
    where = f"layer 'layer_y': channel {1 if bias else 0}: accumulator bound "
    assert said.startswith(where)
    assert ("; so are those of 2 channels of 1 layer" in said) == (not bias)
    # The product of weight and scale is still the weight.
    real = op.weights[1].astype(float) * op.multiplier[1]
    np.testing.assert_allclose(real, 1, rtol=0.01 if not bias else 0.5)


@pytest.mark.parametrize(
    ("levels", "depth"),
    [
        ([127, -64, 32, -32], 8),  # 255 together, and there are no more
        ([127, -64, 32, -32, 1], 4),
        ([127, -64, 33, -32, 1], 2),
        ([32, 32, -32, 32, 32, 32, 31, -32, 127], 4),
        ([127, 127, 127], 2),
        ([127, 127], 8),
    ],
)
def test_products_that_fit_int16(levels, depth):
    """(11): 255 * 128 fits and 256 * 128 does not; one channel of the two decides."""
    weight = np.zeros((2, len(levels), 1, 1), np.float32)
    weight[0, 0] = 1
    weight[1, :, 0, 0] = np.array(levels) / 127
    node = conv("y", channels=len(levels), out=2, weight=weight, bias=np.zeros(2))
    shapes = {"x": (1, len(levels), 1, 1), "y": (1, 2, 1, 1)}
    prog = lowered(node, shapes=shapes)
    assert prog.ops[0].weights[1].ravel().tolist() == levels
    assert prog.ops[0].int16_depth == depth


@pytest.mark.parametrize(
    ("rows", "form"),
    [
        ([[42, 43, 42], [0, 0, 0]], "whole"),
        ([[-127, 0, 0], [127, -127, -127]], "whole"),
        ([[127, 0, 1], [0, 0, 0]], "half"),
        ([[127, 127, 0], [-100, 54, -100]], "half"),
        ([[127, 127, 1], [0, 0, 0]], ""),  # odd
        ([[127, 127, 2], [0, 0, 0]], ""),  # 256
        ([[127, 0, 1], [127, 0, 2]], ""),  # one row decides
    ],
)
def test_forms_of_winograd_by_hand(rows, form):
    """(23), of a kernel that is 3 wide and may have any height."""
    weights = np.array(rows, np.int8).reshape(2, 1, 1, 3)
    assert winograd_form(weights, stride=1, dilation=1) == form
    assert winograd_form(weights.reshape(1, 2, 1, 3), stride=1, dilation=1) == form
    assert winograd_form(weights.reshape(1, 1, 2, 3), stride=1, dilation=1) == form
    assert winograd_form(weights, stride=2, dilation=1) == ""
    assert winograd_form(weights, stride=1, dilation=2) == ""
    assert winograd_form(weights.reshape(2, 1, 3, 1), stride=1, dilation=1) == ""


@pytest.mark.parametrize(
    ("options", "form"),
    [
        ({"kernel": 3}, "whole"),
        ({"kernel": 3, "strides": (2, 1)}, "whole"),
        ({"kernel": 3, "strides": (1, 2)}, ""),
        ({"kernel": 3, "dilations": (1, 2)}, ""),
        ({"kernel": 1}, ""),
        ({"kernel": 5}, ""),
    ],
)
@pytest.mark.parametrize("io", ["int8", "float"])
def test_weights_of_six_bits_are_whole(options, form, io):
    """As ncnn's tables have them: 31 steps."""
    graph = graph_of(conv("y", **options))
    (op,) = (
        op
        for op in lower(graph, table_of(graph, weight_scale=1 / 31), io=io).ops
        if isinstance(op, Conv2dOp)
    )
    assert op.winograd == form


def test_sum_that_no_scale_makes_fit():
    node = conv("y", bias=np.array([0, 0, 1e38, 0], np.float32))
    message = "layer 'layer_y': channel 2: the accumulator does not fit"
    with pytest.raises(CompileError, match=message):
        lowered(node, scales={"x": scale(1e-29)})


@pytest.mark.parametrize("what", ["weight", "bias"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("io", ["float", "int8"])
def test_parameters_that_are_no_numbers(what, value, io):
    node = conv("y")
    array = getattr(node, what).copy()
    array.flat[2] = value
    node = dataclasses.replace(node, **{what: array})
    with pytest.raises(CompileError, match="'layer_y': a weight or bias is not finite"):
        lowered(node, io=io)


@pytest.mark.parametrize(
    ("scales", "message"),
    [
        ({"x": scale(1e-20), "y": scale(1e20)}, "channel 0: multiplier .* is outside"),
        ({"x": scale(1e29), "y": scale(1e-29)}, "channel 0: multiplier .* is outside"),
        ({"x": scale(0.0)}, "tensor 'x': scale 0.0 is outside"),
        ({"x": scale(np.inf)}, "tensor 'x': scale inf is outside"),
        ({"x": scale(np.nan)}, "tensor 'x': scale nan is outside"),
        ({"y": scale(-1.0)}, "tensor 'y': scale -1.0 is outside"),
        ({"y": scale(1.0, 3, "symmetric")}, "zero point 3 does not fit"),
        ({"y": scale(1.0, 0, "unsigned")}, "zero point 0 does not fit"),
        ({"y": scale(1.0, 128)}, "zero point 128 does not fit"),
        ({"y": scale(1.0, 0, "log")}, "scheme 'log' is not one of"),
    ],
)
def test_refused_scales(scales, message):
    with pytest.raises(CompileError, match=message):
        lowered(conv("y", bias=np.zeros(4, np.float32)), scales=scales)


def test_table_of_another_model():
    graph = graph_of(conv("y"))
    table = dataclasses.replace(table_of(graph), model_digest="cd" * 32)
    with pytest.raises(CompileError, match="the scale table is of another model"):
        lower(graph, table)


def test_incomplete_table():
    graph = graph_of(conv("y"))
    with pytest.raises(CompileError, match="tensor 'x' has no scale"):
        lower(graph, table_of(graph, without=("x",)))
    table = dataclasses.replace(table_of(graph), layers={})
    with pytest.raises(CompileError, match="layer 'layer_y' has no weight scales"):
        lower(graph, table)
    layer = LayerScale(input="x", weight_scales=(1.0, 1.0))
    table = dataclasses.replace(table_of(graph), layers={"layer_y": layer})
    with pytest.raises(CompileError, match="'layer_y' has 2 weight scales, expected"):
        lower(graph, table)
    layer = LayerScale(input="x", weight_scales=(0.0,) * 4)
    table = dataclasses.replace(table_of(graph), layers={"layer_y": layer})
    with pytest.raises(CompileError, match=r"weight scale 0: scale 0\.0 is outside"):
        lower(graph, table)


CHANNELS = 64
RANDOM = np.random.default_rng(0).normal(size=(CHANNELS, CHANNELS, 3, 3)) / 3
STEPS = np.linspace(1 / 127, 1 / 64, CHANNELS).astype(np.float32)
LEAKY = Activation(slope=0.1)
WIDE = {"bits": 16, "scheme": "symmetric"}


@pytest.mark.parametrize(
    ("nodes", "scales", "io", "proved"),
    [
        ([{}], {}, "int8", True),
        ([{"activation": RELU}], {}, "int8", True),
        ([{"activation": LEAKY}], {}, "int8", False),
        ([{}], {}, "float", False),
        ([{}], {"y": scale(0.37 / 256, **WIDE)}, "int8", False),
        ([{}], {"x": scale(0.05 / 256, **WIDE)}, "int8", False),
        ([{}, {}], {}, "int8", False),
    ],
)
def test_multipliers_that_one_multiply_add_serves(nodes, scales, io, proved):
    """(5d): the nearest of which it is proved, and the product for other steps."""
    fixed = {"channels": CHANNELS, "out": CHANNELS, "kernel": 3}
    fixed["weight"] = RANDOM.astype(np.float32)
    convs = [
        conv(name, **fixed, **options)
        for name, options in zip("ab" if nodes[1:] else "y", nodes, strict=True)
    ]
    graph = graph_of(
        *convs,
        *([ADD] if nodes[1:] else []),
        shapes=dict.fromkeys("xyab", (1, CHANNELS, 5, 5)),
    )
    table = table_of(
        graph,
        without=("b",),
        **{"x": scale(0.05, 3), "y": scale(0.37, -5)} | scales,
    )
    layers = {
        name: dataclasses.replace(entry, weight_scales=tuple(map(float, STEPS)))
        for name, entry in table.layers.items()
    }
    prog = lower(graph, dataclasses.replace(table, layers=layers), io=io)
    op = [op for op in prog.ops if isinstance(op, Conv2dOp)][-1]
    source, out = prog.tensors[op.inputs[0]], prog.tensors[op.output]
    real = np.float64(source.scale) * STEPS.astype(np.float64)
    product = (real / np.float64(out.scale)).astype(np.float32)
    moved = op.multiplier.view(np.int32) - product.view(np.int32)
    assert np.abs(moved).max() <= 128
    assert (moved == 0).any()
    assert (moved != 0).any() == proved
    if proved:
        channels = channels_of(
            op.weights, op.bias, lo=op.lo, hi=op.hi, zero_point=out.zero_point
        )
        assert prove(op.multiplier, channels).holds.all()


# Residuals ----------------------------------------------------------------------------


def test_residual_goes_to_the_later_convolution():
    prog = lowered(
        conv("a"),
        conv("b"),
        ADD,
        without=("b",),
        scales={"a": scale(0.125, 9), "y": scale(0.25, -7)},
    )
    assert kinds(prog) == ["Conv2d", "Conv2d"]
    fused = prog.ops[1]
    assert fused.name == "layer_b"
    assert fused.inputs == ("x", "a")
    assert fused.output == "y"
    assert fused.residual_scale == np.float32(0.5)


def test_residual_takes_the_leaky_slope_of_the_sum():
    add = dataclasses.replace(ADD, activation=Activation(slope=0.1))
    fused = lowered(conv("a"), conv("b"), add).ops[1]
    assert len(fused.inputs) == 2
    assert (fused.slopes == np.float32(0.1)).all()


def test_lone_sum_by_hand():
    nodes = (dataclasses.replace(ADD, activation=Activation(slope=0.1)),)
    scales = {"a": scale(0.5, 1), "b": scale(0.125, 2), "y": scale(0.25, 3)}
    prog = lowered(*nodes, inputs=("a", "b"), scales=scales)
    (op,) = prog.ops
    assert (op.scale, op.residual_scale) == (2.0, 0.5)
    assert op.slope == np.float32(0.1)
