# SPDX-License-Identifier: Apache-2.0
"""Messages between EmulatedModel and its worker: length-prefixed JSON and arrays."""

import io
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np

from neon8.runtime.arrays import Array

LENGTH = struct.Struct("<Q")


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """facts: what JSON can hold; arrays: by name."""

    facts: dict[str, Any] = field(default_factory=dict)
    arrays: Mapping[str, Array] = field(default_factory=dict)


def send(stream: BinaryIO, message: Message) -> None:
    """Write a message and flush it."""
    head = {"facts": message.facts, "arrays": list(message.arrays)}
    blocks = [json.dumps(head).encode()]
    for array in message.arrays.values():
        block = io.BytesIO()
        np.lib.format.write_array(block, array, allow_pickle=False)
        blocks.append(block.getvalue())
    for data in blocks:
        stream.write(LENGTH.pack(len(data)))
        stream.write(data)
    stream.flush()


def receive(stream: BinaryIO) -> Message:
    """Read what `send` wrote.  EOFError: the other side has ended."""
    head = json.loads(block_of(stream))
    arrays = {name: array_of(block_of(stream)) for name in head["arrays"]}
    return Message(facts=head["facts"], arrays=arrays)


def block_of(stream: BinaryIO) -> bytes:
    """One length-prefixed block."""
    (length,) = LENGTH.unpack(exactly(stream, LENGTH.size))
    return exactly(stream, length)


def array_of(data: bytes) -> Array:
    """An array in the .npy format."""
    array: Array = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    return array


def exactly(stream: BinaryIO, size: int) -> bytes:
    """`size` bytes, or EOFError."""
    data = stream.read(size)
    if len(data) != size:
        raise EOFError
    return data
