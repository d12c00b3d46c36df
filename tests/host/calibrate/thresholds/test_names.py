# SPDX-License-Identifier: Apache-2.0
"""The text that names a method and its settings."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neon8.calibrate.thresholds import methods
from neon8.calibrate.thresholds.choose import solve
from neon8.calibrate.thresholds.methods import NAMES, Method
from neon8.errors import CalibrationError
from numpy_statistics import histogram_of

TEN = np.arange(10, dtype=np.float32)


@pytest.mark.parametrize(
    ("text", "method"),
    [
        ("mse", Method(name="mse")),
        ("percentile", Method(name="percentile")),
        ("percentile:99.9", Method(name="percentile", percent=99.9)),
        ("percentile:100:all", Method(name="percentile", percent=100, of="all")),
        ("legacy", Method(name="legacy")),
        ("legacy:99:0.5", Method(name="legacy", percent=99, cutoff=0.5)),
        ("eq:cosine", Method(name="eq", metric="cosine")),
    ],
)
def test_methods_as_text(text, method):
    assert methods.parse(text) == method
    assert methods.parse(str(method)) == method


@given(
    st.sampled_from(NAMES),
    st.sampled_from(["99.9", "50", "100", "1e-3"]),
    st.sampled_from(methods.OF),
)
def test_text_of_a_method_names_it_again(name, percent, of):
    text = f"{name}:{percent}:{of}" if name == "percentile" else name
    method = methods.parse(text)
    assert methods.parse(str(method)) == method


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "unknown"),
        ("entropy", "'entropy' is unknown: expected one of mse, kl"),
        ("mse:1", "mse has 0 settings"),
        ("percentile:0", "'0' is not a number above 0 and up to 100"),
        ("percentile:nan", "'nan' is not a number"),
        ("percentile:101", "'101' is not"),
        ("percentile:99:some", "'some' is not one of nonzero, all"),
        ("percentile:99:all:1", "has 2 settings"),
        ("legacy:99:1.5", "'1.5' is not a number above 0 and up to 1"),
        ("legacy:inf", "'inf' is not"),
        ("eq:psnr", "'psnr' is not one of error, cosine"),
    ],
)
def test_methods_that_there_are_not(text, part):
    with pytest.raises(CalibrationError) as caught:
        solve(histogram_of(TEN), method=text, scheme="auto")
    assert part in str(caught.value)


@pytest.mark.parametrize(("scheme", "bits"), [("signed", 8), ("auto", 4)])
def test_schemes_and_bits_that_there_are_not(scheme, bits):
    with pytest.raises(CalibrationError, match="is unknown: expected one of"):
        solve(histogram_of(TEN), method="mse", scheme=scheme, bits=bits)
