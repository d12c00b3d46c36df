# SPDX-License-Identifier: Apache-2.0
"""Networks that were quantized elsewhere: what onnxruntime computes, to a step.

onnxruntime without fusion does what the file says, node by node; with it, it uses
integer kernels of its own.
"""

import logging

import numpy as np
import onnx
import pytest
from onnxruntime.quantization import QuantFormat, QuantType

import quantized_nets
from neon8.rewrite.own_scales import load_quantized
from onnx_nets import save
from quantized_nets import ZERO, Net, differences, noise, of_type, program, steps
from table_nets import mixed, residual

I8, U8, F = np.int8, np.uint8, np.float32
MORE_THAN_A_STEP = 1e-3
"""At most one output of a thousand may be further away than one step."""


def check(path, shape=(1, 3, 8, 8), *, exact=True):
    """Both ways of onnxruntime; exact: the file's meaning in every output."""
    found = differences(path, noise(shape), fused=False)
    assert found.max() <= (0 if exact else 1)
    assert np.mean(differences(path, noise(shape)) > 1) <= MORE_THAN_A_STEP


@pytest.mark.parametrize("layout", [QuantFormat.QDQ, QuantFormat.QOperator])
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize(
    ("activations", "weights"),
    [
        (QuantType.QInt8, QuantType.QInt8),
        (QuantType.QUInt8, QuantType.QInt8),
        (QuantType.QUInt8, QuantType.QUInt8),
    ],
)
def test_what_onnxruntime_quantizes(
    tmp_path, layout, per_channel, activations, weights
):
    """Seven bits of weights: zero points are about 64, so all of them fit int8."""
    shape = (1, 3, 16, 16)
    path = quantized_nets.quantized_by_ort(
        tmp_path,
        residual(),
        noise(shape, 6),
        quant_format=layout,
        per_channel=per_channel,
        activation_type=activations,
        weight_type=weights,
        reduce_range=True,
    )
    if layout == QuantFormat.QDQ:
        check(path, shape)
    else:  # its integers are read by fused kernels only
        assert differences(path, noise(shape), exact=False).max() == 0
    kinds = steps(path)
    assert kinds.count("conv2d") == 6
    assert set(kinds) == {"quantize", "conv2d", "add", "average_pool", "dequantize"}


@pytest.mark.parametrize("layout", [QuantFormat.QDQ, QuantFormat.QOperator])
def test_a_network_with_every_operator(tmp_path, layout):
    """In QDQ form fused average pools are a step off, of which a softmax makes three.

    docs/formats.md says who is right.
    """
    shape = (1, 3, 9, 9)
    path = quantized_nets.quantized_by_ort(
        tmp_path,
        mixed(),
        noise(shape, 6),
        quant_format=layout,
        per_channel=True,
        activation_type=QuantType.QUInt8,
    )
    fused = layout == QuantFormat.QOperator
    assert differences(path, noise(shape), fused=fused).max() <= 1


def relu(n):
    """It is fused and the pair moves back, as quantization-aware training has them."""
    x = n.pair("x", 0.02)
    a = n.conv(x, n.weights(4, 3, 3, 3), 0.01, s_in=0.02, bias=[9, -9, 0, 1000])
    pooled = n.add("MaxPool", n.add("Relu", a), kernel_shape=[2, 2], strides=[2, 2])
    swapped = n.add("Transpose", pooled, perm=[0, 1, 3, 2])
    cut = n.add("Slice", swapped, *(n.array([v]) for v in (0, 2, 3)))
    second = n.conv(n.pair(cut, 0.03, U8(0)), n.weights(2, 4, 1, 1), 0.02)
    n.pair(second, 0.5, I8(3), output="y")


def forward(n):
    """What only moves integers stays in them, up to a float node."""
    c = n.conv(n.pair("x", 0.02), n.weights(4, 3, 3, 3), 0.01)
    q = n.pair(c, 0.4, I8(-5))
    pooled = n.add("MaxPool", n.add("Relu", q), kernel_shape=[6, 6])
    n.add("Softmax", n.add("Flatten", pooled), output="y", axis=1)


def between_pairs(n):
    """An activation between two pairs of one scale."""
    c = n.conv(n.pair("x", 0.02), n.weights(4, 3, 3, 3), 0.01)
    n.pair(n.add("Relu", n.pair(c, 0.4, I8(-5))), 0.4, I8(-5), output="y")


def sum_taken_in(n):
    """TensorRT's form: the convolution before the sum has no pair of its own."""
    x = n.pair("x", 0.02)
    c = n.conv(x, n.weights(4, 4, 1, 1), 0.01)
    n.pair(n.add("Relu", n.add("Add", c, x)), 0.03, U8(0), output="y")


def sum_of_rounded(n):
    x = n.pair("x", 0.02)
    c = n.pair(n.conv(x, n.weights(4, 4, 1, 1), 0.01), 0.1)
    n.pair(n.add("Add", c, x), 0.15, output="y")


def concat(n):
    """Inputs of different scales."""
    x = n.pair("x", 0.02)
    a = n.pair(n.conv(x, n.weights(4, 3, 1, 1), 0.01), 0.1)
    b = n.pair(n.conv(x, n.weights(4, 3, 1, 1), 0.01), 0.04, I8(7))
    n.pair(n.add("Concat", a, b, axis=1), 0.1, output="y")


def two_scales(n):
    """One after the other, as the file says, and not one in place of both."""
    c = n.pair(n.conv(n.pair("x", 0.02), n.weights(4, 3, 1, 1), 0.01), 0.04)
    n.pair(c, 0.11, U8(9), output="y")


def two_scales_and_readers(n):
    """The first of the two is no node that the second could go into."""
    c = n.pair(n.conv(n.pair("x", 0.02), n.weights(4, 3, 1, 1), 0.01), 0.0209)
    cut = n.add("Slice", c, *(n.array([v]) for v in (0, 2, 1)))
    other = n.pair(n.conv(c, n.weights(2, 4, 1, 1), 0.01), 0.09)
    joined = n.add("Concat", n.pair(cut, 0.01899), other, axis=1)
    n.pair(joined, 0.0262, output="y")


def float_reader(n):
    """An input is rounded for a float node, too."""
    soft = n.add("LogSoftmax", n.pair("x", 0.3), axis=1)
    n.pair(soft, 1 / 16, U8(255), output="y")


def rounded_again(n):
    n.pair(n.pair("x", 0.3), 0.5, output="y")


def softmax(n):
    c = n.pair(n.conv(n.pair("x", 0.02), n.weights(6, 3, 1, 1), 0.01), 0.04)
    n.pair(n.add("Softmax", n.add("Flatten", c), axis=1), 1 / 256, U8(0), output="y")


IMAGE, WIDE, ROW = (1, 3, 8, 8), (1, 4, 8, 8), (1, 6)
CONV = "quantize conv2d dequantize"
PATTERNS = [
    (relu, IMAGE, "quantize conv2d max_pool permute gather conv2d dequantize", True),
    (forward, IMAGE, "quantize conv2d max_pool dequantize reshape softmax", False),
    (between_pairs, IMAGE, CONV, True),
    (sum_taken_in, WIDE, CONV, False),
    (sum_of_rounded, WIDE, "quantize conv2d add dequantize", True),
    (concat, IMAGE, "quantize conv2d conv2d requantize concat dequantize", True),
    (two_scales, IMAGE, "quantize conv2d requantize dequantize", True),
    (two_scales_and_readers, IMAGE, "", True),
    (float_reader, ROW, "quantize dequantize softmax quantize dequantize", True),
    (rounded_again, ROW, "quantize requantize dequantize", True),
    (softmax, (1, 3, 1, 1), "quantize conv2d reshape softmax_q dequantize", True),
]


@pytest.mark.parametrize(
    ("build", "shape", "kinds", "exact"),
    PATTERNS,
    ids=[row[0].__name__ for row in PATTERNS],
)
def test_where_pairs_stand(tmp_path, build, shape, kinds, exact):
    n = Net(*shape)
    build(n)
    path = save(tmp_path, n.model("y"))
    assert not kinds or steps(path) == kinds.split()
    check(path, shape, exact=exact)


def test_a_range_narrower_than_what_relu_leaves(tmp_path):
    n = Net(1, 3, 8, 8)
    c = n.conv(n.pair("x", 0.02), n.weights(4, 3, 3, 3), 0.01)
    n.pair(n.add("Relu", c), 0.001, U8(0), output="y")
    path = save(tmp_path, n.model("y"))
    check(path)
    assert program(path).ops[1].lo == -128


def last_conv(path):
    (op,) = (op for op in program(path).ops if op.operation == "CONV2D")
    return op


def one_layer(folder, weights, scale, zero_point=None, *, s_in=0.02, **options):
    """x -> int8 -> convolution -> int8 -> y."""
    n = Net(1, weights.shape[1], 8, 8)
    per = {"axis": 0} if np.ndim(scale) else {}
    w = n.integers(weights, scale, zero_point, **per)
    inputs = [n.pair("x", s_in), w]
    bias = options.pop("bias", None)
    if bias is not None:
        unit = np.float32(s_in) * np.asarray(scale, np.float32)
        inputs.append(n.integers(np.asarray(bias, np.int32), unit, **per))
    n.pair(n.add("Conv", *inputs, name="c", **options), 5.0, output="y")
    return save(folder, n.model("y"))


def kept(path):
    """The weights of the only layer, (O, I, kh, kw)."""
    return last_conv(path).weights.transpose(0, 3, 1, 2)


@pytest.mark.parametrize("scale", [0.01, [1e-7, 0.1, 3.3, 0.3333]])
def test_integers_of_weights_are_taken_as_they_are(tmp_path, scale):
    weights = np.arange(-127, 129).astype(I8).reshape(4, 64, 1, 1)
    weights[weights == -128] = 5
    path = one_layer(tmp_path, weights, scale)
    assert np.array_equal(kept(path), weights)


@pytest.mark.parametrize("zero_point", [128, 100, 150])
def test_zero_points_of_weights(tmp_path, zero_point):
    rng = np.random.default_rng(0)
    lowest, highest = max(0, zero_point - 127), min(255, zero_point + 127)
    weights = rng.integers(lowest, highest + 1, (4, 3, 3, 3)).astype(U8)
    path = one_layer(tmp_path, weights, 0.01, U8(zero_point))
    assert np.array_equal(kept(path), weights.astype(int) - zero_point)
    check(path)


@pytest.mark.parametrize("zero_point", [0, 100, 255])
@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((4, 3, 3, 3), {}),
        ((4, 2, 3, 3), {"group": 2}),
        ((4, 1, 3, 3), {"group": 4}),
        ((3, 5, 1, 1), {}),
    ],
)
def test_weights_beyond_int8_are_sums_of_several(
    tmp_path, zero_point, shape, options, caplog
):
    """They are sums of two, and of three where they are 255 or -255."""
    n = Net(1, shape[1] * options.get("group", 1), 8, 8, seed=zero_point)
    weights = np.clip(n.rng.normal(zero_point, 60, shape), 0, 255).astype(U8)
    weights.flat[7], weights.flat[1] = 0, 255
    w = n.integers(weights, 0.001, U8(zero_point))
    c = n.add("Conv", n.pair("x", 0.02), w, name="c", **options)
    n.pair(c, 0.0317, I8(3), output="y")
    path = save(tmp_path, n.model("y"))
    check(path, tuple(n.inputs["x"]))
    assert not caplog.messages
    made = last_conv(path).weights.transpose(0, 3, 1, 2).astype(int)
    assert np.abs(made).max() <= 128
    assert made.sum() == (weights.astype(int) - zero_point).sum()


def test_only_the_channels_of_large_weights_are_copied(tmp_path):
    weights = np.full((3, 40, 1, 1), 127, I8)
    weights[1, 2] = -128  # alone in its channel
    weights[2, 7] = weights[2, 9] = weights[0, 9] = weights[0, 3] = -128
    path = one_layer(tmp_path, weights, 0.01)
    made = kept(path)
    assert made.shape == (3, 40 + 3, 1, 1)
    assert made[1, 2] == -128
    copied = made[..., 40:, 0, 0].tolist()
    assert copied == [[-1, 0, -1], [0, 0, 0], [0, -1, -1]]  # channels 3, 7, 9
    check(path, (1, 40, 8, 8))


def test_large_weights_of_a_transposed_convolution(tmp_path):
    n = Net(1, 4, 5, 5)
    weights = n.rng.integers(0, 256, (4, 3, 3, 3)).astype(U8)
    w = n.integers(weights, 0.001, U8(77))
    x = n.pair("x", 0.02)
    c = n.add("ConvTranspose", x, w, name="c", strides=[2, 2], group=2)
    n.pair(c, 0.0317, output="y")
    check(save(tmp_path, n.model("y")), (1, 4, 5, 5))


def test_scales_of_a_transposed_convolution_with_groups(tmp_path):
    """One for each output channel of a group, and each group has these."""
    n = Net(1, 4, 5, 5)
    weights = n.weights(4, 3, 3, 3)
    scales = [0.01, 0.001, 0.03]
    w = n.integers(weights, scales, np.zeros(3), axis=1)
    x = n.pair("x", 0.02)
    c = n.add("ConvTranspose", x, w, name="c", strides=[2, 2], group=2)
    n.pair(c, 0.1, output="y")
    path = save(tmp_path, n.model("y"))
    _, table = load_quantized(path)
    assert table.layers["c"].weight_scales == tuple(map(float, np.float32(scales * 2)))
    check(path, (1, 4, 5, 5))


def test_what_int8_cannot_hold_is_said_and_rounded_anew(tmp_path, caplog):
    """As a format wants it that has int8 alone."""
    weights = np.full((2, 3, 1, 1), 100, U8)
    weights[1] = [[[0]], [[200]], [[255]]]
    path = one_layer(tmp_path, weights, 0.01, U8(100))
    with caplog.at_level(logging.WARNING, "neon8"):
        graph, table = load_quantized(path, narrow=True)
    (said,) = caplog.messages
    for words in ("layer 'c': channel 1:", "-100 to 155 steps", "2 of 3", "0.0787"):
        assert words in said
    first, second = table.layers["c"].weight_scales
    assert first == np.float32(0.01)
    assert second == pytest.approx(0.01 * 155 / 127)
    assert graph.nodes[0].weight_scales.tolist() == [np.float32(0.01)] * 2
    weights = np.full((1, 3, 1, 1), -128, I8)
    with caplog.at_level(logging.WARNING, "neon8"):
        load_quantized(one_layer(tmp_path, weights, 0.01), narrow=True)
    assert "2 of 3 were rounded anew, the worst by 1 steps" in caplog.messages[-1]
    caplog.clear()
    weights = np.stack([np.full((3, 1, 1), end, I8) for end in (-127, -128, -128)])
    with caplog.at_level(logging.WARNING, "neon8"):
        load_quantized(one_layer(tmp_path, weights, 0.01), narrow=True)
    (said,) = caplog.messages
    assert "channel 1: " in said
    assert "so it is with 2 channels of 1 layer" in said


def test_seven_bits_of_activations(tmp_path):
    """PyTorch's quint8 of 0 .. 127: a Clip between the two nodes of a pair."""
    n = Net(1, 3, 8, 8)

    def seven_bits(source, scale, point):
        constants = [n.array(F(scale), "s"), n.array(U8(point), "z")]
        q = n.add("QuantizeLinear", source, *constants)
        q = n.add("Clip", q, n.array(U8(0)), n.array(U8(127)))
        return n.add("DequantizeLinear", q, *constants)

    c = n.conv(seven_bits("x", 0.03, 60), n.weights(4, 3, 3, 3), 0.01)
    c = seven_bits(n.add("Relu", c), 0.02, 0)
    c = n.conv(seven_bits(c, 0.02, 0), n.weights(2, 4, 1, 1), 0.01)
    n.add("Identity", seven_bits(c, 0.1, 60), output="y")
    path = save(tmp_path, n.model("y"))
    assert steps(path) == ["quantize", "requantize", *["conv2d"] * 2, "dequantize"]
    check(path)


def test_a_scale_that_several_nodes_share(tmp_path):
    """Exporters write a constant once, and copies of it."""
    n = Net(1, 3, 8, 8)
    scale = n.add("Identity", n.array(F(0.02)))
    other = n.add("Cast", n.array(np.float16(0.37)), to=onnx.TensorProto.FLOAT)
    q = n.add("QuantizeLinear", "x", scale, n.array(ZERO))
    x = n.add("DequantizeLinear", q, scale, n.array(ZERO))
    c = n.conv(x, n.weights(4, 3, 3, 3), 0.01)
    q = n.add("QuantizeLinear", c, other, n.array(ZERO))
    n.add("DequantizeLinear", q, other, n.array(ZERO), output="y")
    path = save(tmp_path, n.model("y"))
    assert steps(path) == ["quantize", "conv2d", "dequantize"]
    check(path)


def half_network(opset=19):
    """As TensorRT's tools write them: float16 within, and weights not yet integers."""
    n = Net(1, 3, 8, 8, opset=opset)

    def pair(source, scale, output=""):
        constants = [n.array(np.float16(scale)), n.array(ZERO)]
        q = n.add("QuantizeLinear", source, *constants)
        return n.add("DequantizeLinear", q, *constants, output=output)

    def conv(source, levels):
        """Weights and bias in float16; the scales of the weights, too."""
        count = len(levels)
        scales = np.linspace(0.01, 0.011, count).astype(np.float16)
        constants = [n.array(scales), n.array(np.zeros(count, I8))]
        weights = (levels * scales.reshape(-1, 1, 1, 1)).astype(np.float16)
        q = n.add("QuantizeLinear", n.array(weights), *constants, axis=0)
        w = n.add("DequantizeLinear", q, *constants, axis=0)
        return n.add("Conv", source, w, n.array(scales * 3))

    x = n.add("Cast", "x", to=onnx.TensorProto.FLOAT16)
    first, second = n.weights(4, 3, 3, 3), n.weights(2, 4, 1, 1)
    c = n.add("Relu", conv(pair(x, 0.0261), first))
    c = pair(conv(pair(c, 0.0372), second), 0.1234)
    n.add("Cast", c, output="y", to=onnx.TensorProto.FLOAT)
    return n, (first, second)


def test_scales_in_float16(tmp_path):
    """The integers are exact; onnxruntime's products are rounded to float16."""
    n, weights = half_network()
    path = save(tmp_path, n.model("y"))
    assert steps(path) == ["quantize", "conv2d", "conv2d", "dequantize"]
    made = [op.weights for op in program(path).ops if op.operation == "CONV2D"]
    for ours, theirs in zip(made, weights, strict=True):
        assert np.array_equal(ours.transpose(0, 3, 1, 2), theirs)
    found = differences(path, noise((1, 3, 8, 8)), fused=False)
    assert found.max() <= 1
    assert np.mean(found > 0) <= 0.05


def test_inputs_and_outputs_of_integers_and_float16(tmp_path):
    n = Net(1, 3, 8, 8, opset=19)
    scale, zero = n.array(np.float16(0.02)), n.array(ZERO)
    x = n.add("DequantizeLinear", "x", scale, zero)
    n.add("QuantizeLinear", n.add("Relu", x), scale, zero, output="y")
    model = of_type(n.model("y"), "x", onnx.TensorProto.INT8)
    model = of_type(model, "y", onnx.TensorProto.INT8)
    graph, table = load_quantized(save(tmp_path, model))
    assert set(table.tensors) == {"x", "y"}
    assert table.tensors["y"].scale == np.float16(0.02)
    assert graph.outputs == ("y",)


def test_integers_of_a_bias_are_taken_as_they_are(tmp_path):
    """Beyond 2**24 float32 cannot tell them apart."""
    bias = np.array([2**30 + 1, -(2**30) - 3, 2**24 + 1, 7], np.int32)
    path = one_layer(tmp_path, np.ones((4, 3, 1, 1), I8), [0.1, 0.3, 0.7, 0.9],
                     s_in=0.123, bias=bias)  # fmt: skip
    assert last_conv(path).bias.tolist() == bias.tolist()


def test_a_bias_of_another_scale_is_real(tmp_path):
    n = Net(1, 3, 8, 8)
    w = n.integers(np.ones((2, 3, 1, 1), I8), 0.01)
    b = n.integers(np.array([1000, -7], np.int32), 0.5)
    n.pair(n.add("Conv", n.pair("x", 0.02), w, b), 5.0, output="y")
    path = save(tmp_path, n.model("y"))
    unit = np.float64(np.float32(0.02)) * np.float32(0.01)
    assert (
        last_conv(path).bias.tolist() == np.rint(np.array([500, -3.5]) / unit).tolist()
    )
    check(path)


def test_a_factor_after_a_convolution_goes_into_the_scales(tmp_path):
    """As of BatchNormalization; a negative one turns the sign of the integers."""
    n = Net(1, 3, 8, 8)
    weights = n.weights(4, 3, 3, 3)
    c = n.conv(n.pair("x", 0.02), weights, 0.01)
    factor = np.array([2.0, -0.5, 0.0, 3.0], np.float32).reshape(1, 4, 1, 1)
    scaled = n.add("Mul", c, n.array(factor))
    shifted = n.add("Add", scaled, n.array(np.ones((1, 4, 1, 1), np.float32)))
    n.pair(shifted, 0.5, output="y")
    path = save(tmp_path, n.model("y"))
    expected = weights.astype(int) * np.sign(factor).astype(int).reshape(4, 1, 1, 1)
    assert np.array_equal(kept(path), expected)
    check(path)
