# SPDX-License-Identifier: Apache-2.0
"""Arrays for single runs of a network, from an .npy or .npz file and into one."""

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from neon8.arrays import Array
from neon8.data.inputs import of_shapes
from neon8.data.npz import open_npy, open_npz
from neon8.data.samples import Samples, open_samples
from neon8.errors import DataError

Arrays = dict[str, Array]


def open_runs(
    path: Path, shapes: Mapping[str, tuple[int, ...]], dtypes: Mapping[str, str]
) -> Samples:
    """The samples to run a network on, all of them.

    DataError: as open_samples(), or they do not fill its batch, as each has an output.
    """
    samples = open_samples(path, of_shapes(shapes, dtypes))
    if samples.left:
        count = len(samples) * samples.batch + samples.left
        text = f"{count} samples; the network takes {samples.batch} at once"
        raise DataError(f"{path}: {text}, and a multiple of that is needed")
    return samples


def shapes_in(
    path: Path, usual: Mapping[str, tuple[int, ...]]
) -> dict[str, tuple[int, ...]]:
    """The shapes of inputs with open dimensions, as the arrays in the file have them.

    The first dimension, which holds the samples, stays the usual one.  DataError.
    """
    rows = open_npz(path) if path.suffix == ".npz" else {"": open_npy(path)}
    if len(usual) == 1:  # whatever its array is called
        rows = {name: row for name in usual for row in list(rows.values())[:1]}
    shapes = {}
    for name, shape in usual.items():
        have = rows[name].shape if name in rows else shape
        missing = len(shape) - len(have)  # the axis of samples may be
        known = 0 <= missing <= 1 and len(shape)
        shapes[name] = (*shape[:1], *have[1 - missing :]) if known else shape
    return shapes


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
