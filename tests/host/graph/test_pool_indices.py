# SPDX-License-Identifier: Apache-2.0
"""MaxPool with its indices, and of integers, against onnxruntime."""

import numpy as np
import onnxruntime
import pytest

import neon8
from onnx_nets import net, node, save
from whole_nets import run_once

INT64, UINT8 = 7, 2
RNG = np.random.default_rng(0)

CASES = {
    "halves": ((2, 3, 9, 10), {"kernel_shape": [2, 2], "strides": [2, 2]}),
    "padded": ((1, 2, 7, 7), {"kernel_shape": [3, 3], "pads": [1] * 4}),
    "columns first": (
        (1, 2, 6, 9),
        {"kernel_shape": [3, 3], "pads": [1, 0, 1, 2], "storage_order": 1},
    ),
    "one axis": ((1, 2, 11), {"kernel_shape": [3], "strides": [2], "pads": [1, 1]}),
    "a volume": ((1, 2, 5, 6, 7), {"kernel_shape": [2, 3, 2], "strides": [1, 2, 2]}),
    "dilated": (
        (1, 2, 9, 9),
        {"kernel_shape": [3, 2], "dilations": [2, 3], "pads": [2, 1, 2, 1]},
    ),
}


def run(tmp_path, model, given):
    path = save(tmp_path, model)
    found = neon8.compile_model(path, neon8.calibrate_model(path, [given]))
    names = [output.name for output in model.graph.output]
    want = onnxruntime.InferenceSession(str(path)).run(names, given)
    got = run_once(found, given)
    return [(got[name], each) for name, each in zip(names, want, strict=True)]


@pytest.mark.parametrize("case", CASES)
def test_the_first_of_equal_values_is_found(tmp_path, case):
    """Seven different values, which int8 keeps apart."""
    shape, attributes = CASES[case]
    pool = node("MaxPool", "x", "y i", "pool", **attributes)
    model = net([pool], {"x": shape}, "y i", opset=18, types={"i": INT64})
    given = {"x": RNG.integers(-3, 4, shape).astype(np.float32)}
    (y, values), (i, places) = run(tmp_path, model, given)
    np.testing.assert_array_equal(i, places)
    assert np.abs(y - values).max() < 0.02


def test_in_int8_between_layers(tmp_path):
    """A pool of what a convolution makes: no value is larger than the one it names."""
    nodes = [
        node("Conv", "x a", "c", "conv"),
        node("MaxPool", "c", "p i", "pool", kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", "p b", "y", "last"),
    ]
    weights = {
        name: RNG.normal(size=(4, 4, 1, 1)).astype(np.float32) for name in ("a", "b")
    }
    shapes, kinds = {"x": (1, 4, 8, 8)}, {"i": INT64}
    model = net(nodes, shapes, "y i c", weights, opset=18, types=kinds)
    given = {"x": RNG.normal(size=(1, 4, 8, 8)).astype(np.float32)}
    _, (i, _), (c, _) = run(tmp_path, model, given)
    blocks = c.reshape(1, 4, 4, 2, 4, 2).max(axis=(3, 5))
    np.testing.assert_allclose(c.reshape(-1)[i], blocks, atol=0.05)


def test_of_bytes(tmp_path):
    pool = node("MaxPool", "b", "p", "pool", kernel_shape=[3, 3], pads=[1] * 4)
    nodes = [pool, node("Cast", "p", "r", to=1), node("Add", "x r", "y")]
    shapes = {"x": (1, 1, 5, 5), "b": (1, 1, 5, 5)}
    model = net(nodes, shapes, "y p", opset=18, types={"b": UINT8, "p": UINT8})
    given = {
        "x": np.zeros(shapes["x"], np.float32),
        "b": RNG.integers(0, 256, shapes["b"]).astype(np.uint8),
    }
    _, (found, want) = run(tmp_path, model, given)
    np.testing.assert_array_equal(found, want)
