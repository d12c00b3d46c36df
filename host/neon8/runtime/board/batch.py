# SPDX-License-Identifier: Apache-2.0
"""Batches of samples for neon8-runner, as runtime/runner/runner.h describes them."""

import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence

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
    if len(data) < HEAD.size or HEAD.unpack_from(data) != (MAGIC, count):
        raise DamagedError("its head is wrong")
    at, found = HEAD.size, []
    try:
        for _ in range(count):
            begin = at
            (size,) = SIZE.unpack_from(data, at)
            at += SIZE.size
            shapes = {}
            for name, info in outputs.items():
                shapes[name] = DIMS.unpack_from(data, at)[: len(info.shape)]
                at += DIMS.size
            arrays, end = {}, at + size
            for name, info in outputs.items():
                length = int(np.prod(shapes[name], dtype=np.int64))
                array = np.frombuffer(data, info.dtype, length, at)
                arrays[name] = array.reshape(shapes[name]).copy()
                at += array.nbytes
            (checksum,) = CHECKSUM.unpack_from(data, at)
            if at != end or checksum != zlib.crc32(data[begin:at]):
                raise DamagedError("a checksum is wrong")
            at += CHECKSUM.size
            found.append(arrays)
    except (struct.error, ValueError) as error:
        raise DamagedError("it ends early") from error
    if at != len(data):
        raise DamagedError("it goes on after its end")
    return found
