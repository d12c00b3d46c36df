# SPDX-License-Identifier: Apache-2.0
"""Observe a whole data set, in this process, in several or on a cluster.

A journal lets a run that died or was interrupted continue. Thresholds are measured each
time the samples double, so that a run can stop by itself. The Observation is the same
in all cases.
"""

import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from neon8.calibrate.observation import Observation, check_settings, merge
from neon8.calibrate.run import convergence, journal
from neon8.calibrate.run.collector import Network
from neon8.calibrate.run.convergence import Point
from neon8.calibrate.run.executors import (
    Executor,
    Job,
    Local,
    Pace,
    Parallel,
    Part,
    Pool,
    Workload,
    check_count,
    extreme_names,
    shard_ends,
)
from neon8.data.few import Few, Kept
from neon8.data.inputs import batch_of
from neon8.data.samples import Data, Sample, count_samples, gather
from neon8.errors import LOG, CalibrationError, DataError
from neon8.progress import Count, nobody
from neon8.settings.stages import DEFAULTS, ObserveSettings, Settings
from neon8.text import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What a run needs besides its settings.

    output: the file to be written; the journal stands beside it. None: no journal.
    progress: called with the numbers of samples done and of all, None if unknown; at
    the end they are equal.  keep: how many samples to hand on to slow steps that
    follow; the journal is complete by then.
    """

    output: Path | None = None
    progress: Count = nobody
    keep: int = 0


ALONE = Task()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """The result of a run.

    names: digest -> name of the samples that set an extreme.  batch: how many samples
    the network takes at once; they count as one.  kept: samples for what follows, by
    digest.
    """

    observation: Observation
    names: dict[str, str]
    points: tuple[Point, ...]
    batch: int
    kept: tuple[Kept, ...] = ()


def observe_data(
    model: str | Path, data: Data, settings: Settings = DEFAULTS, task: Task = ALONE
) -> Outcome:
    """Observe all samples; the journal stays until forget().

    data: see neon8.data.samples.gather.
    GraphError, DataError, CalibrationError, SetupError.  KeyboardInterrupt: at the
    first Ctrl-C, once the journal is written; its text says how to continue.
    """
    workload = Workload.of(model, data, settings)
    network = workload.open_network()
    samples, total = _open_data(workload, data, network)
    mixed = any(each.bounds for each in network.inputs.values())
    if mixed and (first := next(samples, None)) is not None:
        network.begin(first)
        samples = chain([first], samples)
    if network.first.quantized:
        text = "is quantized, with scales of its own; `neon8 compile` takes it as it is"
        LOG.warning("%s: %s, without a table", model, text)
    few = Few(task.keep)
    if task.keep:
        samples = few.watch(samples)
    with _interruptible() as interrupted:
        run = _Run(workload, settings.observe, task, network, total)
        try:
            outcome = run.all(network, samples, interrupted)
        except KeyboardInterrupt:
            network.stop()
            raise
    observed = frozenset(outcome.observation.samples)
    if task.keep and not few.samples:  # other processes have read them
        with resumable(task.output, len(observed)):
            for sample in workload.open_samples(network):
                few.add(sample)
    kept = (sample for sample in few.samples if sample.digest in observed)
    return replace(outcome, kept=tuple(kept))


@contextmanager
def resumable(output: Path | None, count: int) -> Iterator[None]:
    """A context for what follows observe_data(): Ctrl-C says how to continue.

    count: the samples that the journal holds.
    """
    try:
        yield
    except KeyboardInterrupt as interrupt:
        path = journal.journal_of(output)
        if path is None:
            raise
        saved = f"{counted(count, 'sample')} saved in {path}"
        text = f"{saved}; to continue, run the same command again"
        raise KeyboardInterrupt(text) from interrupt


def forget(output: Path) -> None:
    """Delete the journal once the output is written."""
    journal.remove(journal.journal_of(output))


def _open_data(
    workload: Workload, data: Data, network: Network
) -> tuple[Iterator[Sample], int | None]:
    """The samples of the workload, and their number if known."""
    if isinstance(data, str | Path):
        samples = workload.open_samples(network)
        samples.say_left()
        return iter(samples), len(samples)
    skip, limit = workload.samples.skip, workload.samples.limit
    wanted = Settings(data=workload.samples)
    gathered: Iterable[Sample] = gather(data, network.inputs, settings=wanted)
    count = count_samples(data, network.inputs, limit=limit, skip=skip)
    if workload.shard is None:
        return iter(gathered), count
    if count is None:
        raise DataError("a shard of an iterable needs to know its length: give a list")
    start, stop = shard_ends(workload.shard, count)
    return islice(gathered, start, stop), stop - start


@contextmanager
def _interruptible() -> Iterator[threading.Event]:
    """A context in which Ctrl-C sets an event, and a second one interrupts at once.

    Only the main thread receives signals; in others nothing changes.
    """
    event = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield event
        return
    before = signal.getsignal(signal.SIGINT)

    def handle(number: int, frame: Any) -> None:
        if event.is_set():
            signal.default_int_handler(number, frame)
        event.set()

    signal.signal(signal.SIGINT, handle)
    try:
        yield event
    finally:
        signal.signal(signal.SIGINT, before)


class _Run:
    """The state of one run.

    Digests of samples: _kept, in the journal; _left, those of them not yet met in the
    data; _met, all met in the data; _done, all that need no more observing.
    """

    def __init__(
        self,
        workload: Workload,
        settings: ObserveSettings,
        task: Task,
        network: Network,
        total: int | None,
    ) -> None:
        self._workload, self._how = workload, settings
        self._task, self._total = task, total
        self._path = journal.journal_of(task.output)
        self._pace = Pace()
        self._observation = network.first.empty
        self._batch = batch_of(network.inputs)
        self._names: dict[str, str] = {}
        self._points: list[Point] = []
        shard, data = workload.shard, workload.data
        self._settings = {
            "the model": network.first.empty.model_digest,
            "the data": None if data is None else str(Path(data).resolve()),
            "--preprocess": workload.preprocess_digest,
            "--shape": {
                name: [n if isinstance(n, int) else str(n) for n in dims]
                for name, dims in workload.shapes
            },
            "--limit": workload.samples.limit,
            "--skip": workload.samples.skip,
            "--shard": None if shard is None else list(shard),
            "--ignore-nonfinite": workload.ignore_nonfinite,
            "--report": settings.report is not None,
            "--until-stable": settings.until_stable,
        }
        self._resume()
        self._kept = frozenset(self._observation.samples)
        self._left = set(self._kept)
        self._met: set[str] = set()
        self._done = set(self._kept)
        self._at = self._repeated = 0

    def all(
        self,
        network: Network,
        samples: Iterator[Sample],
        interrupted: threading.Event,
    ) -> Outcome:
        """Observe from the first sample to the last, or until thresholds are stable."""
        if self._workload.shard is not None and self._total == 0:
            piece = "shard {}/{}".format(*self._workload.shard)
            text = "%s: has no samples; use fewer shards, or merge it as it is"
            LOG.warning(text, piece)
        self._progress(0)
        tolerance = self._how.until_stable
        measuring = self._how.report is not None or tolerance is not None
        stops = convergence.stops(self._total) if measuring else [self._end]
        measured = len(self._points)
        with closing(self._executor(network, samples, interrupted)) as executor:
            for number, stop in enumerate(stops):
                before = self._at
                self._observe(executor, stop)
                if interrupted.is_set():
                    self._stop()
                if measuring and (self._at > before or number == 0):
                    self._measure(number, new=number >= measured)
                    points = self._points[: number + 1]
                    if tolerance is not None and convergence.stable(points, tolerance):
                        break
                if self._at < stop:
                    check_count(self._at, self._total or 0)
                    break
        self._finish()
        return Outcome(
            observation=self._observation,
            names=self._names,
            points=tuple(self._points),
            batch=self._batch,
        )

    @property
    def _end(self) -> int:
        return sys.maxsize if self._total is None else self._total

    def _progress(self, done: int) -> None:
        """Report progress in single samples; everything else counts batches."""
        total = None if self._total is None else self._total * self._batch
        self._task.progress(done * self._batch, total)

    def _executor(
        self,
        network: Network,
        samples: Iterator[Sample],
        interrupted: threading.Event,
    ) -> Executor:
        engine = self._how.engine
        width = min(self._how.workers, max(self._end, 1))
        if engine is None and width == 1:
            return Local(
                network,
                samples,
                known=self._done,
                pace=None if self._path is None else self._pace,
                interrupted=interrupted,
                progress=self._progress,
            )
        # What few runs use is imported by those only: it takes a while.
        job = Job(workload=self._workload, known=self._kept)
        pool: Pool
        if engine is not None:
            from neon8.calibrate.run.cluster import DaskPool  # noqa: PLC0415

            pool = DaskPool(job, address=engine)
        else:
            from neon8.calibrate.run.processes import ProcessPool  # noqa: PLC0415

            pool = ProcessPool(job, width=width)
        return Parallel(
            pool,
            samples=samples if self._workload.data is None else None,
            total=self._total,
            pace=self._pace,
            interrupted=interrupted,
        )

    def _observe(self, executor: Executor, stop: int) -> None:
        """Observe up to position `stop` or the end of the data, and merge it."""
        saved = time.monotonic()
        for span, part in executor.parts(stop):
            again = self._done.intersection(part.observation.samples)
            if again:
                # The same sample is there twice, and two workers met it at once.
                executor.retry(replace(span, known=span.known | again))
                continue
            began = time.monotonic()
            self._merge(part)
            self._progress(self._at)
            due = isinstance(executor, Local) or began - saved >= self._pace.seconds
            if due and self._at < self._end:  # else the output comes at once
                self._save()
                saved = time.monotonic()
            # A worker spends about as long on making and sending it.
            self._pace.cost(2 * (time.monotonic() - began))

    def _merge(self, part: Part) -> None:
        """Add a part that shares no sample with what is there."""
        self._at += part.count
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

    def _measure(self, number: int, *, new: bool) -> None:
        """Add the point of this round, or check the one that the journal has."""
        if new:
            self._check_left(f"the first {self._at} samples of the data")
            self._points.append(convergence.measure(self._observation, self._at))
        elif self._points[number].of != convergence.set_digest(self._met):
            raise CalibrationError(
                f"{self._path}: was measured after the first {self._at} samples, and "
                "these are others now: restore the names and order of the data, or "
                "delete it to start again"
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
        self._points = list(entry.points)
        kept = len(self._observation.samples)
        LOG.warning("%s: continuing, %d samples are already observed", self._path, kept)

    def _save(self) -> None:
        if self._path is not None:
            entry = journal.Entry(
                settings=self._settings,
                observation=self._observation,
                names=self._names,
                points=tuple(self._points),
            )
            journal.save(self._path, entry)

    def _stop(self) -> None:
        """At Ctrl-C."""
        self._save()
        with resumable(self._task.output, len(self._observation.samples)):
            raise KeyboardInterrupt

    def _check_left(self, place: str) -> None:
        """All samples of the journal must have been met by now."""
        if self._left:
            raise CalibrationError(
                f"{self._path}: has {len(self._left)} samples that are no longer in "
                f"{place}, the first with digest {min(self._left)}: delete it to start "
                "again"
            )

    def _finish(self) -> None:
        self._task.progress(self._at * self._batch, self._at * self._batch)
        self._check_left("the data")
        if self._task.keep:
            self._save()
        if self._repeated:
            text = "%d samples are the same as others; each counts once"
            LOG.warning(text, self._repeated)
