# SPDX-License-Identifier: Apache-2.0
"""Layer, RMS and group normalization, as operators and as exporters spell them out."""

import numpy as np
import pytest

from neon8.graph.importer import load
from neon8.operators.convolution import Conv2d
from neon8.operators.layer_norm import Normalization
from neon8.operators.movement import Permute
from onnx_nets import assert_same, chain, net, node, save, why_opaque

F = np.float32
TOKENS = (1, 5, 6)
IMAGE = (1, 6, 4, 5)


def one(graph):
    """The only normalization."""
    (found,) = (n for n in graph.nodes if isinstance(n, Normalization))
    return found


REFUSED = {
    "epsilon": (("LayerNormalization", [(6,)], {"epsilon": 0.0}), "epsilon 0"),
    "size": (("LayerNormalization", [np.ones((5, 6), F)], {}), "input 1 [5, 6]"),
    "large": (("LayerNormalization", [np.full(6, 1e31, F)], {}), "beyond"),
    "groups": (
        ("GroupNormalization", [(4,), (4,)], {"num_groups": 4}),
        "num_groups 4 does not divide",
    ),
}


@pytest.mark.parametrize(("step", "words"), REFUSED.values(), ids=REFUSED)
def test_refused(tmp_path, step, words):
    shape = (1, 6, 5) if "groups" in words else TOKENS
    assert words in why_opaque(tmp_path, chain([step], shape, opset=21))


# As exporters write it ----------------------------------------------------------------

MEAN = node("ReduceMean", "x", "mean", axes=[-1])
CENTRED = [MEAN, node("Sub", "x mean", "d")]
SQUARED = [*CENTRED, node("Pow", "d two", "s")]
VARIANCE = [
    *SQUARED,
    node("ReduceMean", "s", "v", axes=[-1]),
    node("Add", "v eps", "ve"),
]
PRODUCT = [
    *CENTRED,
    node("Mul", "d d", "s"),
    node("ReduceMean", "s", "v", axes=[2]),
    node("Add", "eps v", "ve"),
]
ROOT = node("Sqrt", "ve", "r")
AFFINE = [node("Mul", "n g", "m"), node("Add", "m b", "y")]
RMS = [
    node("Mul", "x x", "s"),
    node("ReduceMean", "s", "v", axes=[-1]),
    node("Add", "v eps", "ve"),
]
SPELLED = {
    "torch": [*VARIANCE, ROOT, node("Div", "d r", "n"), *AFFINE],
    "two differences": [
        *VARIANCE,
        ROOT,
        node("Sub", "x mean", "d2"),
        node("Div", "d2 r", "n"),
        node("Mul", "g n", "m"),
        node("Add", "b m", "y"),
    ],
    "product": [*PRODUCT, ROOT, node("Div", "d r", "n"), *AFFINE],
    "reciprocal": [
        *PRODUCT,
        ROOT,
        node("Reciprocal", "r", "i"),
        node("Mul", "i d", "n"),
        *AFFINE,
    ],
    "power": [*VARIANCE, node("Pow", "ve less", "i"), node("Mul", "d i", "n"), *AFFINE],
    "one by it": [
        *VARIANCE,
        ROOT,
        node("Div", "one r", "i"),
        node("Mul", "d i", "n"),
        *AFFINE,
    ],
    "no gamma and beta": [*VARIANCE, ROOT, node("Div", "d r", "y")],
    "keras": [
        *PRODUCT,
        ROOT,
        node("Reciprocal", "r", "i"),
        node("Mul", "i g", "ig"),
        node("Mul", "x ig", "xi"),
        node("Mul", "mean ig", "mi"),
        node("Sub", "b mi", "bi"),
        node("Add", "xi bi", "y"),
    ],
    "copies": [
        *VARIANCE,
        ROOT,
        node("Identity", "d", "e"),
        node("Div", "e r", "n"),
        *AFFINE,
    ],
    "rms": [*RMS, ROOT, node("Div", "x r", "n"), node("Mul", "g n", "y")],
    "rms by rsqrt": [
        *RMS,
        ROOT,
        node("Reciprocal", "r", "i"),
        node("Mul", "x i", "n"),
        node("Mul", "g n", "y"),
    ],
}


def spelled(nodes, *, opset=13, shape=TOKENS, outputs="y", size=(6,)):
    rng = np.random.default_rng(3)
    weights = {
        "g": rng.uniform(0.5, 2, size).astype(F),
        "b": rng.uniform(-1, 1, size).astype(F),
        "eps": F(1e-3),
        "two": F(2),
        "less": F(-0.5),
        "one": F(1),
    }
    return net(nodes, {"x": shape}, outputs, weights, opset=opset)


@pytest.mark.parametrize("name", SPELLED)
def test_spelled_out(tmp_path, name):
    graph = assert_same(tmp_path, spelled(SPELLED[name]))
    found = one(graph)
    assert found.centred == ("rms" not in name)
    assert {type(n).__name__ for n in graph.nodes} == {"Normalization", "Permute"}


def test_of_channels(tmp_path):
    """LayerNorm2d as ConvNeXt writes it, with nothing to move."""
    nodes = [
        node("ReduceMean", "x", "mean", axes=[1]),
        node("Sub", "x mean", "d"),
        node("Pow", "d two", "s"),
        node("ReduceMean", "s", "v", axes=[1]),
        node("Add", "v eps", "ve"),
        ROOT,
        node("Div", "d r", "n"),
        *AFFINE,
    ]
    graph = assert_same(tmp_path, spelled(nodes, shape=IMAGE, size=(6, 1, 1)))
    assert [type(n) for n in graph.nodes] == [Normalization]


def test_groups_by_instance_normalization(tmp_path):
    nodes = [
        node("Reshape", "x rows", "r"),
        node("InstanceNormalization", "r one zero", "i", epsilon=0.01),
        node("Reshape", "i whole", "n"),
        *AFFINE,
    ]
    weights = {
        "rows": np.array([0, 3, -1]),
        "whole": np.array(IMAGE),
        "one": F([1, 2, 3]),
        "zero": F([0.5, 0, 1]),
        "g": np.arange(1, 7, dtype=F).reshape(6, 1, 1),
        "b": np.arange(6, dtype=F).reshape(6, 1, 1),
    }
    graph = assert_same(tmp_path, net(nodes, {"x": IMAGE}, "y", weights))
    assert [type(n) for n in graph.nodes] == [Normalization]
    assert graph.nodes[0].groups == 3


ALMOST = {
    "another root": [*VARIANCE, node("Sqrt", "v", "r"), node("Div", "d r", "y")],
    "cubes": [
        *CENTRED,
        node("Pow", "d three", "s"),
        *VARIANCE[3:],
        ROOT,
        node("Div", "d r", "y"),
    ],
    "not centred": [*VARIANCE, ROOT, node("Div", "x r", "y")],
}


@pytest.mark.parametrize("name", ALMOST)
def test_what_is_something_else(tmp_path, name):
    model = spelled(ALMOST[name])
    if name == "cubes":
        model = net(ALMOST[name], {"x": TOKENS}, "y", {"eps": F(50), "three": F(3)})
    graph = assert_same(tmp_path, model)
    assert not any(isinstance(n, Normalization) for n in graph.nodes)


def test_a_bias_that_is_none_stays_an_add(tmp_path):
    """One value for each token, as of positions."""
    nodes = [*SPELLED["no gamma and beta"][:-1], node("Div", "d r", "n")]
    nodes += [node("Add", "n p", "y")]
    position = np.random.default_rng(1).normal(size=(5, 6)).astype(F)
    model = net(nodes, {"x": TOKENS}, "y", {"eps": F(1e-3), "two": F(2), "p": position})
    graph = assert_same(tmp_path, model)
    assert len(graph.nodes) > 3
    assert (one(graph).beta == 0).all()


def test_parts_that_others_read_stay(tmp_path):
    nodes = [*SPELLED["torch"], node("Relu", "mean", "z")]
    graph = assert_same(tmp_path, spelled(nodes, outputs="y z"))
    assert one(graph).gamma.size == 6
    assert len(graph.nodes) > 3


def test_many_constants(tmp_path):
    """A long chain is looked at a few nodes deep."""
    count = 1200
    nodes = [node("Add", f"t{i} c", f"t{i + 1}") for i in range(count)]
    nodes[0].input[0], nodes[-1].output[0] = "x", "y"
    model = net(nodes, {"x": TOKENS}, "y", {"c": F(0.5)})
    (layer,) = load(save(tmp_path, model)).nodes
    assert (layer.bias == count / 2).all()


SHAPES = {
    "w0": (6, 6),
    "b0": (6,),
    "g": (6,),
    "b": (6,),
    "w1": (6, 12),
    "w2": (12, 6),
    "k": (6, 1, 3, 3),
}


def test_nothing_is_moved_between_projections(tmp_path):
    """Two moves are left of a transformer's block, at its ends."""
    rng = np.random.default_rng(5)
    nodes = [
        node("MatMul", "x w0", "a"),
        node("Add", "a b0", "h"),
        node("LayerNormalization", "h g b", "n"),
        node("MatMul", "n w1", "u"),
        node("Gelu", "u", "e"),
        node("MatMul", "e w2", "f"),
        node("Add", "h f", "s"),
        node("LayerNormalization", "s g b", "y"),
    ]
    weights = {
        name: rng.normal(0, 0.5, shape).astype(F)
        for name, shape in SHAPES.items()
        if name != "k"
    }
    graph = assert_same(tmp_path, net(nodes, {"x": TOKENS}, "y", weights, opset=20))
    moves = [n for n in graph.nodes if isinstance(n, Permute)]
    assert len(moves) == 2
    assert graph.nodes[0] is moves[0]
    assert graph.nodes[-1] is moves[1]
    assert sum(isinstance(n, Conv2d) for n in graph.nodes) == 3


def test_between_transposes_of_a_convnext_block(tmp_path):
    rng = np.random.default_rng(6)
    nodes = [
        node("Conv", "x k", "c", group=6, kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("Transpose", "c", "t", perm=[0, 2, 3, 1]),
        node("LayerNormalization", "t g b", "n"),
        node("MatMul", "n w1", "u"),
        node("Gelu", "u", "e"),
        node("MatMul", "e w2", "f"),
        node("Mul", "f g", "s"),
        node("Transpose", "s", "back", perm=[0, 3, 1, 2]),
        node("Add", "back x", "y"),
    ]
    weights = {
        name: rng.normal(0, 0.5, shape).astype(F)
        for name, shape in SHAPES.items()
        if name not in ("w0", "b0")
    }
    graph = assert_same(tmp_path, net(nodes, {"x": IMAGE}, "y", weights, opset=20))
    assert not any(isinstance(n, Permute) for n in graph.nodes)
