# SPDX-License-Identifier: Apache-2.0
"""What EmulatedModel runs in the ARM process; it needs numpy and cffi only.

It describes the model, then answers each message of inputs with one of outputs, until
its standard input ends. Errors travel as messages, too.
"""

import dataclasses
import os
import sys

from neon8.errors import Neon8Error
from neon8.runtime.model import Model
from neon8.runtime.pipes import Message, receive, send


def main(arguments: list[str]) -> int:
    """Serve one model.  arguments: MODEL.n8 ISA MAX_BYTES, empty for the default."""
    path, isa, most = arguments
    # Whatever prints to standard output must not get between the messages.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        model = Model.open(path, isa=isa or None, max_bytes=int(most) if most else None)
    except Neon8Error as error:
        send(answers, failure(error))
        return 0
    with model, model.session() as session:
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
        "steps": [dataclasses.asdict(step) for step in model.steps],
        "facts": dataclasses.asdict(model.facts),
        "memory": dataclasses.asdict(model.memory),
        "max_bytes": model.max_bytes,
    }
    return Message(facts=facts)


def failure(error: Neon8Error) -> Message:
    """An error as a message."""
    return Message(facts={"error": type(error).__name__, "text": str(error)})
