# SPDX-License-Identifier: Apache-2.0
"""Observe a data set from beginning to end, with whatever helps and whatever happens.

In this process, in several or on a cluster; journalled, so that a run that dies or is
interrupted goes on; measured at every doubling, so that it can stop by itself. The
Observation is the same in all cases.
"""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from neon8.calibrate.observation import Observation, check_settings, merge
from neon8.calibrate.run import convergence, journal
from neon8.calibrate.run.cluster import Cluster
from neon8.calibrate.run.convergence import Point
from neon8.calibrate.run.interrupt import interruptible
from neon8.calibrate.run.task import (
    Executor,
    Local,
    Opened,
    Pace,
    Part,
    Task,
    extreme_names,
    open_task,
)
from neon8.calibrate.run.workers import Workers
from neon8.errors import CalibrationError

LOG = logging.getLogger("neon8")
LARGEST_PART = 64
_NEVER = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How to execute a task.

    workers: processes.  engine: "dask://HOST:PORT", None for this machine.  output:
    the file that it is for, beside which the journal stands; None: no journal.
    measure: take Points.  tolerance: stop when no threshold moves by more, None: never.
    """

    workers: int = 1
    engine: str | None = None
    output: Path | None = None
    measure: bool = False
    tolerance: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """names: digest -> name, of the samples that set an extreme."""

    observation: Observation
    names: dict[str, str]
    points: tuple[Point, ...]


Progress = Callable[[int, int], None]


def observe_data(
    task: Task, plan: Plan, *, progress: Progress | None = None
) -> Outcome:
    """Observe all samples of the task; the journal stays until forget().

    progress: called with the numbers of samples done and of all.  GraphError,
    DataError, CalibrationError, SetupError.  KeyboardInterrupt: at the first Ctrl-C,
    after the journal was written; its text says how to go on.
    """
    opened = open_task(task)
    with interruptible() as interrupted:
        return _Run(task, plan, opened, progress or _ignore, interrupted).all()


def _ignore(done: int, total: int) -> None:
    """No progress is wanted."""


def forget(plan: Plan) -> None:
    """Delete the journal: the output has been written."""
    if plan.output is not None:
        journal.remove(journal.journal_of(plan.output))


class _Run:
    """The state of one run.

    Digests of samples: _kept, of the journal; _left, those of them that the data has
    not shown yet; _met, what the data has shown; _done, what needs no more observing.
    """

    def __init__(
        self,
        task: Task,
        plan: Plan,
        opened: Opened,
        progress: Progress,
        interrupted: threading.Event,
    ) -> None:
        self._task, self._plan, self._opened = task, plan, opened
        self._interrupted = interrupted
        self._progress, self._ticks = progress, 0
        self._path = None if plan.output is None else journal.journal_of(plan.output)
        self._pace = Pace(_NEVER if self._path is None else None)
        self._observation = opened.network.nothing
        self._names: dict[str, str] = {}
        self._points: list[Point] = []
        self._settings = {
            "the model": self._observation.model_digest,
            "the data": str(Path(task.data).resolve()),
            "--preprocess": task.preprocess_digest,
            "--limit": task.limit,
            "--skip": task.skip,
            "--shard": None if task.shard is None else list(task.shard),
            "--ignore-nonfinite": task.ignore_nonfinite,
            "--report": plan.measure,
            "--until-stable": plan.tolerance,
        }
        self._resume()
        self._measured = len(self._points)
        self._kept = frozenset(self._observation.samples)
        self._left = set(self._kept)
        self._met: set[str] = set()
        self._done = set(self._kept)
        self._repeated = 0

    def all(self) -> Outcome:
        """From the first to the last round."""
        count = len(self._opened.samples)
        if self._task.shard is not None and not count:
            piece = "shard {}/{}".format(*self._task.shard)
            LOG.warning(
                "%s: has no sample; take fewer shards, or merge it as it is", piece
            )
        self._progress(0, count)
        tolerance = self._plan.tolerance
        measuring = self._plan.measure or tolerance is not None
        rounds = convergence.rounds(count) if measuring else [(0, count)]
        with closing(self._executor()) as executor:
            for number, (start, stop) in enumerate(rounds):
                self._round(executor, start, stop, last=stop == count)
                if measuring:
                    self._measure(number, stop)
                if tolerance is not None and convergence.stable(
                    self._points[: number + 1], tolerance
                ):
                    break
        self._finish()
        return Outcome(
            observation=self._observation,
            names=self._names,
            points=tuple(self._points),
        )

    def _executor(self) -> Executor:
        if self._plan.engine is not None:
            return Cluster(
                self._task, self._plan.engine, known=self._kept, tick=self._tick
            )
        if self._plan.workers > 1:
            return Workers(
                self._task, self._plan.workers, known=self._kept, tick=self._tick
            )
        return Local(self._opened, pace=self._pace, tick=self._tick)

    def _tick(self) -> bool:
        """Behind each sample, in any thread."""
        self._ticks += 1
        total = len(self._opened.samples)
        self._progress(min(self._ticks, total), total)
        return not self._interrupted.is_set()

    def _round(self, executor: Executor, start: int, stop: int, *, last: bool) -> None:
        """Observe these positions and take in all parts."""
        if isinstance(executor, Local):
            executor.submit(start, stop, self._done)
        else:
            share = -(-(stop - start) // (4 * max(self._plan.workers, 2)))
            size = min(max(share, 1), LARGEST_PART)
            for first in range(start, stop, size):
                executor.submit(first, min(first + size, stop), frozenset())
        missing, saved = stop - start, time.monotonic()
        while missing:
            part = executor.next()
            if part is not None:
                if self._done.intersection(part.observation.samples):
                    # The same sample is there twice and two workers met it at once.
                    met = {*part.observation.samples, *dict(part.again)}
                    executor.submit(part.start, part.stop, self._done & met)
                    continue
                began = time.monotonic()
                self._take(part)
                missing -= part.stop - part.start
                due = began - saved >= self._pace.seconds or isinstance(executor, Local)
                if due and (missing or not last):  # else the output comes at once
                    self._save()
                    saved = time.monotonic()
                    self._pace.cost(2 * (saved - began))  # making it takes as long
            if self._interrupted.is_set():
                self._stop()

    def _take(self, part: Part) -> None:
        """Merge a part that shares no sample with what is there."""
        self._observation = merge(self._observation, part.observation)
        self._done.update(part.observation.samples)
        self._met.update(part.observation.samples)
        names = self._names | part.names
        for digest, name in part.again:
            if digest in self._left:
                self._left.discard(digest)
                self._met.add(digest)
                names[digest] = name  # that of the journal may be of another day
            else:
                self._repeated += 1
        self._names = extreme_names(self._observation, names)

    def _measure(self, number: int, positions: int) -> None:
        """Add the point of this round, unless the journal had it."""
        if number >= self._measured:
            self._check_left(f"the first {positions} samples of the data")
            self._points.append(convergence.measure(self._observation, positions))
        elif self._points[number].of != convergence.set_digest(self._met):
            raise CalibrationError(
                f"{self._path}: was measured after the first {positions} samples, and "
                "these are others now: give the data the names and order that it had, "
                "or delete it to start again"
            )

    def _resume(self) -> None:
        if self._path is None:
            return
        entry = journal.load(self._path, self._settings)
        if entry is None:
            return
        try:
            check_settings(entry.observation, self._observation)
        except CalibrationError as error:
            text = f"{error}; or delete it to start again"
            raise CalibrationError(f"{self._path}: {text}") from error
        self._observation, self._names = entry.observation, entry.names
        self._points = [convergence.from_json(point) for point in entry.points]
        kept = len(self._observation.samples)
        LOG.warning("%s: %d samples were kept, this run goes on", self._path, kept)

    def _save(self) -> None:
        if self._path is not None:
            points = [convergence.to_json(point) for point in self._points]
            entry = journal.Entry(
                settings=self._settings,
                observation=self._observation,
                names=self._names,
                points=points,
            )
            journal.save(self._path, entry)

    def _stop(self) -> None:
        """At Ctrl-C."""
        self._save()
        done = len(self._observation.samples)
        if self._path is None:
            raise KeyboardInterrupt
        text = f"{done} samples are kept in {self._path}; the same command goes on"
        raise KeyboardInterrupt(text)

    def _check_left(self, place: str) -> None:
        """All samples of the journal must have been met by now."""
        if self._left:
            raise CalibrationError(
                f"{self._path}: has {len(self._left)} samples that are no longer in "
                f"{place}, the first with digest {min(self._left)}: delete it to start "
                "again"
            )

    def _finish(self) -> None:
        self._check_left("the data")
        if self._repeated:
            LOG.warning(
                "%d samples are the same as others; each counts once", self._repeated
            )
