# SPDX-License-Identifier: Apache-2.0
"""Small networks that are hard to quantize, without training.

bench/networks draws the weights. Here the channels of every normalisation get ranges
that differ as in the worst of trained networks, and what reads a channel is divided by
its range, so that none can be lost. What training would have to do is done in closed
form: the statistics of normalisations are those of real samples, and the last layers
are solved for what they shall say.
"""

import zlib
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import onnx

from bench.accuracy.onnx_net import groups
from bench.networks import weights
from bench.networks.builder import Net as Definition
from bench.networks.mobilenet import excite, inverted
from bench.networks.shufflenet import halves, unit

SPREAD = 1.2
"""Standard deviation of a range's logarithm to base 2: 1 in 20 is beyond 5 times."""
LEAST = 1 / 64
"""Shares of the mean range: a channel with less is dead, and not enlarged further."""
SLOPE = 0.1
RIDGE = 0.3
SHARPNESS = 10.0
"""So many logits more has a sample that is right beyond doubt, from the last layer."""
DOUBT = {"scores": 1 / 2, "heat": 1 / 3}
"""Where a logit is 0, in parts of what is certain; least squares flatten hills."""
OPSET, SIZE, CLASSES = 17, 28, 10
CANVAS, STRIDE = 96, 4
"""The detector's image and stride, in pixels."""

Aims = Mapping[str, tuple[np.ndarray, np.ndarray]]
"""By the last layers: what they shall give, and how much each value counts."""


def mobile(
    net: Definition,
    activation: Callable[[Definition, str], str],
    *,
    excited: bool = False,
    several: bool = False,
) -> None:
    """Inverted residuals of 5x5.  several: three outputs of all sizes."""
    given = partial(activation, net)
    gate = partial(_excited, net) if excited else None
    x = near = given(net.conv_norm(_image(net), "stem", 16, 3, stride=2))
    for number, (wide, out, stride) in enumerate(
        ((64, 24, 2), (96, 24, 1), (96, 32, 1))
    ):
        x = inverted(net, x, f"{number}", wide, out, 5, stride, given, gate)
    if several:
        for name, y, out in (("near", near, 6), ("far", x, 15)):
            net.output(net.conv(y, name, out, plain=True), name)
    _classified(net, x)


def detector(net: Definition) -> None:
    """CenterNet: hard-swish, excited blocks of 5x5 down to stride 8, maps of 4."""
    given, gate = partial(Definition.hard_swish, net), partial(_excited, net)
    x = given(net.conv_norm(_image(net, CANVAS), "stem", 16, 3, stride=2))
    fine = x = inverted(net, x, "0", 64, 24, 5, 2, given, gate)
    for number, (wide, out, stride) in enumerate(((96, 40, 2), (160, 40, 1)), start=1):
        x = inverted(net, x, f"{number}", wide, out, 5, stride, given, gate)
    x = net.up(net.conv_norm(x, "up", 24))
    x = given(net.conv_norm(net.add(x, fine), "joined", 64, 3))
    for name, out in (("heat", 1), ("sizes", 2), ("offsets", 2)):
        y = given(net.conv_norm(x, f"{name}/tower", 192, 3))
        y = net.conv(y, name, out, plain=True)
        net.output(net.op("Sigmoid", [y]) if name == "heat" else y, name)


def shuffled(net: Definition) -> None:
    """ShuffleNetV2's units: halves, Concat, the shuffle."""
    x = net.relu(net.conv_norm(_image(net), "stem", 16, 3, stride=2))
    for number in range(4):
        left, right = halves(net, x) if number else (x, x)
        x = unit(net, left, right, f"{number}", 32, first=not number)
        x = net.shuffle(x, traced=True)
    _classified(net, x)


def leaky(net: Definition, x: str) -> str:
    return net.op("LeakyRelu", [x], alpha=SLOPE)


KINDS = {
    "silu": partial(mobile, activation=Definition.silu),
    "hardswish": partial(mobile, activation=Definition.hard_swish, excited=True),
    "leaky": partial(mobile, activation=leaky),
    "several": partial(mobile, activation=Definition.silu, several=True),
    "shuffle": shuffled,
    "centres": detector,
}


def _image(net: Definition, size: int = SIZE) -> str:
    return net.input("image", 1, size, size)


def _excited(net: Definition, x: str, name: str) -> str:
    gate = excite(net, x, net.global_pool(x), name, 16, net.relu)
    return net.op("Mul", [net.hard_sigmoid(gate), x])


def _classified(net: Definition, x: str) -> None:
    net.output(net.linear(net.flatten(x), "scores", CLASSES), "scores")
    net.outputs.sort(key="scores".__ne__)  # what is classified comes first


def classes(labels: list[int]) -> Aims:
    """What a classifier shall say of samples with these labels."""
    wanted = np.eye(CLASSES)[labels]
    return {"scores": (wanted, np.ones_like(wanted))}


def draw(kind: str, images: np.ndarray, aims: Aims) -> onnx.ModelProto:
    """The network of this kind, for images (n, 1, size, size) and what it shall say."""
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
    readings = _readings(whole, arrays, images)
    for layer, (wanted, counted) in aims.items():
        weight, doubt = f"{layer}.weight", DOUBT.get(layer)
        aim = wanted if doubt is None else SHARPNESS * (wanted - doubt)
        found = solved(*(_rows(each) for each in (readings[weight], aim, counted)))
        arrays[weight] = found[0].reshape(arrays[weight].shape)
        arrays[f"{layer}.bias"] = found[1]
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


def _rows(values: np.ndarray) -> np.ndarray:
    """(rows, channels), a row for each sample or pixel."""
    return np.moveaxis(values, 1, -1).reshape(-1, values.shape[1])


def solved(
    read: np.ndarray, wanted: np.ndarray, counted: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Weights (outputs, inputs) and bias that come near by ridge regression.

    read, wanted, counted: (rows, inputs or outputs), the last as in Aims.
    """
    spread = read.std(axis=0)
    spread = np.maximum(spread, LEAST * np.sqrt(np.mean(spread**2)))
    inputs = (read / spread).astype(np.float64)
    rows, bias = [], []
    for values, counts in zip(wanted.T, counted.T, strict=True):
        at = np.flatnonzero(counts)
        share, own = counts[at] / counts.sum(), inputs[at]
        middle, mean = share @ own, share @ values[at]
        off = own - middle
        shared = (off * share[:, np.newaxis]).T
        ridge = RIDGE * np.eye(len(middle))
        row = np.linalg.solve(shared @ off + ridge, shared @ (values[at] - mean))
        rows.append(row / spread)
        bias.append(mean - row @ middle)
    return np.array(rows, np.float32), np.array(bias, np.float32)
