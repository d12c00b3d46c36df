# SPDX-License-Identifier: Apache-2.0
"""Sums, means and maxima along any axes, and lengths of vectors."""

import numpy as np

from neon8 import calibrate_model, compile_model
from neon8.compile.domains import HIDDEN
from neon8.compile.lower import lower
from neon8.compile.oracle import run
from neon8.formats.attach import attach, complete
from neon8.formats.foreign_table import ForeignTable, Range
from neon8.graph.importer import load
from neon8.operators.convolution import Conv2d
from neon8.runtime import Model
from onnx_nets import assert_same, net, node, save

F = np.float32
RNG = np.random.default_rng(8)


def attention():
    """The maximum and the mean over channels, as in CBAM, and what follows from them.

    A sum over axes that N C H W cuts apart, as in split attention, and the unit vector
    of a face.
    """
    w = RNG.normal(size=(4, 3, 3, 3)).astype(F)
    nodes = [
        node("Conv", "x w", "c", pads=[1] * 4),
        node("ReduceMax", "c", "top", axes=[1]),
        node("ReduceMean", "c", "mean", axes=[1]),
        node("Concat", "top mean", "two", axis=1),
        node("Conv", "two v", "gate"),
        node("Sigmoid", "gate", "s"),
        node("Mul", "c s", "m"),
        node("Reshape", "m five", "r"),
        node("ReduceSum", "r one", "sum", keepdims=0),
        node("ReduceMean", "sum", "flat", axes=[2, 3], keepdims=0),
        node("ReduceL2", "flat", "length", axes=[-1]),
        node("Clip", "length tiny", "safe"),
        node("Div", "flat safe", "y"),
    ]
    weights = {
        "w": w,
        "v": RNG.normal(size=(1, 2, 1, 1)).astype(F),
        "five": np.array([1, 2, 2, 6, 5]),
        "one": np.array([1]),
        "tiny": F(1e-12),
    }
    return net(nodes, {"x": (1, 3, 6, 5)}, "y", weights)


def test_attention_runs_and_only_the_length_is_float(tmp_path):
    path = save(tmp_path, attention())
    graph = assert_same(tmp_path, attention())
    data = RNG.normal(size=(40, 3, 6, 5)).astype(F)
    table = calibrate_model(path, data)
    program = lower(load(path), table)
    hidden = {name for name, why in program.islands.items() if why == HIDDEN}
    length = {item.name for item in graph.nodes if item.operator == "ReduceL2"}
    assert hidden - {"Clip_safe"} == length  # the Clip is in one table with the root
    compiled = tmp_path / "net.n8"
    compiled.write_bytes(compile_model(path, table))
    with Model.open(compiled) as model, model.session() as session:
        for x in data[:3]:
            (y,) = session.run({"x": x[None]}).values()
            assert run(program, {"x": x[None]})["y"].tobytes() == y.tobytes()
            assert abs(np.linalg.norm(y) - 1) < 0.03


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
