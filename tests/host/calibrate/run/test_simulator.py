# SPDX-License-Identifier: Apache-2.0
"""The simulator: exact where nothing is rounded, else what the grid leaves."""

from dataclasses import replace

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neon8.calibrate.run.reference import Reference
from neon8.calibrate.run.simulator import Simulator
from neon8.errors import GraphError
from neon8.graph.importer import load
from neon8.graph.onnx_file import open_onnx
from neon8.graph.roundable import roundable
from neon8.ir.graph import Tensor
from neon8.operators.convolution import Conv2d
from neon8.quant.grid import Grid
from neon8.quant.scale_table import TensorScale
from onnx_nets import TOLERANCE, chain, random_inputs_of, save
from random_nets import networks


def scale_of(values, scheme="asymmetric", bits=8):
    """A grid over the inner half of the values, so that some are clipped."""
    lo, hi = (min(0, 0.5 * values.min()), max(1e-6, 0.5 * values.max()))
    scale, zero_point = Grid(scheme, bits).cover(float(lo), float(hi))
    return TensorScale(
        scale=float(scale),
        zero_point=zero_point,
        scheme=scheme,
        bits=bits,
        threshold=(lo, hi),
        min=lo,
        max=hi,
    )


def rounded(values, entry):
    """(2) and (1) as numpy does them."""
    grid = Grid(entry.scheme, entry.bits)
    scaled = np.float32(values) * np.float32(1 / np.float32(entry.scale))
    zero = entry.zero_point
    q = np.clip(np.rint(scaled) + zero, grid.lowest, grid.highest) - zero
    return q.astype(np.float32) * np.float32(entry.scale)


def input_of(graph, seed=1):
    (sample,) = random_inputs_of(graph, 1, seed=seed, scale=2)
    return sample


def observed(graph):
    return [name for name, tensor in graph.tensors.items() if tensor.observed]


def layers_of(graph):
    hidden = {name for name, tensor in graph.tensors.items() if tensor.hidden}
    return [
        n
        for n in graph.nodes
        if isinstance(n, Conv2d) and hidden.isdisjoint((*n.inputs, n.output))
    ]


@settings(max_examples=25)
@given(model=networks(), data=st.data())
def test_random_networks(tmp_path_factory, model, data):
    path = save(tmp_path_factory.mktemp("random"), model)
    graph = load(path)
    names, inputs = observed(graph), input_of(graph)
    inner = [name for name in names if name not in graph.inputs]
    wanted = Reference(path, inner, tensors=graph.rearranged).run(inputs)
    wanted = inputs | {name: wanted[name] for name in inner}

    exact = Simulator(path, graph, tensors=names, outputs=names)
    found = exact.run(inputs, {})
    for name in names:
        np.testing.assert_array_equal(found[name], wanted[name], name)

    replaced = Simulator(
        path, graph, tensors=names, layers=layers_of(graph), outputs=names
    )
    for name, values in replaced.run(inputs, {}).items():
        error = np.abs(values - wanted[name]).max()
        limit = TOLERANCE * max(np.abs(wanted[name]).max(), 1e-3)
        assert values.shape == wanted[name].shape
        assert error <= limit, name

    name = data.draw(st.sampled_from(names))
    entry = scale_of(wanted[name])
    got = exact.run(inputs, {name: entry})[name]
    np.testing.assert_array_equal(got, rounded(wanted[name], entry), name)


@pytest.mark.parametrize(
    ("scheme", "bits"),
    [
        ("symmetric", 8),
        ("unsigned", 8),
        ("asymmetric", 8),
        ("symmetric", 7),
        ("asymmetric", 12),
        ("symmetric", 16),
        ("asymmetric", 16),
    ],
)
@pytest.mark.parametrize("opset", [7, 12, 13, 18])
def test_every_grid(tmp_path, scheme, bits, opset):
    model = chain([("Relu", [], {}), ("Neg", [], {})], [1, 3, 4, 5], opset=opset)
    path = save(tmp_path, model)
    graph = load(path)
    simulator = Simulator(path, graph, tensors=["x", "t0"], outputs=["x", "t0", "y"])
    x = np.linspace(-3, 9, 60, dtype=np.float32).reshape(1, 3, 4, 5)
    x[0, 0, 0, :3] = 0.5, -0.0, 1e30
    whole = np.abs(x) if scheme == "unsigned" else x
    entry = scale_of(np.clip(whole, -9, 9), scheme, bits)
    found = simulator.run({"x": whole}, {"x": entry})
    np.testing.assert_array_equal(found["x"], rounded(whole, entry))
    np.testing.assert_array_equal(found["y"], -np.maximum(rounded(whole, entry), 0))
    found = simulator.run({"x": whole}, {"t0": entry})
    np.testing.assert_array_equal(found["x"], whole)
    np.testing.assert_array_equal(found["t0"], rounded(np.maximum(whole, 0), entry))


def test_ties_go_to_even(tmp_path):
    path = save(tmp_path, chain([("Neg", [], {})], [1, 6]))
    entry = TensorScale(
        scale=2.0,
        zero_point=3,
        scheme="asymmetric",
        threshold=(-262.0, 248.0),
        min=None,
        max=None,
    )
    x = np.array([[1, 3, -1, -3, 1e9, -1e9]], np.float32)
    simulator = Simulator(path, load(path), tensors=["x"], outputs=["x"])
    found = simulator.run({"x": x}, {"x": entry})["x"]
    np.testing.assert_array_equal(found, [[0, 4, 0, -4, 248, -262]])


def test_weights_that_are_listed_as_inputs_and_replaced(tmp_path):
    model = chain([("Conv", [(2, 3, 1, 1)], {}), ("Relu", [], {})], [1, 3, 4, 4])
    for one in model.graph.initializer:
        value = onnx.helper.make_tensor_value_info(one.name, one.data_type, one.dims)
        model.graph.input.append(value)
    path = save(tmp_path, model)
    graph = load(path)
    layers = layers_of(graph)
    simulator = Simulator(path, graph, tensors=["x"], layers=layers, outputs=["y"])
    inputs = input_of(graph)
    wanted = Reference(path).run(inputs)["y"]
    np.testing.assert_allclose(simulator.run(inputs, {})["y"], wanted, rtol=1e-5)


def test_half_precision(tmp_path):
    model = chain([("Conv", [(2, 3, 1, 1)], {}), ("Relu", [], {})], [1, 3, 4, 4])
    half = onnx.TensorProto.FLOAT16
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.elem_type = half
    for tensor in model.graph.initializer:
        values = onnx.numpy_helper.to_array(tensor).astype(np.float16)
        tensor.CopyFrom(onnx.numpy_helper.from_array(values, tensor.name))
    path = save(tmp_path, model)
    graph = load(path)
    simulator = Simulator(
        path,
        graph,
        tensors=["x", "y"],
        layers=layers_of(graph),
        outputs=["x", "y"],
    )
    inputs = input_of(graph)
    entry = scale_of(inputs["x"])
    found = simulator.run(inputs, {"x": entry})
    assert {array.dtype for array in found.values()} == {np.dtype(np.float16)}
    want = rounded(inputs["x"].astype(np.float16).astype(np.float32), entry)
    np.testing.assert_array_equal(found["x"], want.astype(np.float16))


def test_other_weights(tmp_path):
    """A layer of the caller's is what runs, large weights and all."""
    steps = [("Conv", [(40, 30, 1, 1), (40,)], {}), ("Relu", [], {})]
    path = save(tmp_path, chain(steps, [1, 30, 4, 4]))
    graph = load(path)
    (layer,) = layers_of(graph)
    weight = np.zeros_like(layer.weight)
    weight[:, 0] = 1
    other = replace(layer, weight=weight, bias=np.full(40, 2, np.float32))
    simulator = Simulator(path, graph, tensors=["x"], layers=[other], outputs=["y"])
    x = input_of(graph)["x"]
    found = simulator.run({"x": x}, {})["y"]
    want = np.broadcast_to(np.maximum(x[:, :1] + 2, 0), found.shape)
    np.testing.assert_allclose(found, want, rtol=1e-6)


def test_a_tensor_in_a_branch_is_refused(tmp_path):
    path = save(tmp_path, chain([("Relu", [], {})], [1, 2]))
    graph = load(path)
    file = open_onnx(path)
    other = replace(graph, tensors={**graph.tensors, "t": Tensor("t", (1, 2))})
    with pytest.raises(GraphError, match="'t' is inside of a branch or loop"):
        roundable(file, other, tensors=["t"], layers=[], outputs=["y"])
