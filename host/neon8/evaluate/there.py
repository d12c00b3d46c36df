# SPDX-License-Identifier: Apache-2.0
"""Whether a target gives the bytes of this PC, on which everything is measured."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

from neon8.compile import writer
from neon8.data.arrays import Arrays
from neon8.evaluate.runner import as_float32
from neon8.ir.program import Program
from neon8.runtime.board.board import Board, link_to
from neon8.runtime.board.model import BoardModel
from neon8.runtime.model import Model
from neon8.settings.stages import TargetSettings

Check = Callable[[bytes, Sequence[Arrays], str], None]
"""Runs a .n8 file on samples, here and there.  ModelError names what differs."""


@contextmanager
def checks(where: TargetSettings) -> Iterator[Check]:
    """Yield what compares files on a target with this PC.  SetupError: in its way.

    A board is connected once, and keeps the files until the end.
    """
    with Board(link_to(where.target, where.core)) as board:

        def check(content: bytes, samples: Sequence[Arrays], source: str) -> None:
            here = Model.from_bytes(content, source=source)
            most = where.max_bytes
            with (
                BoardModel(here, board, content, where.isa, max_bytes=most) as model,
                ThreadPoolExecutor(model.ahead) as pool,
            ):
                list(pool.map(model.run, map(_taken, samples)))

        yield check


def _taken(sample: Arrays) -> Arrays:
    return {name: as_float32(array) for name, array in sample.items()}


def with_all_tensors(program: Program) -> bytes:
    """The .n8 file of a program that gives every tensor that a step makes."""
    made = dict.fromkeys((*(op.output for op in program.ops), *program.outputs))
    return writer.dumps(replace(program, outputs=tuple(made)))
