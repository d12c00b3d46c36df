# SPDX-License-Identifier: Apache-2.0
"""ForeignTable: what a calibration file of any tool says, and nothing that it does not.

Every format holds a part: ncnn the weights and the input of each layer, TensorRT one
scale a tensor, Glow and onnxruntime ranges, ONNX with Q/DQ nodes nearly all. Readers
fill in what is there, attach.py adds what a network or a whole table knows, and a
writer refuses by name what it needs and does not get. Numbers are kept in double, so
that one format's float32 goes through the inverse or 127 times itself and comes back.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from neon8.errors import TableError
from neon8.quant.checks import real
from neon8.quant.grid import Grid
from neon8.quant.scale_table import LayerScale, ScaleTable, TensorScale
from neon8.text import counted

Value = TypeVar("Value")

BY_LAYER = ("inputs", "weights", "reads", "groups", "weight_names")
"""The parts of a ForeignTable whose keys are names of layers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantParams:
    """real = scale * (q - zero_point)  (1).  Scale 0: nothing but zeros was seen.

    bits: of q, 7, 8 or 16.
    """

    scale: float
    zero_point: int = 0
    scheme: str = "symmetric"
    bits: int = 8

    @property
    def grid(self) -> Grid:
        """The integers that q can be."""
        return Grid(self.scheme, self.bits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """A range of real values to be covered; whoever reads the file chooses the scale.

    histogram: counts in equal bins over it, of formats that have them.
    """

    lo: float
    hi: float
    histogram: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignTable:
    """tensors: by name.  inputs: of a format that knows its layers, not its tensors.

    weights: by layer, one scale for each output channel or one for all; 0 for a channel
    without weights.  reads: layer -> the tensor it reads.  groups: layer -> how many
    groups its convolution has, where that is known.  weight_names: layer -> the name of
    its weights, and the axis of the output channels.  constants: axis and scales of
    weights whose layer is not known, by their own name.  header: what a format keeps
    about itself.  other: lines that only this format understands.
    scales_per_group: a convolution with groups has one weight scale for each.  notes:
    what was left out and why.
    """

    source: str
    format: str
    tensors: dict[str, QuantParams | Range] = field(default_factory=dict)
    inputs: dict[str, QuantParams] = field(default_factory=dict)
    weights: dict[str, tuple[float, ...]] = field(default_factory=dict)
    reads: dict[str, str] = field(default_factory=dict)
    groups: dict[str, int] = field(default_factory=dict)
    weight_names: dict[str, tuple[str, int]] = field(default_factory=dict)
    constants: dict[str, tuple[int, tuple[float, ...]]] = field(default_factory=dict)
    header: dict[str, str] = field(default_factory=dict)
    other: dict[str, str] = field(default_factory=dict)
    scales_per_group: bool = False
    notes: tuple[str, ...] = ()

    @property
    def contents(self) -> str:
        """For errors: which parts are there."""
        parts = {
            "scales or ranges of tensors": self.tensors,
            "scales of layer inputs": self.inputs,
            "weight scales": self.weights or self.constants,
        }
        return " and ".join(what for what, there in parts.items() if there) or "nothing"

    def tensors_for(self, need: str) -> Iterator[tuple[str, str, QuantParams | Range]]:
        """Iterate over what errors call each tensor, its name, its scale or range.

        TableError: there are none.  need: "TensorRT needs scales".
        """
        if not self.tensors:
            text = f"{need} of tensors, and it has {self.contents}"
            raise TableError(f"{self.source}: {text}; --model names the network")
        for name, entry in self.tensors.items():
            yield f"{self.source}: tensor {name!r}", name, entry

    def with_note(self, note: str) -> "ForeignTable":
        """The table with one note more."""
        return replace(self, notes=(*self.notes, note))


def from_scale_table(table: ScaleTable, *, source: str) -> ForeignTable:
    """A whole table of our own."""
    return ForeignTable(
        source=source,
        format="neon8",
        tensors={name: params_of(tensor) for name, tensor in table.tensors.items()},
        weights={name: weight_scales_of(layer) for name, layer in table.layers.items()},
        reads={name: layer.input for name, layer in table.layers.items()},
        groups={name: layer.groups for name, layer in table.layers.items()},
    )


def params_of(tensor: TensorScale) -> QuantParams:
    """The quantization of one tensor of a table."""
    if "dead" in tensor.reasons:
        return QuantParams(scale=0.0, bits=tensor.bits)
    return QuantParams(
        scale=tensor.scale,
        zero_point=tensor.zero_point,
        scheme=tensor.scheme,
        bits=tensor.bits,
    )


def params_from(scale: float, zero_point: int, *, bits: int = 8) -> QuantParams:
    """The parameters with the scheme that the zero point of a signed type shows."""
    least = -(2 ** (bits - 1))
    scheme = {0: "symmetric", least: "unsigned"}.get(zero_point, "asymmetric")
    return QuantParams(scale=scale, zero_point=zero_point, scheme=scheme, bits=bits)


def tensors_of_other_bits(table: ForeignTable) -> dict[str, int]:
    """The tensors that have another number of bits than 8."""
    return {
        name: entry.bits
        for name, entry in table.tensors.items()
        if isinstance(entry, QuantParams) and entry.bits != 8
    }


def weight_scales_of(layer: LayerScale) -> tuple[float, ...]:
    """The weight scales of one layer of a table, 0 for a channel without weights."""
    return tuple(
        0.0 if f"dead:{channel}" in layer.reasons else scale
        for channel, scale in enumerate(layer.weight_scales)
    )


def to_range(entry: QuantParams | Range) -> Range:
    """The range that the integers cover, in double and so exact."""
    if isinstance(entry, Range):
        return entry
    return Range(
        lo=(entry.grid.lowest - entry.zero_point) * entry.scale,
        hi=(entry.grid.highest - entry.zero_point) * entry.scale,
    )


def float32_range(where: str, entry: QuantParams | Range) -> Range:
    """The range for a file of float32 values.  TableError: an end is too large.

    What float32 has no number for but 0 is 0.
    """
    found = to_range(entry)
    ends = (real(where, found.lo), real(where, found.hi))
    lo, hi = (end if np.float32(end) else 0.0 for end in ends)
    return replace(found, lo=lo, hi=hi)


def to_params(entry: QuantParams | Range) -> QuantParams:
    """The parameters that cover a range, as the calibrator would choose them.

    Unsigned for a range that begins at 0, symmetric for -T .. T, else asymmetric.
    """
    if isinstance(entry, QuantParams):
        return entry
    lo, hi = min(entry.lo, 0.0), max(entry.hi, 0.0)
    scheme = "symmetric" if lo == -hi else "asymmetric" if lo else "unsigned"
    scale, zero_point = Grid(scheme).cover_exactly(lo, hi)
    return QuantParams(scale=scale, zero_point=zero_point, scheme=scheme)


def symmetric_scale(entry: QuantParams | Range) -> float:
    """T / 127 for tools that know zero point 0 only; T: the larger end of the range."""
    if isinstance(entry, QuantParams) and entry.scheme == "symmetric":
        return entry.scale
    found = to_range(entry)
    return max(-found.lo, found.hi, 0.0) / 127


def float32_scale(where: str, entry: QuantParams | Range) -> float:
    """symmetric_scale() for a file of float32 values.  TableError: it is too large."""
    return real(where, symmetric_scale(entry))


def count_zero_points_lost(table: ForeignTable) -> int:
    """Count the tensors that lose steps because their zero point becomes 0."""
    return sum(
        symmetric_scale(entry) != to_params(entry).scale
        for entry in table.tensors.values()
    )


def first_of(names: Sequence[str]) -> str:
    """'x' and 2 other tensors."""
    more = len(names) - 1
    others = f" and {counted(more, 'other tensor')}" if more else ""
    return f"{names[0]!r}{others}"


def renamed(table: ForeignTable, names: Mapping[str, str]) -> ForeignTable:
    """`table` with other names of tensors, layers and weights.

    TableError: a name that the table does not have, two that become one.
    """
    known = {name for name, _ in table.weight_names.values()}
    known.update(table.tensors, table.inputs, table.weights, table.constants)
    for name in names:
        if name not in known:
            text = f"the map of names has {name!r}, which is not in it"
            raise TableError(f"{table.source}: {text}")
    for part in ("tensors", "constants", *BY_LAYER):
        new = Counter(names.get(name, name) for name in getattr(table, part))
        for name, count in new.items():
            if count > 1:
                text = f"the map of names gives two entries the name {name!r}"
                raise TableError(f"{table.source}: {text}")
    table = with_layer_names(table, names)
    return replace(
        table,
        tensors=_renamed_keys(table.tensors, names),
        constants=_renamed_keys(table.constants, names),
        reads={layer: names.get(n, n) for layer, n in table.reads.items()},
        weight_names={
            layer: (names.get(n, n), axis)
            for layer, (n, axis) in table.weight_names.items()
        },
    )


def with_layer_names(table: ForeignTable, names: Mapping[str, str]) -> ForeignTable:
    """`table` with other names of its layers only."""
    parts: dict[str, Any] = {
        part: _renamed_keys(getattr(table, part), names) for part in BY_LAYER
    }
    return replace(table, **parts)


def _renamed_keys(part: dict[str, Value], names: Mapping[str, str]) -> dict[str, Value]:
    return {names.get(name, name): value for name, value in part.items()}
