# SPDX-License-Identifier: Apache-2.0
"""What becomes of an array, by the shape and type that the network takes."""

import numpy as np
import pytest

from neon8.data.inputs import (
    Input,
    as_inputs,
    batch_of,
    fits,
    of_sample,
    of_shapes,
    to_input,
    with_bounds,
)
from neon8.data.preprocess import Preprocess
from neon8.data.samples import count_samples, gather
from neon8.errors import DataError
from neon8.settings.shapes import Open

F = np.float32
NCHW, NHWC = Input(shape=(1, 3, 4, 5)), Input(shape=(1, 4, 5, 3))
GRAY = Input(shape=(1, 1, 4, 5))
IMAGE = np.random.default_rng(1).integers(0, 256, (4, 5, 3), dtype=np.uint8)
PLANES = IMAGE.transpose(2, 0, 1)


@pytest.mark.parametrize(
    ("wanted", "raw", "value"),
    [
        (NCHW, PLANES.astype(F), PLANES),
        (NCHW, PLANES.astype(np.float64)[np.newaxis], PLANES),
        (NCHW, PLANES.astype(np.int16), PLANES),
        (NCHW, PLANES > 9, PLANES > 9),
        (NCHW, IMAGE, PLANES),
        (NCHW, IMAGE[np.newaxis], PLANES),
        (NCHW, PLANES, PLANES),  # fits in this way only
        (NHWC, IMAGE, IMAGE),
        (NHWC, IMAGE.astype(F), IMAGE),
        (GRAY, IMAGE[..., 0], PLANES[:1]),
        (GRAY, IMAGE[..., :1], PLANES[:1]),
        (GRAY, IMAGE[..., 0].astype(F), PLANES[:1]),
        (Input(shape=(1, 3, 3, 3)), IMAGE[:3, :3], PLANES[:, :3, :3]),  # an image first
        (Input(shape=(1, 7)), np.arange(7.0).reshape(1, 7), np.arange(7)),
        (Input(shape=(4,), rows=4), F(3), np.array(3)),
        (Input(shape=(2,), rows=None), [1, 2], [1, 2]),
    ],
)
def test_shapes(wanted, raw, value):
    raw = np.asarray(raw)
    assert fits(raw.shape, raw.dtype, wanted)
    got, pixels = to_input(raw, wanted, None)
    assert pixels is None
    assert got.dtype == F
    assert got.shape == wanted.sample_shape
    assert got.flags.c_contiguous
    np.testing.assert_array_equal(got, np.asarray(value, F).reshape(got.shape))


@pytest.mark.parametrize(
    ("wanted", "raw"),
    [
        (NCHW, IMAGE.astype(F)),  # floats are never moved
        (NHWC, PLANES),
        (NCHW, IMAGE[:3]),
        (NCHW, PLANES[:2]),
        (NCHW, F(1)),
        (Input(shape=(2,), rows=None), np.zeros((2, 2))),
    ],
)
def test_shapes_that_do_not_fit(wanted, raw):
    raw = np.asarray(raw)
    assert not fits(raw.shape, raw.dtype, wanted)
    with pytest.raises(DataError, match="but the network takes"):
        to_input(raw, wanted, None)


@pytest.mark.parametrize(
    ("dtype", "raw", "value"),
    [
        ("float16", F(0.1), np.float16(0.1)),
        ("float64", F(0.1), np.float64(F(0.1))),
        ("float32", np.int64(16777217), F(16777216)),
        ("float32", np.uint64(2**64 - 1), F(2**64)),
        ("int64", np.uint8(200), 200),
        ("int64", True, 1),
        ("uint8", np.int64(255), 255),
        ("int32", np.int64(-(2**31)), -(2**31)),
        ("bool", np.int64(1), True),
    ],
)
def test_types(dtype, raw, value):
    got, _ = to_input(np.asarray([raw]), Input(shape=(1, 1), dtype=dtype), None)
    assert got.dtype == dtype
    assert got[0] == value


@pytest.mark.parametrize(
    ("dtype", "raw", "word"),
    [
        ("float16", 65520.0, "1 of 1 values are NaN or infinite as float16"),
        ("float32", 1e39, "1 of 1 values are NaN or infinite as float32"),
        ("float32", np.nan, "1 of 1 values are NaN or infinite; repair"),
        ("float32", 1j, "values are complex128; expected numbers"),
        ("float32", "1", "expected numbers"),
        ("int64", 1.0, "values are float64; expected int64"),
        ("int64", np.uint64(2**63), "do not fit int64"),
        ("uint8", 256, "values from 256 to 256 do not fit uint8"),
        ("uint8", -1, "do not fit uint8"),
        ("int32", 2**31, "do not fit int32"),
        ("bool", 2, "do not fit bool"),
    ],
)
def test_types_that_do_not_fit(dtype, raw, word):
    with pytest.raises(DataError, match=word):
        to_input(np.asarray([raw]), Input(shape=(1, 1), dtype=dtype), None)


@pytest.mark.parametrize("wanted", [NCHW, NHWC])
def test_preprocessing_knows_both_orders(wanted):
    settings = Preprocess(color="bgr", scale=0.5)
    want = IMAGE[..., ::-1] * F(0.5)
    if wanted is NCHW:
        want = want.transpose(2, 0, 1)
    value, pixels = to_input(np.pad(IMAGE, [(1, 1), (2, 2), (0, 0)]), wanted, settings)
    np.testing.assert_array_equal(value, want)
    np.testing.assert_array_equal(pixels, IMAGE[..., ::-1])


@pytest.mark.parametrize(
    ("shapes", "free", "rows"),
    [
        ({"a": (1, 3), "b": (1,)}, "", {"a": 1, "b": 1}),
        ({"a": (4, 3), "b": (4,)}, "", {"a": 4, "b": 4}),
        ({"a": (4, 3), "b": (2,)}, "", {"a": None, "b": None}),
        ({"a": (1, 3), "b": (2,), "c": ()}, "", {"a": 1, "b": None, "c": None}),
        ({"a": (1, 3), "b": (1,)}, "a", {"a": 1, "b": None}),
        ({"a": (1, 3), "b": (2, 3)}, "a", {"a": 1, "b": None}),
        ({"a": (1, 3), "b": (1, 3)}, "ab", {"a": 1, "b": 1}),
        ({"a": ()}, "", {"a": None}),
    ],
)
def test_which_axes_hold_samples(shapes, free, rows):
    inputs = of_shapes(shapes, {"b": "int64"}, free=free)
    assert {name: each.rows for name, each in inputs.items()} == rows
    assert batch_of(inputs) == max(each or 1 for each in rows.values())
    for name, each in inputs.items():
        assert each.dtype == ("int64" if name == "b" else "float32")
        assert each.sample_shape == shapes[name][0 if rows[name] is None else 1 :]


def test_inputs_may_be_given_by_their_shape():
    whole = Input(shape=(2,), dtype="int64", rows=None)
    got = as_inputs({"x": (1, 3, 4, 5), "sizes": whole})
    assert got == {"x": NCHW, "sizes": whole}


TWO = with_bounds(
    {"a": Input(shape=(1, 4, 8)), "b": Input(shape=(1, 8), dtype="int32")},
    {"a": (1, 4, Open(8, 64)), "b": (1, Open(8, 64))},
    {"a": ("n", "c", "t"), "b": ("n", "t")},
)


@pytest.mark.parametrize(("length", "other"), [(8, 8), (64, 64), (9, 10)])
def test_inputs_that_share_an_open_dimension(length, other):
    item = {"a": np.zeros((4, length), np.float32), "b": np.zeros(other, np.int64)}
    if length == other:
        (sample,) = gather([item], TWO)
        assert sample.inputs["a"].shape == (1, 4, length)
        assert sample.inputs["b"].shape == (1, length)
        assert count_samples([item, item], TWO) == 2
        here = of_sample(TWO, sample.inputs)
        assert [each.shape for each in here.values()] == [(1, 4, length), (1, length)]
        return
    text = "sample 0: input 'b' has 10 as dimension 1, which must equal dimension 2 of"
    with pytest.raises(DataError, match=f"{text} 'a', 9"):
        list(gather([item], TWO))


def test_images_whose_channels_come_last_have_open_sizes():
    known = with_bounds(
        {"x": Input(shape=(1, 1, 16, 3))},
        {"x": (1, Open(1, 64), Open(16, 64, 16), 3)},
        {"x": ("n", "h", "w", "c")},
    )
    pixels = np.zeros((50, 33, 3), np.uint8)
    for resize, size in (("none", (50, 32)), ("stretch", (50, 32))):
        value, _ = to_input(pixels, known["x"], Preprocess(resize=resize))
        assert value.shape == (*size, 3)
    (sample,) = gather([np.zeros((2, 32, 64, 3), np.float32)[0]], known)
    assert sample.inputs["x"].shape == (1, 32, 64, 3)
