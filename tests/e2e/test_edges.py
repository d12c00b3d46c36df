# SPDX-License-Identifier: Apache-2.0
"""What a run takes and gives: values between the caller's order and the arena's."""

from functools import partial

import numpy as np
import pytest

import float_program
from agreement import agreed
from neon8.compile import oracle, writer
from neon8.errors import DataError
from neon8.ir.program import Tensor
from neon8.operators.movement import PermuteOp
from neon8.runtime import Model, library
from programs import program, real, step
from random_program import random_inputs

SHAPES = (
    (1, 1, 5, 7),
    (2, 1, 33, 33),
    (2, 3, 40, 30),
    (1, 4, 16, 1),
    (1, 5, 3, 3),
    (2, 8, 33, 35),
    (1, 21, 7, 9),
    (3, 30, 1, 1),
    (2, 1100, 1, 1),
    (1, 1030, 4, 4),
)
"""Few and many channels; one pixel, tiles and their rests, more than one piece."""


def level(name, dims):
    return Tensor(name=name, dims=dims, scale=np.float32(0.03), zero_point=-5)


def rounded(dims):
    """float32 to int8 to float32."""
    return program(
        [real("x", dims), level("q", dims), real("y", dims)],
        [
            step("Quantize", "q", "x"),
            step("Dequantize", "y", "q"),
        ],
        "x",
        "y",
    )


def halved(dims):
    """int8 to int8."""
    return program(
        [level("x", dims), level("y", dims)],
        [step("Requantize", "y", "x", scale=np.float32(0.5))],
        "x",
        "y",
    )


def turned(name, source, output, sizes, order):
    """A Permute of four axes."""
    indices = np.array([[*sizes, 1, 1, 1, 1], [*order, 4, 5, 6, 7]], np.int32)
    return PermuteOp(name=name, inputs=(source,), output=output, indices=indices)


def from_pixels(name, source, output, dims):
    """N H W C to the N C H W of dims."""
    n, c, h, w = dims
    return turned(name, source, output, (n, h, w, c), (0, 3, 1, 2))


def to_pixels(name, source, output, dims):
    return turned(name, source, output, dims, (0, 2, 3, 1))


def last(dims):
    n, c, h, w = dims
    return n, h, w, c


def pixels_rounded(dims):
    """As `rounded`, and the caller has N H W C."""
    return program(
        [
            real("x", last(dims)),
            real("first", dims),
            level("q", dims),
            real("r", dims),
            real("y", last(dims)),
        ],
        [
            from_pixels("first", "x", "first", dims),
            step("Quantize", "q", "first"),
            step("Dequantize", "r", "q"),
            to_pixels("y", "r", "y", dims),
        ],
        "x",
        "y",
    )


def pixels_halved(dims):
    """As `halved`, and the caller has N H W C."""
    return program(
        [
            level("x", last(dims)),
            level("first", dims),
            level("half", dims),
            level("y", last(dims)),
        ],
        [
            from_pixels("first", "x", "first", dims),
            step("Requantize", "half", "first", scale=np.float32(0.5)),
            to_pixels("y", "half", "y", dims),
        ],
        "x",
        "y",
    )


def pixels_everywhere(dims):
    """Whatever else may be done with ends that are N H W C."""
    n, c, h, w = dims
    return program(
        [
            real("x", last(dims)),
            real("first", dims),
            level("q", dims),
            real("s", dims),
            real("again", (n, w, c, h)),
            real("y", last(dims)),
            real("z", last(dims)),
            real("whole", (n, w, c, h)),
        ],
        [
            from_pixels("first", "x", "first", dims),  # is an output
            step("Quantize", "q", "first"),
            step("Softmax", "s", "first", axis=1),
            turned("again", "first", "again", dims, (0, 3, 1, 2)),
            to_pixels("y", "s", "y", dims),  # is read
            step("Softmax", "z", "y", axis=3),
            turned("whole", "x", "whole", last(dims), (0, 2, 3, 1)),  # is no image
        ],
        "x",
        "first q s again y z whole",
    )


def read_again(dims):
    """The float output is an input of the last step, too."""
    first = rounded(dims)
    return program(
        [*first.tensors.values(), real("z", dims)],
        [*first.ops, step("Softmax", "z", "y", axis=1)],
        "x",
        "y z",
    )


@pytest.mark.parametrize("dims", SHAPES)
@pytest.mark.parametrize(
    "make",
    [
        rounded,
        halved,
        read_again,
        pixels_rounded,
        pixels_halved,
        pixels_everywhere,
    ],
)
def test_every_shape_is_turned(make, dims):
    made = make(dims)
    agreed(made, random_inputs(made, sum(dims)), threads=(1, 2))


def test_float_ends_stay_with_the_caller():
    """They take no room in the arena, unless a step reads the output."""
    dims = (1, 3, 40, 30)
    with Model.from_bytes(writer.dumps(rounded(dims))) as model:
        assert [step.sharing for step in model.steps] == ["own", "caller"]
        assert model.memory.arena < 40 * 30 * (8 + 1)
    with Model.from_bytes(writer.dumps(read_again(dims))) as model:
        assert [step.sharing for step in model.steps][1] == "own"


def test_pixels_stay_with_the_caller():
    """Nothing is turned; of the inputs, int8 gets its padding, and floats are read."""
    dims = (1, 3, 40, 30)
    with Model.from_bytes(writer.dumps(pixels_rounded(dims))) as model:
        sharing = [step.sharing for step in model.steps]
        assert sharing == ["caller", "own", "own", "caller"]
        assert [step.kernel for step in model.steps][::3] == ["none", "copy"]
        assert model.memory.arena < 40 * 30 * (8 + 12 + 1)
    with Model.from_bytes(writer.dumps(pixels_halved(dims))) as model:
        assert [step.sharing for step in model.steps] == ["own", "place", "caller"]
        assert model.memory.arena < 40 * 30 * (8 + 1)


def test_buffers_of_pixels_are_aligned_to_anything():
    lib = library.load()
    for dims in SHAPES:
        made = pixels_rounded(dims)
        inputs = random_inputs(made, 1)
        expected = oracle.run(made, inputs)["y"]
        given = bytearray(b"\0" + inputs["x"].tobytes())
        taken = bytearray(1 + expected.nbytes)
        with Model.from_bytes(writer.dumps(made)) as model:
            session = model.session()
            status = lib.lib.n8_session_run(
                session._handle,
                lib.ffi.new("const void *[]", [lib.ffi.from_buffer(given) + 1]),
                lib.ffi.new("void *[]", [lib.ffi.from_buffer(taken) + 1]),
            )
        assert status == lib.lib.N8_OK
        assert taken[1:] == expected.tobytes()


@pytest.mark.parametrize("dims", SHAPES)
def test_every_byte_of_an_image_is_looked_up(dims):
    rng = np.random.default_rng(sum(dims))
    tables = rng.integers(-128, 128, (dims[1], 256), np.int8)
    made = program(
        [Tensor(name="x", dims=last(dims), dtype="uint8"), level("y", dims)],
        [step("Image", "y", "x", table=tables)],
        "x",
        "y",
    )
    inputs = {"x": rng.integers(0, 256, last(dims), np.uint8)}
    agreed(made, inputs, threads=(1, 2))
    with Model.from_bytes(writer.dumps(made)) as model:
        assert model.inputs["x"].dtype == "uint8"
        with pytest.raises(DataError, match="has type float32, expected uint8"):
            model.session().run({"x": inputs["x"].astype(np.float32)})


def resized(dims, taps=2):
    """float32 to float32, of `taps` rows and as many columns."""
    count = sum(dims[2:])
    return program(
        [real("x", dims), real("y", dims)],
        [
            step(
                "Resize",
                "y",
                "x",
                groups=taps - 1,
                scale=np.float32(1),
                indices=np.tile(np.arange(taps), count).astype(np.int32),
                values=np.full(taps * count, 0.5, np.float32),
            )
        ],
        "x",
        "y",
    )


def shares(dims):
    return program(
        [real("x", dims), real("y", dims)],
        [step("Softmax", "y", "x", axis=1)],
        "x",
        "y",
    )


@pytest.mark.parametrize("build", [resized, partial(resized, taps=3), shares])
def test_a_nan_that_is_computed_has_one_pattern(build):
    net = build((1, 40, 3, 3))
    values = np.random.default_rng(0).normal(0, 1, (1, 40, 3, 3)).astype(np.float32)
    values.view(np.uint32)[0, ::3, 0] = 0xFFC12345
    values[0, 1::3, 1] = np.inf, np.nan, -np.inf
    y = agreed(net, {"x": values})["y"]
    assert set(y[np.isnan(y)].view(np.uint32)) == {0x7FC00000}


@pytest.mark.parametrize("wild", [[np.nan], [np.nan, 3], [np.inf], [-np.inf, 1e-40]])
def test_recurrent_inputs_that_are_not_finite(wild):
    shapes = {name: float_program.SHAPES[name] for name in ("sequence", "rnn")}
    net = program(
        [real(name, dims) for name, dims in shapes.items()],
        [float_program.recurrent("rnn", 1)],
        *shapes,
    )
    x = np.random.default_rng(0).normal(0, 1, shapes["sequence"]).astype(np.float32)
    x[::2, :, : len(wild)] = wild
    y = agreed(net, {"sequence": x})["rnn"]
    assert np.isfinite(y).all()


@pytest.mark.parametrize("pads", [(1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0,) * 4])
@pytest.mark.parametrize("channels", [12, 32])
def test_int16_pixels_beyond_one_edge(channels, pads):
    """A 1x1 kernel reads pixels where they lie, unless some of them are padding."""
    height, width = 3 + pads[0] + pads[2], 2 + pads[1] + pads[3]
    shapes = {"q": (1, channels, 3, 2), "made": (1, 9, height, width)}
    wide = {"dtype": "int16", "zero_point": 900, "lo": -(2**15), "hi": 2**15 - 1}
    weights = (np.arange(9 * channels) % 19 - 9).astype(np.int8)
    weights = weights.reshape(9, 1, 1, channels)
    bound = int(np.abs(weights.astype(int)).sum(axis=(1, 2, 3)).max()) * 2**15
    net = program(
        [
            real("x", shapes["q"]),
            *(
                Tensor(name=name, dims=dims, scale=np.float32(0.01), **wide)
                for name, dims in shapes.items()
            ),
            real("y", shapes["made"]),
        ],
        [
            step("Quantize", "q", "x"),
            step(
                "Conv2d",
                "made",
                "q",
                weights=weights,
                bias=np.zeros(9, np.int32),
                multiplier=np.full(9, 0.02, np.float32),
                pads=pads,
                lo=-(2**15),
                hi=2**15 - 1,
                acc_bound=bound,
            ),
            step("Dequantize", "y", "made"),
        ],
        "x",
        "y",
    )
    agreed(net, random_inputs(net, 5))


@pytest.mark.parametrize("step_down", [1, 2, 7, 8, 24])
def test_matrices_whose_rows_overlap(step_down):
    """The second operand lies along channels in both directions."""
    rows, columns, depth = 5, 17, 40
    numbers = np.zeros(63, np.int32)
    numbers[:9] = 1, 1, 1, 1, 1, 1, rows, columns, depth
    numbers[[23, 26, 44, 59, 62]] = 1  # of rows, depth, columns; of rows and columns
    numbers[42] = step_down
    channels = (depth - 1) * step_down + columns
    second = Tensor(name="b", dims=(1, channels), lo=-127)
    net = program(
        [level("a", (rows, depth)), second, level("y", (rows, columns))],
        [step("Matmul", "y", "a b", indices=numbers, scale=np.float32(1e-3))],
        "a b",
        "y",
    )
    made = agreed(net, random_inputs(net, 1))
    assert np.unique(made["y"]).size > 4
