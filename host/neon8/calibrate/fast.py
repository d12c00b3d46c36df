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
from neon8.quant.lattice import HALF_REACH, lattice_scales, reaches
from neon8.quant.scale_table import LayerScale, ScaleTable
from neon8.rewrite.rounding import integers, neighbours, packed

FAST = "fast"
"""Reason code of a tensor whose integers span less for this."""

WINDOW = (3, 3)
EVEN_MOVES = np.array([[0, 0, 0], [1, 1, 0], [1, 0, 1], [0, 1, 1]], bool)
ODD_MOVES = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]], bool)
"""Which weights of a row take the other neighbour: the sum of the row is even then."""
WAYS = len(EVEN_MOVES)
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


def on_lattice_scales(node: Conv2d, entry: LayerScale) -> LayerScale:
    """Round the layer to the lattice, with scales that keep its rows in range."""
    scales = np.array(entry.weight_scales)
    enlarged = lattice_scales(node.weight, scales)
    return replace(entry, weight_scales=tuple(enlarged.tolist()), rounding="lattice")


def balanced(node: Conv2d, entry: LayerScale) -> Iterator[LayerScale]:
    """The layer with the points of the lattice whose errors cancel over a kernel.

    What its nine taps read is nearly alike, so Σ e^2 + (Σ e)^2 of their errors e is
    least, with two neighbours for each weight. Nothing where there is no such point.
    """
    chosen = np.empty(node.weight.shape, bool)
    for channel, scale in enumerate(entry.weight_scales):
        weight, scales = node.weight[channel], np.full(len(node.weight[0]), scale)
        nearest, other, real = neighbours(weight, scales)
        # Each row has four ways to move weights that leave its sum even.
        odd = nearest.sum(axis=-1, keepdims=True) % 2 == 1
        ways = np.where(odd, ODD_MOVES[:, None, None], EVEN_MOVES[:, None, None])
        levels = np.where(ways, other, nearest).astype(np.int16)
        errors = real - levels
        sums = errors[..., 0] + errors[..., 1] + errors[..., 2]
        squares = np.square(errors)
        prices = squares[..., 0] + squares[..., 1] + squares[..., 2]
        off = (levels.sum(axis=-1) % 2 == 1) | (reaches(levels) > HALF_REACH)
        prices[off] = np.inf
        # One way for each of three rows: 4 x 4 x 4 of them, for each input channel.
        total, price = (
            each[:, None, None, :, 0] + each[:, None, :, 1] + each[..., 2]
            for each in (sums, prices)
        )
        price = (price + np.square(total)).reshape(-1, len(weight))
        best = price.argmin(axis=0)
        inputs = np.arange(len(weight))
        if np.isinf(price[best, inputs]).any():
            return
        rows = np.stack(np.unravel_index(best, (WAYS,) * 3), axis=1)
        chosen[channel] = ways[rows, inputs[:, None], np.arange(3)]
    yield replace(entry, levels=packed(chosen))


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
