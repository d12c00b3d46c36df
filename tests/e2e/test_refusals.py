# SPDX-License-Identifier: Apache-2.0
"""Every reason for which a model file is refused, reached and told.

The reasons are those of the C sources: one that no damage here brings about fails the
last test.
"""

import dataclasses
import functools
import re
from pathlib import Path

import numpy as np
import pytest

import float_program
import integer_program
import test_open_refusals as open_refusals
from neon8.compile import writer
from neon8.ir.program import Program, Tensor
from neon8.runtime import Model
from opened_file import File, damages, refusal, said_of
from programs import step

RUNTIME = Path(__file__).resolve().parents[2] / "runtime"

SHAPES = {
    **float_program.SHAPES,
    **integer_program.SHAPES,
    "image": (1, 4, 6, 6),
    "other": (1, 4, 6, 6),
    "photo": (1, 6, 5, 4),
    "seen": (1, 4, 6, 5),
    **dict.fromkeys(("x", "conv", "sum", "rescaled"), (1, 4, 6, 6)),
    "real": (1, 4, 6, 6),
    **dict.fromkeys(("max", "mean"), (1, 4, 3, 3)),
    "both": (1, 8, 3, 3),
    **dict.fromkeys(("flat", "logits", "p"), (1, 72, 1, 1)),
    **dict.fromkeys(("mapped", "product", "ratio", "local"), (1, 4, 6, 6)),
    **dict.fromkeys(("classes", "gated"), (1, 4, 6, 6)),
    **dict.fromkeys(("wide", "curve"), (1, 4, 6, 6)),
    **dict.fromkeys(("norm", "portion", "evened", "last"), (1, 4, 6, 6)),
    **dict.fromkeys(("larger", "smaller", "total"), (1, 4, 6, 6)),
    "levels": (1, 4, 1, 6),
    "turned": (1, 6, 6, 4),
    "scores": (1, 36, 6, 6),
    "taken": (1, 4, 7, 6),
    "between": (1, 4, 2, 1),
    "among": (1, 4, 3, 1),
    "float_between": (1, 4, 1, 1),
}
FLOATS = {
    *("image", "real", "logits", "p", "float_between"),
    *(*float_program.SHAPES, *integer_program.FLOATS),
}
DTYPES = {
    **{name: {"dtype": "float32"} for name in FLOATS},
    **{name: {"dtype": "int32"} for name in integer_program.INTEGERS},
    "photo": {"dtype": "uint8"},
    "wide": {"dtype": "int16", "scale": np.float32(0.1)},
}
WINDOW = {"kernel": (2, 2), "strides": (2, 2), "dilations": (1, 1), "pads": (0,) * 4}
NOUGHT, HALF = np.float32(0), np.float32(0.5)
ONES = np.ones(4, np.float32)


def convolution(name, inputs, **fields):
    """3x3 in two groups, weights -36 .. 39."""
    weights = (np.arange(72) % 26 * 3 - 36).astype(np.int8).reshape(4, 3, 3, 2)
    sums = np.abs(weights.astype(np.int64)).sum(axis=(1, 2, 3)) * 128
    return step(
        "Conv2d",
        name,
        inputs,
        weights=weights,
        bias=np.full(4, 7, np.int32),
        multiplier=np.full(4, 0.01, np.float32),
        pads=(1, 1, 1, 1),
        groups=2,
        acc_bound=int(sums.max()) + 7,
        **fields,
    )


def resize(name, source, count, taps=2):
    indices = np.arange(taps * count, dtype=np.int32) % 6
    values = np.full(taps * count, 1 / taps, np.float32)
    fields = {"scale": np.float32(1), "indices": indices, "values": values}
    return step("Resize", name, source, groups=taps - 1, **fields)


def pixels_by_pixels():
    """Products of the rows of 36 pixels of 4 channels, each one times each one."""
    numbers = np.zeros(63, np.int32)
    numbers[:9] = 1, 1, 1, 1, 1, 1, 36, 36, 4
    numbers[[23, 26, 42, 43, 59, 62]] = 1  # steps of rows, depth, depth, columns
    return numbers


@functools.cache
def program() -> Program:
    """Each kind of step once, two inputs and two outputs."""
    tensors = {
        name: Tensor(
            name=name,
            dims=shape,
            **(DTYPES[name] if name in DTYPES else {"scale": np.float32(0.1)}),
        )
        for name, shape in SHAPES.items()
    }
    turn = np.array([[4, 6, 6, 1, 1, 1, 1, 1], [2, 1, 0, 3, 4, 5, 6, 7]], np.int32)
    lists = [[0], range(4), [0, 1, 2, 3, 4, 5, -1], range(6)]
    taken = np.concatenate(lists).astype(np.int32)
    every = np.arange(-128, 128, dtype=np.int8)
    lines = np.resize(np.int16([100, 8000]), (256, 2))
    photo = np.arange(-512, 512).astype(np.int8).reshape(4, 256)
    first = np.array([0, 1, 0, 2], np.int32)
    lrn = np.array([5, 1e-4, 0.75, 1], np.float32)
    norm = np.array([1] * 4 + [0] * 4 + [1e-5], np.float32)
    groups = {"groups": 2, "axis": 3, "function": "subtract"}
    total = np.array([0.5, 0.25, -1], np.float32)
    both = {"scale": HALF, "residual_scale": HALF}
    ops = (
        step("Quantize", "x", "image"),
        convolution("conv", "x", slopes=ONES),
        step("Matmul", "scores", "other conv", indices=pixels_by_pixels(), scale=HALF),
        step("Add", "sum", "conv other", **both),
        step("Requantize", "rescaled", "sum", scale=HALF),
        convolution("real", "rescaled", bias_f32=ONES),
        step("Pool", "max", "rescaled", kind="max", **WINDOW),
        step("Pool", "mean", "rescaled", kind="average", count_pad=True, **WINDOW),
        step("Concat", "both", "max mean", axis=1),
        step("Reshape", "flat", "both"),
        step("Dequantize", "logits", "flat"),
        step("Softmax", "p", "logits", axis=1),
        step("Permute", "turned", "sum", indices=turn),
        step("Gather", "taken", "sum", indices=taken, fill=np.float32(3)),
        step("Table", "mapped", "sum", table=every),
        step("Image", "seen", "photo", table=photo),
        step("Table", "classes", "mapped", indices=first, table=photo[:3] // 4),
        step("Multiply", "product", "classes other", scale=HALF),
        step("Multiply", "gated", "product other", scale=NOUGHT, multiplier=ONES),
        step("Divide", "ratio", "gated other", scale=HALF),
        step("Interpolate", "wide", "mapped", lines=lines, groups=1),
        step("Interpolate", "curve", "wide", lines=lines[:16], groups=16),
        step("Lrn", "local", "ratio", values=lrn),
        step("InstanceNorm", "norm", "local", values=norm),
        step("SoftmaxQ", "portion", "norm", axis=3),
        step("Normalization", "evened", "portion", values=norm, **groups),
        step("Maximum", "larger", "evened other"),
        step("Constant", "levels", "", levels=every[::11].copy()),
        step("Minimum", "smaller", "larger levels"),
        step("Sum", "total", "larger smaller other", values=total),
        resize("between", "sum", 3),
        resize("among", "sum", 4, taps=3),
        resize("float_between", "real", 2),
        *float_program.ops(),
        *integer_program.ops(),
        convolution("last", "x sum", slopes=ONES, residual_scale=HALF),
    )
    return Program(
        source_digest="5a" * 32,
        tensors=tensors,
        ops=ops,
        inputs=("image", "other", "photo"),
        outputs=(
            *("p", "turned", "scores", "taken", "between", "float_between"),
            *("among", "curve", "total", *float_program.OUTPUTS),
            *(*integer_program.OUTPUTS, "last"),
        ),
    )


REASONS = """\
a part of the file is not where it must be
    file: header.data = 1 << 40
a byte between two parts of the file is not 0
    file: bytes[header.strings + header.strings_size] = 1
there is no tensor, no step, no input or no output
    file: header.op_count = 0
there are more than 16384 tensors, steps or links
    file: header.link_count = 16385
there are fewer links than inputs and outputs
    file: header.input_count = 1000
the last name has no end
    file: bytes[header.strings + header.strings_size - 1] = ord("x")
a tensor's name is outside the names, or too long
    file: tensor x.name = 1 << 31
its name is outside the names, or too long
    file: step("conv").name = header.strings_size
a link names no tensor
    file: links[5] = header.tensor_count
an input of the network is listed twice
    file: links[1] = links[0]
a link belongs to no step
    file: step("last").input_count = 1; step("last").residual_scale = 0
an array belongs to no step
    file: step("last").slopes = 0
its type is unknown
    tensor x: type = 0
    tensor x: type = 6
it is uint8, which only inputs of the network are
    tensor logits: type = 4
its rank is above 8
    tensor x: rank = 9
a dimension is outside 1 .. 2^20, or not 1 after its rank
    tensor x: dims = 1, 4, 0, 6
    tensor x: rank = 3
the product of its dimensions from the fourth on is above 2^20
    tensor x: rank = 5; dims = 1, 1, 1, 1 << 11, 1 << 10
its reason is outside the names or too long, or it is not float32
    tensor x: reason = 1
    tensor image: reason = 1 << 20
it is neither int8 nor int16 and has a scale, zero point or range
    tensor image: scale = 2
    tensor photo: lo = -127
its scale is outside 1e-30 .. 1e30
    tensor x: scale = nan
its range is empty or beyond its type
    tensor x: hi = 128
    tensor x: lo = -129
    tensor x: lo = 1; hi = 0
its zero point is outside its range
    tensor x: lo = -127; zero_point = -128
it is larger than 2 GB
    tensor x: dims = 1, 1, 1 << 20, 1 << 20
its kind is unknown
    x: kind = 1000 / 0
its output is no tensor
    x: output = 1000
its links do not follow those of the step before
    x: inputs = 0
it has too few or too many inputs
    x: input_count = 2
an input is not of the type that it takes
    sum: input 0 = real
    best: input 0 = photo
    rows: input 1 = ids32
its output is not of the type that it makes
    sum: output = number("real")
    max: tensor.type = INT16
    mean: tensor.type = INT16
    norm: tensor.type = INT16
an input is not of the type of its output
    larger: tensor.type = INT16
    smaller: tensor levels.type = INT16
a kernel, stride, dilation or pad is outside its limits
    max: stride = 0, 1
    conv: pad_end = -1, 1
its clamp is empty or outside the range of its output
    sum: lo = 5; hi = 4
a scale is neither 0 nor in 1e-30 .. 2^64
    sum: residual_scale = -1e-31
    sum: scale = -1
    total: values[2] = nan
its inputs can not be broadcast to its output
    product: input 1 = max
    ratio: tensor.dims = 2, 4, 6, 6
its inputs and output differ in shape
    mapped: tensor.dims = 1, 4, 6, 5
    total: input 1 = max
    logits: tensor.dims = 1, 71
a value of its table is outside the range of its output
    mapped: tensor.lo = -127
    classes: tensor.hi = 30
    seen: tensor.lo = -127
a channel has a table that is not the next one, or none
    classes: indices[0] = 1 / -1
    classes: indices[3] = 3 / 256 / 1 << 30
all channels have the same table
    classes: indices[1] = 0; indices[3] = 0
it has a scale for all channels and one for each
    gated: scale = 0.5
neither its input nor its output is int16
    wide: tensor.type = INT8
its lines are of no power of 2 up to 2^15
    wide: groups = 3 / 0 / -1 / 1 << 16
its input is not N H W C where its output is N C H W
    seen: tensor photo.dims = 1, 5, 6, 4
its size, alpha, beta or bias is outside its limits
    local: values[0] = 4 / -1 / 2.5 / nan / 2e6
    local: values[1] = -1 / inf
    local: values[2] = 17 / -0.5
    local: values[3] = 0 / nan
a parameter is outside +-1e30
    evened: values[2] = nan
    evened: values[8] = inf
    norm: values[2] = nan
    norm: values[8] = inf
its epsilon is below 1e-30
    evened: values[8] = 0
    norm: values[8] = 0
an input exceeds its output's range
    larger: tensor.lo = -127
    larger: tensor.hi = 126
    turned: tensor sum.type = INT16; tensor sum.lo = -1000; tensor.type = INT16; \
tensor.lo = -999
its inputs and output differ in scale or zero point
    smaller: tensor.zero_point = 1
    max: tensor.zero_point = 1
its array is of another type
    levels: values = 64
    constant: weights = 64
a value is outside its range
    levels: tensor.lo = -127
    levels: tensor.hi = 124
its slope is outside +-2^30
    sum: slope = inf
its arrays are not where they must be
    conv: weights = 64
    real: multiplier = 0
a byte before one of its arrays is not 0
    conv: bytes[step("conv").bias + 16] = 1
its axis is not 0, 1, 2 or 3
    both: axis = 4
its inputs do not add up to its output
    both: tensor.dims = 1, 9, 3, 3
its groups do not divide its channels
    conv: groups = 3 / 0
    evened: groups = 3 / 0 / -1
its axis is neither 1 nor 3
    evened: axis = 0 / 2
its function is neither none nor subtract
    evened: function = 3
its output is not as large as it must be
    conv: pad_end = 1, 2
it has a field that its type of output does not use
    real: lo = 0
    conv: bias_f32 = 64
it has a residual without a scale, or a scale without a residual
    last: residual_scale = 0
its int16 depth is below 2
    conv: int16_depth = 1
it claims both forms of (23), or one of a window that has none
    conv: flags = 24
    conv: dilation = 1, 2; pad = 1, 2; pad_end = 1, 2; flags = 8 / 16
its output has another batch or channels
    max: tensor.dims = 1, 5, 3, 3
    between: tensor.dims = 2, 4, 2, 1
its window has more than 2^23 taps
    max: kernel = 1 << 12, 1 << 12
a window has no tap inside the input
    max: pad = 2, 0
its multiplier is outside 1e-30 .. 2^64
    mean: tensor.scale = 1e30
its output has not as many values
    flat: tensor.dims = 1, 71
    turned: tensor.dims = 1, 6, 6, 5
its axis is none of its output
    p: axis = 4
    portion: axis = 4 / -1
the scale of its output is outside 2^-40 .. 2^40
    portion: tensor.scale = 1e-13 / 1e13
its axes do not hold the values of its input, or are in no order
    turned: indices[0] = 5
    turned: indices[7] = 0 / 1 << 30
    turned: indices[8] = 1 / -1
    turned: indices[15] = 8
its axes do not fit the dimensions of its input and output
    turned: tensor.dims = 1, 9, 4, 4
an index is outside its input
    taken: indices[0] = -2 / 1
    taken: indices[4] = 4
    taken: indices[11] = 6
    taken: indices[17] = 1 << 30
its fill is no value of its output
    taken: fill = 0.5 / 128 / -129 / nan / inf
an index is outside its input, or a weight is too large
    between: indices[0] = -1
    between: indices[3] = 6
    between: indices[5] = 1 << 30
    between: values[0] = -0.5 / 1.25 / nan
    among: indices[11] = 6
    among: values[0] = -70000 / 70000 / nan / inf
it has fewer than 2 taps, or more than 256
    among: groups = 0 / -1 / 256 / 1 << 30
it is float32 and has a scale
    float_between: scale = 0.5
it reads a tensor that no step before it has made
    sum: input 1 = last
its output was made before, or is an input of the network
    sum: output = number("conv")
its weights do not prove its int16 depth
    last: weights[0] = -128; weights[5] = -128
    conv: int16_depth = 8
its weights do not prove its form of (23)
    conv: flags = 16
an accumulator can exceed 32 bits
    last: bias[0] = (1 << 31) - 1
its accumulator bound is not that of its weights
    last: bias[0] = 80000
    conv: acc_bound = (1 << 31) - 1
a multiplier is neither 0 nor in 1e-30 .. 2^64
    last: multiplier[3] = nan
    gated: multiplier[3] = nan / -1 / 1e-31
    gru: multiplier[0] = inf
a float bias is neither 0 nor a normal number
    real: bias_f32[0] = inf / 1e-38
a slope is outside +-2^30
    last: slopes[0] = nan
its function is neither none nor log
    p: function = 3
a value is NaN
    constant: values[0] = nan
its function is not well formed
    function: indices[0] = 0 / 3
    function: indices[3] = 0 / 23 / -1
    function: indices[9] = 1
    function: indices[4] = 1
a parameter of its function is wrong
    function: values[0] = 1
    function: values[2] = nan
    function: values[3] = 1
    function: values[20] = 2
    function: values[4] = inf
    function: indices[1] = 38; values[2] = 0
    function: indices[1] = 38; values[2] = 8; values[3] = 128
its function does not take two values
    broadcast: function = 0 / 2 / 7 / 22 / 26 / 31
its function does not compare
    holds: function = 3 / 25 / 29
its function does not take two integers
    summed: function = 0 / 2 / 8 / 25 / 36
an input cannot be broadcast
    broadcast: tensor constant.dims = 3, 2
    broadcast: tensor constant.rank = 5; tensor constant.dims = 1, 1, 1, 6
    summed: tensor.dims = 1, 4, 6, 5
    holds: tensor.dims = 1, 4, 6, 5
    chosen: tensor.dims = 1, 4, 6, 5
a weight or bias is not finite
    conv32: values[1] = nan
    conv32: bias_f32[1] = nan
its sequence and its output do not fit
    gru: tensor.dims = 9, 1, 2, 5
    gru: tensor.dims = 7, 3, 2, 5
    gru: tensor.dims = 7, 1, 2, 1 << 18
it has some of its states and not all
    lstm: input_count = 2
a state does not fit its output
    gru: input 1 = sequence
it has a flag that does not fit it
    lstm: flags = 4
a weight is -128
    gru: weights[0] = -128
a float bias is not finite
    gru: bias_f32[0] = nan
it has functions without values
    lstm: values = 0
its activations, clip or peepholes are wrong
    lstm: indices[1] = 0 / 2 / 15 / -1
    lstm: values[0] = 0 / -1 / nan
    lstm: values[1] = inf
    lstm: values[2] = inf
    lstm: values[13] = inf
    lstm: values[3] = nan / 5
    lstm: values[12] = nan
    lstm: values[27] = nan
it is requantized in integers (10), which is gone
    conv: indices = 64
its input or weights are int16, and it claims what is for int8
    conv: flags = 40
    conv: flags = 32; int16_depth = 3
    conv: tensor x.type = INT16; int16_depth = 3
    conv: tensor x.type = INT16; flags = 8
its window has more than 2^15 taps of int16
    mean: tensor rescaled.type = INT16; tensor max.type = INT16; tensor.type = INT16; \
kernel = 1 << 8, 1 << 8
it makes float32 and has a clamp
    mean: tensor.type = 2; tensor.scale = 1; lo = -127
    scores: tensor.type = 2; tensor.scale = 1; lo = -127
an operand of a matrix product is not int8
    scores: tensor conv.type = INT16
its second operand has a zero point
    scores: tensor conv.zero_point = 1
a size of its matrices is outside 1 .. 2^20
    scores: indices[0] = 0 / -1
    scores: indices[6] = 0 / 1 << 21
    scores: indices[8] = 0
it adds up more products than int32 was proved to hold
    scores: indices[8] = 66053
its matrices reach beyond a tensor
    scores: indices[6] = 37
    scores: indices[8] = 5
    scores: indices[9] = 1 / -1 / (1 << 31) - 1
    scores: indices[10] = 1 / -1
    scores: indices[23] = 2 / -1 / (1 << 31) - 1
    scores: indices[24] = 1 / -1
    scores: indices[27] = 1 / -1
    scores: indices[28] = 1
    scores: indices[41] = 1
    scores: indices[45] = 1 / -1
    scores: indices[46] = 1 / -1
    scores: indices[0] = 2; indices[47] = 1
its matrices are not each value of its output once
    scores: indices[59] = 0
    scores: indices[6] = 35
    scores: indices[0] = 2
    scores: indices[62] = 0
its output has other pixels, or more channels
    best: tensor.dims = 1, 5, 6, 6
    best: input 0 = max
its function is neither minimum nor maximum
    best: function = 0 / 3
its boxes, scores and rows do not fit
    kept: input 0 = scores32
    kept: input 1 = boxes32
    kept: input 0 = real
    kept: tensor.dims = 3, 3, 1, 1
    kept: tensor.dims = 12, 3, 1, 1
    kept: tensor.dims = 4, 2, 1, 1
    kept: tensor.dims = 1, 3, 1, 1
its blocks, rows or indices are outside their limits
    put32: indices[0] = 0 / -1
    put32: indices[1] = 0
    put32: indices[2] = 0 / -4
    put32: indices[3] = 2 / -1
    put32: indices[4] = 2 / 1
    put32: indices[5] = 0 / 9 / 1
    put32: indices[7] = 0 / -6
    put32: indices[8] = 2
its blocks, rows and indices are not those of its tensors
    rows: indices[0] = 35 / 1 << 30
    rows: indices[1] = 4
    rows: indices[6] = 5
    rows: indices[3] = 1
    placed: indices[2] = 4
    placed: input 2 = other
    put32: indices[6] = 1 << 30
    put32: tensor.dims = 1, 4, 36, 1
its function is none that it has for its type
    placed: function = 3 / 5 / 6
    put32: function = 6 / 1
    kept: function = 3 / 6
a row of its first operand or output is not of channels
    scores: indices[23] = 0; indices[25] = 1; indices[26] = 0
    scores: indices[59] = 0; indices[60] = 1; indices[61] = 1; indices[62] = 0
"""
"""See damages()."""


MEANT = "a flag is unknown, or a field that it does not use is set"
FIELDS = {
    "flags": 1,
    "kernel": (2, 1),
    "stride": (1, 2),
    "dilation": (2, 2),
    "pad": (0, 1),
    "pad_end": (1, 0),
    "groups": 2,
    "axis": 1,
    "lo": 0,
    "hi": 0,
    "scale": 1,
    "residual_scale": 1,
    "slope": 0,
    "fill": 1,
    "function": 1,
    "int16_depth": 3,
    "acc_bound": 1,
    **dict.fromkeys(("weights", "bias", "multiplier", "bias_f32", "slopes"), 64),
    **dict.fromkeys(("table", "indices", "values"), 64),
}
STORED = {
    "strides": {"stride"},
    "dilations": {"dilation"},
    "pads": {"pad", "pad_end"},
    "count_pad": {"flags"},
    "reverse": {"flags"},
    "linear_before_reset": {"flags"},
    "lines": {"table"},
    "levels": {"weights", "indices"},
}
"""What a field of a step is in its row, where that has another name."""
BESIDES = {"Conv2dOp": {"kernel", "indices"}}
"""By kind, what is refused for reasons of its own."""
MAXIMA = ("max", "max32")
"""Pools that do not count."""


def unused(op) -> dict:
    """The fields that a step of this kind does not have, each at another value."""
    own = {field.name for field in dataclasses.fields(op)}
    used = own.union(*(STORED[name] for name in own & STORED.keys()))
    used |= BESIDES.get(type(op).__name__, set())
    used -= {"flags"} if op.name in MAXIMA else set()
    return {field: value for field, value in FIELDS.items() if field not in used}


content_of = functools.cache(lambda: writer.dumps(program()))


def fresh() -> File:
    """The file of the program, to be damaged."""
    return File(program(), content_of())


def with_field(name, **fields) -> bytes:
    """The file with other fields in the row of a layer."""
    file = fresh()
    for field, value in fields.items():
        setattr(file.step(name), field, value)
    return file.content()


def test_the_file_itself_opens():
    file = fresh()
    assert file.content() == bytes(file.bytes)
    with Model.from_bytes(file.content()) as model:
        assert [step.name for step in model.steps] == [op.name for op in program().ops]


@pytest.mark.parametrize(("reason", "place", "damage"), [*damages(REASONS)])
def test_damage(reason, place, damage):
    file = fresh()
    file.damage(place, damage)
    assert refusal(file.content()) == said_of(place, reason)


CUT = "the file is cut off, or something was added to it"
WHOLE = [
    ("not a neon8 model", lambda _: b""),
    ("not a neon8 model", lambda content: content[:7]),
    ("not a neon8 model", lambda content: b"\x7fELF" + content[4:]),
    ("the file is cut off in its header", lambda content: content[:127]),
    (CUT, lambda content: content[:-1]),
    (CUT, lambda content: content + b"\0"),
    (
        "a format version that this library cannot read",
        lambda content: content[:8] + b"\4" + content[9:],
    ),
    (
        "the checksum is wrong: the file was damaged",
        lambda content: content[:-1] + bytes([content[-1] ^ 1]),
    ),
]


@pytest.mark.parametrize(("reason", "damage"), WHOLE)
def test_a_whole_file(reason, damage):
    content = bytes(fresh().bytes)
    assert refusal(damage(content)) == f"net.n8: {reason}"


FOLLOWS = "something follows the last part of the file"


def test_something_that_follows():
    file = fresh()
    file.header.file_size += 64
    longer = fresh()
    longer.bytes = file.bytes + bytes(64)
    assert refusal(longer.content()) == f"net.n8: {FOLLOWS}"


LONELY = "no step makes it"


def test_a_tensor_that_no_step_makes():
    lonely = Tensor(name="lonely", dims=(1,))
    given = program()
    more = dataclasses.replace(given, tensors=given.tensors | {"lonely": lonely})
    assert refusal(File(more).content()) == f"net.n8: tensor 'lonely': {LONELY}"


@pytest.mark.parametrize("op", program().ops, ids=lambda op: op.name)
def test_fields_that_are_not_used(op):
    """Each at another value than the writer gives it, and flags that nobody knows."""
    flags = (("flags", bit) for bit in (9, 17, 33, 64, 1 << 31))
    for field, value in (*unused(op).items(), *flags):
        said = refusal(with_field(op.name, **{field: value}))
        assert said == f"net.n8: layer {op.name!r}: {MEANT}", (field, value)


@pytest.mark.parametrize("depth", [2, 3, 7])
def test_an_int16_depth_that_the_weights_prove(depth):
    """The 7 largest of a channel add up to 237 at most, 8 to 264, more than 255."""
    with Model.from_bytes(with_field("conv", int16_depth=depth)) as model:
        (conv,) = (step for step in model.steps if step.name == "conv")
    assert conv.int16_depth == depth
    assert conv.weights == (-36, 39)


WHOLE_FORM, HALF_FORM = 8, 16


@pytest.mark.parametrize("at", [(0, 0, 0), (3, 2, 1), (1, 1, 0)])
@pytest.mark.parametrize(
    ("form", "taps", "proved"),
    [
        (WHOLE_FORM, (100, 27, 0), True),
        (WHOLE_FORM, (-64, -31, -32), True),
        (WHOLE_FORM, (127, -127, -127), True),
        (WHOLE_FORM, (100, -28, 0), False),
        (WHOLE_FORM, (-64, 31, -33), False),
        (HALF_FORM, (127, 100, 27), True),
        (HALF_FORM, (-127, 127, -126), False),
        (HALF_FORM, (-127, 0, -127), True),
        (HALF_FORM, (127, -102, 27), False),
        (HALF_FORM, (1, 0, 0), False),
    ],
)
def test_weights_at_the_bounds_of_23(form, taps, proved, at):
    """Three taps of a row, there of output channel, row and input channel; else 0."""
    weights = np.zeros((4, 3, 3, 2), np.int8)
    weights[at[0], at[1], :, at[2]] = taps
    file = fresh()
    last = file.step("last")
    for index, value in enumerate(weights.flat):
        file.part("int8_t *", last.weights)[index] = int(value)
    last.flags, last.acc_bound = form, sum(map(abs, taps)) * 128 + 7
    if proved:
        Model.from_bytes(file.content()).close()
    else:
        reason = "its weights do not prove its form of (23)"
        assert refusal(file.content()) == f"net.n8: layer 'last': {reason}"


@pytest.mark.parametrize(
    ("more", "claim", "said"),
    [
        (0, 0, ""),
        (1, 0, "an accumulator can exceed 32 bits"),
        (-1, 1, "its accumulator bound is not that of its weights"),
    ],
)
def test_int16_weights_at_the_bound_of_12(more, claim, said):
    """18 of them, and a bias that brings the sums to 2^31 - 1."""
    before = program()
    *ops, last = before.ops
    weights = np.full(last.weights.shape, -(2**15), np.int16)
    room = 2**31 - 1 - 18 * 2**15 * 128
    last = dataclasses.replace(
        last,
        weights=weights,
        bias=np.array([0, 7, -7, -room - more], np.int32),
        acc_bound=min(2**31 - 1 + more + claim, 2**31 - 1),
    )
    file = writer.dumps(dataclasses.replace(before, ops=(*ops, last)))
    if said:
        assert refusal(file) == f"net.n8: layer 'last': {said}"
    else:
        with Model.from_bytes(file) as model:
            assert model.steps[-1].weights == (-(2**15), -(2**15))


def test_a_weight_of_minus_128_that_is_alone():
    """With any other weight of its channel it adds up to 255 at most (11)."""
    before = program().ops[[op.name for op in program().ops].index("last")]
    more = (128 - abs(int(before.weights.reshape(4, -1)[0, 0]))) * 128
    file = fresh()
    file.damage("last", "weights[0] = -128")
    sums = np.abs(before.weights.astype(int)).sum(axis=(1, 2, 3)) * 128 + 7
    sums[0] += more
    file.step("last").acc_bound = int(sums.max())
    with Model.from_bytes(file.content()) as model:
        (last,) = (step for step in model.steps if step.name == "last")
    assert last.weights == (-128, 39)


def test_a_name_that_is_no_text():
    """Wherever it comes from, an error stays one line of printable text."""
    file = fresh()
    at = file.bytes.index(b"image\0")
    file.bytes[at : at + 5] = b"\xff\n\x1b[2"
    file.tensor("image").rank = 9
    said = refusal(file.content())
    assert said == r"net.n8: tensor '�\n\x1b[2': its rank is above 8"


def reasons() -> set[str]:
    """What the C sources can say."""
    found = set()
    quoted = r"((?:\"[^\"]*\"\s*)+)"
    call = rf"(?:refuse|malformed)\(\s*[\w>-]+,\s*(?:N8_E_\w+,\s*)?{quoted}\)"
    for path in RUNTIME.rglob("*.[ch]"):
        for words in re.findall(call, path.read_text(encoding="utf-8")):
            found.add("".join(re.findall(r'"([^"]*)"', words)))
    return found


def test_every_reason_is_reached():
    reached = {reason for reason, *_ in (*damages(REASONS), *WHOLE)}
    reached |= {MEANT, FOLLOWS, LONELY} | open_refusals.REACHED
    assert len(reached) > 60
    assert reasons() == reached
