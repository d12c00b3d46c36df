# SPDX-License-Identifier: Apache-2.0
"""(15): exp, log and their kin are right, and the same bits everywhere."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neon8.quant import elementary

COUNT = 20000
MASK = (1 << 64) - 1

DIGESTS = {
    "exp": "0xa35c5c3191e819a9",
    "expm1": "0xded130013a270f1e",
    "log": "0x559c874fccecd89c",
    "log1p": "0xaaedc69c058c887f",
    "erf": "0x29a8a66db963a615",
    "tanh": "0xd733b344e5f1fb34",
    "sine": "0x3f776a7e498e2f0c",
    "arctangent": "0x6e15b85e259f94fb",
    "sigmoid": "0x6f27eb04a4805451",
    "sigmoid_floats": "0x2a2edf2c1a92df90",
    "tanh_floats": "0xd93055ff181e8c29",
}
"""Digests of all bits, as in tests/native/elementary.c."""


def arguments():
    state, bits = 1, []
    for _ in range(COUNT):
        state = (state * 6364136223846793005 + 1442695040888963407) & MASK
        bits.append(state)
    return np.array(bits, np.uint64)


def doubles():
    """Every other one in -40 .. 40, the rest any double: NaN, infinite, subnormal."""
    bits = arguments()
    near = (bits >> np.uint64(11)).astype(np.float64) * (80.0 / 2**53) - 40.0
    return np.where(np.arange(COUNT) % 2 == 0, near, bits.view(np.float64))


def floats():
    """Every other one in -128 .. 128, the rest any float."""
    bits = (arguments() >> np.uint64(32)).astype(np.uint32)
    near = (bits >> 8).astype(np.float32) * np.float32(2**-16) - np.float32(128)
    return np.where(np.arange(COUNT) % 2 == 0, near, bits.view(np.float32))


@pytest.mark.parametrize("name", DIGESTS)
def test_bits(name):
    x = floats() if name.endswith("floats") else doubles()
    if name == "log1p":
        x = np.where(x < 0, -x, x)
    with np.errstate(all="ignore"):
        result = getattr(elementary, name)(x)
    digest = 0
    for bits in result.view(f"u{result.itemsize}").tolist():
        digest = ((digest ^ bits) * 0x100000001B3) & MASK
    assert f"{digest:#x}" == DIGESTS[name]


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


REFERENCES = {
    "exp": (math.exp, -700, 700),
    "expm1": (math.expm1, -40, 40),
    "log": (math.log, 1e-300, 1e3),
    "log1p": (math.log1p, 0, 100),
    "erf": (math.erf, -7, 7),
    "tanh": (math.tanh, -30, 30),
    "sigmoid": (sigmoid, -700, 40),
    "sine": (math.sin, -1.5, 1.5),
    "arctangent": (math.atan, -40, 40),
}


@pytest.mark.parametrize("name", REFERENCES)
def test_values(name):
    """Against the C library of this machine, relative to what small values have."""
    reference, low, high = REFERENCES[name]
    x = np.random.default_rng(0).uniform(low, high, 2000)
    small = x[:300] * 10.0 ** np.linspace(-12, 0, 300)
    x = np.concatenate((x, small))
    expected = np.array([reference(value) for value in x.tolist()])
    result = getattr(elementary, name)(x)
    np.testing.assert_allclose(result, expected, rtol=3e-15)


@pytest.mark.parametrize(
    ("name", "x", "y"),
    [
        ("exp", 0.0, 1.0),
        ("exp", -np.inf, 0.0),
        ("exp", np.inf, np.inf),
        ("exp", np.nan, np.nan),
        ("exp", -709.0, 0.0),
        ("exp", 710.0, np.inf),
        ("expm1", -np.inf, -1.0),
        ("log", 1.0, 0.0),
        ("log", 0.0, -np.inf),
        ("log", -1.0, np.nan),
        ("log", np.inf, np.inf),
        ("log", 5e-324, math.log(5e-324)),
        ("log1p", np.inf, np.inf),
        ("log1p", 1e-30, 1e-30),
        ("erf", 6.0, 1.0),
        ("erf", -np.inf, -1.0),
        ("erf", np.nan, np.nan),
        ("tanh", np.inf, 1.0),
        ("tanh", -30.0, -1.0),
        ("tanh", np.nan, np.nan),
        ("sigmoid", 0.0, 0.5),
        ("sigmoid", -np.inf, 0.0),
        ("sigmoid", np.inf, 1.0),
        ("sigmoid", np.nan, np.nan),
        ("sine", np.inf, np.nan),
        ("sine", -0.0, -0.0),
        ("sigmoid_floats", -0.0, 0.5),
        ("sigmoid_floats", -np.inf, 0.0),
        ("sigmoid_floats", -87.3365479, 0.0),
        ("sigmoid_floats", -87.3365402, float.fromhex("0x1.00004cp-126")),
        ("sigmoid_floats", np.inf, 1.0),
        ("sigmoid_floats", np.nan, np.nan),
        ("tanh_floats", -0.0, -0.0),
        ("tanh_floats", 2.0**-149, 2.0**-149),
        ("tanh_floats", -np.inf, -1.0),
        ("tanh_floats", np.inf, 1.0),
        ("tanh_floats", np.nan, np.nan),
        ("arctangent", -0.0, -0.0),
        ("arctangent", 1.0, math.pi / 4),
        ("arctangent", -np.inf, -1.5707963267948968),
        ("arctangent", np.nan, np.nan),
    ],
)
def test_ends(name, x, y):
    dtype = np.float32 if name.endswith("floats") else np.float64
    with np.errstate(all="ignore"):
        result = getattr(elementary, name)(np.array([x], dtype))
    np.testing.assert_array_equal(result, [y])


FLOATS = {
    "sigmoid_floats": (elementary.sigmoid, 2.44),
    "tanh_floats": (elementary.tanh, 2.59),
}
"""The function in double, and the largest error in units of the last place."""


@pytest.mark.parametrize("name", FLOATS)
def test_floats_are_near(name):
    """Every 1021st float, and the worst of all; below 2^-126 a sigmoid is 0."""
    function, most = FLOATS[name]
    x = np.arange(0, 1 << 32, 1021, np.uint32).view(np.float32)
    x = np.append(x[np.isfinite(x)], np.float32([-1.95091498, 2.20987415]))
    y = getattr(elementary, name)(x)
    with np.errstate(all="ignore"):
        expected = function(x.astype(np.float64))
    zero = (name == "sigmoid_floats") & (expected < 2.0**-126)
    assert (y[zero] == 0).all()
    error = np.abs(y - expected) / np.spacing(np.abs(expected).astype(np.float32))
    assert most - 0.01 < error[~zero].max() < most


@given(st.floats(width=32))
def test_tanh_is_odd(value):
    """Every bit, that of 0 among them; and it is within 1."""
    x = np.array([value, -value], np.float32)
    y, opposite = elementary.tanh_floats(x)
    if math.isnan(value):
        assert math.isnan(y)
    else:
        assert y.tobytes() == (-opposite).tobytes()
        assert np.signbit(y) == np.signbit(x[0])
        assert abs(y) <= 1
