# SPDX-License-Identifier: Apache-2.0
"""Rewritings that make networks hard to quantize and keep what they compute."""

import copy
from functools import cache

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from bench.accuracy.harden import HOMOGENEOUS, OCTAVES, OUTLIER, harden
from bench.accuracy.onnx_net import Net
from bench.networks import catalogue

resnet = cache(lambda: catalogue.build("resnet18", small=True)[1])


def chain(*middle, padded=0, groups=1, listed=False):
    """x [1,4,6,6] -> Conv -> these operators -> Conv 3x3 -> y."""
    rng = np.random.default_rng(3)
    arrays = {
        "w1": rng.normal(0, 1, (6, 4, 1, 1)),
        "b1": rng.normal(0, 1, 6),
        "slope": rng.uniform(0.1, 0.9, (6, 1, 1)),
        "w2": rng.normal(0, 1, (6, 6 // groups, 3, 3)),
    }
    weights = [
        numpy_helper.from_array(array.astype(np.float32), name)
        for name, array in arrays.items()
    ]
    nodes = [helper.make_node("Conv", ["x", "w1", "b1"], ["t0"])]
    for index, operator in enumerate(middle):
        more = ["slope"] if operator == "PRelu" else []
        options = {"kernel_shape": [2, 2]} if operator.endswith("Pool") else {}
        node = helper.make_node(
            operator, [f"t{index}", *more], [f"t{index + 1}"], **options
        )
        nodes.append(node)
    last = [f"t{len(middle)}", "w2"]
    nodes.append(helper.make_node("Conv", last, ["y"], pads=[padded] * 4, group=groups))
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 6, 6])]
    if listed:
        inputs += [
            helper.make_tensor_value_info(one.name, TensorProto.FLOAT, one.dims)
            for one in weights
        ]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 6, None, None])
    graph = helper.make_graph(nodes, "chain", inputs, [output], weights)
    return helper.make_model(
        graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)]
    )


def depthwise_chain():
    return chain("LeakyRelu", padded=1, groups=6)


def both_weights(proto, model):
    first, second = Net(proto), Net(model)
    nodes = zip(first.model.graph.node, second.model.graph.node, strict=True)
    return [
        (first.constant(a, 1), second.constant(b, 1))
        for a, b in nodes
        if a.op_type == "Conv"
    ]


def outputs(model):
    session = onnxruntime.InferenceSession(model.SerializeToString())
    rng = np.random.default_rng(0)
    given = {
        one.name: rng.standard_normal(
            [size if isinstance(size, int) else 1 for size in one.shape]
        ).astype(np.float32)
        for one in session.get_inputs()
        if one.name not in {each.name for each in model.graph.initializer}
    }
    return session.run(None, given)


def hardened(proto, by, seed=1):
    model = copy.deepcopy(proto)
    count = harden(model, by, seed)
    onnx.checker.check_model(model)
    return model, count


@pytest.mark.parametrize(
    ("proto", "by", "places", "largest"),
    [
        (resnet, "dense", 8, 2**OCTAVES),
        (resnet, "outliers", 8, OUTLIER),
        (resnet, "depthwise", 0, 1),
        (depthwise_chain, "dense", 0, 1),
        (depthwise_chain, "depthwise", 1, 2**OCTAVES),
    ],
)
def test_powers_of_two_change_weights_and_no_bit(proto, by, places, largest):
    model, count = hardened(proto(), by)
    assert count == places
    for wanted, got in zip(outputs(proto()), outputs(model), strict=True):
        np.testing.assert_array_equal(got, wanted)
    logs = [np.log2(np.abs(b / a)) for a, b in both_weights(proto(), model)]
    assert 2 ** max(np.abs(log).max() for log in logs) == largest


@pytest.mark.parametrize(
    "operator", [one for one in HOMOGENEOUS if one != "GlobalAveragePool"]
)
@pytest.mark.parametrize("listed", [False, True])
def test_scaled_channels_pass_everything_homogeneous(operator, listed):
    proto = chain(operator, padded=1, listed=listed)
    model, count = hardened(proto, "dense")
    assert count == 1
    for wanted, got in zip(outputs(proto), outputs(model), strict=True):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("operator", ["Sigmoid", "Clip", "Tanh"])
def test_what_is_not_homogeneous_stays_as_it_is(operator):
    model, count = hardened(chain(operator), "dense")
    assert count == 0
    assert model.graph.node == chain(operator).graph.node


def test_shifted_channels_are_taken_back():
    proto = chain("Identity")
    model, count = hardened(proto, "biases")
    assert count == 1
    (wanted,), (got,) = outputs(proto), outputs(model)
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-4)
    first, second = (Net(one).constant(one.graph.node[0], 2) for one in (proto, model))
    assert np.abs(second - first).min() > 1


@pytest.mark.parametrize("proto", [chain("Identity", padded=1), chain("Relu")])
def test_no_shift_where_zeros_are_added_or_cut(proto):
    assert hardened(proto, "biases")[1] == 0


@pytest.mark.parametrize(
    ("by", "axes"), [("lattice_tensor", None), ("lattice_channel", 1)]
)
def test_weights_are_multiples_of_a_step(by, axes):
    model, count = hardened(chain("Relu"), by)
    assert count == 2
    for _, weights in both_weights(model, model):
        rows = weights.reshape(len(weights), -1).astype(np.float64)
        step = np.abs(rows).max(axis=axes, keepdims=True) / 127
        np.testing.assert_allclose(rows / step, np.rint(rows / step), atol=1e-4)


def test_another_seed_is_another_network():
    first, second = (hardened(chain("Relu"), "dense", seed)[0] for seed in (1, 2))
    assert first != second
    assert first == hardened(chain("Relu"), "dense", 1)[0]
