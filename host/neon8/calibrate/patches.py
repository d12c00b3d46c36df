# SPDX-License-Identifier: Apache-2.0
"""A few inputs of each layer, so that a threshold can be judged by the layer's output.

Of every sample, two output pixels of a convolution are drawn by a hash of sample and
layer, and what the layer reads there is a row with a 64-bit key from the same hash. The
64 rows with the smallest keys are kept: a sample drawn uniformly from all, whatever
their order and however they were divided.
"""

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from neon8.calibrate.observe import activated
from neon8.graph.graph import Activation, Conv2d

ROWS = 64
CHANNELS = 16
SPARE = 8
"""Rows more than are needed before those with the largest keys are dropped."""

Array = npt.NDArray[np.generic]
Float32Array = npt.NDArray[np.float32]
Float64Array = npt.NDArray[np.float64]
Int64Array = npt.NDArray[np.int64]
KeyArray = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Patches:
    """Of one layer.  n rows, C chosen output channels, from G groups, K taps.

    keys: (n,), ascending.  rows: (n, G, K), what the chosen groups read, real 0 where
    the layer pads.  weights: (C, K) and bias: (C,), float as in the network.  groups:
    (C,), the index into G of what a channel reads.
    """

    keys: KeyArray
    rows: Float32Array
    weights: Float32Array
    bias: Float32Array
    groups: Int64Array
    activation: Activation


def empty(node: Conv2d) -> Patches:
    """Of a layer before the first sample; the channels are evenly chosen."""
    channels, groups = _chosen(node)
    weights = node.weight[channels].reshape(len(channels), -1)
    return Patches(
        keys=np.zeros(0, np.uint64),
        rows=np.zeros((0, int(groups[-1]) + 1, weights.shape[1]), np.float32),
        weights=np.ascontiguousarray(weights, np.float32),
        bias=np.ascontiguousarray(node.bias[channels], np.float32),
        groups=groups,
        activation=node.activation,
    )


class Sampler:
    """Takes in samples of one layer and keeps the rows that no later one can oust."""

    def __init__(self, node: Conv2d) -> None:
        self._node = node
        self._empty = empty(node)
        self._kept: list[tuple[int, bytes]] = []
        self._largest = 1 << 64
        channels, _ = _chosen(node)
        real = np.unique(channels // (len(node.weight) // node.groups))
        self._groups = None if node.groups == 1 else real

    def wants(self, *, digest: str) -> bool:
        """False if add() of this sample would change nothing."""
        return min(self._numbers(digest)[2:]) <= self._largest

    def add(self, values: Array, *, digest: str) -> None:
        """One sample more.

        values: the layer's input, (1, I) or (1, I, H, W), float32.  digest: of the
        sample.  A row with NaN or infinity is left out.
        """
        self.add_parts([(values, Activation())], digest=digest)

    def add_parts(
        self, parts: Sequence[tuple[Array, Activation]], *, digest: str
    ) -> None:
        """The same, of an input whose channels come from several tensors.

        parts: in order of the channels, what is read after the activation.  Only the
        few values that are kept go through it.
        """
        *numbers, first, second = self._numbers(digest)
        images = [
            (values.reshape(*values.shape, *(1,) * (4 - values.ndim))[0], activation)
            for values, activation in parts
        ]
        shape = images[0][0].shape
        out = [_out_size(self._node, shape[1 + axis], axis) for axis in (0, 1)]
        pixels = _distinct(numbers, out[0] * out[1])
        for pixel, key in zip(pixels, (first, second), strict=False):
            if key <= self._largest:
                row, column = divmod(pixel, out[1])
                windows = [
                    _window(self._node, image, activation, row, column)
                    for image, activation in images
                ]
                window = windows[0] if len(windows) == 1 else np.concatenate(windows)
                if np.isfinite(window).all():
                    self._kept.append((key, self._row(window)))
        if len(self._kept) >= ROWS + SPARE:
            self._cut()

    def result(self) -> Patches:
        """Of all samples so far."""
        self._cut()
        shape = (len(self._kept), *self._empty.rows.shape[1:])
        rows = b"".join(row for _, row in self._kept)
        return replace(
            self._empty,
            keys=np.array([key for key, _ in self._kept], np.uint64),
            rows=np.frombuffer(rows, np.float32).reshape(shape),
        )

    def _numbers(self, digest: str) -> tuple[int, ...]:
        """Two to choose pixels by, then the two keys."""
        text = f"{digest}\0{self._node.name}".encode()
        return struct.unpack("<4Q", hashlib.sha256(text).digest())

    def _row(self, window: Array) -> bytes:
        if self._groups is None:
            return window.tobytes()
        apart = window.reshape(self._node.groups, -1)
        return apart[self._groups].tobytes()

    def _cut(self) -> None:
        self._kept = sorted(self._kept)[:ROWS]
        if len(self._kept) == ROWS:
            self._largest = self._kept[-1][0]


def merge(first: Patches, second: Patches) -> Patches:
    """Of the samples of both, which are of the same layer."""
    return _smallest(
        replace(
            first,
            keys=np.concatenate([first.keys, second.keys]),
            rows=np.concatenate([first.rows, second.rows]),
        )
    )


def outputs(patches: Patches, rows: Float64Array | None = None) -> Float64Array:
    """(n, C) what the layer makes of its rows, activation included, in double.

    rows: others than those that were observed, of the same shape.
    """
    taken = patches.rows.astype(np.float64) if rows is None else rows
    result = np.empty((len(taken), len(patches.groups)))
    for group in range(taken.shape[1]):
        own = patches.groups == group
        result[:, own] = taken[:, group] @ patches.weights[own].astype(np.float64).T
    result += patches.bias
    activation = patches.activation
    if activation.slope != 1.0:
        result = np.where(result < 0, result * activation.slope, result)
    return np.clip(result, activation.lo, activation.hi)


def _chosen(node: Conv2d) -> tuple[Int64Array, Int64Array]:
    """Output channels, and for each which of the chosen groups it belongs to."""
    out = len(node.weight)
    channels = np.arange(min(out, CHANNELS)) * out // min(out, CHANNELS)
    _, groups = np.unique(channels // (out // node.groups), return_inverse=True)
    return channels, groups.reshape(-1).astype(np.int64)


def _out_size(node: Conv2d, size: int, axis: int) -> int:
    padded = size + node.pads[axis] + node.pads[axis + 2]
    reach = (node.weight.shape[2 + axis] - 1) * node.dilations[axis] + 1
    return int(padded - reach) // node.strides[axis] + 1


def _distinct(numbers: Sequence[int], count: int) -> list[int]:
    """Two of `count` pixels, or the only one there is."""
    first, second = (number % count for number in numbers)
    if count == 1:
        return [first]
    return [first, (second + 1) % count if second == first else second]


def _window(
    node: Conv2d, image: Array, activation: Activation, y: int, x: int
) -> Array:
    """(I, kh, kw): what lies under output pixel (y, x) of image, (I, H, W)."""
    inner: list[slice] = []
    pads: list[tuple[int, int]] = [(0, 0)]
    for axis, at in ((0, y), (1, x)):
        size, step = image.shape[1 + axis], node.dilations[axis]
        start = at * node.strides[axis] - node.pads[axis]
        count = node.weight.shape[2 + axis]
        before = min(max(-(start // step), 0), count)
        after = min(max(count - -((start - size) // step), 0), count - before)
        first = start + before * step
        inner.append(slice(first, first + (count - before - after) * step, step))
        pads.append((before, after))
    values = np.asarray(image[:, inner[0], inner[1]], dtype=np.float32)
    window = activated(values, activation)
    return window if not any(map(any, pads)) else np.pad(window, pads)


def _smallest(patches: Patches) -> Patches:
    """At most ROWS rows by their keys; by their bytes where keys are equal."""
    order = sorted(
        range(len(patches.keys)),
        key=lambda i: (int(patches.keys[i]), patches.rows[i].tobytes()),
    )[:ROWS]
    return replace(patches, keys=patches.keys[order], rows=patches.rows[order])
