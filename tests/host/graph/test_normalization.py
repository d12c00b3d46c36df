# SPDX-License-Identifier: Apache-2.0
"""Normalizations and reductions: the imported Graph computes what the file says."""

import numpy as np
import pytest

from neon8.ir.graph import Activation
from neon8.operators.convolution import Conv2d
from neon8.operators.normalization import InstanceNorm, Lrn
from neon8.operators.pooling import Pool
from onnx_nets import assert_same, chain, why_opaque

F = np.float32
IMAGE = (1, 6, 5, 4)
RELU = ("Relu", [], {})


@pytest.mark.parametrize(
    "attributes",
    [
        {"size": 1, "alpha": 1.0, "beta": 0.5},
        {"size": 3, "alpha": 0.5, "beta": 1.0, "bias": 0.5},
        {"size": 3, "alpha": 3.0, "beta": 0.6},
        {"size": 99, "alpha": 3.0, "beta": 2.0},
    ],
)
def test_lrn(tmp_path, attributes):
    graph = assert_same(tmp_path, chain([("LRN", [], attributes)], IMAGE))
    assert isinstance(graph.nodes[0], Lrn)


@pytest.mark.parametrize("shape", [IMAGE, (1, 6, 7), (1, 6, 1, 1)])
def test_instance_normalization(tmp_path, shape):
    norm = ("InstanceNormalization", [(6,), (6,)], {"epsilon": 1e-3})
    graph = assert_same(tmp_path, chain([norm, RELU], shape))
    (node,) = graph.nodes
    assert isinstance(node, InstanceNorm)
    assert node.activation == Activation(lo=0.0)


@pytest.mark.parametrize(
    "step",
    [
        ("LRN", [], {"size": 3}),
        ("InstanceNormalization", [(6,), (6,)], {}),
    ],
)
def test_of_what_got_an_axis(tmp_path, step):
    """The axis is none of N C H W, so that nothing is left of the Unsqueeze."""
    steps = [("Conv", [(6, 6, 3)], {}), ("Unsqueeze", [], {"axes": [3]}), step]
    assert_same(tmp_path, chain(steps, (1, 6, 9), opset=10))


REFUSED = {
    "lrn size": (("LRN", [], {"size": 4}), "size 4 is even"),
    "lrn beta": (("LRN", [], {"size": 5, "beta": -1.0}), "beta -1"),
    "lrn bias": (("LRN", [], {"size": 5, "bias": 0.0}), "not positive"),
    "lrn alpha": (("LRN", [], {"size": 5, "alpha": -1.0}), "alpha -1"),
    "norm epsilon": (("InstanceNormalization", [(6,), (6,)], {"epsilon": 0.0}),
                     "epsilon 0"),
}  # fmt: skip


@pytest.mark.parametrize(("step", "words"), REFUSED.values(), ids=REFUSED)
def test_refused(tmp_path, step, words):
    assert words in why_opaque(tmp_path, chain([step], IMAGE))


def test_a_classifier_without_a_pool(tmp_path):
    """As TensorFlow writes the mean over an image."""
    steps = [
        ("ReduceMean", [], {"axes": [2, 3], "keepdims": 0}),
        ("Gemm", [(6, 3)], {}),
    ]
    graph = assert_same(tmp_path, chain(steps, IMAGE))
    assert [type(node) for node in graph.nodes] == [Pool, Conv2d]


def test_no_axes_mean_nothing(tmp_path):
    steps = [RELU, ("ReduceSum", [np.array([], np.int64)], {"noop_with_empty_axes": 1})]
    graph = assert_same(tmp_path, chain([*steps, RELU], IMAGE))
    assert not any(isinstance(node, Pool | Conv2d) for node in graph.nodes)
