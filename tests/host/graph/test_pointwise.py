# SPDX-License-Identifier: Apache-2.0
"""Functions of single values, the patterns that exporters write, and arithmetic."""

import importlib
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neon8.graph.importer import load
from neon8.ir.graph import Activation
from neon8.operators.activation import Activate, Prelu
from neon8.operators.arithmetic import Add, Multiply
from neon8.operators.convolution import Conv2d
from neon8.operators.functions import MAX_SIZE
from neon8.operators.pointwise import Pointwise
from onnx_nets import assert_same, chain, net, node, save, why_opaque

F = np.float32
RNG = np.random.default_rng(11)
IMAGE = (1, 3, 5, 6)
W = RNG.normal(size=(4, 3, 3, 3)).astype(F)
CONV = ("Conv", [(3, 3, 3, 3), (3,)], {"pads": [1, 1, 1, 1]})
EXP = ("Exp", [], {})  # what makes a value positive


def kinds(graph):
    return [type(item) for item in graph.nodes]


FUNCTIONS = {
    "shrink by a bias": (13, [("Shrink", [], {"lambd": 0.7, "bias": 0.3})]),
    "pow 1.7": (13, [EXP, ("Pow", [F(1.7)], {})]),
    "pow -2": (13, [EXP, ("Pow", [F(-2)], {})]),
    "pow 0.5": (13, [EXP, ("Pow", [F(0.5)], {})]),
    "pow 0": (13, [("Pow", [F(0)], {})]),
    "selu own": (13, [("Selu", [], {"alpha": 1.2, "gamma": 0.8})]),
    "hard sigmoid own": (13, [("HardSigmoid", [], {"alpha": 1 / 6, "beta": 0.4})]),
    "one by": (13, [EXP, ("Sqrt", [], {}), ("Tanh", [], {})]),
    "relu after": (13, [("Tanh", [], {}), ("Relu", [], {})]),
    "constants after": (13, [("Tanh", [], {}), ("Mul", [F(2)], {}),
                              ("Sub", [F(0.5)], {}), ("LeakyRelu", [], {})]),
}  # fmt: skip


@pytest.mark.parametrize(("opset", "steps"), FUNCTIONS.values(), ids=FUNCTIONS)
def test_function(tmp_path, opset, steps):
    """After a convolution: two nodes, whatever follows; node tests have the rest."""
    graph = assert_same(tmp_path, chain([CONV, *steps], IMAGE, opset=opset))
    assert kinds(graph) == [Conv2d, Pointwise]
    graph = assert_same(tmp_path, chain(steps, IMAGE, opset=opset))
    assert kinds(graph) == [Pointwise]


PATTERNS = {
    "silu": [node("Sigmoid", "c", "s"), node("Mul", "c s", "y")],
    "silu, swapped": [node("Sigmoid", "c", "s"), node("Mul", "s c", "y")],
    "quick gelu": [node("Mul", "c w1.702", "a"), node("Sigmoid", "a", "s"),
                   node("Mul", "c s", "y")],
    "hard swish": [node("Add", "c w3", "a"), node("Clip", "a w0 w6", "b"),
                   node("Mul", "c b", "m"), node("Div", "m w6", "y")],
    "hard swish 2": [node("HardSigmoid", "c", "h", alpha=1 / 6),
                     node("Mul", "c h", "y")],
    "mish": [node("Softplus", "c", "s"), node("Tanh", "s", "t"),
             node("Mul", "c t", "y")],
    "mish spelled out": [node("Exp", "c", "e"), node("Add", "e w1", "f"),
                         node("Log", "f", "s"), node("Tanh", "s", "t"),
                         node("Mul", "c t", "y")],
    "gelu": [node("Div", "c w1.4142135", "d"), node("Erf", "d", "e"),
             node("Add", "e w1", "a"), node("Mul", "c a", "m"),
             node("Mul", "m w0.5", "y")],
    "gelu tanh": [node("Pow", "c w3", "p"), node("Mul", "p w0.044715", "q"),
                  node("Add", "c q", "r"), node("Mul", "r w0.7978846", "s"),
                  node("Tanh", "s", "t"), node("Add", "t w1", "u"),
                  node("Mul", "c w0.5", "h"), node("Mul", "h u", "y")],
    "gelu tanh, cube as products": [
        node("Mul", "c c", "c2"), node("Mul", "c2 c", "p"),
        node("Mul", "w0.044715 p", "q"), node("Add", "c q", "r"),
        node("Mul", "r w0.7978846", "s"), node("Tanh", "s", "t"),
        node("Add", "w1 t", "u"), node("Mul", "w0.5 c", "h"), node("Mul", "h u", "y")],
    "square": [node("Mul", "c c", "y")],
    "one minus": [node("Sigmoid", "c", "s"), node("Sub", "w1 s", "y")],
    "x + silu": [node("Sigmoid", "c", "s"), node("Mul", "c s", "m"),
                 node("Add", "c m", "y")],
    "quotient": [node("Exp", "c", "e"), node("Add", "e w1", "f"),
                 node("Div", "e f", "y")],
    "min and max": [node("Sigmoid", "c", "s"), node("Min", "w0.5 s", "m"),
                    node("Max", "m w0.3 w0", "y")],
}  # fmt: skip


def pattern(nodes, outputs="y", extra=()):
    """The nodes after a convolution; constants are called w and their value."""
    words = {name for one in nodes for name in one.input if name[0] == "w"}
    weights = {name: F(name[1:]) for name in words} | {"W": W}
    before = node("Conv", "x W", "c")
    return net([before, *nodes, *extra], {"x": IMAGE}, outputs, weights)


@pytest.mark.parametrize("nodes", PATTERNS.values(), ids=PATTERNS)
def test_pattern(tmp_path, nodes):
    graph = assert_same(tmp_path, pattern(nodes))
    assert kinds(graph) == [Conv2d, Pointwise]
    assert graph.nodes[1].inputs == ("c",)
    assert list(graph.tensors) == ["x", "c", "y"]


def test_what_is_read_from_outside_stays(tmp_path):
    """As an output of the network, or by another node."""
    silu = PATTERNS["silu"]
    graph = assert_same(tmp_path, pattern(silu, "y s"))
    assert kinds(graph) == [Conv2d, Pointwise, Multiply]
    graph = assert_same(tmp_path, pattern(silu, "y z", [node("Relu", "s", "z")]))
    assert kinds(graph) == [Conv2d, Pointwise, Multiply, Activate]
    hard = PATTERNS["hard swish"]
    graph = assert_same(tmp_path, pattern(hard, "y m"))
    assert kinds(graph) == [Conv2d, Pointwise, Conv2d]


def test_what_a_convolution_can_take_in_is_left_to_it(tmp_path):
    for first in (node("Relu", "c", "r"), node("Add", "c w3", "r")):
        model = pattern([first, node("Sigmoid", "r", "y")])
        graph = assert_same(tmp_path, model)
        assert kinds(graph) == [Conv2d, Pointwise]
        assert graph.nodes[1].inputs == ("r",)
    nodes = [node("Add", "c w3", "a"), node("Clip", "a w0 w6", "b")]
    graph = assert_same(tmp_path, pattern([*nodes, node("Div", "b w6", "y")]))
    assert kinds(graph) == [Conv2d, Conv2d]
    assert graph.nodes[0].activation == Activation(lo=0, hi=6)


def test_activations_and_constants_alone_are_no_pattern(tmp_path):
    nodes = [node("Relu", "c", "r"), node("Add", "c r", "y")]
    assert kinds(assert_same(tmp_path, pattern(nodes))) == [Conv2d, Activate, Add]


def test_trees_do_not_grow_without_bound(tmp_path):
    """Each product doubles the tree: 2^40 nodes, would it go on."""
    nodes = [node("Tanh", "x", "t0")]
    nodes += [node("Mul", f"t{at} t{at}", f"t{at + 1}") for at in range(40)]
    nodes.append(node("Relu", "t40", "y"))
    graph = load(save(tmp_path, net(nodes, {"x": IMAGE}, "y")))
    assert sum(len(item.inputs) for item in graph.nodes) < 30
    for item in graph.nodes:
        if isinstance(item, Pointwise):
            assert item.function.size <= MAX_SIZE


def test_a_long_chain_of_functions(tmp_path):
    names = ["x", *(f"t{step}" for step in range(99)), "y"]
    nodes = [node("Tanh", a, b) for a, b in itertools.pairwise(names)]
    graph = assert_same(tmp_path, net(nodes, {"x": IMAGE}, "y"))
    assert len(graph.nodes) == -(-100 // (MAX_SIZE - 1))


# Two tensors --------------------------------------------------------------------------


def test_a_result_that_takes_another_name_keeps_its_rank(tmp_path):
    """Else its operands would be broadcast along other axes."""
    nodes = [
        node("Exp", "x", "a"),
        node("Sub", "x a", "b"),
        node("Mul", "b z", "c"),
        node("Reshape", "c s", "y"),
    ]
    inputs, shape = {"x": (1, 4, 1), "z": (1, 4, 1)}, {"s": np.array([1, 4, 1, 1])}
    assert_same(tmp_path, net(nodes, inputs, "y", shape))


def test_prelu(tmp_path):
    slopes = ("PRelu", [(3, 1, 1)], {})
    graph = assert_same(tmp_path, chain([CONV, slopes], IMAGE))
    assert kinds(graph) == [Conv2d, Prelu]
    graph = assert_same(tmp_path, chain([slopes], IMAGE))
    assert kinds(graph) == [Prelu]
    same = ("PRelu", [np.full((3, 1, 1), 0.25, F)], {})
    graph = assert_same(tmp_path, chain([CONV, same], IMAGE))
    assert graph.nodes[0].activation == Activation(slope=0.25)


def test_one_constant_by_a_tensor(tmp_path):
    nodes = [node("Exp", "x", "e"), node("Div", "w e", "y")]
    graph = assert_same(tmp_path, net(nodes, {"x": IMAGE}, "y", {"w": F(3)}))
    assert kinds(graph) == [Pointwise]


OPERATIONS = ("Add", "Sub", "Mul", "Tanh", "Sigmoid", "Relu", "Clip", "Softplus")


@settings(max_examples=60)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 9), st.integers(0, 9)),
        min_size=1,
        max_size=10,
    ),
    outputs=st.sets(st.integers(0, 9), max_size=2),
)
def test_any_network_of_functions(tmp_path_factory, steps, outputs):
    """Whatever reads whatever: what is composed computes the same."""
    names, nodes = ["x"], []
    for number, (operator, first, second) in enumerate(steps):
        inputs = names[first % len(names)]
        if operator in ("Add", "Sub", "Mul"):
            inputs += " " + [*names, "w"][second % (len(names) + 1)]
        elif operator == "Clip":
            inputs += " v w"
        names.append(f"t{number}")
        nodes.append(node(operator, inputs, names[-1]))
    wanted = dict.fromkeys([names[-1], *(names[1:][i % len(nodes)] for i in outputs)])
    weights = {"v": F(-0.5), "w": F(0.75)}
    model = net(nodes, {"x": (1, 2, 3, 2)}, " ".join(wanted), weights)
    assert_same(tmp_path_factory.mktemp("net"), model)


def test_parameters_that_are_not_finite(tmp_path):
    model = chain([("Elu", [], {"alpha": float("inf")})], IMAGE)
    assert "a parameter is not finite" in why_opaque(tmp_path, model)


def test_a_long_chain_of_activations_is_not_searched(tmp_path, monkeypatch):
    """Looking for patterns in it took most of the time of the import."""
    nodes = [node("LeakyRelu", f"t{i}", f"t{i + 1}") for i in range(200)]
    path = save(tmp_path, net(nodes, {"t0": IMAGE}, "t200"))
    module = importlib.import_module("neon8.graph.passes.compose_pointwise")
    monkeypatch.setattr(module, "_inside", pytest.fail)
    assert kinds(load(path)) == [Activate] * 200
