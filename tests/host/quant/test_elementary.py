# SPDX-License-Identifier: Apache-2.0
"""(15): exp, log and their kin are right, and the same bits everywhere."""

import math

import numpy as np
import pytest

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
}
"""Digests of all bits, as in tests/native/elementary.c."""


def arguments():
    """Every other one in -40 .. 40, the rest any double: NaN, infinite, subnormal."""
    state, bits = 1, []
    for _ in range(COUNT):
        state = (state * 6364136223846793005 + 1442695040888963407) & MASK
        bits.append(state)
    bits = np.array(bits, np.uint64)
    near = (bits >> np.uint64(11)).astype(np.float64) * (80.0 / 2**53) - 40.0
    return np.where(np.arange(COUNT) % 2 == 0, near, bits.view(np.float64))


@pytest.mark.parametrize("name", DIGESTS)
def test_bits(name):
    x = arguments()
    if name == "log1p":
        x = np.where(x < 0, -x, x)
    with np.errstate(all="ignore"):
        result = getattr(elementary, name)(x)
    digest = 0
    for bits in result.view(np.uint64).tolist():
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
        ("arctangent", -0.0, -0.0),
        ("arctangent", 1.0, math.pi / 4),
        ("arctangent", -np.inf, -1.5707963267948968),
        ("arctangent", np.nan, np.nan),
    ],
)
def test_ends(name, x, y):
    with np.errstate(all="ignore"):
        result = getattr(elementary, name)(np.array([x]))
    np.testing.assert_array_equal(result, [y])
