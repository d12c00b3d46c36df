# SPDX-License-Identifier: Apache-2.0
"""Arrays for `neon8 run`: what the network takes, as it takes it."""

from pathlib import Path

import numpy as np

from neon8.data.npz import open_npy, open_npz, read
from neon8.errors import DataError
from neon8.evaluate.runner import Array, Arrays


def load_arrays(path: Path, inputs: list[str]) -> Arrays:
    """The arrays of an .npy file, or of an .npz with one for each input.

    DataError: unreadable, pickled, or not the inputs of the network.
    """
    found = open_npz(path) if path.suffix == ".npz" else {inputs[0]: open_npy(path)}
    if set(found) != set(inputs):
        raise DataError(
            f"{path}: has {sorted(found)}, the network takes {sorted(inputs)}; "
            "several inputs are given as an .npz with one array for each"
        )
    return {name: read(rows) for name, rows in found.items()}


def split(
    path: Path,
    arrays: Arrays,
    shapes: dict[str, tuple[int, ...]],
    dtypes: dict[str, str],
) -> list[Arrays]:
    """Views of the arrays, one dict for each run.

    An array holds one run, with or without a batch axis of 1, or many along axis 0.
    DataError: another shape or type, or inputs for different numbers of runs.
    """
    stacked = {
        name: _stacked(f"{path}: input {name!r}", array, shapes[name], dtypes[name])
        for name, array in arrays.items()
    }
    counts = {name: len(array) // shapes[name][0] for name, array in stacked.items()}
    if len(set(counts.values())) > 1:
        raise DataError(f"{path}: inputs for different numbers of runs: {counts}")
    return [
        {
            name: array[i * shapes[name][0] : (i + 1) * shapes[name][0]]
            for name, array in stacked.items()
        }
        for i in range(next(iter(counts.values())))
    ]


def _stacked(what: str, array: Array, shape: tuple[int, ...], dtype: str) -> Array:
    """The array with its first axis counting samples."""
    if array.shape == shape[1:] and shape[0] == 1:
        array = array[np.newaxis]
    fits = array.ndim == len(shape) and array.shape[1:] == shape[1:]
    if not fits or len(array) == 0 or len(array) % shape[0]:
        raise DataError(
            f"{what}: shape {list(array.shape)}, expected {list(shape)}, or more of "
            "them along the first axis"
        )
    real = dtype == "float32" and np.issubdtype(array.dtype, np.floating)
    if array.dtype != dtype and not real:
        raise DataError(f"{what}: {array.dtype}, expected {dtype}")
    return array


def taken(path: Path, batch: Arrays, dtypes: dict[str, str]) -> Arrays:
    """One batch in memory and in the model's types.  DataError: NaN or infinity."""
    with np.errstate(over="ignore"):  # becomes infinite and is refused as such
        ready = {name: np.asarray(array, dtypes[name]) for name, array in batch.items()}
    for name, array in ready.items():
        if not np.isfinite(array).all():
            raise DataError(f"{path}: input {name!r}: NaN or infinity in the data")
    return ready
