# SPDX-License-Identifier: Apache-2.0
"""The public single layers against the oracle."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import single_layers as layers
from levels import levels
from neon8.compile import oracle
from neon8.errors import ModelError
from neon8.ir.program import Tensor
from neon8.operators.convolution import Conv2dOp, conv_sums
from neon8.operators.reference import as_float, centred, quantize, rounded
from random_program import random_inputs, random_program

SPECIAL = [0.0, -0.0, np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-40, 126.5, -127.5, 0.5]
SCALES = [1.0, 0.5, 0.37, 1e-30, 1e30, 2.0**-7]
ZERO_POINTS = [-128, -1, 0, 1, 127]


def bits(array):
    return array.dtype, array.shape, array.tobytes()


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("zero_point", ZERO_POINTS)
@pytest.mark.parametrize("size", [1, 7, 8, 15, 16, 17, 33, 1000])
def test_quantize(scale, zero_point, size):
    rng = np.random.default_rng(size)
    steps = np.where(
        rng.random(size) < 0.5,
        rng.integers(-300, 300, size) + 0.5,
        rng.choice(SPECIAL, size),
    )
    with np.errstate(over="ignore"):
        x = (steps * scale).astype(np.float32)
    lo = -127 if zero_point == 0 else -128
    out = Tensor(
        name="q",
        dims=(1, size),
        scale=np.float32(scale),
        zero_point=zero_point,
        lo=lo,
    )
    result = layers.quantize(x, scale=scale, zero_point=zero_point, lo=lo)
    assert bits(result) == bits(quantize(x, out))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("zero_point", ZERO_POINTS)
def test_dequantize(scale, zero_point):
    q = np.arange(-128, 128).astype(np.int8).reshape(4, 64)
    source = Tensor(name="q", dims=(4, 64), zero_point=zero_point)
    expected = centred(q, source) * np.float32(scale)
    result = layers.dequantize(q, scale=scale, zero_point=zero_point)
    assert bits(result) == bits(expected)


def sums(rng, shape):
    """int32 values of all sizes, ties in float32 included."""
    bits_used = rng.integers(1, 32, shape)
    return (rng.integers(-(2**31), 2**31, shape) >> (31 - bits_used)).astype(np.int32)


@pytest.mark.parametrize("channels", [1, 3, 4, 5, 8, 17])
@pytest.mark.parametrize("pixels", [1, 2, 5])
def test_dequantize_s32(pixels, channels):
    rng = np.random.default_rng(channels)
    acc = sums(rng, (pixels, channels))
    scale = (2.0 ** rng.uniform(-20, 3, channels)).astype(np.float32)
    bias = rng.normal(0, 100, channels).astype(np.float32)
    acc[rng.random(acc.shape) < 0.3] = 0  # which leave the bias
    bias[rng.random(channels) < 0.5] = np.finfo(np.float32).tiny
    product = as_float(acc.astype(np.int64)) * scale
    assert bits(layers.dequantize_s32(acc, scale, bias)) == bits(product + bias)
    zero = np.float32(0)
    assert bits(layers.dequantize_s32(acc, scale)) == bits(product + zero)


@pytest.mark.parametrize("channels", [1, 3, 4, 5, 8, 17])
@pytest.mark.parametrize("zero_point", ZERO_POINTS)
def test_requantize_s32(channels, zero_point):
    rng = np.random.default_rng(channels)
    acc = sums(rng, (9, channels))
    multiplier = (2.0 ** rng.integers(-24, 1, channels)).astype(np.float32)
    out = Tensor(name="q", dims=(9, channels), zero_point=zero_point)
    product = as_float(acc.astype(np.int64)) * multiplier
    expected = rounded(product, out, -100, 101)
    result = layers.requantize_s32(
        acc, multiplier, zero_point=zero_point, lo=-100, hi=101
    )
    assert bits(result) == bits(expected)


def to_nhwc(array):
    return np.ascontiguousarray(array.transpose(0, 2, 3, 1))


def convolutions(seed):
    """(program, op, operands) for each convolution of int8 in a random program."""
    program = random_program(seed)
    values = {
        name: oracle.taken(program.tensors[name], random_inputs(program, seed))
        for name in program.inputs
    }
    for op in program.ops:
        operands = [values[name] for name in op.inputs]
        values[op.output] = oracle.step(
            program, op, program.tensors[op.output], operands
        )
        ends = {program.tensors[name].dtype for name in (*op.inputs, op.output)}
        narrow = isinstance(op, Conv2dOp) and op.weights.dtype == np.int8
        if narrow and "int16" not in ends:
            yield program, op, operands


def layer_of(program, op, operands, *, kind, isa):
    """The single layer that does what `op` does, or only its sums."""
    source, out = program.tensors[op.inputs[0]], program.tensors[op.output]
    residual = program.tensors[op.inputs[1]] if len(op.inputs) == 2 else out
    epilogue = {
        "type": kind,
        "bias": op.bias,
        "multiplier": None if kind == "int32" else op.multiplier,
        "bias_f32": op.bias_f32,
        "slope": None if kind == "int32" else op.slopes,
        "residual_scale": 0 if kind == "int32" else float(op.residual_scale),
        "residual_zero_point": residual.zero_point,
        "zero_point": out.zero_point,
        "lo": op.lo,
        "hi": op.hi,
    }
    # The single layer derives the output size from all four pads, the file states it.
    spare = [
        (out.shape[2 + axis] - 1) * op.strides[axis]
        + (op.weights.shape[1 + axis] - 1) * op.dilations[axis]
        + 1
        - source.shape[2 + axis]
        - op.pads[axis]
        for axis in (0, 1)
    ]
    return layers.Conv2d(
        op.weights,
        to_nhwc(operands[0]).shape,
        in_zero_point=source.zero_point,
        strides=op.strides,
        pads=(*op.pads[:2], *spare),
        dilations=op.dilations,
        groups=op.groups,
        isa=isa,
        **epilogue,
    )


@pytest.mark.parametrize("isa", ["c", None])
@settings(max_examples=settings().max_examples * 3 // 2)
@given(seed=st.integers(0, 2**32 - 1))
def test_conv2d(isa, seed):
    for program, op, operands in convolutions(seed):
        out = program.tensors[op.output]
        nhwc = [to_nhwc(operand) for operand in operands]
        layer = layer_of(program, op, operands, kind=out.dtype, isa=isa)
        expected = to_nhwc(oracle.step(program, op, out, operands))
        assert bits(layer.run(*nhwc)) == bits(expected)
        acc = conv_sums(op, out, program.tensors[op.inputs[0]], operands[0])
        acc += op.bias[:, None, None]
        layer = layer_of(program, op, operands, kind="int32", isa=isa)
        assert bits(layer.run(nhwc[0])) == bits(to_nhwc(acc).astype(np.int32))


def windows(x, size, *, pads, strides, dilations, zero_point):
    """What each output of N H W C sees, N OH OW C KH KW."""
    top, left, bottom, right = pads
    edges = ((0, 0), (top, bottom), (left, right), (0, 0))
    padded = np.pad(x.astype(np.int64), edges, constant_values=zero_point)
    reach = [(k - 1) * d + 1 for k, d in zip(size, dilations, strict=True)]
    seen = np.lib.stride_tricks.sliding_window_view(padded, reach, (1, 2))
    (down, across), (high, wide) = strides, dilations
    return seen[:, ::down, ::across, :, ::high, ::wide]


@given(seed=st.integers(0, 2**32 - 1))
def test_windows_of_few_channels(seed):
    """Layers whose windows are copied, and share columns where they overlap."""
    rng = np.random.default_rng(seed)
    channels, height, width = rng.integers((1, 1, 1), (9, 12, 50)).tolist()
    size = rng.integers(1, (9, 12)).tolist()
    pads = rng.integers(0, np.array([size, size]).ravel() + rng.integers(1, 3)).tolist()
    dilations = rng.choice([1, 1, 1, 2], 2).tolist()
    strides = rng.integers(1, np.array(size) + 2).tolist()
    x = rng.integers(-128, 128, (2, height, width, channels), np.int8)
    weights = rng.integers(-127, 128, (5, *size, channels), np.int8)
    if any(
        extent + pads[axis] + pads[axis + 2] < (size[axis] - 1) * dilations[axis] + 1
        for axis, extent in enumerate((height, width))
    ):
        return
    options = {"pads": pads, "strides": strides, "dilations": dilations}
    seen = windows(x, size, zero_point=-7, **options)
    expected = np.einsum("nyxcij,oijc->nyxo", seen, weights.astype(np.int64))
    layer = layers.Conv2d(
        weights,
        x.shape,
        type="int32",
        in_zero_point=-7,
        **options,
    )
    assert bits(layer.run(x)) == bits(expected.astype(np.int32))


@pytest.mark.parametrize("groups", [1, 2])
def test_weights_beyond_a_second_level_cache(groups):
    """They are read in slices, each for all pixels."""
    rng = np.random.default_rng(groups)
    channels, depth = 1100 * groups, 1024 // groups
    weights = rng.integers(-127, 128, (channels, 1, 1, depth), np.int8)
    x = rng.integers(-128, 128, (1, 3, 11, 1024), np.int8)
    bias = rng.integers(-4000, 4000, channels, np.int32)
    parts = zip(
        np.split(x[0].astype(float), groups, -1), np.split(weights, groups), strict=True
    )
    sums = [part @ of_group[:, 0, 0].T.astype(float) for part, of_group in parts]
    expected = np.concatenate(sums, axis=-1)[None].astype(np.int32) + bias
    options = {"type": "int32", "bias": bias, "groups": groups}
    for isa in levels():
        layer = layers.Conv2d(weights, x.shape, isa=isa, **options)
        assert bits(layer.run(x)) == bits(expected), isa


def test_copied_windows_of_weights_beyond_a_second_level_cache():
    """Each slice begins with the first rows of the image again."""
    rng = np.random.default_rng(7)
    weights = rng.integers(-127, 128, (1400, 16, 16, 3), np.int8)
    x = rng.integers(-128, 128, (1, 96, 112, 3), np.int8)
    # Patches, which do not overlap.
    patches = x.reshape(6, 16, 7, 16, 3).transpose(0, 2, 1, 3, 4).reshape(42, 768)
    sums = patches.astype(float) @ weights.reshape(1400, 768).T.astype(float)
    expected = sums.astype(np.int32).reshape(1, 6, 7, 1400)
    for isa in levels():
        layer = layers.Conv2d(weights, x.shape, strides=(16, 16), type="int32", isa=isa)
        assert bits(layer.run(x)) == bits(expected), isa


@pytest.mark.parametrize("residual_scale", [0.0, 0.5, 100.0, -100.0])
@pytest.mark.parametrize("multiplier", [2.0**-16, 0.25 / 2**9, 32638 / 2**22, 2.0**-7])
@pytest.mark.parametrize("beyond", [-1, 0, 1, 2])
def test_conv2d_at_the_limits_of_small_values(beyond, multiplier, residual_scale):
    """Sums of up to 2^22 - 1 and results of up to 32638 are rounded in another way."""
    depth, channels, zero_point = 24, 17, 3 - (beyond % 2)
    weights = np.full((channels, 1, 1, depth), 127, np.int8)
    weights[::2] = -127
    room = 2**22 + beyond - depth * 127 * 128
    bias = np.where(weights[:, 0, 0, 0] > 0, -room, room).astype(np.int32)
    x = np.random.default_rng(beyond + 1).integers(-128, 128, (1, 3, 6, depth), np.int8)
    x[0, 0] = -128
    residual = x[..., :channels] if residual_scale else None
    epilogue = {
        "bias": bias,
        "multiplier": np.full(channels, multiplier, np.float32),
        "residual_scale": residual_scale,
        "residual_zero_point": -128,
        "zero_point": zero_point,
    }
    acc = x.astype(np.int64) @ weights[:, 0, 0].T.astype(np.int64) + bias
    assert np.abs(acc).max() == 2**22 + beyond
    values = as_float(acc) * np.float32(multiplier)
    if residual_scale:
        centred = (x[..., :channels].astype(np.int32) + 128).astype(np.float32)
        values = values + centred * np.float32(residual_scale)
    expected = np.clip(np.rint(values) + zero_point, -128, 127).astype(np.int8)
    for isa in ("c", None):
        layer = layers.Conv2d(weights, x.shape, isa=isa, **epilogue)
        assert bits(layer.run(x, residual)) == bits(expected)


ONES = np.ones((4, 1, 1, 4), np.int8)
UNIT = np.ones(4, np.float32)
IN = (1, 2, 2, 4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: layers.quantize(UNIT, scale=0.0), "invalid argument"),
        (lambda: layers.quantize(UNIT, scale=np.inf), "invalid argument"),
        (
            lambda: layers.requantize_s32(np.ones((2, 4), np.int32), UNIT * 1e-35),
            "invalid argument",
        ),
        (lambda: layers.Conv2d(ONES, IN), "invalid argument"),
        (
            lambda: layers.Conv2d(
                ONES, IN, type="int32", bias=np.full(4, 2**31 - 1, np.int32)
            ),
            "exceed 32 bits",
        ),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ModelError, match=message):
        call()


def test_conv2d_refuses_a_residual_without_scale():
    layer = layers.Conv2d(ONES, IN, type="int32")
    x = np.zeros(IN, np.int8)
    with pytest.raises(ModelError, match="invalid argument"):
        layer.run(x, x)
