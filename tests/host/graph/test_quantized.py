# SPDX-License-Identifier: Apache-2.0
"""Quantized ONNX files taken apart: the forms that tools write, and damaged ones."""

import contextlib

import numpy as np
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from neon8.compile.compiler import compile_model
from neon8.errors import GraphError, Neon8Error
from neon8.graph.onnx_file import open_onnx
from neon8.graph.quantized import is_quantized, take_apart
from neon8.rewrite.own_scales import load_quantized
from onnx_nets import net, node, save
from quantized_nets import Net, differences, noise, of_type, steps
from refusals import refused
from whole_nets import run_once

I8, U8 = np.int8, np.uint8


def layer(opset=13, *, w=0.01):
    """x -> int8 -> convolution -> uint8 -> y."""
    n = Net(1, 3, 6, 6, opset=opset)
    c = n.conv(n.pair("x", 0.02, I8(3)), n.weights(4, 3, 3, 3), w)
    n.pair(c, 0.3, U8(100), output="y")
    return n


@pytest.mark.parametrize("opset", [10, 11, 12, 13, 17, 19, 21, 23])
def test_every_opset(tmp_path, opset):
    n = layer(opset, w=0.01 if opset < 13 else [0.01, 0.02, 0.03, 0.04])
    path = save(tmp_path, n.model("y"))
    assert is_quantized(open_onnx(path))
    if opset <= 22:  # what this onnxruntime knows
        assert differences(path, noise((1, 3, 6, 6)), fused=False).max() == 0
    assert steps(path) == ["quantize", "conv2d", "dequantize"]


def test_scales_in_constant_nodes(tmp_path):
    model = layer().model("y")
    constants = [
        helper.make_node("Constant", [], [item.name], value=item)
        for item in model.graph.initializer
    ]
    del model.graph.initializer[:]
    nodes = [*constants, *model.graph.node]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    path = save(tmp_path, model)
    assert differences(path, noise((1, 3, 6, 6)), fused=False).max() == 0


def test_weights_that_the_file_quantizes_itself(tmp_path):
    """Training leaves float weights before QuantizeLinear, here with a Transpose."""
    n = Net(1, 3, 6, 6)
    real = n.rng.uniform(-1.2, 1.2, (3, 3, 3, 4)).astype(np.float32)
    scales = [0.01, 0.02, 0.013, 0.04]
    w = n.pair(n.array(real), scales, np.zeros(4, I8), axis=3)
    kernel = n.add("Transpose", w, perm=[3, 2, 0, 1])
    c = n.add("Conv", n.pair("x", 0.02), kernel, name="c")
    n.pair(c, 0.3, U8(100), output="y")
    path = save(tmp_path, n.model("y"))
    _, table = load_quantized(path)
    assert table.layers["c"].weight_scales == tuple(map(float, np.float32(scales)))
    assert differences(path, noise((1, 3, 6, 6)), fused=False).max() == 0


@pytest.mark.parametrize(
    ("operator", "shape", "options", "axis"),
    [
        ("Gemm", (5, 6), {"transB": 1}, 0),
        ("Gemm", (6, 5), {"alpha": 0.5}, 1),
        ("MatMul", (6, 5), {}, 1),
    ],
)
def test_fully_connected_layers(tmp_path, operator, shape, options, axis):
    n = Net(1, 6)
    w = n.integers(n.weights(*shape), [0.01, 0.02, 0.03, 0.04, 0.05], axis=axis)
    made = n.add(operator, n.pair("x", 0.02), w, **options)
    made = n.add("Add", made, n.array(np.arange(5, dtype=np.float32)))
    n.pair(made, 0.1, output="y")
    path = save(tmp_path, n.model("y"))
    assert differences(path, noise((1, 6)), fused=False).max() <= 1
    assert steps(path) == ["quantize", "conv2d", "dequantize"]


def test_four_bits_of_weights(tmp_path):
    n = Net(1, 3, 6, 6, opset=21)
    w = n.integers(n.weights(4, 3, 3, 3) // 16, 0.1)
    n.pair(n.add("Conv", n.pair("x", 0.02), w, name="c"), 0.3, output="y")
    model = n.model("y")
    for item in model.graph.initializer:
        if item.data_type == TensorProto.INT8 and len(item.dims) == 4:
            levels = numpy_helper.to_array(item)
            item.CopyFrom(
                helper.make_tensor(
                    item.name, TensorProto.INT4, levels.shape, levels.ravel()
                )
            )
    graph, table = load_quantized(save(tmp_path, model))
    assert table.layers["c"].weight_scales == (float(np.float32(0.1)),) * 4
    assert np.abs(graph.nodes[0].weight).max() <= np.float32(0.8)


@pytest.mark.parametrize("kind", [TensorProto.UINT8, TensorProto.INT8])
def test_inputs_and_outputs_of_integers(tmp_path, kind):
    """The .n8 file takes real numbers, or with --io int8 these integers less 128."""
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    n = Net(1, 3, 6, 6)
    point = dtype.type(7)
    constants = [n.array(np.float32(0.02)), n.array(point)]
    x = n.add("DequantizeLinear", "x", *constants)
    c = n.conv(x, n.weights(4, 3, 3, 3), 0.01)
    n.add("QuantizeLinear", c, n.array(np.float32(0.5)), n.array(point), output="y")
    model = of_type(n.model("y"), "x", kind)
    path = save(tmp_path, of_type(model, "y", kind))
    graph, table = load_quantized(path)
    offset = 128 if kind == TensorProto.UINT8 else 0
    assert [table.tensors[name].zero_point for name in ("x", "y")] == [7 - offset] * 2
    assert graph.outputs == ("y",)
    assert steps(path) == ["quantize", "conv2d", "dequantize"]
    assert compile_model(path, io="int8")


@pytest.mark.parametrize("kind", [I8, U8])
def test_rows_of_a_table(tmp_path, kind):
    """A Gather of integers by what a run gives, read with the scale of the table."""
    table = np.arange(-40, 40).reshape(10, 8) + (0 if kind is I8 else 100)
    nodes = [
        node("Gather", "table ids", "rows"),
        node("DequantizeLinear", "rows scale point", "e"),
        node("Relu", "e", "y"),
    ]
    weights = {
        "table": table.astype(kind),
        "scale": np.float32(0.25),
        "point": kind(100 if kind is U8 else 3),
    }
    model = net(nodes, {"ids": (1, 5)}, "y", weights, opset=13, types={"ids": 7})
    path = save(tmp_path, model)
    ids = {"ids": np.array([[0, 9, 4, 4, 7]])}
    want = onnxruntime.InferenceSession(path).run(None, ids)[0]
    assert (run_once(compile_model(path), ids)["y"] == want).all()
    weights["scale"] = np.array([0.25, 0.5], np.float32)
    model = net(nodes, {"ids": (1, 5)}, "y", weights, opset=13, types={"ids": 7})
    unreadable(tmp_path, model, "has 2 scales")


def test_names_are_those_of_the_float_network(tmp_path):
    """So that a table of it can be compared with one that neon8 made."""
    n = Net(1, 3, 6, 6)
    c = n.conv(n.pair("x", 0.02), n.weights(4, 3, 3, 3), 0.01, name="layer")
    r = n.add("Relu", c, output="real")
    n.add("GlobalMaxPool", n.pair(r, 0.3), output="y")
    _, table = load_quantized(save(tmp_path, n.model("y")))
    assert set(table.tensors) == {"x", "real", "y"}
    assert set(table.layers) == {"layer"}


def unreadable(folder, model, *words):
    with refused(GraphError, folder, *words):
        take_apart(open_onnx(save(folder, model)))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"s1": np.float32(0)}, "a scale is not a positive number"),
        ({"s1": np.float32(np.nan)}, "a scale is not a positive number"),
        ({"s1": np.float32(np.inf)}, "a scale is not a positive number"),
        ({"s1": np.float32(-1)}, "a scale is not a positive number"),
        (
            {"s1": np.ones(3, np.float32), "z2": np.zeros(3, I8)},
            "has 3 scales; an activation has one in neon8",
        ),
        ({"z2": np.zeros(3, I8)}, "has 3 zero points for one scale"),
    ],
)
def test_scales_that_are_none(tmp_path, change, words):
    """One array of the first pair is changed: its scale or zero point."""
    n = layer()
    n.arrays.update(change)
    unreadable(tmp_path, n.model("y"), words, "(operator QuantizeLinear)")


def test_weights_of_int16(tmp_path):
    n = Net(1, 3, 8, 8, opset=21)
    w = n.integers(np.full((2, 3, 1, 1), 300, np.int16), 0.01)
    n.pair(n.add("Conv", n.pair("x", 0.02), w), 5.0, output="y")
    said = "its constant is int16; neon8 has weights of 8 bits; quantize them"
    unreadable(tmp_path, n.model("y"), said)


def test_int16(tmp_path):
    n = layer(21)
    n.arrays["z2"] = np.int16(3)
    said = "quantizes to int16; neon8 has int8 and uint8 activations"
    unreadable(tmp_path, n.model("y"), said)


def test_pairs_that_are_none(tmp_path):
    n = layer()
    n.nodes[1].input[1] = n.array(np.float32(0.5))
    said = "with scale 0.0199999996 and zero point 3, and is read with 0.5 and 3"
    unreadable(tmp_path, n.model("y"), said)


def test_a_scale_that_is_computed(tmp_path):
    n = layer()
    n.nodes.insert(0, node("ReduceMax", "x", "s1", keepdims=0))
    del n.arrays["s1"]
    unreadable(tmp_path, n.model("y"), "'s1' is computed at run time")


def test_arithmetic_on_integers(tmp_path):
    n = Net(1, 3, 6, 6, opset=14)
    q = n.add("QuantizeLinear", "x", n.array(np.float32(0.1)), n.array(I8(3)))
    n.add("Cast", n.add("Add", q, q, name="sum"), output="y", to=TensorProto.FLOAT)
    said = "node 'sum' (operator Add): computes on the integers of"
    unreadable(tmp_path, n.model("y"), said)


def test_an_input_whose_scale_nothing_says(tmp_path):
    model = net([node("Cast", "x", "y", to=TensorProto.FLOAT),
                 node("QuantizeLinear", "y s", "z")], {"x": (1, 3)}, "y",
                {"s": np.float32(1)})  # fmt: skip
    model = of_type(model, "x", TensorProto.UINT8)
    unreadable(tmp_path, model, "input 'x' is uint8, and no node says its scale")


@settings(max_examples=60)
@given(data=st.data())
def test_damaged_files(tmp_path_factory, data):
    """Whatever is in the fields of the nodes and constants: a result, or an error."""
    n = layer(21, w=[0.01, 0.02, 0.03, 0.04])
    flat = n.add("Flatten", n.pair("y", 0.5))
    n.add("MatMul", flat, n.integers(n.weights(64, 5), 0.1), output="end")
    model = n.model("end")
    for _ in range(data.draw(st.integers(1, 3))):
        kind = data.draw(st.sampled_from(["array", "input", "attribute", "remove"]))
        made = data.draw(st.sampled_from(list(model.graph.node)))
        if kind == "array":
            item = data.draw(st.sampled_from(list(model.graph.initializer)))
            shape = data.draw(st.sampled_from([(), (0,), (1,), (4,), (5,), (2, 2)]))
            dtype = data.draw(st.sampled_from([np.float32, I8, U8, np.int32, np.int64]))
            value = data.draw(st.sampled_from([0, 1, -1, 127, 3]))
            array = np.full(shape, value).astype(dtype)
            item.CopyFrom(numpy_helper.from_array(array, item.name))
        elif kind == "input" and made.input:
            at = data.draw(st.integers(0, len(made.input) - 1))
            names = [name for other in model.graph.node for name in other.output]
            made.input[at] = data.draw(st.sampled_from(["", "x", *names]))
        elif kind == "attribute":
            name = data.draw(st.sampled_from(["axis", "block_size", "output_dtype"]))
            number = data.draw(st.sampled_from([-9, -1, 0, 1, 2, 7, 2**40]))
            made.attribute.append(helper.make_attribute(name, number))
        elif made.input:
            del made.input[-1]
    path = save(tmp_path_factory.mktemp("damaged"), model)
    with contextlib.suppress(Neon8Error):  # anything else is a failure
        compile_model(path)
