# SPDX-License-Identifier: Apache-2.0
"""Draws the rows of Patches from samples, one sample at a time."""

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from neon8.calibrate.native_library import address
from neon8.calibrate.native_windows import Window, Windows
from neon8.calibrate.patches import ROWS, Patches, chosen_groups, empty, smallest
from neon8.graph.graph import Activation, Conv2d

PIXELS = 2
"""Drawn of each sample and layer, if it has so many."""
SPARE = 16
"""Rows more than are needed before those with the largest keys are dropped."""

Array = npt.NDArray[np.generic]
Int64Array = npt.NDArray[np.int64]
UInt64Array = npt.NDArray[np.uint64]
Parts = Sequence[tuple[str, Activation]]


class Sampler:
    """Takes in samples and keeps the rows that no later one can oust.

    nodes: the L layers.  parts: of each input of theirs, the tensors that its channels
    come from, one after another, and the activation that follows each.
    """

    def __init__(self, nodes: Sequence[Conv2d], parts: Mapping[str, Parts]) -> None:
        self._nodes, self._parts = tuple(nodes), parts
        self._constants = np.array([_words(node.name) for node in nodes], np.uint64)
        self._layers = [_Layer(node) for node in nodes]
        self._largest = np.full((len(nodes), 1), np.iinfo(np.uint64).max, np.uint64)
        self._places = np.array([layer.free for layer in self._layers], np.uint64)
        self._reader: _Reader | None = None

    def add(self, values: Mapping[str, Array], *, digest: str) -> None:
        """One sample more.

        values: of all parts, (1, C) or (1, C, H, W), float32, of the same shapes each
        time.  digest: of the sample.  A row with NaN or infinity is left
        out.
        """
        if not self._nodes:
            return
        if self._reader is None:
            self._reader = _Reader(self._nodes, self._parts, values)
        numbers = _mixed(self._constants ^ np.array(_words(digest), np.uint64))
        keys = numbers[:, PIXELS:]
        wanted = (keys <= self._largest) & self._reader.there
        if not wanted.any():
            return
        places = np.where(wanted, self._places, np.uint64(0))
        wanted &= self._reader.read(values, numbers[:, :PIXELS], places)
        for index in np.flatnonzero(wanted.any(axis=1)).tolist():
            layer = self._layers[index]
            layer.keep(wanted[index].tolist(), keys[index].tolist())
            self._places[index], self._largest[index] = layer.free, layer.largest

    def result(self) -> dict[str, Patches]:
        """Of all samples so far, by the layer's name."""
        pairs = zip(self._nodes, self._layers, strict=True)
        return {node.name: layer.result() for node, layer in pairs}


class _Layer:
    """The rows of one layer.

    free: PIXELS addresses, of rows that may be written.  largest: rows with larger keys
    are of no use.
    """

    def __init__(self, node: Conv2d) -> None:
        self._empty = empty(node)
        size = math.prod(self._empty.rows.shape[1:])
        self._rows = np.empty((ROWS + SPARE, size), np.float32)
        self._start, self._step = address(self._rows), self._rows.strides[0]
        self._kept: list[tuple[int, int]] = []  # key and number of each row
        self._unused = list(range(ROWS + SPARE))
        self.largest: int = np.iinfo(np.uint64).max
        self.free = self._addresses()

    def keep(self, which: Sequence[bool], keys: Sequence[int]) -> None:
        """Keep those of the free rows that were written, with their keys."""
        for pixel in reversed(range(PIXELS)):
            if which[pixel]:
                self._kept.append((keys[pixel], self._unused.pop(pixel)))
        if len(self._unused) < PIXELS:
            self._sort()
            self._unused += [number for _, number in self._kept[ROWS:]]
            del self._kept[ROWS:]
            self.largest = self._kept[-1][0]
        self.free = self._addresses()

    def result(self) -> Patches:
        numbers = [number for _, number in self._kept]
        return smallest(
            replace(
                self._empty,
                keys=np.array([key for key, _ in self._kept], np.uint64),
                rows=self._rows[numbers].reshape(-1, *self._empty.rows.shape[1:]),
            )
        )

    def _sort(self) -> None:
        self._kept.sort()
        if len({key for key, _ in self._kept}) < len(self._kept):  # hardly ever
            self._kept.sort(key=lambda row: (row[0], self._rows[row[1]].tobytes()))

    def _addresses(self) -> list[int]:
        return [self._start + self._step * n for n in self._unused[:PIXELS]]


@dataclass(frozen=True, slots=True)
class _Piece:
    """Channels of one tensor that stand together in a row of a layer.

    start: of the first value in the tensor, at: its place in the row, both in bytes.
    """

    name: str
    start: int
    at: int
    window: Window


class _Reader:
    """Reads rows from tensors of the shapes of `values`.

    there: (L, PIXELS), false where a layer's output has not so many pixels.
    """

    def __init__(
        self,
        nodes: Sequence[Conv2d],
        parts: Mapping[str, Parts],
        values: Mapping[str, Array],
    ) -> None:
        pieces = [
            (index, pixel, piece)
            for index, node in enumerate(nodes)
            for pixel in range(PIXELS)
            for piece in _pieces(node, parts[node.inputs[0]], values)
        ]
        self._names = tuple(dict.fromkeys(piece.name for *_, piece in pieces))
        self._known: list[Array | None] = [None] * len(self._names)
        self._addresses = np.zeros(len(self._names), np.uint64)
        self._windows = Windows([piece.window for *_, piece in pieces])
        self._layer = np.array([index for index, *_ in pieces])
        self._pixel = np.array([pixel for _, pixel, _ in pieces])
        self._source = np.array([self._names.index(p.name) for *_, p in pieces])
        self._start = np.array([piece.start for *_, piece in pieces], np.uint64)
        self._at = np.array([piece.at for *_, piece in pieces], np.uint64)
        order = PIXELS * self._layer + self._pixel
        self._first = np.flatnonzero(np.diff(order, prepend=-1))
        sizes = [_size(values[parts[node.inputs[0]][0][0]]) for node in nodes]
        out = [_out_size(n, s) for n, s in zip(nodes, sizes, strict=True)]
        self._count = np.array([[rows * columns] for rows, columns in out], np.uint64)
        self._columns = np.array([[columns] for _, columns in out])
        self._strides = np.array([node.strides for node in nodes])
        self._pads = np.array([node.pads[:2] for node in nodes])
        self.there = self._count > np.arange(PIXELS, dtype=np.uint64)

    def read(
        self, values: Mapping[str, Array], numbers: UInt64Array, places: UInt64Array
    ) -> npt.NDArray[np.bool_]:
        """Read a row for each layer and pixel to its place, an address; 0: do not.

        numbers: (L, PIXELS) to draw the pixels by.  Result: which rows are finite.
        """
        for index, name in enumerate(self._names):
            if values[name] is not self._known[index]:
                array = np.ascontiguousarray(values[name], np.float32)
                self._known[index], self._addresses[index] = array, address(array)
        pixels = numbers % self._count
        again = pixels[:, 1] == pixels[:, 0]
        pixels[:, 1] = (pixels[:, 1] + again) % self._count[:, 0]
        rows, columns = np.divmod(pixels.astype(np.int64), self._columns)
        tops = rows * self._strides[:, :1] - self._pads[:, :1]
        lefts = columns * self._strides[:, 1:] - self._pads[:, 1:]
        every = self._layer, self._pixel
        self._windows.values[:] = self._addresses[self._source] + self._start
        self._windows.top[:], self._windows.left[:] = tops[every], lefts[every]
        out = places[every]
        self._windows.out[:] = np.where(out == 0, out, out + self._at)
        finite = np.logical_and.reduceat(self._windows.gather(), self._first)
        return finite.reshape(places.shape)


def _pieces(
    node: Conv2d, parts: Parts, values: Mapping[str, Array]
) -> Iterator[_Piece]:
    """Of one row of a layer."""
    _, each, rows, columns = node.weight.shape
    first = 0  # channel of the part
    for name, activation in parts:
        size, count = _size(values[name]), values[name].shape[1]
        for place, group in enumerate(chosen_groups(node)):
            begin = max(group * each, first)
            end = min((group + 1) * each, first + count)
            if begin >= end:
                continue
            window = Window(
                channels=end - begin,
                size=size,
                kernel=(rows, columns),
                dilations=node.dilations,
                activation=activation,
            )
            start = (begin - first) * math.prod(size)
            at = (place * each + begin - group * each) * rows * columns
            yield _Piece(name, 4 * start, 4 * at, window)
        first += count


def _size(values: Array) -> tuple[int, int]:
    """Height and width."""
    _, _, height, width = (*values.shape, 1, 1)[:4]
    return height, width


def _out_size(node: Conv2d, size: tuple[int, int]) -> tuple[int, int]:
    """Height and width of the output."""
    out = []
    for axis in (0, 1):
        padded = size[axis] + node.pads[axis] + node.pads[axis + 2]
        reach = (node.weight.shape[2 + axis] - 1) * node.dilations[axis] + 1
        out.append(int(padded - reach) // node.strides[axis] + 1)
    return out[0], out[1]


def _words(text: str) -> tuple[int, ...]:
    """SHA-256 as 2 * PIXELS numbers: for the pixels, then for the keys."""
    digest = hashlib.sha256(text.encode()).digest()
    return tuple(np.frombuffer(digest, "<u8").tolist())


def _mixed(numbers: UInt64Array) -> UInt64Array:
    """The finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014)."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: UInt64Array = numbers ^ (numbers >> np.uint64(31))
    return mixed
