# SPDX-License-Identifier: Apache-2.0
"""Networks that lie channels last, as TensorFlow's exporters write them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neon8 import calibrate_model
from neon8.graph.importer import load
from neon8.operators.convolution import Conv2d
from neon8.operators.movement import Permute, Reshape
from neon8.operators.opaque import Opaque
from neon8.operators.pooling import Pool
from neon8.operators.selection import Gather
from onnx_nets import assert_same, net, node, save

F = np.float32
RNG = np.random.default_rng(5)
LAST, FIRST = [0, 2, 3, 1], [0, 3, 1, 2]
IMAGE = (1, 4, 6, 6)
W = RNG.normal(size=(4, 4, 3, 3)).astype(F)
SQUARE = RNG.normal(size=(4, 4, 1, 1)).astype(F)
FACTOR = RNG.uniform(0.5, 1.5, 4).astype(F)
SHIFT = RNG.normal(size=(1, 1, 1, 4)).astype(F)
WEIGHTS = {"w": W, "square": SQUARE, "factor": FACTOR, "shift": SHIFT}


def last(source, to):
    return node("Transpose", f"{source}", f"{to}", perm=LAST)


def first(source, to):
    return node("Transpose", f"{source}", f"{to}", perm=FIRST)


def kinds(graph):
    return [type(item) for item in graph.nodes]


def test_batch_normalization_as_arithmetic_goes_into_the_convolution(tmp_path):
    nodes = [
        node("Conv", "x w", "c"),
        last("c", "l"),
        node("Mul", "l factor", "m"),
        node("Add", "shift m", "a"),
        node("Relu", "a", "r"),
        node("Pad", "r pads", "p"),
        first("p", "f"),
        node("Conv", "f w", "y"),
    ]
    weights = WEIGHTS | {"pads": np.array([0, 0, 1, 0, 0, 2, 0, 0])}
    graph = assert_same(tmp_path, net(nodes, {"x": IMAGE}, "y", weights))
    assert [kind for kind in kinds(graph) if kind is not Gather] == [Conv2d, Conv2d]
    assert graph.rearranged[graph.nodes[0].pre_activation].origin.name == "a"


def test_a_residual_sum_is_read_under_the_name_it_has_channels_first(tmp_path):
    nodes = [
        node("Conv", "x square", "c"),
        last("c", "l"),
        node("Relu", "l", "r"),
        first("r", "f"),
        node("Conv", "f square", "d"),
        last("d", "m"),
        node("Add", "m r", "s"),
        first("s", "t"),
        node("Conv", "t square", "y"),
    ]
    graph = assert_same(tmp_path, net(nodes, {"x": IMAGE}, "y", WEIGHTS))
    assert Permute not in kinds(graph)
    assert [item.output for item in graph.nodes] == ["f", "d", "t", "y"]
    assert not graph.rearranged.keys() & graph.tensors.keys()


def test_squeeze_and_excite(tmp_path):
    nodes = [
        node("Conv", "x square", "c"),
        last("c", "l"),
        node("ReduceMean", "l", "q", axes=[1, 2], keepdims=1),
        first("q", "qf"),
        node("Conv", "qf square", "s"),
        node("Reshape", "s shape", "sl"),  # of one pixel: a Transpose
        node("Relu", "sl", "sr"),
        node("Mul", "l sr", "e"),
        node("Concat", "e l", "two", axis=3),
        node("Split", "two", "u v", axis=-1),
        node("Sub", "u v", "g"),
        first("g", "gf"),
        node("Conv", "gf w", "y"),
    ]
    weights = WEIGHTS | {"shape": np.array([1, 1, 1, 4])}
    graph = assert_same(tmp_path, net(nodes, {"x": IMAGE}, "y", weights))
    assert not {Permute, Reshape} & {*kinds(graph)}
    assert Pool in kinds(graph)


def test_a_constant_part_of_a_concat_is_turned(tmp_path):
    """As the token that vision transformers put before those of the image."""
    nodes = [
        node("Conv", "x square", "c"),
        last("c", "l"),
        node("Concat", "part l", "j", axis=1),
        first("j", "f"),
        node("Conv", "f square", "y"),
    ]
    size = (IMAGE[0], 1, IMAGE[3], IMAGE[1])
    part = np.random.default_rng(1).standard_normal(size).astype(np.float32)
    weights = WEIGHTS | {"part": part}
    graph = assert_same(tmp_path, net(nodes, {"x": IMAGE}, "y", weights))
    assert not {Permute, Reshape} & {*kinds(graph)}


@pytest.mark.parametrize("operator", ["ReduceMax", "ReduceMean", "ReduceL2"])
def test_what_is_turned_is_rearranged_again(tmp_path, operator):
    """Over rows and channels: neither the file has what is reduced, nor its turned one.

    And the bias of a layer over channels last stands beside it.
    """
    nodes = [
        node("Conv", "x square", "c"),
        last("c", "l"),
        node("Mul", "l factor", "m"),
        node(operator, "m", "top", axes=[1, 3], keepdims=1),
        node("Mul", "m top", "s"),
        node("MatMul", "s matrix", "t"),
        node("Add", "t shift", "b"),
        first("b", "f"),
        node("Conv", "f w", "y"),
    ]
    weights = WEIGHTS | {"matrix": SQUARE[:, :, 0, 0]}
    model = net(nodes, {"x": (1, 4, 5, 6)}, "y", weights, opset=13)
    graph = assert_same(tmp_path, model)
    assert graph.tensors["m"].dims == (1, 4, 5, 6)
    assert graph.tensors["m"].origin.name == "m"
    assert any(graph.rearranged.get(t.origin.name) for t in graph.rearranged.values())
    data = RNG.normal(size=(2, 4, 5, 6)).astype(F)
    assert "m" in calibrate_model(save(tmp_path, model), data).tensors


@pytest.mark.parametrize("reader", ["Softmax", "Flatten", "MatMul"])
def test_what_is_read_channels_last_is_moved_once(tmp_path, reader):
    """The output stays as it is, and so does what an Opaque node reads."""
    nodes = [
        node("Conv", "x w", "c"),
        last("c", "l"),
        node("Mul", "l factor", "m"),
        node("Add", "m shift", "a"),
        node("Sigmoid", "a", "g"),
    ]
    if reader == "MatMul":
        nodes.append(node("MatMul", "g wide", "y"))
    else:
        nodes.append(node(reader, "g", "y", axis=1 if reader == "Flatten" else -1))
    wide = {"wide": np.ones((1, 4, 4, 3), F)}
    path = save(tmp_path, net(nodes, {"x": IMAGE}, "y", WEIGHTS | wide))
    graph = load(path)
    assert kinds(graph).count(Permute) == 1
    assert kinds(graph)[0] is Conv2d
    assert len(calibrate_model(path, np.ones((2, *IMAGE), F)).tensors) > 2
    if reader != "MatMul":
        assert_same(tmp_path, net(nodes, {"x": IMAGE}, "y", WEIGHTS))


def test_what_would_not_cost_less_stays(tmp_path):
    nodes = [
        node("Conv", "x w", "c"),
        last("c", "l"),
        node("Sigmoid", "l", "s"),
        node("Reshape", "s shape", "y"),
    ]
    weights = WEIGHTS | {"shape": np.array([1, -1, 2])}
    graph = assert_same(tmp_path, net(nodes, {"x": IMAGE}, "y", weights))
    assert not graph.rearranged


def test_a_node_that_cannot_run_turned_is_not_turned(tmp_path):
    """Random numbers cannot; the input stays as it is."""
    nodes = [
        node("Conv", "x w", "c"),
        last("c", "l"),
        node("Mul", "l factor", "m"),
        node("Relu", "m", "p"),
        node("RandomNormalLike", "p", "r"),
        node("Relu", "r", "s"),
        first("s", "f"),
        node("Conv", "f square", "y"),
    ]
    graph = load(save(tmp_path, net(nodes, {"x": (2, *IMAGE[1:])}, "y", WEIGHTS)))
    (opaque,) = (item for item in graph.nodes if isinstance(item, Opaque))
    assert (opaque.inputs, opaque.output) == (("p",), "r")
    assert graph.tensors["p"].dims == graph.tensors["r"].dims == (2, 4, 4, 4)
    assert graph.tensors["p"].origin is None


def test_scales_are_those_of_the_same_network_channels_first(tmp_path):
    shape = 1, 4, 9, 5
    nodes = [
        node("Conv", "x w", "c"),
        last("c", "l"),
        node("Mul", "l factor", "m"),
        node("Relu", "m", "r"),
        first("r", "f"),
        node("Conv", "f w", "z"),
    ]
    plain = [
        node("Conv", "x w", "c"),
        node("Mul", "c factor", "m"),
        node("Relu", "m", "f"),
        node("Conv", "f w", "z"),
    ]
    exact = np.array([0.5, 1, 2, 4], F)  # whether onnxruntime fuses the Mul or not
    weights = WEIGHTS | {"factor": exact}
    turned = save(tmp_path, net(nodes, {"x": shape}, "z", weights))
    weights["factor"] = exact.reshape(1, 4, 1, 1)
    other = save(tmp_path, net(plain, {"x": shape}, "z", weights), "plain.onnx")
    data = RNG.normal(size=(3, *shape[1:])).astype(F)
    have, want = (calibrate_model(path, data) for path in (turned, other))
    assert have.tensors == want.tensors
    assert have.layers == want.layers


@st.composite
def between(draw):
    """Nodes on (1, 5, 6, 4) lying channels last, from "l" to "o"."""
    nodes, known = [], ["l"]
    for number in range(draw(st.integers(1, 6))):
        source = draw(st.sampled_from(known))
        to = f"t{number}"
        kind = draw(
            st.sampled_from(
                ["Sigmoid", "Relu", "Mul", "Add", "Both", "Pad", "Join", "Mean", "Turn"]
            )
        )
        if kind == "Mul":
            nodes.append(node("Mul", f"factor {source}", to))
        elif kind == "Add":
            nodes.append(node("Add", f"{source} shift", to))
        elif kind == "Both":
            nodes.append(node("Add", f"{source} {draw(st.sampled_from(known))}", to))
        elif kind == "Pad":
            nodes.append(node("Pad", f"{source} pads", f"{to}p"))
            nodes.append(node("Slice", f"{to}p start end axes", to))
        elif kind == "Join":
            nodes.append(node("Concat", f"{source} l", f"{to}c", axis=-1))
            nodes.append(node("Split", f"{to}c", f"{to} {to}d", axis=3))
        elif kind == "Mean":
            nodes.append(node("ReduceMean", source, f"{to}m", axes=[1, 2]))
            nodes.append(node("Mul", f"{source} {to}m", to))
        elif kind == "Turn":
            nodes.append(first(source, f"{to}f"))
            nodes.append(node("Conv", f"{to}f square", f"{to}g"))
            nodes.append(last(f"{to}g", to))
        else:
            nodes.append(node(kind, source, to))
        known.append(to)
    return nodes, known, draw(st.booleans())


@settings(max_examples=15, deadline=None)
@given(between())
def test_random_networks(tmp_path_factory, drawn):
    nodes, known, shown = drawn
    nodes = [
        node("Conv", "x square", "c"),
        last("c", "l"),
        *nodes,
        first(known[-1], "f"),
        node("Conv", "f square", "y"),
    ]
    weights = WEIGHTS | {
        "pads": np.array([0, 1, 0, 0, 0, 0, 2, 0]),
        "start": np.array([1, -6]),
        "end": np.array([99, 99]),
        "axes": np.array([-3, 2]),
    }
    outputs = f"y {known[len(known) // 2]}" if shown else "y"
    model = net(nodes, {"x": (1, 4, 5, 6)}, outputs, weights)
    assert_same(tmp_path_factory.mktemp("net"), model)
