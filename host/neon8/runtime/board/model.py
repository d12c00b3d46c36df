# SPDX-License-Identifier: Apache-2.0
"""BoardModel: a .n8 file run by a board, in batches, and beside it by this PC.

What comes back must have the bytes of this PC, or the run fails.
"""

import threading
import zlib
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import final

import numpy as np

from neon8.arrays import Array
from neon8.errors import ModelError, SetupError
from neon8.runtime.arrays import Memory, at_shapes, checked
from neon8.runtime.board import batch
from neon8.runtime.board.board import RUNNER, Board, link_to, opening, parsed
from neon8.runtime.closable import Closable
from neon8.runtime.model import MAX_BYTES, Model, Shapes, read_model
from neon8.runtime.structs import size_of
from neon8.version import __version__

MOST_SAMPLES = 64
MOST_BYTES = 1 << 24
"""Limits of a batch."""


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

    inputs, outputs, bounds, facts: as of Model.  memory, steps: as the board has them.
    words: those that have the runner open it.
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
        shapes: Shapes | None = None,
        owned: bool = False,
    ) -> None:
        """Put the model on a board.  isa, max_bytes: as of Model.open, there.

        here: the same model on this PC, which is closed with this one, and so is the
        board if it is owned.  shapes: as in Model.at, what is described.  SetupError:
        the board is in the way.  ModelError: it refuses the file.
        """
        self._here, self._board, self._owned = here, board, owned
        name = f"{zlib.crc32(content):08x}.n8"
        self.words = opening(name, isa, max_bytes)
        self._waiting: deque[_Job] = deque()
        self._turn = threading.Lock()
        self.stop = board.stop
        try:
            board.put(name, content)
            self._describe(here if shapes is None else here.at(shapes), shapes)
            self._session = here.session()
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
        shapes: Shapes | None = None,
    ) -> "BoardModel":
        """Connect to a target, as TargetSettings has it, and put a file there."""
        content = read_model(path)
        # Whatever this PC has, a limit is the board's to keep.
        here = Model.from_bytes(content, source=str(path), max_bytes=MAX_BYTES)
        try:
            board = Board(link_to(target, core))
        except BaseException:
            here.close()
            raise
        return cls(
            *(here, board, content, isa),
            max_bytes=max_bytes,
            shapes=shapes,
            owned=True,
        )

    def _describe(self, model: Model, shapes: Shapes | None) -> None:
        """What the file says, and what the processor there makes of it."""
        self.inputs, self.outputs = model.inputs, model.outputs
        self.bounds, self.facts = model.bounds, model.facts
        at = []
        if shapes is not None:
            dims = [(*i.shape, *[1] * 8)[:8] for i in self.inputs.values()]
            at = ["--shapes", ",".join(str(d) for row in dims for d in row)]
        told = parsed(self._board.name, self._call("describe", *at))
        if told["version"] != __version__:
            raise SetupError(
                f"{RUNNER} for {self._board.name} is of version {told['version']}, "
                f"this package of {__version__}; build it again"
            )
        self.memory = Memory(**told["memory"])
        self.steps = tuple(
            replace(step, **own)
            for step, own in zip(model.steps, told["steps"], strict=True)
        )

    def _call(self, command: str, *more: object, given: bytes = b"") -> bytes:
        """What the runner writes.  ModelError: it refuses the model or a sample."""
        try:
            return self._board.call([command, *self.words, *more], given)
        except ModelError as error:
            raise ModelError(f"{self._here.source}: on {error.text}") from error

    @property
    def ahead(self) -> int:
        """How many threads give it batches that are worth their way."""
        size = sum(map(size_of, self.inputs.values()))
        return max(1, min(MOST_SAMPLES, MOST_BYTES // max(size, 1)))

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run once, as Session.run does, there and here.  ModelError: bytes differ."""
        source = self._here.source
        expected = at_shapes(inputs, self.inputs, self.bounds, source=source)
        arrays = checked(inputs, expected, source=source)
        found = self._run_there(arrays)
        wanted = self._session.run(dict(zip(self.inputs, arrays, strict=True)))
        for name, array in wanted.items():
            what = f"{source}: output {name!r}"
            same_bytes(what, found[name], array, self._board.name)
        return found

    def _run_there(self, arrays: Sequence[Array]) -> dict[str, Array]:
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
        try:
            data = self._call("run", "--threads", self._board.cores, given=given)
            return batch.results(data, len(records), self.outputs)
        except batch.DamagedError as error:
            raise ModelError(
                f"{self._here.source}: what came back from {self._board.name} is "
                f"damaged: {error}"
            ) from error

    def close(self) -> None:
        """Remove all from the board; closing twice is allowed."""
        if self._owned:
            self._board.close()
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
