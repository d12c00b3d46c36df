# SPDX-License-Identifier: Apache-2.0
"""Parts of a Concat that are taken out again, against onnxruntime."""

import numpy as np
import pytest

from onnx_nets import assert_same, net, node

SHAPE = (1, 4, 5)
JOINED = [
    node("Relu", "a", "p"),
    node("Sigmoid", "b", "q"),
    node("Concat", "p q", "c", axis=1),
]
BOUNDS = {"0": [0], "2": [2], "4": [4], "6": [6], "8": [8], "1": [1]}


def taken(*slices, outputs="y"):
    """Each slice: (start, end) along the channels, by the names y, z."""
    nodes = [
        node("Slice", f"c {start} {end} 1", name)
        for name, (start, end) in zip("yz", slices, strict=False)
    ]
    weights = {name: np.array(value) for name, value in BOUNDS.items()}
    inputs = {"a": SHAPE, "b": SHAPE}
    return net([*JOINED, *nodes], inputs, outputs, weights)


CASES = {
    "both parts": (taken((0, 4), (4, 8), outputs="y z"), ["Relu", "Sigmoid"]),
    "some of a part": (taken((6, 8)), ["Sigmoid", "Slice"]),
    "some of both": (taken((2, 6)), ["Relu", "Sigmoid", "Concat", "Slice"]),
    "beside a part": (
        taken((0, 4), (2, 6), outputs="y z"),
        ["Relu", "Sigmoid", "Concat", "", "Slice"],
    ),
    "the whole as well": (
        taken((0, 4), outputs="y c"),
        ["Relu", "Sigmoid", "Concat", ""],
    ),
}


@pytest.mark.parametrize(("model", "operators"), CASES.values(), ids=CASES)
def test_a_concat_stays_where_the_whole_is_read(tmp_path, model, operators):
    graph = assert_same(tmp_path, model)
    assert [each.operator for each in graph.nodes] == operators


def test_what_puts_values_in(tmp_path):
    """A Pad along the channels takes all of them."""
    pads = np.array([0, 1, 0, 0, 0, 0])
    model = net(
        [*JOINED, node("Pad", "c w", "y")], {"a": SHAPE, "b": SHAPE}, "y", {"w": pads}
    )
    graph = assert_same(tmp_path, model)
    assert "Concat" in [each.operator for each in graph.nodes]
