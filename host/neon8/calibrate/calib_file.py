# SPDX-License-Identifier: Apache-2.0
"""An Observation as bytes and back; docs/calibration.md has the layout.

The bytes are canonical: equal observations give equal bytes, and loads() takes no other
bytes for them. It trusts nothing: every number is checked against every other.
"""

import hashlib
from os import PathLike
from pathlib import Path

import numpy as np

from neon8.calibrate.calib_header import header_text
from neon8.calibrate.calib_reader import MAGIC, NOBODY, VERSION, read
from neon8.calibrate.observation import LayerFacts, Observation, TensorObservation
from neon8.calibrate.statistics.channels import ChannelStatistics
from neon8.errors import CalibrationError
from neon8.files import write_atomic


def save(observation: Observation, path: str | PathLike[str]) -> None:
    """Write the file, whole or not at all.  SetupError."""
    write_atomic(path, dumps(observation))


def load(path: str | PathLike[str]) -> Observation:
    """The observation in a file.  CalibrationError names file, place and cause."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        text = f"cannot be read: {error.strerror}"
        raise CalibrationError(f"{path}: {text}") from error
    return loads(data, source=str(path))


def loads(data: bytes, *, source: str) -> Observation:
    """dumps() backwards.  CalibrationError names `source`, place and cause."""
    try:
        observation = read(data)
    except CalibrationError as error:
        raise CalibrationError(f"{source}: {error}") from error
    if dumps(observation) != data:
        text = "is not canonical, so it was not written by neon8"
        raise CalibrationError(f"{source}: {text}")
    return observation


def dumps(observation: Observation) -> bytes:
    """The bytes of `observation`; loads() gives it back."""
    head = header_text(observation)
    index = {digest: i for i, digest in enumerate(observation.samples)}
    parts = [
        MAGIC,
        np.array([VERSION, len(head)], "<u4").tobytes(),
        head,
        bytes.fromhex("".join(observation.samples)),
    ]
    for tensor in observation.tensors.values():
        parts += _tensor(tensor, index)
    for statistics in observation.channels.values():
        parts += _channels(statistics)
    for layer in observation.layers.values():
        parts += _layer(layer)
    body = b"".join(parts)
    return body + hashlib.sha256(body).digest()


def _tensor(tensor: TensorObservation, index: dict[str, int]) -> list[bytes]:
    histogram = tensor.histogram
    marks: list[int] = []
    for extreme in (tensor.smallest, tensor.largest):
        if extreme is None:
            marks += (NOBODY, 0)
        else:
            marks += (index[extreme.sample], extreme.channel)
    return [
        np.array(histogram.exponent, "<i4").tobytes(),
        np.array([histogram.minimum, histogram.maximum], "<f4").tobytes(),
        np.array(marks, "<u4").tobytes(),
        np.array([histogram.zeros, histogram.nans, histogram.infs], "<u8").tobytes(),
        histogram.positive.astype("<u8").tobytes(),
        histogram.negative.astype("<u8").tobytes(),
    ]


def _channels(statistics: ChannelStatistics) -> list[bytes]:
    return [
        statistics.count.astype("<i8").tobytes(),
        statistics.minimum.astype("<f4").tobytes(),
        statistics.maximum.astype("<f4").tobytes(),
        statistics.total.astype("<u8").tobytes(),
        statistics.squares.astype("<u8").tobytes(),
    ]


def _layer(layer: LayerFacts) -> list[bytes]:
    patches = layer.patches
    limits = [patches.activation.lo, patches.activation.hi, patches.activation.slope]
    return [
        layer.weight_absmax.astype("<f4").tobytes(),
        layer.bias.astype("<f4").tobytes(),
        np.array(limits, "<f8").tobytes(),
        patches.weights.astype("<f4").tobytes(),
        patches.bias.astype("<f4").tobytes(),
        patches.groups.astype("<u4").tobytes(),
        patches.keys.astype("<u8").tobytes(),
        patches.rows.astype("<f4").tobytes(),
    ]
