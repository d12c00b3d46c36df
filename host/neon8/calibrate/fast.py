# SPDX-License-Identifier: Apache-2.0
"""Scales with which 3x3 convolutions can run by int8 Winograd (23), at a price.

A layer needs an input whose integers span at most 127, and weights on the lattice of
quant/lattice.py. The symmetric scheme gives a tensor that is never negative such
integers, 0 .. 127; others get 7 bits. Either is done only where no layer loses more of
its output's signal to noise ratio than the user allows, measured on the rows that
calibration kept, with weights and input rounded and all else exact.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from neon8.calibrate.observation import Observation
from neon8.calibrate.statistics.patches import Patches, chosen_channels, outputs
from neon8.calibrate.thresholds.choose import scheme_of
from neon8.ir.graph import Graph
from neon8.ir.groups import never_negative
from neon8.operators.convolution import Conv2d, convolutions
from neon8.quant.grid import Grid
from neon8.quant.scale_table import LayerScale, ScaleTable
from neon8.rewrite.rounding import balanced, integers, on_lattice_scales

FAST = "fast"
"""Reason code of a tensor whose integers span less for this."""

WINDOW = (3, 3)
DECIMALS = 2
"""Decimals of dB: beyond them the order of additions would show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Network:
    """Convolutions and rows of their inputs, by layer name."""

    layers: Mapping[str, Conv2d]
    patches: Mapping[str, Patches]


def narrower(
    graph: Graph, groups: Mapping[str, str], *, scheme: str
) -> dict[str, Grid]:
    """Grids whose integers span at most 127, for the groups that such layers read.

    groups: observed tensor -> scale group; those with an input of the network are left
    out.  scheme: of the table.
    """
    others = Grid(scheme_of(scheme, negative=True), 7)
    nonnegative = never_negative(graph)
    members: dict[str, set[str]] = {}
    for name, group in groups.items():
        members.setdefault(group, set()).add(name)
    layers = (node for node in convolutions(graph) if _fits(node))
    read = {groups.get(node.inputs[0]) for node in layers}
    return {
        group: Grid("symmetric") if names <= nonnegative else others
        for group, names in members.items()
        if group in read and names.isdisjoint(graph.inputs)
    }


def fast(
    observation: Observation,
    graph: Graph,
    table: ScaleTable,
    narrow: ScaleTable,
    *,
    limit: float,
) -> ScaleTable:
    """Give layers what int8 Winograd needs where none loses `limit` dB or more.

    narrow: as `table`, but with the grids of narrower(), where the user has not set
    others. Each layer that changes gets its sqnr_loss.
    """
    layers = {node.name: node for node in convolutions(graph)}
    patches = {name: facts.patches for name, facts in observation.layers.items()}
    network = _Network(layers=layers, patches=patches)
    result = table
    groups = observation.scale_groups
    for group, grid in narrower(graph, groups, scheme=table.scheme).items():
        tensors = [n for n in table.tensors if groups[n] == group]
        found = narrow.tensors[tensors[0]]
        if (found.scheme, found.bits) == (grid.scheme, grid.bits):
            result = _with_group(network, result, narrow, tensors, limit=limit)
    return result


def _with_group(
    network: _Network,
    table: ScaleTable,
    narrow: ScaleTable,
    tensors: list[str],
    *,
    limit: float,
) -> ScaleTable:
    """Change the tensors of one group and their readers, unless a loss is too large."""
    readers = [name for name, e in table.layers.items() if e.input in tensors]
    chosen = {name: narrow.tensors[name] for name in tensors}
    changed = table.tensors[tensors[0]] != chosen[tensors[0]]
    if changed:
        chosen = {n: replace(e, reasons=(FAST, *e.reasons)) for n, e in chosen.items()}
    trial = replace(
        table,
        tensors=table.tensors | chosen,
        layers=table.layers | {name: narrow.layers[name] for name in readers},
    )
    found, some = dict(trial.layers), False
    for name in readers:
        node, entry = network.layers[name], trial.layers[name]
        before = _sqnr(network, table, name)
        best, loss = entry, _loss(network, trial, name, before)
        for each in _on_lattice(node, entry) if _fits(node) else ():
            other = replace(trial, layers=trial.layers | {name: each})
            price = _loss(network, other, name, before)
            if price < limit and (best is entry or price < loss):
                best, loss, some = each, price, True
        if changed and loss >= limit:
            return table
        if changed or best is not entry:
            found[name] = replace(best, sqnr_loss=loss)
    return replace(trial, layers=found) if some else table


def _on_lattice(node: Conv2d, entry: LayerScale) -> Iterator[LayerScale]:
    """The layer on the lattice, rounded in one way and perhaps another."""
    found = on_lattice_scales(node, entry)
    yield found
    yield from balanced(node, found)


def _fits(node: Conv2d) -> bool:
    """True if int8 Winograd can compute the layer."""
    plain = node.strides == node.dilations == (1, 1) and not node.transposed
    window = node.weight.shape[2:] == WINDOW and node.groups == 1
    return plain and window and bool(np.isfinite(node.weight).all())


def _loss(network: _Network, table: ScaleTable, name: str, before: float) -> float:
    """The dB that the layer loses; infinite if unknown."""
    after = _sqnr(network, table, name)
    known = math.isfinite(before) and math.isfinite(after)
    return float(np.float32(round(before - after, DECIMALS))) if known else math.inf


def _sqnr(network: _Network, table: ScaleTable, name: str) -> float:
    """SQNR of the layer's output in dB; NaN if signal or noise is missing."""
    node, entry = network.layers[name], table.layers[name]
    patches, source = network.patches[name], table.tensors[entry.input]
    if not (np.isfinite(node.weight).all() and np.isfinite(patches.rows).all()):
        return math.nan
    channels = chosen_channels(node)
    scales = np.array(entry.weight_scales)
    levels = integers(entry, node.weight, scales, channels)
    flat = levels.reshape(len(channels), -1) * scales[channels][:, None]
    quantized = replace(patches, weights=flat.astype(np.float32))
    grid = Grid(source.scheme, source.bits)
    rows = grid.rounded(patches.rows, source.scale, source.zero_point)
    exact = outputs(patches)
    signal = float(np.square(exact).sum())
    noise = float(np.square(outputs(quantized, rows) - exact).sum())
    return 10 * math.log10(signal / noise) if signal > 0 and noise > 0 else math.nan
