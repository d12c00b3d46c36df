# SPDX-License-Identifier: Apache-2.0
"""Arrays for single runs of a network, from an .npy or .npz file and into one."""

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from neon8.data.npz import Rows, open_npy, open_npz, read
from neon8.errors import DataError

Array = npt.NDArray[np.generic]
Arrays = dict[str, Array]


def load_runs(
    path: Path, shapes: Mapping[str, tuple[int, ...]], dtypes: Mapping[str, str]
) -> list[Arrays]:
    """The inputs of each run: name -> view of an array.

    An .npy holds the only input; an .npz one array for each, by name. An array is one
    run, with or without a batch axis of 1, or many along axis 0. DataError: unreadable,
    another shape or type, or inputs for different numbers of runs; what does not fit is
    not read.
    """
    zipped = path.suffix == ".npz"
    found = open_npz(path) if zipped else {next(iter(shapes)): open_npy(path)}
    if set(found) != set(shapes):
        raise DataError(
            f"{path}: has {sorted(found)}, the network takes {sorted(shapes)}; "
            "several inputs are given as an .npz with one array for each"
        )
    counts = {
        name: _runs(f"{path}: input {name!r}", rows, shapes[name], dtypes[name])
        for name, rows in found.items()
    }
    count = next(iter(counts.values()))
    if set(counts.values()) != {count}:
        raise DataError(f"{path}: inputs for different numbers of runs: {counts}")
    runs = {
        name: read(rows).reshape(count, *shapes[name]) for name, rows in found.items()
    }
    return [{name: array[i] for name, array in runs.items()} for i in range(count)]


def _runs(what: str, rows: Rows, shape: tuple[int, ...], dtype: str) -> int:
    """How many runs an array is for."""
    found = rows.shape
    if shape[0] == 1 and found == shape[1:]:
        found = shape
    alike = len(found) == len(shape) and found[1:] == shape[1:]
    if not alike or found[0] == 0 or found[0] % shape[0]:
        raise DataError(
            f"{what}: shape {list(rows.shape)}, expected {list(shape)}, or more of "
            "them along the first axis"
        )
    real = dtype == "float32" and np.issubdtype(rows.dtype, np.floating)
    if rows.dtype != dtype and not real:
        raise DataError(f"{what}: {rows.dtype}, expected {dtype}")
    return found[0] // shape[0]


def converted(path: Path, run: Arrays, dtypes: Mapping[str, str]) -> Arrays:
    """One run in memory and in the model's types.  DataError: NaN or infinity."""
    with np.errstate(over="ignore", invalid="ignore"):  # is refused as not finite
        ready = {name: np.asarray(array, dtypes[name]) for name, array in run.items()}
    for name, array in ready.items():
        if not np.isfinite(array).all():
            raise DataError(f"{path}: input {name!r}: NaN or infinity in the data")
    return ready


def to_bytes(path: Path, arrays: Arrays) -> bytes:
    """The arrays as an .npy file, or as an .npz file where the name says so.

    DataError: several arrays do not go into one .npy file.
    """
    buffer = io.BytesIO()
    if path.suffix == ".npz":
        # Not np.savez: its own arguments are names that an output may have.
        with zipfile.ZipFile(buffer, "w") as archive:
            for name, array in arrays.items():
                member = zipfile.ZipInfo(f"{name}.npy")
                with archive.open(member, "w", force_zip64=True) as file:
                    np.lib.format.write_array(file, array, allow_pickle=False)
    elif len(arrays) == 1:
        np.save(buffer, next(iter(arrays.values())), allow_pickle=False)
    else:
        raise DataError(f"{path}: the network has {len(arrays)} outputs: write an .npz")
    return buffer.getvalue()
