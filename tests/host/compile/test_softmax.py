# SPDX-License-Identifier: Apache-2.0
"""Softmax in integers  (30), against the one of real numbers."""

import numpy as np
import pytest

from neon8.operators.reference import Operand
from neon8.operators.softmax import SoftmaxQOp, compute_softmax_q
from oracle_cases import tensor

BITS = {"int8": (-128, 127), "int16": (-32768, 32767)}


@pytest.mark.parametrize("made", ["int8", "int16"])
@pytest.mark.parametrize("given", ["int8", "int16"])
@pytest.mark.parametrize("count", [1, 7, 196, 1500])
@pytest.mark.parametrize("width", [0.01, 0.3, 20.0])
def test_half_a_step_from_the_exact_result(given, made, count, width):
    """From what the integers stand for; the float32 in between rounds a bit more."""
    rng = np.random.default_rng(count)
    x = tensor("x", (3, count), dtype=given, scale=width / BITS[given][1])
    lo, hi = BITS[made]
    out = tensor("y", (3, count), dtype=made, scale=1 / (hi - lo), zero_point=lo)
    q = rng.integers(*BITS[given], (3, count, 1, 1), endpoint=True).astype(given)
    op = SoftmaxQOp(name="s", inputs=("x",), output="y", axis=1)
    y = compute_softmax_q(op, out, Operand(x, q)).reshape(3, count)
    real = np.float64(x.scale) * q.reshape(3, count)
    e = np.exp(real - real.max(axis=1, keepdims=True))
    exact = e / e.sum(axis=1, keepdims=True) / np.float64(out.scale) + lo
    assert np.abs(y - np.clip(exact, lo, hi)).max() <= 0.5 + (hi - lo) * 2.0**-22
