# SPDX-License-Identifier: Apache-2.0
"""What import leaves of a network: folding, fusion, names."""

import hashlib

import numpy as np
import onnx
import pytest

from neon8.graph.importer import load
from neon8.graph.remedies import refusal
from neon8.ir.graph import Activation
from neon8.operators.activation import Activate
from neon8.operators.arithmetic import Add
from neon8.operators.convolution import Conv2d
from neon8.operators.movement import Reshape
from neon8.operators.pooling import Pool
from neon8.operators.softmax import Softmax
from onnx_nets import assert_same, chain, net, node, save

F = np.float32
IMAGE = (1, 3, 6, 6)
RNG = np.random.default_rng(11)
W = RNG.normal(size=(4, 3, 3, 3)).astype(F)
B = RNG.normal(size=4).astype(F)
ONES = np.ones(4, F)


def kinds(graph):
    return [type(item) for item in graph.nodes]


def test_conv_bn_relu_is_one_node(tmp_path):
    nodes = [
        node("Conv", "x w b", "sum", "first"),
        node("BatchNormalization", "sum b b b one", "bn", "second"),
        node("Relu", "bn", "y", "third"),
    ]
    model = net(nodes, {"x": IMAGE}, "y", {"w": W, "b": B, "one": ONES})
    graph = assert_same(tmp_path, model)
    (conv,) = graph.nodes
    assert conv.name == "first"
    assert (conv.inputs, conv.output, conv.pre_activation) == (("x",), "y", "bn")
    assert conv.activation == Activation(lo=0.0)
    assert list(graph.tensors) == ["x", "y"]
    assert conv.weight.dtype == conv.bias.dtype == np.float32


def test_normalization_that_is_not_spatial_but_has_a_value_for_each_channel(tmp_path):
    """As MXNet wrote it; onnxruntime runs it once the attribute is gone."""
    nodes = [
        node("Conv", "x w b", "sum"),
        node("BatchNormalization", "sum b b b one", "y", spatial=0, epsilon=1e-3),
    ]
    weights = {"w": W, "b": B, "one": ONES}
    graph = assert_same(tmp_path, net(nodes, {"x": IMAGE}, "y", weights, opset=8))
    assert kinds(graph) == [Conv2d]
    weights |= dict.fromkeys(("b", "one"), np.ones((4, 4, 4), F))
    nodes[0] = node("Conv", "x w", "sum")
    graph = load(save(tmp_path, net(nodes, {"x": IMAGE}, "y", weights, opset=8)))
    assert "parameters [4, 4, 4], not one for each channel" in str(refusal(graph))


def test_an_activation_is_fused_only_if_it_is_the_sole_reader(tmp_path):
    nodes = [
        node("Conv", "x w", "sum"),
        node("Relu", "sum", "a"),
        node("Add", "sum a", "y"),
    ]
    graph = assert_same(tmp_path, net(nodes, {"x": IMAGE}, "y", {"w": W}))
    assert kinds(graph) == [Conv2d, Activate, Add]
    graph = assert_same(tmp_path, net(nodes[:2], {"x": IMAGE}, "sum a", {"w": W}))
    assert kinds(graph) == [Conv2d, Activate]
    assert graph.nodes[0].activation.identity


def test_flatten_before_gemm_becomes_a_kernel(tmp_path):
    w = RNG.normal(size=(108, 5)).astype(F)
    nodes = [
        node("Flatten", "x", "f"),
        node("Gemm", "f w", "y"),
        node("MatMul", "f w", "z"),
    ]
    graph = assert_same(tmp_path, net(nodes, {"x": IMAGE}, "y z", {"w": w}))
    assert [item.weight.shape for item in graph.nodes] == [(5, 3, 6, 6)] * 2
    nodes.append(node("Relu", "f", "r"))
    graph = assert_same(tmp_path, net(nodes, {"x": IMAGE}, "y z r", {"w": w}))
    assert kinds(graph) == [Reshape, Conv2d, Conv2d, Activate]


def test_classifier_tail_has_no_reshapes(tmp_path):
    w = RNG.normal(size=(3, 5)).astype(F)
    nodes = [
        node("GlobalAveragePool", "x", "p"),
        node("Flatten", "p", "f"),
        node("Dropout", "f", "d"),
        node("Gemm", "d w", "g"),
        node("Softmax", "g", "s"),
        node("Identity", "s", "y"),
    ]
    graph = assert_same(tmp_path, net(nodes, {"x": IMAGE}, "y", {"w": w}))
    assert kinds(graph) == [Pool, Conv2d, Softmax]
    assert list(graph.tensors) == ["x", "p", "g", "y"]
    assert graph.tensors["y"].rank == 2


def test_copies_of_inputs_and_outputs_keep_both_names(tmp_path):
    nodes = [
        node("Identity", "x", "copy"),
        node("Relu", "x", "a"),
        node("Identity", "a", "b"),
        node("Flatten", "a", "c"),
    ]
    graph = assert_same(tmp_path, net(nodes, {"x": IMAGE}, "copy a b c"))
    assert kinds(graph) == [Reshape, Activate, Reshape, Reshape]


def test_a_tensor_under_two_names_keeps_its_other_readers(tmp_path):
    """Other readers of the tensor before an output still find it."""
    nodes = [
        node("Relu", "x", "a"),
        node("Identity", "a", "b"),
        node("Identity", "b", "c"),
        node("LeakyRelu", "b", "y"),
    ]
    graph = assert_same(tmp_path, net(nodes, {"x": IMAGE}, "c y"))
    assert kinds(graph) == [Activate, Reshape, Activate]


@pytest.mark.parametrize("outputs", ["back g", "back"])
def test_a_reshape_and_back_with_another_reader_between(tmp_path, outputs):
    size = int(np.prod(IMAGE))
    nodes = [
        node("Relu", "x", "a"),
        node("Reshape", "a flat", "f"),
        node("Reshape", "f image", "back"),
        node("Softmax", "f", "g", axis=1),
    ]
    weights = {"flat": np.array([1, size]), "image": np.array(IMAGE)}
    graph = assert_same(tmp_path, net(nodes, {"x": IMAGE}, outputs, weights))
    both = [Activate, Reshape, Reshape, Softmax]
    assert kinds(graph) == (both if "g" in outputs else [Activate])


def test_dead_nodes_and_their_operators_do_not_matter(tmp_path):
    nodes = [node("Relu", "x", "y"), node("Sin", "x", "z"), node("Cos", "z", "zz")]
    graph = assert_same(tmp_path, net(nodes, {"x": IMAGE}, "y"))
    assert kinds(graph) == [Activate]


def test_node_names_are_unique_and_not_empty(tmp_path):
    nodes = [
        node("Relu", "x", "a", "same"),
        node("Neg", "x", "unused", "same_2"),
        node("LeakyRelu", "x", "b", "same"),
        node("Add", "a b", "c"),
        node("Add", "c a", "y", "Add_c"),
    ]
    path = save(tmp_path, net(nodes, {"x": IMAGE}, "y"))
    names = [item.name for item in load(path).nodes]
    assert names == ["same", "same_3", "Add_c_2", "Add_c"]
    assert names == [item.name for item in load(path).nodes]


def test_folded_constants(tmp_path):
    """Weights from Constant, Reshape, Transpose, Identity; bounds from Constant."""
    nodes = [
        node("Reshape", "flat shape", "r"),
        node("Transpose", "r", "w", perm=[1, 0, 2, 3]),
        onnx.helper.make_node(
            "Constant", [], ["b"], value=onnx.numpy_helper.from_array(B, "b")
        ),
        node("Identity", "b", "b2"),
        node("Conv", "x w b2", "c"),
        onnx.helper.make_node("Constant", [], ["six"], value_float=6.0),
        onnx.helper.make_node("Clip", ["c", "", "six"], ["y"]),
    ]
    weights = {"flat": W.reshape(-1), "shape": np.array([3, 4, 3, 3])}
    graph = assert_same(tmp_path, net(nodes, {"x": IMAGE}, "y", weights))
    assert kinds(graph) == [Conv2d]
    assert graph.nodes[0].activation == Activation(hi=6.0)


def test_stale_shapes_in_the_file_are_not_believed(tmp_path):
    model = net([node("Relu", "x", "a"), node("Relu", "a", "y")], {"x": IMAGE}, "y")
    value = onnx.helper.make_tensor_value_info("a", onnx.TensorProto.FLOAT, [9, 9])
    model.graph.value_info.append(value)
    assert load(save(tmp_path, model)).tensors["y"].shape == IMAGE


def test_digest_and_name_are_those_of_the_file(tmp_path):
    path = save(tmp_path, chain([("Relu", [], {})], IMAGE), "my.net.onnx")
    graph = load(path)
    assert graph.digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert graph.name == "my.net"
