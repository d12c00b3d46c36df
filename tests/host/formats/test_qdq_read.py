# SPDX-License-Identifier: Apache-2.0
"""Scales out of ONNX files with Q/DQ nodes, whoever wrote them."""

import numpy as np
import pytest
from onnx import TensorProto

from neon8.errors import TableError
from neon8.formats import qdq
from neon8.formats.foreign_table import QuantParams
from onnx_nets import chain, net, node, save


def pair(tensor, scale, zero_point, *, axis=None):
    """Nodes and arrays that quantize `tensor` and give back `tensor`_d."""
    options = {} if axis is None else {"axis": axis}
    constants = f"{tensor}_s {tensor}_z" if zero_point is not None else f"{tensor}_s"
    nodes = [
        node("QuantizeLinear", f"{tensor} {constants}", f"{tensor}_q", **options),
        node("DequantizeLinear", f"{tensor}_q {constants}", f"{tensor}_d", **options),
    ]
    arrays = {f"{tensor}_s": np.asarray(scale, np.float32)}
    if zero_point is not None:
        arrays[f"{tensor}_z"] = np.asarray(zero_point)
    return nodes, arrays


def loaded(folder, x, w, *, axis=None, shape=(2, 3, 1, 1), source=(1, 3, 4, 4), **more):
    """What load() says about one layer with these pairs, a convolution if not told."""
    nodes, arrays = pair("x", *x)
    weights, others = pair("w", *w, axis=axis)
    layer = node(more.pop("operator", "Conv"), "x_d w_d", "y", "c", **more)
    constants = {"w": np.ones(shape, np.float32), **arrays, **others}
    model = net([*nodes, *weights, layer], {"x": source}, "y", constants)
    return qdq.load(save(folder, model))


def read(folder, nodes, arrays, *, opset=13):
    """What load() says about a Relu after these nodes."""
    last = node("Relu", "x_d", "y")
    model = net([*nodes, last], {"x": (1, 3)}, "y", arrays, opset=opset)
    return qdq.load(save(folder, model))


I8, U8 = np.int8, np.uint8
GOOD = (np.float32(0.5), I8(0))
TWO = ([0.5, 0.25], np.zeros(2, I8))


@pytest.mark.parametrize(
    ("x", "step"),
    [
        ((0.5, I8(0)), QuantParams(scale=0.5)),
        ((0.5, I8(-128)), QuantParams(scale=0.5, zero_point=-128, scheme="unsigned")),
        ((0.5, I8(5)), QuantParams(scale=0.5, zero_point=5, scheme="asymmetric")),
        ((0.5, U8(0)), QuantParams(scale=0.5, zero_point=-128, scheme="unsigned")),
        ((0.5, U8(128)), QuantParams(scale=0.5)),
        ((0.5, None), QuantParams(scale=0.5, zero_point=-128, scheme="unsigned")),
        (([0.5], [I8(1)]), QuantParams(scale=0.5, zero_point=1, scheme="asymmetric")),
    ],
)
def test_types_of_activations(tmp_path, x, step):
    assert loaded(tmp_path, x, GOOD).tensors == {"x": step}


@pytest.mark.parametrize(
    ("w", "axis", "scales"),
    [
        ((0.5, I8(0)), None, (0.5,)),
        ((0.5, U8(128)), None, (0.5,)),
        (TWO, 0, (0.5, 0.25)),
        (TWO, -4, (0.5, 0.25)),
        (([0.5, 0.25], np.array([0, 1], I8)), 0, (0.5, 0.25)),
        ((2.0**-7, U8(0)), None, None),
    ],
)
def test_types_of_weights(tmp_path, w, axis, scales):
    table = loaded(tmp_path, GOOD, w, axis=axis)
    assert table.weights.get("c") == scales
    assert bool(table.notes) == (scales is None)


def test_an_input_that_is_moved(tmp_path):
    """After the pair: the layer reads what the network in the file calls so."""
    nodes, arrays = pair("x", 0.5, I8(3))
    more, others = pair("w", 0.25, I8(0))
    turned = node("Transpose", "x_d", "t", perm=[0, 3, 1, 2])
    layer = node("Conv", "t w_d", "y", "c")
    constants = {"w": np.ones((2, 3, 1, 1), np.float32), **arrays, **others}
    model = net([*nodes, turned, *more, layer], {"x": (1, 4, 4, 3)}, "y", constants)
    table = qdq.load(save(tmp_path, model))
    step = QuantParams(scale=0.5, zero_point=3, scheme="asymmetric")
    assert table.tensors[table.reads["c"]] == step


def test_what_exporters_write_between(tmp_path):
    """A copy of a scale, a scale in float16, a Clip of seven bits."""
    nodes, arrays = pair("x", 0.5, U8(0))
    arrays["s0"] = arrays.pop("x_s").astype(np.float16)
    arrays |= {"lo": U8(0), "hi": U8(127)}
    nodes[1].input[0] = "clipped"
    nodes.insert(1, node("Clip", "x_q lo hi", "clipped"))
    first = node("Identity", "s0", "x_s")
    last = node("Relu", "x_d", "y")
    model = net([first, *nodes, last], {"x": (1, 3)}, "y", arrays, opset=19)
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.elem_type = TensorProto.FLOAT16
    found = qdq.load(save(tmp_path, model)).tensors
    assert found == {"x": QuantParams(scale=0.5, zero_point=-128, scheme="unsigned")}


def test_operators_of_others_may_have_the_same_names(tmp_path):
    nodes, arrays = pair("x", *GOOD)
    model = net([*nodes, node("Relu", "x_d", "y")], {"x": (1, 3)}, "y", arrays)
    for name in ("Conv", "Identity", "Gemm"):
        model.graph.node.add(op_type=name, domain="own", input=["x"])
        model.graph.node.add(op_type=name, domain="own", output=[f"{name}_y"])
    model.opset_import.add(domain="own", version=1)
    assert list(qdq.load(save(tmp_path, model)).tensors) == ["x"]


def test_a_float_network_has_no_scales(tmp_path):
    path = save(tmp_path, chain([("Relu", [], {})], (1, 3)))
    with pytest.raises(TableError, match="no QuantizeLinear"):
        qdq.load(path)


def test_quantized_inputs_have_scales_too(tmp_path):
    nodes = [node("DequantizeLinear", "x s z", "xd"), node("Relu", "xd", "y")]
    arrays = {"s": np.float32(0.5), "z": U8(128)}
    types = {"x": TensorProto.UINT8}
    model = net(nodes, {"x": (1, 3)}, "y", arrays, types=types)
    assert qdq.load(save(tmp_path, model)).tensors == {"x": QuantParams(scale=0.5)}


def test_scales_along_another_axis(tmp_path):
    weights = ([0.5, 0.5, 0.25], np.zeros(3, I8))
    with pytest.raises(TableError, match="another axis of weights"):
        loaded(tmp_path, GOOD, weights, axis=1)


@pytest.mark.parametrize("shape", [(), (4,), (3, 5)])
def test_weights_without_that_many_channels(tmp_path, shape):
    layer = {"operator": "MatMul", "source": (1, 3), "shape": shape, "axis": 1}
    with pytest.raises(TableError, match=r"'w_q' \(.*axis 1"):
        loaded(tmp_path, GOOD, TWO, **layer)


def test_equal_constants_of_two_names_are_a_pair(tmp_path):
    nodes, arrays = pair("x", 0.5, I8(3))
    nodes[1].input[1:] = ["s", "z"]
    constants = {**arrays, "s": arrays["x_s"], "z": arrays["x_z"]}
    step = QuantParams(scale=0.5, zero_point=3, scheme="asymmetric")
    assert read(tmp_path, nodes, constants).tensors == {"x": step}


@pytest.mark.parametrize(("level", "kept"), [(I8(-1), True), (U8(200), False)])
def test_weights_without_a_zero_point(tmp_path, level, kept):
    """It is 0 of their own type."""
    nodes, arrays = pair("x", *GOOD)
    weights = {"w": np.full((2, 3, 1, 1), level), "w_s": np.float32(0.5)}
    nodes.append(node("DequantizeLinear", "w w_s", "w_d"))
    layer = node("Conv", "x_d w_d", "y", "c")
    model = net([*nodes, layer], {"x": (1, 3, 4, 4)}, "y", {**arrays, **weights})
    table = qdq.load(save(tmp_path, model))
    assert table.weights == ({"c": (0.5,)} if kept else {})


def test_a_pair_whose_second_node_leaves_out_its_zero(tmp_path):
    nodes, arrays = pair("x", 0.5, I8(0))
    del nodes[1].input[2]
    assert read(tmp_path, nodes, arrays).tensors == {"x": QuantParams(scale=0.5)}


@pytest.mark.parametrize("groups", [0, 3])
def test_groups_that_do_not_divide_the_channels(tmp_path, groups):
    with pytest.raises(TableError, match=f"'c': has {groups} groups and 2 weight"):
        loaded(tmp_path, GOOD, TWO, axis=0, source=(1, 9, 4, 4), group=groups)
