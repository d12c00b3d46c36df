# SPDX-License-Identifier: Apache-2.0
"""Every reason for which a model file is refused, reached and told.

The reasons are those of the C sources: one that no damage here brings about fails the
last test.
"""

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest

import float_program
from neon8.errors import ModelError
from neon8.ir.program import Program, Tensor
from neon8.operators.arithmetic import (
    AddOp,
    DivideOp,
    MaximumOp,
    MinimumOp,
    MultiplyOp,
    SumOp,
)
from neon8.operators.conversion import DequantizeOp, ImageOp, QuantizeOp, RequantizeOp
from neon8.operators.convolution import Conv2dOp
from neon8.operators.floats import ConstantOp
from neon8.operators.movement import ConcatOp, PermuteOp, ReshapeOp
from neon8.operators.normalization import InstanceNormOp, LrnOp, SoftmaxOp
from neon8.operators.pointwise import TableOp
from neon8.operators.pooling import PoolOp
from neon8.operators.resize import ResizeLinearOp
from neon8.operators.selection import GatherOp
from neon8.runtime import Model
from opened_file import File

RUNTIME = Path(__file__).resolve().parents[2] / "runtime"

SHAPES = {
    **float_program.SHAPES,
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
    **dict.fromkeys(("norm", "whole", "last"), (1, 4, 6, 6)),
    **dict.fromkeys(("larger", "smaller", "total"), (1, 4, 6, 6)),
    "levels": (1, 4, 1, 6),
    "turned": (1, 6, 6, 4),
    "taken": (1, 4, 7, 6),
    "between": (1, 4, 2, 1),
    "float between": (1, 4, 1, 1),
}
FLOATS = {"image", "real", "logits", "p", "float between", *float_program.SHAPES}
DTYPES = {
    **{name: {"dtype": "float32"} for name in FLOATS},
    "photo": {"dtype": "uint8"},
}
INT16 = 5
"""The type, in the file."""
WINDOW = {"kernel": (2, 2), "strides": (2, 2), "dilations": (1, 1), "pads": (0,) * 4}


def convolution(name, inputs, *, fixed=None, **fields):
    """3x3 in two groups, weights -36 .. 39."""
    weights = (np.arange(72) % 26 * 3 - 36).astype(np.int8).reshape(4, 3, 3, 2)
    sums = np.abs(weights.astype(np.int64)).sum(axis=(1, 2, 3)) * 128
    return Conv2dOp(
        name=name,
        inputs=inputs,
        output=name,
        weights=weights,
        bias=np.full(4, 7, np.int32),
        multiplier=np.full(4, 0.01, np.float32) if fixed is None else None,
        indices=fixed,
        pads=(1, 1, 1, 1),
        groups=2,
        acc_bound=int(sums.max()) + 7,
        **fields,
    )


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
    half = np.float32(0.5)
    turn = np.array([[4, 6, 6, 1, 1, 1, 1, 1], [2, 1, 0, 3, 4, 5, 6, 7]], np.int32)
    lists = [[0], range(4), [0, 1, 2, 3, 4, 5, -1], range(6)]
    ops = (
        QuantizeOp(name="x", inputs=("image",), output="x"),
        convolution("conv", ("x",), slopes=np.ones(4, np.float32)),
        AddOp(
            name="sum",
            inputs=("conv", "other"),
            output="sum",
            scale=half,
            residual_scale=half,
        ),
        RequantizeOp(name="rescaled", inputs=("sum",), output="rescaled", scale=half),
        convolution("real", ("rescaled",), bias_f32=np.ones(4, np.float32)),
        PoolOp(name="max", inputs=("rescaled",), output="max", kind="max", **WINDOW),
        PoolOp(
            name="mean",
            inputs=("rescaled",),
            output="mean",
            kind="average",
            count_pad=True,
            **WINDOW,
        ),
        ConcatOp(name="both", inputs=("max", "mean"), output="both", axis=1),
        ReshapeOp(name="flat", inputs=("both",), output="flat"),
        DequantizeOp(name="logits", inputs=("flat",), output="logits"),
        SoftmaxOp(name="p", inputs=("logits",), output="p", axis=1),
        PermuteOp(name="turned", inputs=("sum",), output="turned", indices=turn),
        GatherOp(
            name="taken",
            inputs=("sum",),
            output="taken",
            indices=np.concatenate(lists).astype(np.int32),
            fill=np.float32(3),
        ),
        TableOp(
            name="mapped",
            inputs=("sum",),
            output="mapped",
            table=np.arange(-128, 128, dtype=np.int8),
        ),
        ImageOp(
            name="seen",
            inputs=("photo",),
            output="seen",
            table=np.arange(-512, 512).astype(np.int8).reshape(4, 256),
        ),
        MultiplyOp(
            name="product", inputs=("mapped", "other"), output="product", scale=half
        ),
        DivideOp(name="ratio", inputs=("product", "other"), output="ratio", scale=half),
        LrnOp(
            name="local",
            inputs=("ratio",),
            output="local",
            values=np.array([5, 1e-4, 0.75, 1], np.float32),
        ),
        InstanceNormOp(
            name="norm",
            inputs=("local",),
            output="norm",
            values=np.array([1] * 4 + [0] * 4 + [1e-5], np.float32),
        ),
        MaximumOp(name="larger", inputs=("norm", "other"), output="larger"),
        ConstantOp(
            name="levels",
            inputs=(),
            output="levels",
            levels=np.arange(-128, 128, 11, dtype=np.int8),
        ),
        MinimumOp(name="smaller", inputs=("larger", "levels"), output="smaller"),
        SumOp(
            name="total",
            inputs=("larger", "smaller", "other"),
            output="total",
            values=np.array([0.5, 0.25, -1], np.float32),
        ),
        *(
            ResizeLinearOp(
                name=name,
                inputs=(source,),
                output=name,
                scale=np.float32(1),
                indices=np.arange(2 * count, dtype=np.int32),
                values=np.full(2 * count, 0.5, np.float32),
            )
            for name, source, count in (
                ("between", "sum", 3),
                ("float between", "real", 2),
            )
        ),
        *float_program.ops(),
        convolution("whole", ("x",), fixed=np.full((4, 2), (2**30, 5), np.int32)),
        convolution(
            "last",
            ("x", "sum"),
            slopes=np.ones(4, np.float32),
            residual_scale=half,
        ),
    )
    return Program(
        source_digest="5a" * 32,
        tensors=tensors,
        ops=ops,
        inputs=("image", "other", "photo"),
        outputs=(
            *("p", "turned", "taken", "between", "float between"),
            *("total", "whole", *float_program.OUTPUTS, "last"),
        ),
    )


def put(kind, array, value, at=(0,)):
    """Damage that writes entries of an array of layer `last` or `real`."""

    def damage(file):
        row = file.step("real" if array == "bias_f32" else "last")
        for index in at:
            file.part(kind, getattr(row, array))[index] = value

    return damage


def index(name, at, value):
    """Damage that writes one of the indices of a layer."""

    def damage(file):
        file.part("int32_t *", file.step(name).indices)[at] = value

    return damage


def put_fixed(pair):
    """Damage that writes the first M0 and n of (10)."""

    def damage(file):
        array = file.part("int32_t *", file.step("whole").indices)
        array[0], array[1] = pair

    return damage


def entry(name, kind, array, value, at=0):
    """Damage that writes one entry of an array of a layer."""

    def damage(file):
        file.part(kind, getattr(file.step(name), array))[at] = value

    return damage


def weight(name, value):
    """Damage that writes the first of the values of a layer."""

    def damage(file):
        file.part("float *", file.step(name).values)[0] = value

    return damage


def step(name, /, **fields):
    """Damage that sets fields of a layer's row."""

    def damage(file):
        for field, value in fields.items():
            setattr(file.step(name), field, value)

    return damage


def tensor(name, /, **fields):
    """Damage that sets fields of a tensor's row."""

    def damage(file):
        for field, value in fields.items():
            setattr(file.tensor(name), field, value)

    return damage


def together(*damages):
    """Several damages, one after the other."""

    def damage(file):
        for one in damages:
            one(file)

    return damage


def link(name, which, other):
    """Damage that lets a layer read another tensor."""
    return lambda file: file.link(name, which, other)


def header(**fields):
    """Damage that sets fields of the header."""

    def damage(file):
        for field, value in fields.items():
            setattr(file.header, field, value)

    return damage


def byte_after(place):
    """Damage of the byte at the offset that `place` gives."""

    def damage(file):
        file.bytes[place(file)] = 1

    return damage


def one_link_less(file):
    row = file.step("last")
    row.input_count, row.residual_scale = 1, 0


def no_end(file):
    file.bytes[file.header.strings + file.header.strings_size - 1] = ord("x")


def far_name(file):
    file.step("conv").name = file.header.strings_size


def link_to_nowhere(file):
    file.links[5] = file.header.tensor_count


def twice(file):
    file.links[1] = file.links[0]


FILE = [
    ("a part of the file is not where it must be", header(data=1 << 40)),
    (
        "a byte between two parts of the file is not 0",
        byte_after(lambda file: file.header.strings + file.header.strings_size),
    ),
    ("there is no tensor, no step, no input or no output", header(op_count=0)),
    ("there are more than 16384 tensors, steps or links", header(link_count=16385)),
    ("there are fewer links than inputs and outputs", header(input_count=1000)),
    ("the last name has no end", no_end),
    ("a tensor's name is outside the names, or too long", tensor("x", name=1 << 31)),
    ("a link names no tensor", link_to_nowhere),
    ("an input of the network is listed twice", twice),
    ("a link belongs to no step", one_link_less),
    ("an array belongs to no step", step("last", slopes=0)),
]


TENSOR = [
    ("it is neither int8 nor int16 nor float32 nor uint8", "x", {"type": 3}),
    (
        "it is uint8, which only inputs of the network are",
        *("logits", {"type": 4}),
    ),
    ("its rank is above 8", "x", {"rank": 9}),
    (
        "a dimension is outside 1 .. 2^20, or not 1 after its rank",
        *("x", {"dims": (1, 4, 0, 6, 1, 1, 1, 1)}),
    ),
    (
        "a dimension is outside 1 .. 2^20, or not 1 after its rank",
        *("x", {"rank": 3}),
    ),
    (
        "the product of its dimensions from the fourth on is above 2^20",
        *("x", {"rank": 5, "dims": (1, 1, 1, 1 << 11, 1 << 10, 1, 1, 1)}),
    ),
    (
        "its reason is outside the names or too long, or it is not float32",
        *("x", {"reason": 1}),
    ),
    (
        "its reason is outside the names or too long, or it is not float32",
        *("image", {"reason": 1 << 20}),
    ),
    (
        "it is neither int8 nor int16 and has a scale, zero point or range",
        "image",
        {"scale": 2},
    ),
    (
        "it is neither int8 nor int16 and has a scale, zero point or range",
        "photo",
        {"lo": -127},
    ),
    ("its scale is outside 1e-30 .. 1e30", "x", {"scale": float("nan")}),
    ("its range is empty or beyond its type", "x", {"hi": 128}),
    ("its range is empty or beyond its type", "x", {"lo": -129}),
    ("its range is empty or beyond its type", "x", {"lo": 1, "hi": 0}),
    ("its zero point is outside its range", "x", {"lo": -127, "zero_point": -128}),
    ("it is larger than 2 GB", "x", {"dims": (1, 1, 1 << 20, 1 << 20, 1, 1, 1, 1)}),
]

STEP = [
    ("its name is outside the names, or too long", None, far_name),
    ("its kind is unknown", "x", step("x", kind=1000)),
    ("its kind is unknown", "x", step("x", kind=0)),
    ("its output is no tensor", "x", step("x", output=1000)),
    ("its links do not follow those of the step before", "x", step("x", inputs=0)),
    ("it has too few or too many inputs", "x", step("x", input_count=2)),
    ("an input is not of the type that it takes", "sum", link("sum", 0, "real")),
    (
        "its output is not of the type that it makes",
        *("sum", lambda file: step("sum", output=file.number("real"))(file)),
    ),
    (
        "a kernel, stride, dilation or pad is outside its limits",
        *("max", step("max", stride=(0, 1))),
    ),
    (
        "a kernel, stride, dilation or pad is outside its limits",
        *("conv", step("conv", pad_end=(-1, 1))),
    ),
    (
        "its clamp is empty or outside the range of its output",
        *("sum", step("sum", lo=5, hi=4)),
    ),
    (
        "a scale is neither 0 nor in 1e-30 .. 2^64",
        *("sum", step("sum", residual_scale=-1e-31)),
    ),
    ("a scale is neither 0 nor in 1e-30 .. 2^64", "sum", step("sum", scale=-1)),
    (
        "its inputs can not be broadcast to its output",
        *("product", link("product", 1, "max")),
    ),
    (
        "its inputs can not be broadcast to its output",
        *("ratio", tensor("ratio", dims=(2, 4, 6, 6, 1, 1, 1, 1))),
    ),
    (
        "its inputs and output differ in shape",
        *("mapped", tensor("mapped", dims=(1, 4, 6, 5, 1, 1, 1, 1))),
    ),
    (
        "an entry of its table is outside the range of its output",
        *("mapped", tensor("mapped", lo=-127)),
    ),
    (
        "its input is not N H W C where its output is N C H W",
        *("seen", tensor("photo", dims=(1, 5, 6, 4, 1, 1, 1, 1))),
    ),
    (
        "an entry of its tables is outside the range of its output",
        *("seen", tensor("seen", lo=-127)),
    ),
    *(
        (
            "its size, alpha, beta or bias is outside its limits",
            *("local", entry("local", "float *", "values", value, at)),
        )
        for at, value in (
            *((0, 4), (0, -1), (0, 2.5), (0, float("nan")), (0, 2e6), (1, -1)),
            *((1, float("inf")), (2, 17), (2, -0.5), (3, 0), (3, float("nan"))),
        )
    ),
    (
        "a parameter is outside +-1e30",
        *("norm", entry("norm", "float *", "values", float("nan"), 2)),
    ),
    (
        "a parameter is outside +-1e30",
        *("norm", entry("norm", "float *", "values", float("inf"), 8)),
    ),
    (
        "its epsilon is below 1e-30",
        *("norm", entry("norm", "float *", "values", 0, 8)),
    ),
    (
        "an input exceeds its output's range",
        *("larger", tensor("larger", lo=-127)),
    ),
    ("an input exceeds its output's range", "larger", tensor("larger", hi=126)),
    (
        "its inputs and output differ in scale or zero point",
        *("smaller", tensor("smaller", zero_point=1)),
    ),
    ("its array is of another type", "levels", step("levels", values=64)),
    ("its array is of another type", "constant", step("constant", weights=64)),
    ("a value is outside its range", "levels", tensor("levels", lo=-127)),
    ("a value is outside its range", "levels", tensor("levels", hi=124)),
    (
        "its inputs and output differ in shape",
        *("total", link("total", 1, "max")),
    ),
    (
        "a scale is neither 0 nor in 1e-30 .. 2^64",
        *("total", entry("total", "float *", "values", float("nan"), 2)),
    ),
    ("its slope is outside +-2^30", "sum", step("sum", slope=float("inf"))),
    ("its arrays are not where they must be", "conv", step("conv", weights=64)),
    (
        "a byte before one of its arrays is not 0",
        *("conv", byte_after(lambda file: file.step("conv").bias + 16)),
    ),
    (
        "its inputs and output differ in shape",
        *("logits", tensor("logits", dims=(1, 71, 1, 1, 1, 1, 1, 1))),
    ),
    (
        "its inputs and output differ in scale or zero point",
        *("max", tensor("max", zero_point=1)),
    ),
    ("its axis is not 0, 1, 2 or 3", "both", step("both", axis=4)),
    (
        "its inputs do not add up to its output",
        *("both", tensor("both", dims=(1, 9, 3, 3, 1, 1, 1, 1))),
    ),
    ("its groups do not divide its channels", "conv", step("conv", groups=3)),
    ("its groups do not divide its channels", "conv", step("conv", groups=0)),
    ("its output is not as large as it must be", "conv", step("conv", pad_end=(1, 2))),
    ("it has a field that its type of output does not use", "real", step("real", lo=0)),
    (
        "it has a field that its type of output does not use",
        *("conv", step("conv", bias_f32=64)),
    ),
    (
        "it has a residual without a scale, or a scale without a residual",
        *("last", step("last", residual_scale=0)),
    ),
    ("its int16 depth is below 2", "conv", step("conv", int16_depth=1)),
    *(
        (
            "it claims both forms of (23), or one of a window that has none",
            *("conv", step("conv", flags=flags, **window)),
        )
        for flags, window in (
            (24, {}),
            (8, {"dilation": (1, 2), "pad": (1, 2), "pad_end": (1, 2)}),
            (16, {"dilation": (1, 2), "pad": (1, 2), "pad_end": (1, 2)}),
        )
    ),
    (
        "its output has another batch or channels",
        *("max", tensor("max", dims=(1, 5, 3, 3, 1, 1, 1, 1))),
    ),
    (
        "its window has more than 2^23 taps",
        *("max", step("max", kernel=(1 << 12, 1 << 12))),
    ),
    ("a window has no tap inside the input", "max", step("max", pad=(2, 0))),
    (
        "its multiplier is outside 1e-30 .. 2^64",
        *("mean", tensor("mean", scale=1e30)),
    ),
    (
        "its output has not as many values",
        "flat",
        tensor("flat", dims=(1, 71, 1, 1, 1, 1, 1, 1)),
    ),
    ("its axis is none of its output", "p", step("p", axis=4)),
    (
        "its output has not as many values",
        *("turned", tensor("turned", dims=(1, 6, 6, 5, 1, 1, 1, 1))),
    ),
    *(
        (
            "its axes do not have the values of its input, or no order",
            *("turned", index("turned", at, value)),
        )
        for at, value in ((0, 5), (7, 0), (7, 1 << 30), (8, 1), (8, -1), (15, 8))
    ),
    (
        "its axes do not fit to the dimensions of its input and output",
        *("turned", tensor("turned", dims=(1, 9, 4, 4, 1, 1, 1, 1))),
    ),
    *(
        ("an index is outside its input", "taken", index("taken", at, value))
        for at, value in ((0, -2), (0, 1), (4, 4), (11, 6), (17, 1 << 30))
    ),
    *(
        ("its fill is no value of its output", "taken", step("taken", fill=fill))
        for fill in (0.5, 128, -129, float("nan"), float("inf"))
    ),
    (
        "its output has another batch or channels",
        *("between", tensor("between", dims=(2, 4, 2, 1, 1, 1, 1, 1))),
    ),
    *(
        (
            "an index is outside its input, or a weight outside 0 .. 1",
            *("between", index("between", at, value)),
        )
        for at, value in ((0, -1), (3, 6), (5, 1 << 30))
    ),
    *(
        (
            "an index is outside its input, or a weight outside 0 .. 1",
            *("between", weight("between", value)),
        )
        for value in (-0.5, 1.25, float("nan"))
    ),
    (
        "it is float32 and has a scale",
        *("float between", step("float between", scale=0.5)),
    ),
    (
        "it reads a tensor that no step before it has made",
        *("sum", link("sum", 1, "last")),
    ),
    (
        "its output was made before, or is an input of the network",
        *("sum", lambda file: step("sum", output=file.number("conv"))(file)),
    ),
    (
        "its weights do not prove its int16 depth",
        *("last", put("int8_t *", "weights", -128, at=(0, 5))),
    ),
    (
        "its weights do not prove its int16 depth",
        *("conv", step("conv", int16_depth=8)),
    ),
    ("its weights do not prove its form of (23)", "conv", step("conv", flags=16)),
    ("an accumulator can exceed 32 bits", "last", put("int32_t *", "bias", 2**31 - 1)),
    (
        "its accumulator bound is not that of its weights",
        *("last", put("int32_t *", "bias", 80000)),
    ),
    (
        "its accumulator bound is not that of its weights",
        *("conv", step("conv", acc_bound=2**31 - 1)),
    ),
    (
        "a multiplier is neither 0 nor in 1e-30 .. 2^64",
        *("last", put("float *", "multiplier", float("nan"), at=(3,))),
    ),
    (
        "a float bias is neither 0 nor a normal number",
        *("real", put("float *", "bias_f32", float("inf"))),
    ),
    (
        "a float bias is neither 0 nor a normal number",
        *("real", put("float *", "bias_f32", 1e-38)),
    ),
    ("a slope is outside +-2^30", "last", put("float *", "slopes", float("nan"))),
    ("its function is neither none nor log", "p", step("p", function=3)),
    (
        "a value is not finite",
        *("constant", entry("constant", "float *", "values", float("inf"))),
    ),
    *(
        (
            "its function is not well formed",
            *("function", entry("function", "int32_t *", "indices", value, at)),
        )
        for at, value in ((0, 0), (0, 3), (3, 0), (3, 23), (3, -1), (9, 1), (4, 1))
    ),
    *(
        (
            "a parameter of its function is wrong",
            *("function", entry("function", "float *", "values", value, at)),
        )
        for at, value in ((0, 1), (2, float("nan")), (3, 1), (20, 2), (4, float("inf")))
    ),
    *(
        (
            "its function takes not two values",
            *("broadcast", step("broadcast", function=value)),
        )
        for value in (0, 2, 7, 22, 26)
    ),
    (
        "an input cannot be broadcast",
        *("broadcast", tensor("constant", dims=(3, 2, 1, 1, 1, 1, 1, 1))),
    ),
    (
        "an input cannot be broadcast",
        *("broadcast", tensor("constant", rank=5, dims=(1, 1, 1, 6, 1, 1, 1, 1))),
    ),
    *(
        (
            "a weight or bias is not finite",
            *("conv32", entry("conv32", "float *", array, float("nan"), 1)),
        )
        for array in ("values", "bias_f32")
    ),
    (
        "its sequence and its output do not fit",
        *("gru", tensor("gru", dims=(9, 1, 2, 5, 1, 1, 1, 1))),
    ),
    (
        "its sequence and its output do not fit",
        *("gru", tensor("gru", dims=(7, 3, 2, 5, 1, 1, 1, 1))),
    ),
    (
        "its sequence and its output do not fit",
        *("gru", tensor("gru", dims=(7, 1, 2, 1 << 18, 1, 1, 1, 1))),
    ),
    (
        "it has some of its states and not all",
        *("lstm", step("lstm", input_count=2)),
    ),
    ("a state does not fit its output", "gru", link("gru", 1, "sequence")),
    (
        "it has a flag that does not fit it",
        *("lstm", step("lstm", flags=4)),
    ),
    ("a weight is -128", "gru", entry("gru", "int8_t *", "weights", -128)),
    (
        "a multiplier is neither 0 nor in 1e-30 .. 2^64",
        *("gru", entry("gru", "float *", "multiplier", float("inf"))),
    ),
    (
        "a float bias is not finite",
        *("gru", entry("gru", "float *", "bias_f32", float("nan"))),
    ),
    ("it has functions without values", "lstm", step("lstm", values=0)),
    *(
        (
            "its activations, clip or peepholes are wrong",
            *("lstm", entry("lstm", kind, array, value, at)),
        )
        for kind, array, value, at in (
            *(("int32_t *", "indices", value, 1) for value in (0, 2, 14 + 1, -1)),
            *(("float *", "values", value, 0) for value in (0, -1, float("nan"))),
            *(("float *", "values", float("inf"), at) for at in (1, 2, 13)),
            *(("float *", "values", float("nan"), at) for at in (3, 12, 27)),
            ("float *", "values", 5, 3),
        )
    ),
    *(
        ("a multiplier of (10) is out of range", "whole", put_fixed(pair))
        for pair in ((2**30 - 1, 0), (-1, 0), (1, 0), (2**30, 32), (2**30, -32), (0, 1))
    ),
    (
        "it is requantized in integers, and has a slope, a residual or float output",
        *("whole", step("whole", slopes=64)),
    ),
    (
        "it is requantized in integers, and has an int16 input or output",
        *("whole", tensor("whole", type=INT16)),
    ),
    (
        "its input is int16, and it claims what is for int8",
        *("conv", together(tensor("x", type=INT16), step("conv", int16_depth=3))),
    ),
    (
        "its input is int16, and it claims what is for int8",
        *("conv", together(tensor("x", type=INT16), step("conv", flags=8))),
    ),
    (
        "its window has more than 2^15 taps of int16",
        "mean",
        together(
            *(tensor(name, type=INT16) for name in ("rescaled", "max", "mean")),
            step("mean", kernel=(1 << 8, 1 << 8)),
        ),
    ),
    (
        "it makes float32 and has a clamp",
        *("mean", together(tensor("mean", type=2, scale=1), step("mean", lo=-127))),
    ),
    (
        "its output is not of the type that it makes",
        *("max", together(tensor("max", type=INT16))),
    ),
    (
        "its output is not of the type that it makes",
        *("mean", together(tensor("mean", type=INT16))),
    ),
    *(
        ("its output is not of the type that it makes", name, tensor(name, type=INT16))
        for name in ("norm", "levels", "larger", "smaller", "total")
    ),
    (
        "an input exceeds its output's range",
        "turned",
        together(
            tensor("sum", type=INT16, lo=-1000), tensor("turned", type=INT16, lo=-999)
        ),
    ),
    (
        "it has not exactly one kind of multipliers",
        *("whole", step("whole", multiplier=64)),
    ),
    (
        "it has not exactly one kind of multipliers",
        *("real", step("real", multiplier=0)),
    ),
]

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
    "weights": 64,
    "bias": 64,
    "multiplier": 64,
    "bias_f32": 64,
    "slopes": 64,
    "table": 64,
    "indices": 64,
    "values": 64,
    "acc_bound": 1,
}
WINDOWS = {"kernel", "stride", "dilation", "pad", "pad_end"}
CLAMP = {"lo", "hi"}
ARRAYS = {"weights", "bias", "multiplier", "bias_f32", "slopes"}
PROOFS = {"int16_depth", "acc_bound"}
USED = {
    **dict.fromkeys(("x", "flat", "logits", "larger", "smaller"), frozenset()),
    "p": {"axis", "function"},
    **dict.fromkeys(("constant", "state", "levels"), frozenset({"values", "weights"})),
    "total": CLAMP | {"slope", "values"},
    "function": {"indices", "values"},
    "broadcast": {"function"},
    "conv32": WINDOWS | {"groups", "bias_f32", "values"},
    "max32": WINDOWS,
    "mean32": WINDOWS | {"flags"},
    **dict.fromkeys(
        ("gru", "lstm", "rnn"),
        frozenset({"flags", "weights", "multiplier", "bias_f32", "indices", "values"}),
    ),
    "conv": WINDOWS | CLAMP | ARRAYS | PROOFS | {"groups", "residual_scale", "indices"},
    "sum": CLAMP | {"scale", "residual_scale", "slope"},
    "rescaled": CLAMP | {"scale", "slope"},
    "max": WINDOWS | CLAMP,
    "mean": WINDOWS | CLAMP | {"flags"},
    "both": {"axis"},
    "turned": {"indices"},
    "taken": {"indices", "fill"},
    **dict.fromkeys(("mapped", "seen"), frozenset({"table"})),
    **dict.fromkeys(("product", "ratio"), CLAMP | {"scale", "slope"}),
    "local": {"values"},
    "norm": CLAMP | {"slope", "values"},
    "between": {"scale", "indices", "values"},
}
"""By layer of the program above, the fields that docs/format.md gives its kind."""


def refusal(content) -> str:
    """What opening says."""
    with pytest.raises(ModelError) as caught:
        Model.from_bytes(content, source="net.n8")
    return str(caught.value)


def damaged(damage) -> bytes:
    file = File(program())
    damage(file)
    return file.content()


def test_the_file_itself_opens():
    file = File(program())
    assert file.content() == bytes(file.bytes)
    with Model.from_bytes(file.content()) as model:
        assert [step.name for step in model.steps] == [op.name for op in program().ops]


@pytest.mark.parametrize(("reason", "damage"), FILE)
def test_a_file(reason, damage):
    assert refusal(damaged(damage)) == f"net.n8: {reason}"


@pytest.mark.parametrize(("reason", "name", "fields"), TENSOR)
def test_a_tensor(reason, name, fields):
    said = refusal(damaged(tensor(name, **fields)))
    assert said == f"net.n8: tensor {name!r}: {reason}"


@pytest.mark.parametrize(("reason", "name", "damage"), STEP)
def test_a_step(reason, name, damage):
    where = "" if name is None else f"layer {name!r}: "
    assert refusal(damaged(damage)) == f"net.n8: {where}{reason}"


CUT = "the file is cut off, or something was added to it"
WHOLE = [
    ("not a neon8 model", lambda content: content[:7]),
    ("not a neon8 model", lambda content: b"\x7fELF" + content[4:]),
    ("the file is cut off in its header", lambda content: content[:127]),
    (CUT, lambda content: content[:-1]),
    (CUT, lambda content: content + b"\0"),
    (
        "a format version that this library cannot read",
        lambda content: content[:8] + b"\3" + content[9:],
    ),
    (
        "the checksum is wrong: the file was damaged",
        lambda content: content[:-1] + bytes([content[-1] ^ 1]),
    ),
]


@pytest.mark.parametrize(("reason", "damage"), WHOLE)
def test_a_whole_file(reason, damage):
    content = bytes(File(program()).bytes)
    assert refusal(damage(content)) == f"net.n8: {reason}"


FOLLOWS = "something follows the last part of the file"


def test_something_that_follows():
    file = File(program())
    file.header.file_size += 64
    longer = File(program())
    longer.bytes = file.bytes + bytes(64)
    assert refusal(longer.content()) == f"net.n8: {FOLLOWS}"


LONELY = "no step makes it"


def test_a_tensor_that_no_step_makes():
    lonely = Tensor(name="lonely", dims=(1,))
    given = program()
    more = dataclasses.replace(given, tensors=given.tensors | {"lonely": lonely})
    assert refusal(File(more).content()) == f"net.n8: tensor 'lonely': {LONELY}"


@pytest.mark.parametrize(
    ("name", "field"),
    [
        (name, field)
        for name, used in USED.items()
        for field in sorted(set(FIELDS) - used)
    ],
)
def test_fields_that_are_not_used(name, field):
    """Each at another value than the writer gives it."""
    said = refusal(damaged(step(name, **{field: FIELDS[field]})))
    assert said == f"net.n8: layer {name!r}: {MEANT}"


@pytest.mark.parametrize("name", USED)
@pytest.mark.parametrize("flag", [9, 17, 32, 1 << 31])
def test_flags_that_are_not_known(name, flag):
    said = refusal(damaged(step(name, flags=flag)))
    assert said == f"net.n8: layer {name!r}: {MEANT}"


@pytest.mark.parametrize("depth", [2, 3, 7])
def test_an_int16_depth_that_the_weights_prove(depth):
    """The 7 largest of a channel add up to 237 at most, 8 to 264, more than 255."""
    with Model.from_bytes(damaged(step("conv", int16_depth=depth))) as model:
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
    file = File(program())
    put("int8_t *", "weights", 0, at=range(weights.size))(file)
    for index in np.flatnonzero(weights):
        put("int8_t *", "weights", int(weights.flat[index]), at=(index,))(file)
    step("last", flags=form, acc_bound=sum(map(abs, taps)) * 128 + 7)(file)
    if proved:
        Model.from_bytes(file.content()).close()
    else:
        reason = "its weights do not prove its form of (23)"
        assert refusal(file.content()) == f"net.n8: layer 'last': {reason}"


def test_a_weight_of_minus_128_that_is_alone():
    """With any other weight of its channel it adds up to 255 at most (11)."""
    before = program().ops[[op.name for op in program().ops].index("last")]
    more = (128 - abs(int(before.weights.reshape(4, -1)[0, 0]))) * 128
    file = File(program())
    put("int8_t *", "weights", -128)(file)
    sums = np.abs(before.weights.astype(int)).sum(axis=(1, 2, 3)) * 128 + 7
    sums[0] += more
    step("last", acc_bound=int(sums.max()))(file)
    with Model.from_bytes(file.content()) as model:
        (last,) = (step for step in model.steps if step.name == "last")
    assert last.weights == (-128, 39)


def test_a_name_that_is_no_text():
    """Wherever it comes from, an error stays one line of printable text."""
    file = File(program())
    at = file.bytes.index(b"image\0")
    file.bytes[at : at + 5] = b"\xff\n\x1b[2"
    file.tensor("image").rank = 9
    said = refusal(file.content())
    assert said == r"net.n8: tensor '�\n\x1b[2': its rank is above 8"


def reasons() -> set[str]:
    """What the C sources can say."""
    found = set()
    call = r"refuse\(\s*[\w>-]+,\s*(?:N8_E_\w+,\s*)?((?:\"[^\"]*\"\s*)+)\)"
    for path in RUNTIME.rglob("*.[ch]"):
        for words in re.findall(call, path.read_text(encoding="utf-8")):
            found.add("".join(re.findall(r'"([^"]*)"', words)))
    return found


def test_every_reason_is_reached():
    reached = {reason for reason, *_ in (*FILE, *TENSOR, *STEP, *WHOLE)}
    reached |= {MEANT, FOLLOWS, LONELY}
    assert len(reached) > 60
    assert reasons() == reached
