# SPDX-License-Identifier: Apache-2.0
"""Offsets for channels with means far apart, where they make the step smaller.

A constant may be subtracted from each channel between a convolution without an
activation and its readers, whose biases add it back. Means that lie far apart widen the
range that the channels share and carry no information; with the means as offsets the
range covers only what varies.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np

from neon8.arrays import DoubleArray
from neon8.calibrate.observation import Observation
from neon8.calibrate.recipe.components import ordinary
from neon8.calibrate.recipe.spans import observed
from neon8.calibrate.thresholds.choose import scheme_of
from neon8.calibrate.thresholds.guards import Range
from neon8.ir.graph import Activation, Graph
from neon8.operators.convolution import convolutions
from neon8.quant.grid import Grid
from neon8.quant.scale_table import NARROW, TensorScale
from neon8.rewrite.absorption import makes, reads

FINER = 1.25
"""How many times smaller the step must become, with all that was seen inside."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Absorbed:
    """Offsets, and the ranges of the values less the offsets.

    scheme: of tensors that were unsigned.  offsets: tensor -> (C,), float32 values.
    limits: as they are to be expected; seen: as they were.
    """

    scheme: str
    offsets: dict[str, DoubleArray] = field(default_factory=dict)
    limits: dict[str, Range] = field(default_factory=dict)
    seen: dict[str, Range] = field(default_factory=dict)

    def scheme_for(self, entry: TensorScale) -> str:
        """The scheme of a tensor once it has offsets, and so negative values."""
        return self.scheme if entry.scheme == "unsigned" else entry.scheme


def absorb(
    graph: Graph,
    observation: Observation,
    tensors: Mapping[str, TensorScale],
    closed: Collection[str],
    *,
    scheme: str,
) -> Absorbed:
    """Choose offsets for all tensors that gain by them.

    tensors: their scales without offsets.  closed: tensors that must stay as they are.
    scheme: of the table.
    """
    found = Absorbed(scheme=scheme_of(scheme, negative=True))
    for name in _free(graph, observation, closed):
        entry, channels = tensors[name], observation.channels[name]
        if entry.bits > NARROW or not channels.count.all():
            continue
        own = channels.mean().astype(np.float32).astype(np.float64)
        span = observed(Activation(), observation, name, own)
        if span is None:
            continue
        limits = _range(span.reach)
        grid = Grid(found.scheme_for(entry), entry.bits)
        if float(grid.cover(*limits)[0]) * FINER <= entry.scale:
            found.offsets[name], found.limits[name] = own, limits
            found.seen[name] = _range(span.seen)
    return found


def _range(ends: tuple[DoubleArray, DoubleArray]) -> Range:
    """The least and the largest value of all channels, and 0 between them."""
    return min(float(ends[0].min()), 0.0), max(float(ends[1].max()), 0.0)


def _free(graph: Graph, observation: Observation, closed: Collection[str]) -> list[str]:
    """Tensors that may have offsets: those that share their scale with no other."""
    groups = list(observation.scale_groups.values())
    shut = {*closed, *graph.inputs, *graph.outputs}
    read: set[str] = set()
    layers = convolutions(graph)
    free = {node.name for node in layers if reads(node) and ordinary(node)}
    for node in graph.nodes:
        read.update(node.inputs)
        if node.name not in free:
            shut.update(node.inputs)
    return [
        node.output
        for node in layers
        if makes(node)
        and ordinary(node)
        and node.output in read - shut
        and node.output in observation.channels
        and groups.count(observation.scale_groups.get(node.output, "")) == 1
    ]
