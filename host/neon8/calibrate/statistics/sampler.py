# SPDX-License-Identifier: Apache-2.0
"""Draws the rows of Patches from samples, one sample at a time."""

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from neon8.arrays import Array, UInt64Array
from neon8.calibrate.statistics.native_library import (
    address,
    check,
    field,
    load,
    pointer,
)
from neon8.calibrate.statistics.patches import (
    ROWS,
    Patches,
    chosen_groups,
    empty,
    smallest,
)
from neon8.ir.graph import Activation, nchw
from neon8.operators.convolution import Conv2d

Parts = Sequence[tuple[str, Activation]]


class Sampler:
    """Keeps the rows with the smallest keys of the samples added so far.

    nodes: the layers.  parts: input of a layer -> the tensors that hold its channels,
    in order, and the activation that follows each.
    """

    def __init__(self, nodes: Sequence[Conv2d], parts: Mapping[str, Parts]) -> None:
        self._nodes, self._parts = tuple(nodes), parts
        self._structs: Any = load().ffi.new("struct n8c_rows[]", len(self._nodes))
        self._layers = [
            _Layer(node, struct)
            for node, struct in zip(self._nodes, self._structs, strict=True)
        ]
        self._sources: _Sources | None = None

    def add(self, values: Mapping[str, Array], *, digest: str) -> None:
        """Add a sample; rows with NaN or infinity are left out.

        values: all parts, (N, C) or (N, C, H, W), floats, of the same shapes each time.
        """
        if self._sources is None:
            self._sources = _Sources(self._nodes, self._parts, values, self._structs)
        for index in range(self._sources.batch):
            self._sources.point_to(values, index)
            words = _words(f"{digest} {index}" if index else digest)
            check(load().lib.n8c_draw(self._structs, len(self._nodes), pointer(words)))

    def result(self) -> dict[str, Patches]:
        """The rows kept so far, by the name of the layer."""
        pairs = zip(self._nodes, self._layers, strict=True)
        return {node.name: layer.result() for node, layer in pairs}


class _Layer:
    """The rows of one layer, in memory that `struct` points to."""

    def __init__(self, node: Conv2d, struct: Any) -> None:
        self._struct, self._empty = struct, empty(node)
        size = math.prod(self._empty.rows.shape[1:])
        self._rows = np.empty((ROWS + 1, size), np.float32)
        self._keys = np.zeros(ROWS + 1, np.uint64)
        self._slots = np.arange(ROWS + 1, dtype=np.uint64)
        struct.words = _words(node.name).tolist()
        struct.kernel, struct.strides = node.weight.shape[2:], node.strides
        struct.dilations, struct.pads = node.dilations, node.pads[:2]
        struct.spread = node.spread
        struct.size = size
        struct.rows, struct.keys = pointer(self._rows), pointer(self._keys)
        struct.slots = pointer(self._slots)

    def result(self) -> Patches:
        """A copy of the rows kept so far."""
        used = self._slots[: self._struct.used]
        shape = self._empty.rows.shape[1:]
        rows = self._rows[used].reshape(-1, *shape)
        return smallest(replace(self._empty, keys=self._keys[used], rows=rows))


@dataclass(frozen=True, slots=True)
class _Piece:
    """Channels of one tensor that are adjacent in a row of a layer.

    start: index of the first value in the tensor.  at: its index in the row.
    """

    name: str
    start: int
    at: int
    channels: int
    size: tuple[int, int]
    activation: Activation


class _Sources:
    """Points the layers' structs into tensors of the shapes of `values`."""

    def __init__(
        self,
        nodes: Sequence[Conv2d],
        parts: Mapping[str, Parts],
        values: Mapping[str, Array],
        structs: Any,
    ) -> None:
        pieces = [list(_pieces(node, parts[node.inputs[0]], values)) for node in nodes]
        every = [piece for each in pieces for piece in each]
        self._names = tuple(dict.fromkeys(piece.name for piece in every))
        self._known: list[Array | None] = [None] * len(self._names)
        self._addresses = np.zeros(len(self._names), np.uint64)
        self.batch = min((len(values[name]) for name in self._names), default=1)
        elements = [values[name].size // len(values[name]) for name in self._names]
        self._element = 4 * np.array(elements, np.uint64)
        self._tensor = np.array([self._names.index(p.name) for p in every], np.intp)
        self._start = 4 * np.array([piece.start for piece in every], np.uint64)
        self._structs = load().ffi.new("struct n8c_source[]", len(every))
        self._values = field(self._structs, "struct n8c_source", "values", "u8")
        for struct, piece in zip(self._structs, every, strict=True):
            struct.channels, struct.at = piece.channels, piece.at
            struct.height, struct.width = piece.size
            struct.slope = piece.activation.slope
            struct.lo, struct.hi = piece.activation.lo, piece.activation.hi
        first = 0
        for node, struct, each in zip(nodes, structs, pieces, strict=True):
            rows, columns = _out_size(node, each[0].size)
            struct.pixels, struct.columns = rows * columns, columns
            struct.sources, struct.source_count = self._structs + first, len(each)
            first += len(each)

    def point_to(self, values: Mapping[str, Array], index: int) -> None:
        """Read from image `index` of these batches.

        Most arrays are at the addresses of the previous sample.
        """
        for place, name in enumerate(self._names):
            if values[name] is not self._known[place]:
                array = np.ascontiguousarray(values[name], np.float32)
                self._known[place], self._addresses[place] = array, address(array)
        begin = self._addresses + np.uint64(index) * self._element
        self._values[:] = begin[self._tensor] + self._start


def _pieces(
    node: Conv2d, parts: Parts, values: Mapping[str, Array]
) -> Iterator[_Piece]:
    """The pieces that make up one row of a layer."""
    _, each, rows, columns = node.weight.shape
    first = 0  # channel of the part
    for name, activation in parts:
        _, count, *size = nchw(values[name].shape)
        for place, group in enumerate(chosen_groups(node)):
            begin = max(group * each, first)
            end = min((group + 1) * each, first + count)
            if begin < end:
                start = (begin - first) * math.prod(size)
                at = (place * each + begin - group * each) * rows * columns
                yield _Piece(
                    name, start, at, end - begin, (size[0], size[1]), activation
                )
        first += count


def _out_size(node: Conv2d, size: tuple[int, int]) -> tuple[int, int]:
    """Height and width of the output."""
    out = []
    for axis in (0, 1):
        whole = (size[axis] - 1) * node.spread[axis] + 1
        padded = whole + node.pads[axis] + node.pads[axis + 2]
        reach = (node.weight.shape[2 + axis] - 1) * node.dilations[axis] + 1
        out.append(int(padded - reach) // node.strides[axis] + 1)
    return out[0], out[1]


def _words(text: str) -> UInt64Array:
    """The SHA-256 of a text as four words, (4,)."""
    digest = hashlib.sha256(text.encode()).digest()
    return np.frombuffer(digest, "<u8").astype(np.uint64)
