# SPDX-License-Identifier: Apache-2.0
"""Fourier transforms, against onnxruntime."""

import numpy as np
import pytest

from neon8.operators.fourier import MOST
from onnx_nets import assert_same, net, node, why_opaque

F = np.float32
INTS = {"twelve": np.array(12), "five": np.array(5)}
REAL, COMPLEX = (2, 8, 3, 1), (2, 8, 3, 2)
NETS = {
    "half": (REAL, "x", {"onesided": 1}),
    "padded": (REAL, "x twelve", {}),
    "cut": (COMPLEX, "x five", {}),
}


@pytest.mark.parametrize("name", NETS)
def test_transforms(tmp_path, name):
    shape, inputs, attributes = NETS[name]
    weights = {key: value for key, value in INTS.items() if key in inputs.split()}
    made = node("DFT", "", "y", **attributes)
    made.input.extend(inputs.split(" "))
    assert_same(tmp_path, net([made], {"x": shape}, "y", weights, opset=17))


@pytest.mark.parametrize("inputs", ["x step window size", "x step  size"])
def test_frames(tmp_path, inputs):
    weights = {"step": np.array(4, np.int64), "window": np.hanning(10).astype(F)}
    weights["size"] = np.array(10, np.int64)
    made = node("STFT", "", "y")
    made.input.extend(inputs.split(" "))
    weights = {key: value for key, value in weights.items() if key in inputs.split()}
    assert_same(tmp_path, net([made], {"x": (2, 39, 1)}, "y", weights, opset=17))


def test_a_long_one(tmp_path):
    model = net([node("DFT", "x", "y")], {"x": (1, MOST + 1, 1)}, "y", opset=17)
    assert "DFT" in why_opaque(tmp_path, model)
