# SPDX-License-Identifier: Apache-2.0
"""Each operator and its attributes: the imported Graph computes what the file says."""

import numpy as np
import pytest

from onnx_nets import assert_same, chain, net, node

F = np.float32
WINDOWS = {
    "plain": {"kernel_shape": [2, 2]},
    "stride": {"kernel_shape": [3, 2], "strides": [2, 3]},
    "pads": {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
    "one side": {"kernel_shape": [3, 3], "strides": [3, 3], "pads": [0, 0, 2, 1]},
    "large stride": {"kernel_shape": [2, 2], "strides": [4, 5], "pads": [1, 1, 0, 0]},
    "dilations": {"kernel_shape": [3, 2], "dilations": [2, 3], "strides": [2, 2],
                  "pads": [1, 1, 1, 1]},
}  # fmt: skip


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
@pytest.mark.parametrize("size", [(11, 14), (10, 9)])
def test_pools_of_ceil_mode(tmp_path, window, size):
    """Whose last window may begin in the padding; others are among random networks."""
    for kind, more in (
        ("MaxPool", {}),
        ("AveragePool", {"count_include_pad": 0}),
        ("AveragePool", {"count_include_pad": 1}),
    ):
        attributes = {**window, **more, "ceil_mode": 1}
        model = chain([(kind, [], attributes)], (1, 2, *size), opset=22)
        assert_same(tmp_path, model)


def test_symbolic_batch_and_computed_shape(tmp_path):
    """What PyTorch writes for x.view(x.size(0), -1)."""
    nodes = [
        node("Shape", "x", "s"),
        node("Gather", "s zero", "n", axis=0),
        node("Unsqueeze", "n axis", "n1"),
        node("Concat", "n1 minus", "shape", axis=0),
        node("Reshape", "x shape", "flat"),
        node("Gemm", "flat w", "y"),
    ]
    weights = {
        "zero": np.array(0),
        "axis": np.array([0]),
        "minus": np.array([-1]),
        "w": np.random.default_rng(3).normal(size=(18, 4)).astype(F),
    }
    model = net(nodes, {"x": ("batch", 2, 3, 3)}, "y", weights)
    graph = assert_same(tmp_path, model)
    assert [item.weight.shape for item in graph.nodes] == [(4, 2, 3, 3)]
