# SPDX-License-Identifier: Apache-2.0
"""Make a network hard to quantize by rewritings that keep what it computes.

What a float network computes does not change when a channel is divided by a power of
two and the weights that read it are multiplied; int8 with one scale for each tensor
loses the channel. So what calibration makes of the rewritten network shows what it
does about badly scaled channels, with the network itself for comparison.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import onnx

from bench.accuracy.onnx_net import Net, attribute, groups

POOLS = ("MaxPool", "AveragePool", "GlobalAveragePool")
HOMOGENEOUS = ("Relu", "LeakyRelu", "PRelu", "Identity", *POOLS)
"""f(s x) = s f(x) for s > 0, channel by channel, zeros of the padding included."""

OCTAVES = 8
"""A channel is divided by up to 2**OCTAVES."""

OUTLIER = 32.0
ONE_OUTLIER_IN = 16


@dataclass(frozen=True, slots=True)
class Edge:
    """maker: a Conv, or the BatchNormalization after one.  readers: Convs, all of them.

    channels: of the tensors between.
    """

    maker: onnx.NodeProto
    readers: tuple[onnx.NodeProto, ...]
    channels: int

    @property
    def depthwise(self) -> bool:
        return all(groups(reader) == self.channels > 1 for reader in self.readers)


def edges(net: Net) -> Iterator[Edge]:
    """From convolutions to the convolutions that alone read them.

    Activations and pools may lie between.
    """
    for node in net.model.graph.node:
        weights = net.constant(node, 1)
        if node.op_type != "Conv" or weights is None:
            continue
        maker = _maker(net, node)
        found = _reached(net, maker.output[0])
        if found:
            yield Edge(maker, tuple(found), len(weights))


def _maker(net: Net, conv: onnx.NodeProto) -> onnx.NodeProto:
    """The BatchNormalization after the convolution, or the convolution itself."""
    after = net.readers[conv.output[0]]
    if len(after) != 1 or after[0].op_type != "BatchNormalization":
        return conv
    known = all(net.constant(after[0], index) is not None for index in range(1, 5))
    return after[0] if known else conv


def _reached(net: Net, tensor: str) -> list[onnx.NodeProto] | None:
    """The Convs after this tensor; None: something else reads it, or nothing."""
    if tensor in net.outputs or not net.readers[tensor]:
        return None
    found = []
    for node in net.readers[tensor]:
        if node.op_type == "Conv" and node.input[0] == tensor:
            if net.constant(node, 1) is None:
                return None
            found.append(node)
        elif node.op_type in HOMOGENEOUS and len(node.output) == 1:
            further = _reached(net, node.output[0])
            if further is None:
                return None
            found += further
        else:
            return None
    return found


def scale_edge(net: Net, edge: Edge, factors: np.ndarray) -> None:
    """Multiply the channels between by factors, (C,), and divide where they are read.

    By powers of two no bit of the network's result changes, short of overflow.
    """
    for index in (1, 2):  # weight and bias, or gamma and beta
        array = net.constant(edge.maker, index)
        if array is not None:
            shape = (-1, *[1] * (array.ndim - 1))
            net.replace(edge.maker, index, array * factors.reshape(shape))
    for reader in edge.readers:
        weights, count = net.constant(reader, 1), groups(reader)
        rows = weights.reshape(count, len(weights) // count, *weights.shape[1:])
        own = factors.reshape(count, 1, -1, *[1] * (weights.ndim - 2))
        net.replace(reader, 1, (rows / own).reshape(weights.shape))


def drift(rng: np.random.Generator, channels: int) -> np.ndarray:
    """Factors 1 to 2**-OCTAVES, (C,), both ends among them."""
    octaves = rng.integers(0, OCTAVES + 1, channels)
    octaves[rng.permutation(channels)[:2]] = [0, OCTAVES][:channels]
    return np.exp2(-octaves).astype(np.float32)


def stand_out(rng: np.random.Generator, channels: int) -> np.ndarray:
    """OUTLIER for a few channels, else 1, (C,)."""
    factors = np.ones(channels, np.float32)
    count = -(-channels // ONE_OUTLIER_IN)
    factors[rng.permutation(channels)[:count]] = OUTLIER
    return factors


def scaled(
    net: Net,
    rng: np.random.Generator,
    *,
    draw: Callable[[np.random.Generator, int], np.ndarray],
    chosen: Callable[[Edge], bool] = lambda _edge: True,
) -> int:
    """Scale the chosen edges by what is drawn."""
    found = [edge for edge in edges(net) if chosen(edge)]
    for edge in found:
        scale_edge(net, edge, draw(rng, edge.channels))
    return len(found)


def snapped(net: Net, _rng: np.random.Generator, *, per_channel: bool) -> int:
    """Round weights to multiples of one step a layer or an output channel, as quantized
    training leaves them.  What this gives is a network of its own."""
    count = 0
    for node in net.model.graph.node:
        weights = net.constant(node, 1)
        if node.op_type not in ("Conv", "Gemm") or weights is None:
            continue
        turned = node.op_type == "Gemm" and not attribute(node, "transB", 0)
        rows = (weights.T if turned else weights).astype(np.float64)
        axes = tuple(range(1, rows.ndim)) if per_channel else None
        step = np.abs(rows).max(axis=axes, keepdims=True) / 127
        step = np.where(step == 0, 1, step)
        made = (np.rint(rows / step) * step).astype(np.float32)
        net.replace(node, 1, made.T if turned else made)
        count += 1
    return count


EXACT = {
    "depthwise": partial(scaled, draw=drift, chosen=lambda edge: edge.depthwise),
    "dense": partial(scaled, draw=drift, chosen=lambda edge: not edge.depthwise),
    "outliers": partial(scaled, draw=stand_out),
}
"""These keep what the network computes to the last bit."""
REWRITINGS = EXACT | {
    "lattice_tensor": partial(snapped, per_channel=False),
    "lattice_channel": partial(snapped, per_channel=True),
}


def harden(model: onnx.ModelProto, by: str, seed: int = 1) -> int:
    """Rewrite the model in place by the rewriting of this name: how many places."""
    net = Net(model)
    count = REWRITINGS[by](net, np.random.default_rng(seed))
    net.finished()
    return count
