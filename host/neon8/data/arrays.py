# SPDX-License-Identifier: Apache-2.0
"""Arrays for single runs of a network, from an .npy or .npz file and into one."""

import io
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from neon8.arrays import Array
from neon8.data.inputs import Input
from neon8.data.samples import Samples, open_samples
from neon8.data.sources import has_images
from neon8.errors import DataError
from neon8.settings.stages import DEFAULTS, DataSettings, Settings

Arrays = dict[str, Array]


def open_runs(
    path: Path, inputs: Mapping[str, Input], given: DataSettings = DEFAULTS.data
) -> Samples:
    """The samples to run a network on.

    Images are resized where the network does not take their size, unless preprocessing
    says otherwise.
    DataError: as open_samples(), or they do not fill its batch, as each has an output.
    """
    if given.preprocess is None and has_images(path):
        from neon8.data.preprocess import Nearest  # noqa: PLC0415 - loads Pillow

        gray = all(each.gray for each in inputs.values())
        nearest = Nearest(color="gray" if gray else "rgb", where=str(path))
        given = replace(given, preprocess=nearest)
    samples = open_samples(path, inputs, settings=Settings(data=given))
    if samples.left:
        count = len(samples) * samples.batch + samples.left
        text = f"{count} samples; the network takes {samples.batch} at once"
        raise DataError(f"{path}: {text}, and a multiple of that is needed")
    return samples


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
