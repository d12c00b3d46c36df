# SPDX-License-Identifier: Apache-2.0
"""Networks in float32, from ONNX to the library, against onnxruntime."""

import numpy as np
import pytest

from onnx_nets import net, node, save
from whole_nets import built

F = np.float32


def worst(made):
    """The largest error, relative to the largest value of the tensor."""
    return max(
        np.abs(theirs[name] - mine[name]).max() / (np.abs(theirs[name]).max() + 1e-30)
        for theirs, mine in zip(made.wanted, made.found, strict=True)
        for name in mine
    )


IMAGE = (1, 3, 8, 9)


@pytest.mark.parametrize("kept", ["Conv", "MaxPool", "Add", "Sigmoid", "n1"])
def test_one_node_in_float(tmp_path, kept):
    """Any node may be kept: it takes what is there and gives what is wanted."""
    nodes = [
        node("Conv", "x w0", "a", "n0", pads=[1, 1, 1, 1]),
        node("Relu", "a", "b"),
        node("Conv", "b w1", "c", "n1", pads=[1, 1, 1, 1]),
        node("Add", "b c", "d", "sum"),
        node("MaxPool", "d", "e", "pool", kernel_shape=[2, 2]),
        node("Sigmoid", "e", "f", "gate"),
        node("Conv", "f w1", "y", "n2"),
    ]
    rng = np.random.default_rng(2)
    weights = {
        "w0": rng.normal(0, 0.3, (5, 3, 3, 3)).astype(F),
        "w1": rng.normal(0, 0.3, (5, 5, 3, 3)).astype(F),
    }
    path = save(tmp_path, net(nodes, {"x": IMAGE}, "y", weights))
    made = built(path, keep=[kept])
    assert set(made.program.islands.values()) == {"kept in float32 by request"}
    assert worst(made) < 0.05
