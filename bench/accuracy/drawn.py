# SPDX-License-Identifier: Apache-2.0
"""Small networks that are hard to quantize, without training.

bench/networks draws the weights. Here the channels of every normalisation get ranges
that differ as in the worst of trained networks, and what reads a channel is divided by
its range, so that none can be lost. What training would have to do is done in closed
form: the statistics of normalisations are those of real samples, and the last layer is
solved for their labels.
"""

import zlib
from collections.abc import Callable
from functools import partial

import numpy as np
import onnx

from bench.accuracy.onnx_net import groups
from bench.networks import weights
from bench.networks.builder import Net as Definition
from bench.networks.mobilenet import inverted
from bench.networks.shufflenet import halves, unit

SPREAD = 1.2
"""Standard deviation of a range's logarithm to base 2: 1 in 20 is beyond 5 times."""
LEAST = 1 / 64
"""Of the mean range: a channel with less is taken for dead and not enlarged further."""
SLOPE = 0.1
RIDGE = 0.3
SHARPNESS = 10.0
"""Of the last layer: a sample that is right beyond doubt has so many logits more."""
OPSET, SIZE, CLASSES = 17, 28, 10


def mobile(
    net: Definition,
    activation: Callable[[Definition, str], str],
    *,
    excited: bool = False,
    several: bool = False,
) -> None:
    """Inverted residuals of 5x5.  several: three outputs of all sizes."""

    def squeeze(x: str, name: str) -> str:
        gate = net.conv(net.global_pool(x), f"{name}/fc1", 16, plain=True)
        gate = net.conv(net.relu(gate), f"{name}/fc2", net.shape(x)[1], plain=True)
        return net.op("Mul", [net.hard_sigmoid(gate), x])

    given, gate = partial(activation, net), squeeze if excited else None
    x = near = given(net.conv_norm(_image(net), "stem", 16, 3, stride=2))
    for number, (wide, out, stride) in enumerate(
        ((64, 24, 2), (96, 24, 1), (96, 32, 1))
    ):
        x = inverted(net, x, f"{number}", wide, out, 5, stride, given, gate)
    if several:
        for name, y, out in (("near", near, 6), ("far", x, 15)):
            net.output(net.conv(y, name, out, plain=True), name)
    _classified(net, x)


def shuffled(net: Definition) -> None:
    """ShuffleNetV2's units: halves, Concat, the shuffle."""
    x = net.relu(net.conv_norm(_image(net), "stem", 16, 3, stride=2))
    for number in range(4):
        left, right = halves(net, x) if number else (x, x)
        x = unit(net, left, right, f"{number}", 32, first=not number)
        x = net.shuffle(x, traced=True)
    _classified(net, x)


def leaky(net: Definition, x: str) -> str:
    """LeakyRelu."""
    return net.op("LeakyRelu", [x], alpha=SLOPE)


KINDS = {
    "silu": partial(mobile, activation=Definition.silu),
    "hardswish": partial(mobile, activation=Definition.hard_swish, excited=True),
    "leaky": partial(mobile, activation=leaky),
    "several": partial(mobile, activation=Definition.silu, several=True),
    "shuffle": shuffled,
}


def _image(net: Definition) -> str:
    return net.input("image", 1, SIZE, SIZE)


def _classified(net: Definition, x: str) -> None:
    net.output(net.linear(net.flatten(x), "scores", CLASSES), "scores")
    net.outputs.sort(key="scores".__ne__)  # what is classified comes first


def draw(kind: str, images: np.ndarray, labels: list[int]) -> onnx.ModelProto:
    """The network of this kind, for images (n, 1, 28, 28) and their labels."""
    whole = _defined(kind, len(images))
    arrays = weights.draw(whole)
    for node in whole.nodes:
        if node.op_type == "BatchNormalization":
            rng = np.random.default_rng(zlib.crc32(f"{kind} {node.name}".encode()))
            channels = arrays[node.input[1]].size
            factors = np.exp2(rng.normal(0, SPREAD, channels)).astype(np.float32)
            for name in node.input[1:3]:
                arrays[name] *= factors
    arrays = weights.calibrated(whole, arrays, {"image": images})
    for layer, read in _readings(whole, arrays, images).items():
        even = read.std(axis=tuple({*range(read.ndim)} - {1}))
        even = np.maximum(even / np.sqrt(np.mean(even**2)), LEAST)
        kernel = arrays[layer]
        arrays[layer] = kernel / even.reshape(1, -1, *[1] * (kernel.ndim - 2))
    arrays = weights.calibrated(whole, arrays, {"image": images})
    read = _readings(whole, arrays, images)["scores.weight"]
    arrays["scores.weight"], arrays["scores.bias"] = solved(read, np.array(labels))
    return weights.model(_defined(kind, 1), arrays)


def _defined(kind: str, batch: int) -> Definition:
    net = Definition(kind, OPSET, batch=batch, fold=True)
    KINDS[kind](net)
    return net


def _readings(
    net: Definition, arrays: weights.Arrays, images: np.ndarray
) -> dict[str, np.ndarray]:
    """What dense layers read, by the name of their weights."""
    model = weights.model(net, arrays)
    names = {
        node.input[1]: node.input[0]
        for node in model.graph.node
        if node.op_type in ("Conv", "Gemm") and groups(node) == 1
    }
    wanted = sorted(set(names.values()) - {"image"})
    del model.graph.output[:]
    kind = onnx.TensorProto.FLOAT
    model.graph.output.extend(
        onnx.helper.make_tensor_value_info(name, kind, None) for name in wanted
    )
    given = {"image": images}
    values = dict(zip(wanted, weights.run(model, given, wanted), strict=True)) | given
    return {layer: values[name] for layer, name in names.items()}


def solved(read: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weights (classes, inputs) and bias that tell the classes by ridge regression."""
    middle, spread = read.mean(axis=0), read.std(axis=0)
    spread = np.maximum(spread, LEAST * np.sqrt(np.mean(spread**2)))
    inputs = ((read - middle) / spread).astype(np.float64)
    wanted = SHARPNESS * (np.eye(CLASSES)[labels] - 0.5)
    ridge = RIDGE * len(inputs) * np.eye(inputs.shape[1])
    rows = np.linalg.solve(inputs.T @ inputs + ridge, inputs.T @ wanted).T / spread
    bias = wanted.mean(axis=0) - rows @ middle
    return rows.astype(np.float32), bias.astype(np.float32)
