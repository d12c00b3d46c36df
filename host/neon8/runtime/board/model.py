# SPDX-License-Identifier: Apache-2.0
"""BoardModel: a .n8 file run by a board, in batches, and beside it by this PC.

What comes back must have the bytes of this PC, or the run fails.
"""

import threading
import zlib
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

import numpy as np

from neon8.arrays import Array
from neon8.errors import ModelError
from neon8.runtime.arrays import at_shapes, checked
from neon8.runtime.board import batch
from neon8.runtime.board.board import Board, link_to, opening
from neon8.runtime.closable import Closable
from neon8.runtime.model import Model, Session, size_of

FILE = "net.n8"
MOST_SAMPLES = 64
MOST_BYTES = 1 << 24
"""Of a batch."""


@dataclass(slots=True, eq=False)
class _Job:
    """A sample to be run.  error: why it was not."""

    record: bytes
    outputs: dict[str, Array] = field(default_factory=dict)
    error: BaseException | None = None
    done: bool = False


@final
class BoardModel(Closable):
    """A model on a board; close it, or use it in a `with` statement.

    Threads may call `run` at the same time: what waits goes there as one batch, and a
    batch that was done is not run again when the connection is lost.
    """

    def __init__(
        self,
        here: Model,
        board: Board,
        content: bytes,
        isa: str | None = None,
        *,
        max_bytes: int | None = None,
        owned: bool = False,
    ) -> None:
        """Put the model on a board.  isa, max_bytes: as of Model.open, there.

        here: the same model on this PC, which is closed with this one, and so is the
        board if it is owned.  SetupError: the board is in the way.  ModelError: it
        refuses the file.
        """
        self.here, self.board, self._owned = here, board, owned
        self.inputs, self.outputs = here.inputs, here.outputs
        self.bounds, self.steps = here.bounds, here.steps
        name = f"{zlib.crc32(content):08x}.n8"
        self._words = opening(name, isa, max_bytes)
        self._waiting: deque[_Job] = deque()
        self._turn = threading.Lock()
        try:
            board.put(name, content)
            board.call(["run", *self._words], batch.batch([]))
        except BaseException:
            self.close()
            raise

    @classmethod
    def open(
        cls,
        path: str | Path,
        target: str,
        core: str,
        isa: str | None = None,
        *,
        max_bytes: int | None = None,
    ) -> "BoardModel":
        """Connect to a target, as TargetSettings has it, and put a file there."""
        here = Model.open(path)
        try:
            board = Board(link_to(target, core))
        except BaseException:
            here.close()
            raise
        content = Path(path).read_bytes()
        return cls(here, board, content, isa, max_bytes=max_bytes, owned=True)

    @property
    def ahead(self) -> int:
        """How many threads give it batches that are worth their way."""
        size = sum(map(size_of, self.inputs.values()))
        return max(1, min(MOST_SAMPLES, MOST_BYTES // max(size, 1)))

    def session(self) -> "BoardSession":
        """Something to run it by; any number of them may run at the same time."""
        return BoardSession(self, self.here.session())

    def run(self, arrays: tuple[Array, ...]) -> dict[str, Array]:
        """Run once there, with others that wait."""
        job = _Job(batch.record(arrays))
        self._waiting.append(job)
        while not job.done:
            with self._turn:
                if not job.done:
                    self._run_waiting()
        if job.error is not None:
            raise job.error
        return job.outputs

    def _run_waiting(self) -> None:
        """Run what waits, as much as a batch may hold."""
        jobs: list[_Job] = []
        size = 0
        while self._waiting and len(jobs) < MOST_SAMPLES and size < MOST_BYTES:
            jobs.append(self._waiting.popleft())
            size += len(jobs[-1].record)
        try:
            found = self._results([job.record for job in jobs])
            for job, outputs in zip(jobs, found, strict=True):
                job.outputs = outputs
        except BaseException as error:  # noqa: BLE001 - each thread raises it
            for job in jobs:
                job.error = error
        for job in jobs:
            job.done = True

    def _results(self, records: list[bytes]) -> list[dict[str, Array]]:
        given = batch.batch(records)
        words = ["run", *self._words, "--threads", self.board.cores]
        try:
            data = self.board.call(words, given)
            return batch.results(data, len(records), self.outputs)
        except batch.DamagedError as error:
            raise ModelError(
                f"{self.here.source}: what came back from {self.board.name} is "
                f"damaged: {error}"
            ) from error

    def close(self) -> None:
        """Remove all from the board; closing twice is allowed."""
        if self._owned:
            self.board.close()
        self.here.close()


class BoardSession:
    """Runs a model there and here.  Made by BoardModel.session."""

    __slots__ = ("_here", "_model")

    def __init__(self, model: BoardModel, here: Session) -> None:
        """Use BoardModel.session."""
        self._model, self._here = model, here

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run once, as Session.run does.  ModelError: the bytes differ."""
        model = self._model
        source = str(model.here.source)
        expected = at_shapes(inputs, model.inputs, model.bounds, source=source)
        arrays = tuple(checked(inputs, expected, source=source))
        found = model.run(arrays)
        wanted = self._here.run(dict(zip(model.inputs, arrays, strict=True)))
        for name, array in wanted.items():
            same_bytes(
                f"{source}: output {name!r}", found[name], array, model.board.name
            )
        return found

    def close(self) -> None:
        """Free the memory here."""
        self._here.close()


def same_bytes(what: str, found: Array, wanted: Array, board: str) -> None:
    """Compare what a board gave with what this PC gives.  ModelError: they differ."""
    if found.shape == wanted.shape and found.tobytes() == wanted.tobytes():
        return
    if found.shape != wanted.shape:
        raise ModelError(f"{what} of {board} has another shape than on this PC")
    size = wanted.itemsize
    a, b = (np.frombuffer(x.tobytes(), f"V{size}") for x in (found, wanted))
    differs = np.flatnonzero(a != b)
    at = int(differs[0])
    raise ModelError(
        f"{what} of {board} differs from that of this PC in {len(differs)} of "
        f"{wanted.size} values, first in value {at}: {found.flat[at]!r}, not "
        f"{wanted.flat[at]!r}; is the board's memory or its cooling at fault?"
    )
