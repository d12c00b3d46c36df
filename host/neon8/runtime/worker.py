# SPDX-License-Identifier: Apache-2.0
"""What EmulatedModel runs in the ARM process, and the messages between the two.

The worker needs numpy and cffi only. It describes the model, then answers each message
of inputs with one of outputs, until its standard input ends. Errors travel as messages,
too. A message is a length, so many bytes of JSON, and the bytes of its arrays.
"""

import dataclasses
import json
import math
import os
import struct
import sys
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np

from neon8.arrays import Array
from neon8.errors import Neon8Error
from neon8.runtime.model import Model

LENGTH = struct.Struct("<Q")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """facts: what JSON can hold; arrays: by name."""

    facts: dict[str, Any] = dataclasses.field(default_factory=dict)
    arrays: Mapping[str, Array] = dataclasses.field(default_factory=dict)


def send(stream: BinaryIO, message: Message) -> None:
    """Write a message and flush it."""
    arrays = {name: (a.dtype.str, a.shape) for name, a in message.arrays.items()}
    head = json.dumps({"facts": message.facts, "arrays": arrays}).encode()
    stream.write(LENGTH.pack(len(head)))
    stream.write(head)
    stream.writelines(array.tobytes() for array in message.arrays.values())
    stream.flush()


def receive(stream: BinaryIO) -> Message:
    """Read what `send` wrote.  EOFError: the other side has ended."""
    (length,) = LENGTH.unpack(exactly(stream, LENGTH.size))
    head = json.loads(exactly(stream, length))
    arrays: dict[str, Array] = {}
    for name, (dtype, shape) in head["arrays"].items():
        kind = np.dtype(dtype)
        data = bytearray(exactly(stream, kind.itemsize * math.prod(shape)))
        arrays[name] = np.frombuffer(data, kind).reshape(shape)
    return Message(facts=head["facts"], arrays=arrays)


def exactly(stream: BinaryIO, size: int) -> bytes:
    """`size` bytes, or EOFError."""
    data = stream.read(size)
    if len(data) != size:
        raise EOFError
    return data


def main(arguments: list[str]) -> int:
    """Serve one model.  arguments: MODEL.n8 ISA MAX_BYTES SHAPES, empty by default.

    SHAPES: of the inputs by name, as JSON.
    """
    path, isa, most, shapes = arguments
    # Whatever prints to standard output must not get between the messages.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        opened = Model.open(path, isa or None, max_bytes=int(most) if most else None)
        model = opened.at(json.loads(shapes)) if shapes else opened
    except Neon8Error as error:
        send(answers, failure(error))
        return 0
    with opened, model.session() as session:
        send(answers, description(model))
        while True:
            try:
                request = receive(sys.stdin.buffer)
            except EOFError:
                return 0
            try:
                results = session.run(request.arrays)
            except Neon8Error as error:
                send(answers, failure(error))
            else:
                send(answers, Message(arrays=results))


def description(model: Model) -> Message:
    """What EmulatedModel needs to know about the model."""
    facts = {
        "inputs": {name: dataclasses.asdict(i) for name, i in model.inputs.items()},
        "outputs": {name: dataclasses.asdict(o) for name, o in model.outputs.items()},
        "bounds": {
            name: [dataclasses.asdict(limit) for limit in limits]
            for name, limits in model.bounds.items()
        },
        "steps": [dataclasses.asdict(step) for step in model.steps],
        "facts": dataclasses.asdict(model.facts),
        "memory": dataclasses.asdict(model.memory),
        "max_bytes": model.max_bytes,
    }
    return Message(facts=facts)


def failure(error: Neon8Error) -> Message:
    """An error as a message."""
    return Message(facts={"error": type(error).__name__, "text": str(error)})
