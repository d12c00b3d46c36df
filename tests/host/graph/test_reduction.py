# SPDX-License-Identifier: Apache-2.0
"""Sums, means and maxima along any axes, and lengths of vectors."""

import numpy as np

from neon8 import calibrate_model
from neon8.formats.attach import attach, complete
from neon8.formats.foreign_table import ForeignTable, Range
from neon8.graph.importer import load
from neon8.operators.convolution import Conv2d
from onnx_nets import net, node, save

F = np.float32
RNG = np.random.default_rng(8)


def test_a_sum_has_the_scale_of_the_tensor_in_the_file(tmp_path):
    one = node("ReduceSum", "x axes", "y", keepdims=0)
    axes = {"axes": np.array([1])}
    path = save(tmp_path, net([one], {"x": (1, 2, 3, 4)}, "y", axes))
    graph = load(path)
    (conv,) = (item for item in graph.nodes if isinstance(item, Conv2d))
    table = calibrate_model(path, RNG.normal(size=(8, 2, 3, 4)).astype(F))
    assert graph.tensors[conv.output].origin.name == "y"
    assert table.tensors[conv.output] == table.tensors["y"]


def test_a_foreign_table_needs_no_scale_of_what_nobody_observes(tmp_path):
    """It may have one all the same."""
    one = node("ReduceL2", "x", "y", axes=[1])
    graph = load(save(tmp_path, net([one], {"x": (1, 2, 3, 4)}, "y", opset=11)))
    hidden = {name for name, tensor in graph.tensors.items() if tensor.hidden}
    assert len(hidden) > 1
    seen = {"x": Range(lo=-1, hi=1), "y": Range(lo=0, hi=2)}
    for more in ({}, {min(hidden): Range(lo=0, hi=1)}):
        table = ForeignTable(source="seen", format="ranges", tensors=seen | more)
        whole = complete(attach(table, graph, {}), graph)
        assert whole.tensors.keys() == (graph.tensors.keys() - hidden) | more.keys()
