# SPDX-License-Identifier: Apache-2.0
"""Random weights for a Net, and the ONNX file with them.

Weights are He's: normal, of variance 2 / fan_in. That alone does not keep activations
in a sane range through 150 layers, so every BatchNormalization gets the mean and
variance that its input really has: one FP32 pass over some samples, in which each
normalisation uses the statistics of its batch. gamma and beta are random, so that
channels differ in range as they do in trained networks. Convolutions without
BatchNormalization in the published network have a hidden one, which is folded into
their weight and bias (layer-sequential unit variance: Mishkin and Matas, "All you need
is a good init").

Weights depend on the seed and their own name only: the same network folded, in another
opset or for another batch has the same ones.
"""

import zlib

import numpy as np
import onnx
import onnxruntime
from onnx import NodeProto, helper, numpy_helper

from bench.networks.builder import EPSILON, Net

Arrays = dict[str, np.ndarray]

IR_VERSIONS = {7: 4, 11: 6, 12: 7, 15: 8, 20: 9, 21: 10}
"""Opset from which on exporters wrote a version of the file format."""
LISTED_IR_VERSION = 3


def draw(net: Net) -> Arrays:
    """All weights, each from a generator of its own; statistics are 0 and 1."""
    drawn = {}
    for name, weight in net.weights.items():
        rng = np.random.default_rng([net.seed, zlib.crc32(name.encode())])
        drawn[name] = weight.draw(rng, weight.shape).astype(np.float32)
    return drawn


def calibrated(net: Net, weights: Arrays, samples: Arrays) -> Arrays:
    """The weights with the statistics of these samples, a whole batch of the Net.

    One run of onnxruntime, in which every normalisation uses what it computes.
    """
    nodes, found = [], {}
    constants = {"epsilon/": np.float32(EPSILON), "axes/": np.array([0, 2, 3])}
    for node in net.nodes:
        if node.op_type != "BatchNormalization":
            nodes.append(node)
            continue
        _, gamma, beta, mean, variance = node.input
        nodes += normalisation(node, opset=net.opset)
        for name in (gamma, beta):
            constants[f"{name}/4d"] = weights[name].reshape(1, -1, 1, 1)
        found |= {f"{mean}/": mean, f"{variance}/": variance}
    if not found:
        return weights
    outputs = [helper.make_empty_tensor_value_info(name) for name in found]
    for output in outputs:
        output.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    inputs = [value(net, name, onnx.TensorProto.FLOAT) for name in net.inputs]
    proto = pack(net, nodes, inputs, outputs, weights | constants)
    values = run(proto, samples, list(found))
    known = zip(found.values(), values, strict=True)
    return weights | {name: array.reshape(-1) for name, array in known}


def normalisation(node: NodeProto, *, opset: int) -> list[NodeProto]:
    """The node with the statistics of its input, which become tensors NAME/."""
    x, gamma, beta, mean, variance = node.input
    y = node.output[0]
    off, square, safe, root, unit, scaled = (
        f"{y}/{part}" for part in ("off", "square", "safe", "root", "unit", "scaled")
    )

    def reduce(source: str, to: str) -> NodeProto:
        if opset >= 18:
            return helper.make_node("ReduceMean", [source, "axes/"], [to])
        return helper.make_node("ReduceMean", [source], [to], axes=[0, 2, 3])

    def step(operator: str, *inputs: str, to: str) -> NodeProto:
        return helper.make_node(operator, inputs, [to])

    return [
        reduce(x, f"{mean}/"),
        step("Sub", x, f"{mean}/", to=off),
        step("Mul", off, off, to=square),
        reduce(square, f"{variance}/"),
        step("Add", f"{variance}/", "epsilon/", to=safe),
        step("Sqrt", safe, to=root),
        step("Div", off, root, to=unit),
        step("Mul", unit, f"{gamma}/4d", to=scaled),
        step("Add", scaled, f"{beta}/4d", to=y),
    ]


def model(net: Net, weights: Arrays, *, dtype: type = np.float32) -> onnx.ModelProto:
    """The file.  dtype: of weights and activations, float32 or float16."""
    nodes, weights = folded(net, weights)
    if dtype != np.float32:
        assert not any(node.op_type == "Constant" for node in nodes)
        weights = {
            name: array.astype(dtype) if array.dtype == np.float32 else array
            for name, array in weights.items()
        }
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    inputs, outputs = (
        [value(net, name, kind, symbolic=net.symbolic) for name in names]
        for names in (net.inputs, net.outputs)
    )
    proto = pack(net, nodes, inputs, outputs, weights)
    if net.listed:
        proto.ir_version = LISTED_IR_VERSION
        proto.graph.input.extend(
            helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
            for tensor in proto.graph.initializer
        )
    return proto


def folded(net: Net, weights: Arrays) -> tuple[list[NodeProto], Arrays]:
    """Nodes and weights without hidden normalisations; with `fold`, without others that
    follow a convolution."""
    weights = dict(weights)
    nodes = [NodeProto.FromString(node.SerializeToString()) for node in net.nodes]
    makers = {output: node for node in nodes for output in node.output}
    readers = [name for node in nodes for name in node.input]
    kept = []
    for node in nodes:
        conv = makers.get(node.input[0]) if node.input else None
        if (
            node.op_type != "BatchNormalization"
            or conv is None
            or conv.op_type not in ("Conv", "ConvTranspose")
            or readers.count(node.input[0]) > 1
            or not (net.fold or node.name in net.hidden)
        ):
            assert node.name not in net.hidden
            kept.append(node)
            continue
        gamma, beta, mean, variance = (
            weights.pop(name).astype(np.float64) for name in node.input[1:]
        )
        factor = gamma / np.sqrt(variance + EPSILON)
        kernel = conv.input[1]
        weights[kernel] = scaled(conv, weights[kernel], factor)
        if len(conv.input) == 2:
            conv.input.append(f"{kernel}.bias")
        bias = weights.get(conv.input[2], 0) * factor + beta - mean * factor
        weights[conv.input[2]] = bias.astype(np.float32)
        conv.output[0] = node.output[0]
    return kept, weights


def scaled(conv: NodeProto, kernel: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """Its weight with every output channel multiplied; no transposed one has groups."""
    shape = (-1, 1, 1, 1) if conv.op_type == "Conv" else (1, -1, 1, 1)
    return (kernel * factor.reshape(shape)).astype(np.float32)


def pack(
    net: Net,
    nodes: list[NodeProto],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[onnx.ValueInfoProto],
    arrays: Arrays,
) -> onnx.ModelProto:
    """A ModelProto with those arrays and constants that the nodes read."""
    made = {output for node in nodes for output in node.output}
    read = {name for node in nodes for name in node.input}
    initializers = [
        numpy_helper.from_array(array, name)
        for name, array in (net.constants | arrays).items()
        if name in read - made
    ]
    graph = helper.make_graph(nodes, net.name, inputs, outputs, initializers)
    opsets = [helper.make_opsetid("", net.opset)]
    proto = helper.make_model(graph, opset_imports=opsets, producer_name="neon8 tests")
    proto.ir_version = max(v for at, v in IR_VERSIONS.items() if at <= net.opset)
    return proto


def value(
    net: Net, name: str, kind: int, *, symbolic: bool = False
) -> onnx.ValueInfoProto:
    """An input or output; kind: of one that is not of integers."""
    own = net.types[name].tensor_type.elem_type
    kind = kind if own == onnx.TensorProto.FLOAT else own
    batch, *rest = (size or None for size in net.shape(name))
    dims = ["batch" if symbolic else batch, *rest]
    return helper.make_tensor_value_info(name, kind, dims)


def run(
    proto: onnx.ModelProto, samples: Arrays, outputs: list[str]
) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(outputs, samples)
