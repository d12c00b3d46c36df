# SPDX-License-Identifier: Apache-2.0
"""A small file that makes onnxruntime build or run more than it could is refused."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from neon8.errors import GraphError
from neon8.graph.expansion import MAX_NODES, MAX_RUNS
from neon8.graph.onnx_file import open_onnx
from onnx_nets import net, node, save

SHAPE = (1, 3, 4, 4)
OPSETS = [helper.make_opsetid("", 13), helper.make_opsetid("own", 1)]


def with_functions(bodies):
    """A network that calls the last of `bodies`: name -> what it calls in turn."""
    functions = []
    for name, calls in bodies.items():
        steps = [f"v{at}" for at in range(len(calls) + 1)]
        nodes = [
            helper.make_node(
                call, [steps[at]], [steps[at + 1]], domain="own" * (call in bodies)
            )
            for at, call in enumerate(calls)
        ]
        functions.append(
            helper.make_function("own", name, steps[:1], steps[-1:], nodes, OPSETS)
        )
    model = net([node("Relu", "x", "r"), node("Relu", "r", "y")], {"x": SHAPE}, "y")
    model.graph.node[1].CopyFrom(helper.make_node(name, ["r"], ["y"], domain="own"))
    model.functions.extend(functions)
    del model.opset_import[:]
    model.opset_import.extend(OPSETS)
    return model


def doubling(depth):
    """Functions that call the one before twice."""
    leaf = {"f0": ["Relu"]}
    return leaf | {f"f{at}": [f"f{at - 1}"] * 2 for at in range(1, depth)}


def test_functions_are_counted_as_they_are_expanded(tmp_path):
    open_onnx(save(tmp_path, with_functions(doubling(14))))
    path = save(tmp_path, with_functions(doubling(40)))
    with pytest.raises(GraphError, match=rf"has {3 * 2**39} nodes.*up to {MAX_NODES}$"):
        open_onnx(path)


def test_functions_that_are_nested_deeply(tmp_path):
    bodies = {"f0": ["Relu"]} | {f"f{at}": [f"f{at - 1}"] for at in range(1, 100)}
    path = save(tmp_path, with_functions(bodies))
    with pytest.raises(GraphError, match="nests functions, branches and loops deeper"):
        open_onnx(path)


def looped(trips, condition):
    """y = relu(x), `trips` times; None: as often as the condition says."""
    ends = [("v", TensorProto.FLOAT, SHAPE), ("go", TensorProto.BOOL, [])]
    v, go = (helper.make_tensor_value_info(*end) for end in ends)
    more = helper.make_tensor_value_info("more", TensorProto.BOOL, [])
    out = helper.make_tensor_value_info("out", TensorProto.FLOAT, SHAPE)
    number = helper.make_tensor_value_info("i", TensorProto.INT64, [])
    nodes = [helper.make_node("Relu", ["v"], ["out"]), *condition]
    body = helper.make_graph(nodes, "body", [number, go, v], [more, out])
    loop = node("Loop", "m t x" if trips is not None else "x", "y", "loop", body=body)
    if trips is None:
        loop.input[:] = ["", "t", "x"]
    weights = {"m": np.array(trips or 0, np.int64), "t": np.array(True)}
    return net([loop], {"x": SHAPE}, "y", weights)


ALWAYS = [
    [node("Identity", "go", "more")],
    [node("Cast", "go", "c", to=9), node("Identity", "c", "more")],
    [
        helper.make_node(
            "Constant",
            [],
            ["more"],
            value=helper.make_tensor("", TensorProto.BOOL, [], [True]),
        )
    ],
]
SOMETIMES = [
    node("ReduceMax", "v", "max", keepdims=0),
    node("Greater", "max zero", "more"),
]


@pytest.mark.parametrize("condition", ALWAYS)
@pytest.mark.parametrize("trips", [2**62, None])
def test_a_loop_that_never_ends(tmp_path, condition, trips):
    path = save(tmp_path, looped(trips, condition))
    with pytest.raises(GraphError, match=rf"its loops run \d+ nodes.*up to {MAX_RUNS}"):
        open_onnx(path)


def test_a_loop_that_may_end(tmp_path):
    open_onnx(save(tmp_path, looped(1000, ALWAYS[0])))
    model = looped(2**62, SOMETIMES)
    model.graph.initializer.append(helper.make_tensor("zero", 1, [], [0.0]))
    open_onnx(save(tmp_path, model))
