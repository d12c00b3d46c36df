# SPDX-License-Identifier: Apache-2.0
"""Operators that are others put together, against onnxruntime."""

import numpy as np
import onnx
import pytest
from onnx import helper

import neon8
from neon8.calibrate.run.reference import Reference
from neon8.graph.onnx_file import open_onnx
from onnx_nets import assert_same, net, node, save, why_opaque
from whole_nets import decibels, run_once

F = np.float32
RNG = np.random.default_rng(5)
VOLUME = (1, 4, 6, 7, 5)


def weight(*shape):
    return RNG.normal(size=shape).astype(F)


NETS = {
    "conv": ("Conv", "x w b", {"w": weight(6, 4, 3, 3, 3), "b": weight(6)},
             {"pads": [1, 1, 0, 2, 1, 1], "strides": [2, 1, 2]}),
    "conv in groups": ("Conv", "x w", {"w": weight(6, 2, 3, 1, 2)},
                       {"group": 2, "dilations": [2, 1, 1], "auto_pad": "SAME_UPPER"}),
    "up": ("ConvTranspose", "x w b", {"w": weight(4, 3, 2, 3, 3), "b": weight(6)},
           {"group": 2, "strides": [3, 2, 1], "pads": [1, 0, 1, 0, 1, 1],
            "output_padding": [1, 0, 0]}),
    "up dilated": ("ConvTranspose", "x w", {"w": weight(4, 3, 3, 2, 2)},
                   {"dilations": [2, 1, 1], "strides": [2, 1, 1]}),
    "max": ("MaxPool", "x", {}, {"kernel_shape": [3, 2, 2], "dilations": [2, 1, 2],
                                 "strides": [1, 2, 1], "pads": [1, 0, 1, 2, 1, 0]}),
    "average": ("AveragePool", "x", {}, {"kernel_shape": [2, 3, 2], "pads": [1] * 6,
                                         "strides": [2, 2, 1], "ceil_mode": 1}),
    "average with pads": ("AveragePool", "x", {},
                          {"kernel_shape": [3, 3, 3], "pads": [1] * 6,
                           "count_include_pad": 1}),
}  # fmt: skip


@pytest.mark.parametrize("name", NETS)
def test_volumes(tmp_path, name):
    operator, inputs, weights, attributes = NETS[name]
    nodes = [node(operator, inputs, "t", **attributes), node("Relu", "t", "y")]
    assert_same(tmp_path, net(nodes, {"x": VOLUME}, "y", weights, opset=13))


def test_a_volume_in_int8(tmp_path):
    """Two convolutions, a pool and a sum: what onnxruntime gives, within int8."""
    weights = {"v": weight(4, 4, 3, 3, 3) / 9, "w": weight(4, 4, 3, 3, 3) / 9}
    nodes = [
        node("Conv", "x v", "a", "first", pads=[1] * 6),
        node("Relu", "a", "r"),
        node("Conv", "r w", "b", "second", pads=[1] * 6),
        node("Add", "b r", "s"),
        node("MaxPool", "s", "y", kernel_shape=[2, 2, 2], strides=[2, 2, 2]),
    ]
    path = save(tmp_path, net(nodes, {"x": VOLUME}, "y", weights))
    data = [RNG.normal(size=VOLUME).astype(F) for _ in range(4)]
    table = neon8.calibrate_model(path, data)
    assert {"first", "second"} <= table.layers.keys()
    found = run_once(neon8.compile_model(path, table), {"x": data[0]})["y"]
    assert decibels(found, Reference(path).run({"x": data[0]})["y"]) > 30


EQUATIONS = {
    "ij->ji": [(3, 4)],
    "ii->i": [(4, 4)],
    "iij->j": [(3, 3, 2)],
    "abc->b": [(2, 3, 4)],
    "abc->": [(2, 3, 4)],
    "ij,jk": [(3, 4), (4, 5)],
    "i,j->ij": [(3,), (4,)],
    "bij,bj->bi": [(2, 3, 4), (2, 4)],
    "...ij->...ji": [(2, 3, 4)],
    "ab,bc,cd->ad": [(2, 3), (3, 4), (4, 2)],
}


@pytest.mark.parametrize("equation", EQUATIONS)
def test_einsum(tmp_path, equation):
    """All but the first operand are constants."""
    x, *others = EQUATIONS[equation]
    weights = {f"w{at}": weight(*shape) for at, shape in enumerate(others)}
    nodes = [node("Einsum", " ".join(["x", *weights]), "y", equation=equation)]
    model = net(nodes, {"x": x}, "y", weights)
    assert_same(tmp_path, model)


def test_functions_of_onnx(tmp_path):
    """An operator that neon8 does not know, by the function that defines it."""
    nodes = [node("Relu", "x", "r"), node("LpNormalization", "r", "y")]
    file = open_onnx(save(tmp_path, net(nodes, {"x": (1, 3)}, "y")))
    names = [n.op_type for n in onnx.ModelProto.FromString(file.model).graph.node]
    assert "LpNormalization" not in names
    assert file.original is not None
    assert open_onnx(file) is file
    longer = open_onnx(file, shapes={"x": (1, 3)})
    assert longer.original is not None


def test_what_becomes_something_unknown_stays(tmp_path):
    """SequenceMap is a function, of a loop over a sequence."""
    one = helper.make_tensor_value_info("i", 1, (2,))
    body = helper.make_graph([node("Neg", "i", "o")], "body", [one],
                             [helper.make_tensor_value_info("o", 1, (2,))])  # fmt: skip
    nodes = [
        node("SequenceConstruct", "x", "s"),
        node("SequenceMap", "s", "m", body=body),
        node("SequenceAt", "m zero", "y"),
    ]
    model = net(nodes, {"x": (2,)}, "y", {"zero": np.int64(0)}, opset=17)
    text = why_opaque(tmp_path, model)
    assert "SequenceMap" in text
    assert "Loop" not in text


def test_absurd_sizes(tmp_path):
    """A convolution that a few bytes make enormous is refused, not built."""
    pads = [1 << 20, 0, 0, 1 << 20, 0, 0]
    nodes = [node("Conv", "x w", "y", pads=pads)]
    model = net(nodes, {"x": (1, 64, 4, 16, 16)}, "y", {"w": weight(1, 64, 1, 1, 1)})
    assert "3 spatial dimensions" in why_opaque(tmp_path, model)


@pytest.mark.parametrize("operator", ["Add", "Sub", "Mul", "Max", "Min"])
def test_broadcast_along_some_of_the_axes_from_the_fourth_on(tmp_path, operator):
    """As the places of a deformable attention, which have a box for all points."""
    nodes = [
        node("Relu", "x", "a"),
        node("Sigmoid", "z", "b"),
        node(operator, "a b", "c"),
        node(operator, "b c", "d"),
        node("Add", "d w", "y"),
    ]
    shapes = {"x": (1, 5, 2, 3, 4), "z": (1, 5, 1, 1, 4)}
    weights = {"w": weight(1, 1, 1, 3, 1)}
    assert_same(tmp_path, net(nodes, shapes, "y", weights, opset=17))
