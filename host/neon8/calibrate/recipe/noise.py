# SPDX-License-Identifier: Apache-2.0
"""What noise in a channel costs: the share it takes of the signals that it reaches."""

import math
from collections.abc import Mapping

import numpy as np

from neon8.arrays import DoubleArray
from neon8.calibrate.observation import Observation
from neon8.calibrate.statistics.channels import ChannelStatistics
from neon8.ir.graph import Graph, Node
from neon8.operators.arithmetic import Multiply
from neon8.operators.convolution import Conv2d
from neon8.operators.functions import Function, evaluate
from neon8.operators.pointwise import function_of
from neon8.rewrite.equalization import CHANNELS, links

STILL = 1e-3
"""A channel whose standard deviation is a smaller share of its mean is constant."""
POINTS = 65
"""Points of a normal distribution, within 4 standard deviations."""


def costs(graph: Graph, observation: Observation) -> dict[str, DoubleArray]:
    """For each tensor the cost of each channel, (C,), where it is known.

    It is what noise of variance 1 adds to the noise to signal ratio of the convolutions
    after it, each being the mean over its outputs that vary.
    """
    found: dict[str, DoubleArray] = {}
    for name in graph.outputs:
        _add(found, name, _whole(observation, name))
    for node in reversed(graph.nodes):
        for name in node.inputs:
            cost = cost_of(graph, observation, node, name, found)
            _add(found, name, cost)
    return found


def _add(found: dict[str, DoubleArray], name: str, cost: DoubleArray | None) -> None:
    if cost is not None:
        found[name] = found[name] + cost if name in found else cost


def cost_of(
    graph: Graph,
    observation: Observation,
    node: Node,
    name: str,
    after: Mapping[str, DoubleArray],
) -> DoubleArray | None:
    """The cost by way of one reader of tensor `name`, (C,), None if unknown.

    after: costs of the reader's outputs.
    """
    channels = observation.channels
    if isinstance(node, Conv2d):
        return _layer_cost(node, channels[node.pre_activation])
    made = after.get(node.output)
    if made is None:
        return _whole(observation, name)
    function = function_of(node)
    if function is not None and name in channels:
        return made * _slopes(function, channels[name])
    if isinstance(node, Multiply) and set(node.inputs) <= set(channels):
        first, second = node.inputs
        other = channels[second if name == first else first]
        cost = made * (np.square(other.mean()) + other.variance())
        own = graph.tensors[name].shape[1]
        return cost if own == len(cost) else cost.sum(keepdims=True)
    for link in links(graph, node) or ():
        if link.source == name:
            cost = np.zeros(graph.tensors[name].shape[CHANNELS])
            np.add.at(cost, link.read, made[link.made])
            return cost
    return _whole(observation, name)


def moving(statistics: ChannelStatistics) -> DoubleArray:
    """The variance of each channel, (C,), 0 for constant ones, which do not count."""
    variance, mean = statistics.variance(), statistics.mean()
    moves = np.sqrt(variance) > STILL * np.abs(mean)
    return np.where(moves, variance, 0.0)


def energies(node: Conv2d) -> DoubleArray:
    """Sums of the squared weights that a pixel of the output meets, (G, O / G, D).

    G groups of D input channels; of a transposed one it meets a share of the taps.
    """
    squares = np.square(node.weight.astype(np.float64)).sum(axis=(2, 3))
    each = squares.reshape(node.groups, -1, node.weight.shape[1])
    result: DoubleArray = each / math.prod(node.spread)
    return result


def _layer_cost(node: Conv2d, made: ChannelStatistics) -> DoubleArray | None:
    signal = moving(made)
    if not node.finite or not signal.any():
        return None
    counted = np.where(signal > 0, signal, np.inf).reshape(node.groups, -1, 1)
    share = (energies(node) / counted).sum(axis=1).reshape(-1)
    result: DoubleArray = share / np.count_nonzero(signal)
    return result


def _whole(observation: Observation, name: str) -> DoubleArray | None:
    """Where nothing better is known: a share of all that the tensor holds."""
    if name not in observation.channels:
        return None
    variance = observation.channels[name].variance()
    total = float(variance.sum())
    return np.full(len(variance), 1 / total) if total > 0 else None


def _slopes(function: Function, read: ChannelStatistics) -> DoubleArray:
    """The mean square of the slope on normal values like those of a channel, (C,)."""
    z = np.linspace(-4, 4, POINTS)
    weights = np.square(np.square(1 - np.square(z / 4.5)) ** 2) ** 2  # nearly a bell
    mean, deviation = read.mean(), np.sqrt(read.variance())
    width = np.maximum(deviation, np.finfo(np.float32).tiny)[:, np.newaxis]
    x = mean[:, np.newaxis] + width * z
    lo, hi = (e.astype(np.float64)[:, np.newaxis] for e in (read.minimum, read.maximum))
    x = np.clip(x, lo, hi)
    step = width / 16
    ends = [np.nan_to_num(evaluate(function, x + s)) for s in (-step, step)]
    slopes = np.square((ends[1] - ends[0]) / (2 * step))
    result: DoubleArray = (slopes * weights).sum(axis=1) / weights.sum()
    return result
