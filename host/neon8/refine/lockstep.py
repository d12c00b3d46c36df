# SPDX-License-Identifier: Apache-2.0
"""Run an int8 network step by step on many samples at once.

Before a step runs, a visitor sees what it reads on all samples and may replace it, so
that a layer can be chosen by the results of earlier layers, chosen already. The library
runs every step as a network of its own. A value is dropped after its last reader.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from neon8.arrays import Array
from neon8.calibrate.run.threads import usable
from neon8.compile import oracle, writer
from neon8.data.arrays import Arrays
from neon8.ir.program import Op, Program
from neon8.runtime import Model

Values = list[Array]
"""Values of one tensor, N C H W, for each sample."""

Visit = Callable[[Op, Values], Op]
"""Given a step and its first operand, the step to run in its place."""


def in_lockstep(
    program: Program, samples: Sequence[Arrays], visit: Visit, *, steps: int
) -> None:
    """Run the first `steps` steps, each on all samples before the next.

    samples: by input name, as oracle.run() takes them.  ModelError, DataError.
    """
    values: dict[str, Values] = {
        name: [oracle.taken(program.tensors[name], each) for each in samples]
        for name in program.inputs
    }
    for op, gone in zip(program.ops, last_read(program, steps), strict=False):
        chosen = visit(op, values[op.inputs[0]]) if op.inputs else op
        values[op.output] = _run(program, chosen, values, len(samples))
        for name in gone:
            del values[name]


def _run(program: Program, op: Op, values: dict[str, Values], count: int) -> Values:
    """Run one step on all samples."""
    if not op.inputs:  # a constant; the library opens no network without an input
        return [oracle.step(program, op, program.tensors[op.output], [])] * count
    sources = tuple(dict.fromkeys(op.inputs))
    tensors = {name: program.tensors[name] for name in (*sources, op.output)}
    alone = replace(
        program, tensors=tensors, ops=(op,), inputs=sources, outputs=(op.output,)
    )
    out = tensors[op.output]
    results = []
    with (
        Model.from_bytes(writer.dumps(alone), source=op.name) as model,
        model.session(threads=usable()) as session,
    ):
        for at in range(count):
            read = {n: values[n][at].reshape(tensors[n].dims) for n in sources}
            results.append(session.run(read)[op.output].reshape(out.shape))
    return results


def peak(program: Program, steps: int) -> int:
    """The most bytes of one sample's values held at once."""
    now = most = sum(_bytes(program, name) for name in program.inputs)
    for op, gone in zip(program.ops, last_read(program, steps), strict=False):
        now += _bytes(program, op.output)
        most = max(most, now)
        now -= sum(_bytes(program, name) for name in gone)
    return most


def last_read(program: Program, steps: int) -> list[list[str]]:
    """For each of the first `steps` steps, the tensors that none after it reads."""
    last: dict[str, int] = {}
    for at, op in enumerate(program.ops[:steps]):
        last |= dict.fromkeys((*op.inputs, op.output), at)
    gone: list[list[str]] = [[] for _ in range(steps)]
    for name, at in last.items():
        gone[at].append(name)
    return gone


def _bytes(program: Program, name: str) -> int:
    tensor = program.tensors[name]
    return math.prod(tensor.dims) * np.dtype(tensor.dtype).itemsize
