# SPDX-License-Identifier: Apache-2.0
"""Hand-made ONNX networks, and the comparison of their Graph with onnxruntime."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import graph_executor
from neon8.calibrate.run.reference import Reference
from neon8.graph.importer import load
from neon8.graph.remedies import refusal

TOLERANCE = 1e-4
"""Relative to the largest value of a tensor: float32 sums in another order, and weights
that were folded in double."""


def node(operator, inputs, outputs, name="", **attributes):
    """A NodeProto; inputs and outputs are words of a string."""
    return helper.make_node(
        operator, inputs.split(), outputs.split(), name, **attributes
    )


def net(nodes, inputs, outputs, weights=None, *, opset=13, types=None):
    """A model.  inputs: name -> shape; outputs: words; weights: name -> array.

    types: name -> type of an input or output, where it is not FLOAT. Weights of double
    become float32 unless one of these is of DOUBLE.
    """
    kinds = dict.fromkeys((*inputs, *outputs.split()), TensorProto.FLOAT)
    kinds |= types or {}
    arrays = {name: np.asarray(value) for name, value in (weights or {}).items()}
    if TensorProto.DOUBLE not in kinds.values():
        doubles = {name for name, each in arrays.items() if each.dtype == np.float64}
        arrays |= {name: arrays[name].astype(np.float32) for name in doubles}
    graph = helper.make_graph(
        nodes,
        "net",
        [
            helper.make_tensor_value_info(name, kinds[name], shape)
            for name, shape in inputs.items()
        ],
        [onnx.ValueInfoProto(name=name) for name in outputs.split()],
        [numpy_helper.from_array(value, name) for name, value in arrays.items()],
    )
    for output in graph.output:
        output.type.tensor_type.elem_type = kinds[output.name]
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 8
    shaped = onnx.shape_inference.infer_shapes(model)
    for output, known in zip(graph.output, shaped.graph.output, strict=True):
        output.CopyFrom(known)
        if not output.type.tensor_type.HasField("shape"):  # a network that is refused
            output.type.tensor_type.shape.dim.add().dim_param = "unknown"
    del model.graph.output[:]
    model.graph.output.extend(graph.output)
    return model


def chain(steps, shape, *, opset=13, seed=0):
    """x -> step -> step ... -> y.

    steps: (operator, [shape of a random weight, or an array, ...], attributes), the
    input of each being the output of the one before.
    """
    rng = np.random.default_rng(seed)
    nodes, weights, last = [], {}, "x"
    for number, (operator, constants, attributes) in enumerate(steps):
        names = [last]
        for index, constant in enumerate(constants):
            if constant is None:
                names.append("")
                continue
            name = f"w{number}_{index}"
            weights[name] = (
                rng.uniform(-1, 1, constant).astype(np.float32)
                if isinstance(constant, tuple)
                else constant
            )
            names.append(name)
        last = "y" if number == len(steps) - 1 else f"t{number}"
        nodes.append(
            helper.make_node(operator, names, [last], f"n{number}", **attributes)
        )
    return net(nodes, {"x": shape}, "y", weights, opset=opset)


def save(folder, model, name="net.onnx"):
    """The path of the model, written to `folder`."""
    path = folder / name
    path.write_bytes(model.SerializeToString())
    return path


def random_inputs_of(graph, count, *, seed=3, scale=1):
    """Samples for a Graph of real inputs."""
    rng = np.random.default_rng(seed)
    return [
        {
            name: rng.normal(0, scale, graph.tensors[name].dims).astype(np.float32)
            for name in graph.inputs
        }
        for _ in range(count)
    ]


def why_opaque(folder, model):
    """The refusal of a network that load() takes and no compiler does."""
    refused = refusal(load(save(folder, model)))
    assert refused is not None
    return str(refused)


def assert_same(folder, model, *, seed=1, inputs=None):
    """Every tensor of the imported Graph is what onnxruntime computes; the Graph.

    inputs: by name, those that are not to be random.
    """
    path = save(folder, model)
    graph = load(path)
    assert refusal(graph) is None, refusal(graph)
    (drawn,) = random_inputs_of(graph, 1, seed=seed, scale=2)
    inputs = drawn | (inputs or {})
    own = graph_executor.run(graph, inputs)
    inner = [
        name
        for name, tensor in graph.tensors.items()
        if name not in graph.inputs and not tensor.hidden
    ]
    theirs = Reference(path, inner, tensors=graph.rearranged).run(inputs)
    for name in inner:
        want = theirs[name]
        assert own[name].shape == want.shape, name
        error = np.abs(own[name] - want).max()
        assert error <= TOLERANCE * max(np.abs(want).max(), 1e-3), (name, error)
    return graph
