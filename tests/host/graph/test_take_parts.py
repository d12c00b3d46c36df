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


def taken(*slices, outputs="y", more=()):
    """Each slice: (start, end) along the channels, by the names y, z."""
    nodes = [
        node("Slice", f"c {start} {end} 1", name)
        for name, (start, end) in zip("yz", slices, strict=False)
    ]
    weights = {name: np.array(value) for name, value in BOUNDS.items()}
    inputs = {"a": SHAPE, "b": SHAPE}
    return net([*JOINED, *nodes, *more], inputs, outputs, weights)


def operators(graph):
    return [each.operator for each in graph.nodes]


def test_both_parts(tmp_path):
    """Nothing is joined, and nothing is moved."""
    graph = assert_same(tmp_path, taken((0, 4), (4, 8), outputs="y z"))
    assert "Concat" not in operators(graph)
    assert "c" not in graph.tensors


def test_some_of_a_part(tmp_path):
    """Two channels of the second one."""
    graph = assert_same(tmp_path, taken((6, 8)))
    assert operators(graph) == ["Sigmoid", "Slice"]


@pytest.mark.parametrize(
    "slices", [[(2, 6)], [(0, 4), (2, 6)]], ids=["alone", "beside"]
)
def test_some_of_both_parts(tmp_path, slices):
    """They are joined still."""
    graph = assert_same(tmp_path, taken(*slices, outputs=" ".join("yz"[: len(slices)])))
    assert "Concat" in operators(graph)


def test_what_else_reads_the_whole(tmp_path):
    """It is joined for that."""
    graph = assert_same(tmp_path, taken((0, 4), outputs="y c"))
    assert operators(graph).count("Concat") == 1
    (last,) = (each for each in graph.nodes if each.output == "y")
    assert last.inputs != ("c",)


def test_what_puts_values_in(tmp_path):
    """A Pad along the channels takes all of them."""
    pads = np.array([0, 1, 0, 0, 0, 0])
    model = net(
        [*JOINED, node("Pad", "c w", "y")], {"a": SHAPE, "b": SHAPE}, "y", {"w": pads}
    )
    assert "Concat" in operators(assert_same(tmp_path, model))
