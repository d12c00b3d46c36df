# SPDX-License-Identifier: Apache-2.0
"""Batches of samples for neon8-runner, as runtime/runner/runner.h describes them."""

import io
import math
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import BinaryIO

import numpy as np

from neon8.arrays import Array
from neon8.runtime.arrays import TensorInfo

MAGIC = b"N8BATCH1"
RANK = 8
HEAD = struct.Struct("<8sI")
SIZE = struct.Struct("<Q")
DIMS = struct.Struct(f"<{RANK}i")
CHECKSUM = struct.Struct("<I")


class DamagedError(Exception):
    """A batch that is none."""


def record(arrays: Iterable[Array]) -> bytes:
    """A sample: its arrays in the order of the model's inputs."""
    given = list(arrays)
    values = [np.ascontiguousarray(array).tobytes() for array in given]
    dims = [
        DIMS.pack(*array.shape, *[1] * (RANK - array.ndim))
        for array in map(np.asarray, given)
    ]
    body = b"".join([SIZE.pack(sum(map(len, values))), *dims, *values])
    return body + CHECKSUM.pack(zlib.crc32(body))


def batch(records: Sequence[bytes]) -> bytes:
    """Samples one after another."""
    return b"".join([HEAD.pack(MAGIC, len(records)), *records])


def results(
    data: bytes, count: int, outputs: Mapping[str, TensorInfo]
) -> list[dict[str, Array]]:
    """The outputs of so many samples.  DamagedError."""
    stream = io.BytesIO(data)
    check_head(stream, count)
    found = [read_sample(stream, outputs) for _ in range(count)]
    if stream.read(1):
        raise DamagedError("it goes on after its end")
    return found


def check_head(stream: BinaryIO, count: int) -> None:
    """Read what comes before the samples.  DamagedError: it is of something else."""
    if exactly(stream, HEAD.size) != HEAD.pack(MAGIC, count):
        raise DamagedError("its head is wrong")


def read_sample(
    stream: BinaryIO, outputs: Mapping[str, TensorInfo]
) -> dict[str, Array]:
    """The outputs of the next sample.  DamagedError."""
    head = exactly(stream, SIZE.size + len(outputs) * DIMS.size)
    (size,) = SIZE.unpack_from(head)
    shapes = {
        name: DIMS.unpack_from(head, SIZE.size + i * DIMS.size)[: len(info.shape)]
        for i, (name, info) in enumerate(outputs.items())
    }
    kinds = {name: np.dtype(info.dtype) for name, info in outputs.items()}
    counts = {name: math.prod(shape) for name, shape in shapes.items()}
    if size != sum(counts[name] * kinds[name].itemsize for name in outputs):
        raise DamagedError("its sizes are not those of its dimensions")
    body = exactly(stream, size)
    (checksum,) = CHECKSUM.unpack(exactly(stream, CHECKSUM.size))
    if checksum != zlib.crc32(body, zlib.crc32(head)):
        raise DamagedError("a checksum is wrong")
    arrays, at = {}, 0
    for name, kind in kinds.items():
        array = np.frombuffer(body, kind, counts[name], at)
        arrays[name] = array.reshape(shapes[name]).copy()
        at += array.nbytes
    return arrays


def exactly(stream: BinaryIO, size: int) -> bytes:
    """`size` bytes.  DamagedError: there are fewer."""
    data = stream.read(size)
    if len(data) != size:
        raise DamagedError("it ends early")
    return data
