# SPDX-License-Identifier: Apache-2.0
"""More bits for activations or weights, or none rounded: as users or a search ask.

Of int16 activations the sums of a convolution must still fit int32, whatever comes
(12), (24). So a scale group gets the most bits with which those of all layers that read
it do, and a layer with int16 weights has scales with which its own do  (25).
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

import numpy as np

from neon8.arrays import DoubleArray
from neon8.ir.graph import Graph
from neon8.operators.convolution import Conv2d, convolutions
from neon8.operators.factors import narrow
from neon8.operators.subpixel import repeated, subpixel
from neon8.quant.grid import Grid, at_bits, covering, ends, on_grid
from neon8.quant.lattice import quantizer
from neon8.quant.limits import SMALLEST_SCALE
from neon8.quant.scale_table import (
    NARROW,
    NEAREST,
    WEIGHTS16,
    WIDE,
    LayerScale,
    ScaleTable,
    TensorScale,
)
from neon8.quant.weights import (
    ACC_LIMIT,
    HIGHEST,
    HIGHEST_WIDE,
    NARROW_REACH,
    Integers,
    bias_floor,
    channel_scales,
    sums,
)
from neon8.rewrite.bias import corrected
from neon8.rewrite.equalization import EQUALIZED, equalized
from neon8.rewrite.rounding import rounded

INT16 = "int16"
FLOAT32 = "float32"
"""Reason codes."""

NARROWER = frozenset({"fast", INT16, FLOAT32})
"""Reason codes of a tensor that are wrong once its precision is another."""

OF_INT8 = frozenset({"corrected", "chosen", "fast", "deep", "bias"})
"""Reason codes of a layer, without channels, that are wrong for weights of 16 bits."""

FINER = 16
"""How much finer the steps of a grid must be if it covers more than before, too."""


def with_bits(
    table: ScaleTable,
    graph: Graph,
    groups: Mapping[str, str],
    wanted: Mapping[str, int],
) -> ScaleTable:
    """`table` with another number of bits for some scale groups.

    graph: the network of the table, as it was read.  groups: tensor -> its group, see
    groups.scale_groups().  wanted: group -> 7 to 16; of more than 8 it gets the most,
    down to 8, with which (12) is proved for all layers that read it, where the bias may
    ask for a larger weight scale, see bias_floor(). They cover what 8 bits would have
    clipped, too. CompileError: the table does not fit the network.
    """
    if not wanted:
        return table
    finer = {group for group, bits in wanted.items() if bits > NARROW}
    table = _without_factors(table, graph, groups, finer)
    plain = equalized(graph, table)
    nodes = convolutions(rounded(corrected(plain, table), table))
    members: dict[str, list[str]] = {}
    for name in table.tensors:
        members.setdefault(groups.get(name, name), []).append(name)
    tensors, layers = dict(table.tensors), dict(table.layers)
    for group, bits in wanted.items():
        entries = {name: table.tensors[name] for name in members.get(group, ())}
        readers = [
            _Reader(node, table.layers[node.name])
            for node in nodes
            if node.inputs[0] in entries
            and node.name in table.layers
            and np.isfinite(node.weight).all()  # the compiler refuses what is not
        ]
        tensors |= _most_bits(entries, bits, readers)
        layers |= {r.name: r.layer_scale(tensors[r.input]) for r in readers}
    return replace(table, tensors=tensors, layers=layers)


def _without_factors(
    table: ScaleTable,
    graph: Graph,
    groups: Mapping[str, str],
    wanted: Collection[str],
) -> ScaleTable:
    """`table` without the factors that int16 makes needless.

    They are those of what a convolution makes, a group by itself, and only functions
    and products read: each of these would have to take them off. The integers of
    weights stay, as do ranges: the scale is that of the channel with the largest.
    """
    tensors, layers = dict(table.tensors), dict(table.layers)
    shared = Counter(groups.get(name, name) for name in tensors)
    for node in convolutions(graph):
        entry, layer = tensors.get(node.output), layers.get(node.name)
        group = groups.get(node.output, node.output)
        if entry is None or layer is None or group not in wanted or shared[group] > 1:
            continue
        readers = [each for each in graph.nodes if node.output in each.inputs]
        fits = len(entry.factors) == len(node.weight) and narrow(entry.factors)
        if not fits or not all(
            each.absorbs_factors(graph) and not each.weighted for each in readers
        ):
            continue
        factors = np.array(entry.factors)
        tensors[node.output] = _plain(entry, float(factors.max()))
        scales = channel_scales(node.name, layer, len(factors)) * factors
        layers[node.name] = replace(
            layer,
            weight_scales=_float32(scales),
            bias_correction=_float32(factors * layer.bias_correction)
            if len(layer.bias_correction) == len(factors)
            else layer.bias_correction,
        )
    return replace(table, tensors=tensors, layers=layers)


def _plain(entry: TensorScale, factor: float) -> TensorScale:
    """`entry` without factors, of which `factor` is the largest."""
    reasons = tuple(code for code in entry.reasons if code != EQUALIZED)
    bare = replace(entry, factors=(), reasons=reasons)
    scale = np.float32(entry.scale * factor)
    lo, hi = (
        None if end is None else float(np.float32(end * factor))
        for end in (entry.min, entry.max)
    )
    found = on_grid(bare, scale, entry.zero_point, bits=entry.bits)
    return replace(found, min=lo, max=hi)


def _float32(values: DoubleArray) -> tuple[float, ...]:
    return tuple(values.astype(np.float32).astype(np.float64).tolist())


def in_float32(
    table: ScaleTable, groups: Mapping[str, str], wanted: Iterable[str]
) -> ScaleTable:
    """`table` with the scale groups `wanted` in float32.  groups: as above."""
    chosen = frozenset(wanted)
    return replace(
        table,
        tensors={
            name: _because(FLOAT32, replace(entry, float32=True))
            if groups.get(name, name) in chosen
            else entry
            for name, entry in table.tensors.items()
        },
    )


def with_wide_weights(
    table: ScaleTable, graph: Graph, names: Collection[str]
) -> ScaleTable:
    """`table` with int16 weights in the layers `names`.

    graph: the network of the table, as it was read.  A layer gets the finest scales
    with which (12) is proved; one for which they are no finer than those of 8 bits, or
    whose file has integers, stays as it is.  CompileError: the table does not fit.
    """
    if not names:
        return table
    layers = dict(table.layers)
    for node in convolutions(equalized(graph, table)):
        entry = layers.get(node.name)
        known = entry is not None and node.weight_scales is None
        if node.name in names and known and np.isfinite(node.weight).all():
            reader = _Reader(node, layers[node.name])
            layers[node.name] = reader.widened(table.tensors[node.inputs[0]])
    return replace(table, layers=layers)


def _because(reason: str, entry: TensorScale) -> TensorScale:
    others = (code for code in entry.reasons if code not in NARROWER)
    return replace(entry, reasons=(reason, *others))


def _most_bits(
    entries: Mapping[str, TensorScale], wanted: int, readers: Collection["_Reader"]
) -> dict[str, TensorScale]:
    """`entries` of a group with the most bits, at most `wanted`, that readers take."""
    for bits in range(wanted, NARROW, -1):
        found = {name: _wider(entry, bits) for name, entry in entries.items()}
        small = any(entry.scale < SMALLEST_SCALE for entry in found.values())
        if not small and all(reader.takes(found[reader.input]) for reader in readers):
            return {name: _because(INT16, entry) for name, entry in found.items()}
    most = min(wanted, NARROW)
    return {name: _narrower(entry, most) for name, entry in entries.items()}


def _narrower(entry: TensorScale, most: int) -> TensorScale:
    """`entry` with so many bits, of 7 and 8."""
    reasons = tuple(code for code in entry.reasons if code not in (INT16, FLOAT32))
    return replace(at_bits(entry, most), float32=False, reasons=reasons)


def _wider(entry: TensorScale, bits: int) -> TensorScale:
    """`entry` with so many bits, of which there are more than 8.

    Of a calibrated range that 8 bits clipped, all that was seen: there are steps enough
    for it, unless some values are very far away.
    """
    same = replace(at_bits(entry, bits), float32=False)
    least, most = entry.min, entry.max
    own = "override" in entry.reasons or entry.bits > NARROW
    own = own or bool(entry.factors or entry.offsets)
    if own or least is None or most is None:
        return same
    lo, hi = ends(entry)
    wide = covering(same, min(least, lo), max(most, hi))
    return wide if np.float32(wide.scale) * FINER <= entry.scale else same


class _Reader:
    """A convolution as the kernels see it, without a transposed one's spread."""

    def __init__(self, node: Conv2d, entry: LayerScale) -> None:
        """entry: of the layer in the table."""
        self.name = node.name
        self.input = node.inputs[0]
        self._entry = entry
        self._groups = node.groups
        self._bias = node.bias
        parts = subpixel(node) if node.transposed else None
        self._phases = 1 if parts is None else math.prod(parts.phases)
        self._node = node if parts is None else parts.conv
        self._given = channel_scales(node.name, entry, len(node.weight))
        self._rounded = self._given, self._round(self._given)

    def takes(self, entry: TensorScale) -> bool:
        """True if the sums fit int32 with the input `entry`  (12)."""
        if self._entry.bits == WIDE:
            reach = self._reach
            return bool((self._finest(entry) * HIGHEST <= reach)[reach > 0].all())
        grid = Grid(entry.scheme, entry.bits)
        scales = self._scales_for(entry)
        if not (entry.scale * scales >= SMALLEST_SCALE).all():
            return False
        levels = self._levels_with(scales)
        each = repeated(scales, self._groups, self._phases)
        return all(
            (
                sums(
                    self._node.weight,
                    bias,
                    each,
                    scale_in=entry.scale,
                    zero_point_in=entry.zero_point,
                    reach=max(-grid.lowest, grid.highest),
                    quantize=lambda *_: levels,
                ).bound
                < ACC_LIMIT
            ).all()
            # Whether the bias is in the sums depends on what reads the layer (4).
            for bias in (self._node.bias.astype(np.float64), np.zeros(len(each)))
        )

    def layer_scale(self, entry: TensorScale) -> LayerScale:
        """The layer in the table, with what the bias asks for of the input `entry`."""
        scales, given = self._scales_for(entry), self._given
        if (scales == given).all():
            return self._entry
        larger = np.flatnonzero(scales > given) if self._entry.bits == NARROW else ()
        codes = [f"bias:{channel}" for channel in larger]
        more = (code for code in codes if code not in self._entry.reasons)
        return replace(
            self._entry,
            weight_scales=tuple(scales.tolist()),
            reasons=(*self._entry.reasons, *more),
        )

    def widened(self, entry: TensorScale) -> LayerScale:
        """The layer with int16 weights, if they are finer with the input `entry`."""
        # A step of the weights stays one, of 2**8 new ones.
        scales = _above(np.maximum(self._finest(entry), self._given / 2**NARROW))
        if self._entry.bits == WIDE or not (scales < self._given).any():
            return self._entry
        codes = self._entry.reasons
        return replace(
            self._entry,
            weight_scales=tuple(scales.tolist()),
            bits=WIDE,
            rounding=NEAREST,
            levels=b"",
            bias_correction=(),
            sqnr_loss=None,
            reasons=(
                WEIGHTS16,
                *(code for code in codes if code.partition(":")[0] not in OF_INT8),
            ),
        )

    @property
    def _reach(self) -> DoubleArray:
        """The largest |weight| of each channel of the table, (O,)."""
        sizes = np.abs(self._node.weight.reshape(len(self._node.weight), -1))
        return self._over_phases(sizes.max(axis=1).astype(np.float64))

    def _over_phases(self, values: DoubleArray) -> DoubleArray:
        """The largest of the phases of a channel, (O * phases,) to (O,)."""
        parts = values.reshape(self._groups, self._phases, -1)
        result: DoubleArray = parts.max(axis=1).reshape(-1)
        return result

    def _finest(self, entry: TensorScale) -> DoubleArray:
        """Scales of int16 weights, (O,), with which the sums fit int32 for sure.

        Rounding changes each of K weights by half at most, and so what the real numbers
        add up to by K / 2 times what a weight is multiplied by.
        """
        grid = Grid(entry.scheme, entry.bits)
        flat = self._node.weight.reshape(len(self._node.weight), -1).astype(np.float64)
        reach = max(-grid.lowest, grid.highest, NARROW_REACH)
        point = abs(entry.zero_point)
        bias = np.abs(repeated(self._bias, self._groups, self._phases)) / entry.scale
        rounding = 2 + flat.shape[1] / 2 * (reach + point)
        total = np.abs(flat).sum(axis=1) * reach + bias
        total += np.abs(flat.sum(axis=1)) * point
        least = self._over_phases(total) / max(ACC_LIMIT - rounding, 1.0)
        floor = SMALLEST_SCALE / min(entry.scale, 1.0)
        return np.maximum(np.maximum(least, self._reach / HIGHEST_WIDE), floor)

    def _scales_for(self, entry: TensorScale) -> DoubleArray:
        """(O,), larger where the bias would not fit; levels that were chosen stay."""
        given = self._given
        if self._entry.bits == WIDE:
            return np.maximum(given, _above(self._finest(entry)))
        if entry.bits <= NARROW or self._entry.levels:
            return given
        floor = bias_floor(self._bias, entry.scale, entry.bits)
        larger = np.float32(np.maximum(given, floor)).astype(np.float64)
        return np.where(floor > given, larger, given)

    def _levels_with(self, scales: DoubleArray) -> Integers:
        if (self._rounded[0] != scales).any():
            self._rounded = scales, self._round(scales)
        return self._rounded[1]

    def _round(self, scales: DoubleArray) -> Integers:
        each = repeated(scales, self._groups, self._phases)
        return quantizer(self._entry.rounding, self._entry.bits)(
            self._node.weight, each
        )


def _above(values: DoubleArray) -> DoubleArray:
    """float32 values that are no smaller; but for the last bits the same."""
    result: DoubleArray = np.float32(values * (1 + 2.0**-20)).astype(np.float64)
    return result
