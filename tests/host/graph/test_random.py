# SPDX-License-Identifier: Apache-2.0
"""Random networks: import as a whole, and each pass alone, changes no value."""

import numpy as np
from hypothesis import given, settings

import graph_executor
from neon8.graph.importer import convert
from neon8.graph.onnx_file import open_onnx
from neon8.graph.passes import PASSES
from neon8.graph.reader import read
from onnx_nets import TOLERANCE, assert_same, save
from random_nets import networks


@settings(max_examples=300)
@given(model=networks())
def test_import_is_what_onnxruntime_computes(tmp_path_factory, model):
    assert_same(tmp_path_factory.mktemp("random"), model)


def check(apply, old, x):
    """The graph after a pass, which computes what the one before it does."""
    new = apply(old)
    assert (new.inputs, new.outputs) == (old.inputs, old.outputs)
    assert new.tensors.items() <= old.tensors.items()
    if new.nodes == old.nodes:
        return new
    want, got = (graph_executor.run(graph, {"x": x}) for graph in (old, new))
    for name in new.tensors:
        error = np.abs(got[name] - want[name]).max()
        assert error <= TOLERANCE * max(np.abs(want[name]).max(), 1e-3), (name, error)
    made = [node.output for node in new.nodes]
    assert set(made) | set(new.inputs) == set(new.tensors)
    for node in new.nodes:  # in order of execution
        assert not {*made[made.index(node.output) :]} & {*node.inputs}
    return new


@settings(max_examples=200)
@given(model=networks())
def test_no_pass_changes_a_value(tmp_path_factory, model):
    """Each on what those before it left, and alone on what import gives them."""
    path = save(tmp_path_factory.mktemp("random"), model)
    first = graph = convert(read(open_onnx(path)))
    x = np.random.default_rng(1).normal(0, 2, first.tensors["x"].shape)
    for apply in PASSES:
        check(apply, first, x)
        graph = check(apply, graph, x)
