# SPDX-License-Identifier: Apache-2.0
"""Whether a target gives the bytes of this PC, on which everything is measured."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from neon8.compile import writer
from neon8.data.arrays import Arrays
from neon8.evaluate.runner import as_float32
from neon8.ir.program import Program
from neon8.machines import is_board
from neon8.runtime.board.board import Board, link_to
from neon8.runtime.board.model import BoardModel, same_bytes
from neon8.runtime.emulate import EmulatedModel
from neon8.runtime.model import Model
from neon8.settings.stages import TargetSettings

Check = Callable[[bytes, Sequence[Arrays], str], None]
"""Runs a .n8 file on samples, here and there.  ModelError names what differs."""


@contextmanager
def checks(where: TargetSettings) -> Iterator[Check]:
    """Yield what compares files on a target with this PC.  SetupError: in its way.

    A board is connected once, and keeps the files until the end.
    """
    if is_board(where.target):
        with Board(link_to(where.target, where.core)) as board:
            yield lambda *given: _on_board(board, where, *given)
    else:
        yield lambda *given: _emulated(where, *given)


def _on_board(
    board: Board,
    where: TargetSettings,
    content: bytes,
    samples: Sequence[Arrays],
    source: str,
) -> None:
    here = Model.from_bytes(content, source=source)
    with BoardModel(
        here, board, content, where.isa, max_bytes=where.max_bytes
    ) as model:
        session = model.session()
        try:
            with ThreadPoolExecutor(model.ahead) as pool:
                list(pool.map(lambda each: session.run(_taken(each)), samples))
        finally:
            session.close()


def _emulated(
    where: TargetSettings, content: bytes, samples: Sequence[Arrays], source: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.n8"
        path.write_bytes(content)
        emulated = EmulatedModel(
            path, where.target, where.core, where.isa, max_bytes=where.max_bytes
        )
        with (
            emulated as there,
            Model.from_bytes(content, source=source) as here,
            here.session() as session,
        ):
            for each in samples:
                found = there.run(_taken(each))
                for name, wanted in session.run(_taken(each)).items():
                    what = f"{source}: output {name!r}"
                    same_bytes(what, found[name], wanted, where.target)


def _taken(sample: Arrays) -> Arrays:
    return {name: as_float32(array) for name, array in sample.items()}


def with_all_tensors(program: Program) -> bytes:
    """The .n8 file of a program that gives every tensor that a step makes."""
    made = dict.fromkeys((*(op.output for op in program.ops), *program.outputs))
    return writer.dumps(replace(program, outputs=tuple(made)))
