# SPDX-License-Identifier: Apache-2.0
"""Where samples are observed: in this process, or as parts in a pool of processes.

A part is what was observed at a range of positions in the data. Parts are merged, so it
does not matter who observed which, nor in which order they come.
"""

import hashlib
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator
from collections.abc import Set as AbstractSet
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Future,
    wait,
)
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from neon8.calibrate.observation import Observation
from neon8.calibrate.run.collector import Collector, Network, open_network
from neon8.calibrate.run.threads import prefetch
from neon8.data.samples import Sample, Samples, loaded, open_samples
from neon8.errors import CalibrationError, DataError
from neon8.settings.shapes import Open
from neon8.settings.stages import DataSettings, Settings

SECONDS = 1.0
"""The work in a part, and so the time between two writings of the journal."""
DEATHS = 3
"""A sample that was being observed when that many processes died is not tried again."""
FIRST_PART = 8
LARGEST_PART = 1024
LARGEST_SENT = 64
"""Samples in a part where the samples themselves are sent."""

_BUSY = threading.Lock()
"""A session reuses its memory, but a dask worker may have many threads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What is to be observed.

    model, data: paths; data is None if the samples are not in files.  samples: which of
    them, with preprocessing that is loaded.  shapes: of inputs whose dimensions the
    file leaves open, with their names.
    """

    model: str
    data: str | None
    samples: DataSettings = DataSettings()
    shard: tuple[int, int] | None = None
    ignore_nonfinite: bool = False
    shapes: tuple[tuple[str, tuple[int | Open, ...]], ...] = ()

    @classmethod
    def of(cls, model: str | Path, data: object, settings: Settings) -> "Workload":
        """What these settings say.  DataError: of preprocessing."""
        samples, how = settings.data, settings.observe
        return cls(
            model=str(model),
            data=str(data) if isinstance(data, str | Path) else None,
            samples=replace(samples, preprocess=loaded(samples.preprocess)),
            shard=how.shard,
            ignore_nonfinite=how.ignore_nonfinite,
            shapes=tuple((settings.network.shapes or {}).items()),
        )

    @property
    def preprocess_digest(self) -> str:
        """SHA-256 of the settings, in hex; "" without."""
        preprocess = loaded(self.samples.preprocess)
        if preprocess is None:
            return ""
        text = json.dumps(asdict(preprocess), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def open_network(self, *, threads: int | None = None) -> Network:
        """Its network, as collector.open_network() gives it.  GraphError."""
        return open_network(
            self.model,
            shapes=dict(self.shapes),
            preprocess_digest=self.preprocess_digest,
            ignore_nonfinite=self.ignore_nonfinite,
            threads=threads,
        )

    def open_samples(self, network: Network) -> Samples:
        """The samples in `data`, which is a path.  DataError."""
        wanted = Settings(data=self.samples)
        samples = open_samples(self.data or "", network.inputs, settings=wanted)
        return samples.part(*shard_ends(self.shard, len(samples)))


def shard_ends(shard: tuple[int, int] | None, count: int) -> tuple[int, int]:
    """The positions at which a piece of `count` samples starts and stops."""
    if shard is None:
        return 0, count
    index, pieces = shard
    return count * (index - 1) // pieces, count * index // pieces


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Positions start .. stop, to be observed but for samples with the digests `known`.

    samples: those at these positions, None if the data is in files.  deaths: how many
    processes died while they observed it.
    """

    start: int
    stop: int
    known: frozenset[str] = frozenset()
    samples: tuple[Sample, ...] | None = None
    deaths: int = 0

    def singles(self) -> list["Span"]:
        """The same as spans of one sample each."""
        return [
            replace(
                self,
                start=at,
                stop=at + 1,
                samples=self.samples and (self.samples[at - self.start],),
                deaths=1,
            )
            for at in range(self.start, self.stop)
        ]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Part:
    """What was observed at `count` positions in `seconds`.

    names: digest -> name of the samples that set an extreme.  again: digest and name
    of those that were not new.
    """

    count: int
    seconds: float
    observation: Observation
    names: dict[str, str]
    again: tuple[tuple[str, str], ...]


def extreme_names(observation: Observation, names: dict[str, str]) -> dict[str, str]:
    """Those of `names` whose samples set an extreme."""
    extremes = {
        extreme.sample
        for tensor in observation.tensors.values()
        for extreme in (tensor.smallest, tensor.largest)
        if extreme is not None
    }
    return {digest: names[digest] for digest in sorted(extremes) if digest in names}


def _observe(
    network: Network,
    source: Iterator[tuple[Sample, str]],
    known: AbstractSet[str],
    more: Callable[[int], bool] = lambda _count: True,
) -> Part:
    """The part that begins with the next sample of `source`.

    more: told how many samples were taken, whether to take another one.
    """
    began, count = time.monotonic(), 0
    collector, again = Collector(network, known), []
    for sample, digest in source:
        if not collector.add(sample, digest):
            again.append((digest, sample.name))
        count += 1
        if not more(count):
            break
    observation = collector.result()
    return Part(
        count=count,
        seconds=time.monotonic() - began,
        observation=observation,
        names=extreme_names(observation, collector.names),
        again=tuple(again),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What every worker is told.  known: digests of samples that need no observing."""

    workload: Workload
    known: frozenset[str]


def observe_span(job: Job, span: Span) -> Part:
    """In a worker process, which opens the workload once and observes on one thread."""
    with _BUSY:
        network, samples = _opened(job.workload)
        wanted = samples.part(span.start, span.stop) if samples else span.samples or ()
        with closing(prefetch(wanted)) as source:
            part = _observe(network, source, job.known | span.known)
    check_count(span.start + part.count, span.stop)
    return part


@lru_cache(maxsize=1)
def _opened(workload: Workload) -> tuple[Network, Samples | None]:
    network = workload.open_network(threads=1)
    return network, None if workload.data is None else workload.open_samples(network)


def check_count(found: int, expected: int) -> None:
    """DataError if the data ended before it should."""
    if found < expected:
        text = f"it had {expected} samples or more when the run began"
        raise DataError(f"the data ends after {found} samples; {text}")


class Pace:
    """How long to observe before what was observed is merged and saved.

    About a second; more if that takes long, so that it stays below 1/50 of the time.
    """

    def __init__(self) -> None:
        self.seconds = SECONDS

    def cost(self, seconds: float) -> None:
        """Tell how long it took this time."""
        self.seconds = max(SECONDS, 50 * seconds)


class Local:
    """Observes in this process, in parts of `pace` seconds.

    known: digests of samples that need no observing; may grow meanwhile.  progress:
    told the number of samples done, after each.
    """

    def __init__(
        self,
        network: Network,
        samples: Iterator[Sample],
        *,
        known: AbstractSet[str],
        pace: Pace | None,
        interrupted: threading.Event,
        progress: Callable[[int], None],
    ) -> None:
        self._network, self._known, self._pace = network, known, pace
        self._source = prefetch(samples)
        self._interrupted, self._progress = interrupted, progress
        self._at = 0

    def parts(self, stop: int) -> Generator[tuple[Span, Part], None, None]:
        """Observe up to position `stop` or the end of the data.

        Ends early once the run is interrupted.  Any error of the network or the data.
        """
        while self._at < stop and not self._interrupted.is_set():
            due = float("inf")
            if self._pace is not None:
                due = time.monotonic() + self._pace.seconds
            room = stop - self._at

            def more(count: int, due: float = due, room: int = room) -> bool:
                self._progress(self._at + count)
                late = time.monotonic() >= due
                return count < room and not late and not self._interrupted.is_set()

            part = _observe(self._network, self._source, self._known, more)
            if not part.count:
                return
            self._at += part.count
            yield Span(start=self._at - part.count, stop=self._at), part

    def retry(self, span: Span) -> None:
        """A fault: a known sample is never observed again."""
        raise RuntimeError(f"samples {span.start} to {span.stop} were observed twice")

    def close(self) -> None:
        """Stop reading ahead."""
        self._source.close()


class Pool(Protocol):
    """Processes that observe spans."""

    @property
    def width(self) -> int:
        """How many spans they observe at the same time."""

    def submit(self, span: Span) -> Future[Any]:
        """Start observing it."""

    def result(self, future: Future[Any]) -> Part:
        """The part, of a future that is done.  BrokenExecutor: its process died."""

    def close(self) -> None:
        """Kill the processes."""


class Parallel:
    """Observes in a pool.

    samples: those to send, None if the data is in files.  total: their number, None if
    unknown.
    """

    def __init__(
        self,
        pool: Pool,
        *,
        samples: Iterator[Sample] | None,
        total: int | None,
        pace: Pace,
        interrupted: threading.Event,
    ) -> None:
        self._pool, self._samples, self._total = pool, samples, total
        self._pace, self._interrupted = pace, interrupted
        self._running: dict[Future[Any], Span] = {}
        self._again: deque[Span] = deque()
        self._at = 0
        self._rate: float | None = None  # samples a second of one process

    def parts(self, stop: int) -> Generator[tuple[Span, Part], None, None]:
        """As of Local, in any order.  CalibrationError: processes keep dying."""
        while True:
            self._fill(stop)
            if not self._running:
                return
            done, _ = wait(self._running, timeout=0.1, return_when=FIRST_COMPLETED)
            if self._interrupted.is_set():
                for future in [each for each in self._running if each.cancel()]:
                    del self._running[future]
            for future in done.intersection(self._running):
                span = self._running.pop(future)
                try:
                    part = self._pool.result(future)
                except BrokenExecutor:
                    self._suspect(span)
                    continue
                self._rate = part.count / max(part.seconds, 1e-6)
                yield span, part

    def retry(self, span: Span) -> None:
        """Observe this span, too, before parts() ends."""
        self._again.append(span)

    def close(self) -> None:
        """Stop all work."""
        self._pool.close()

    def _fill(self, stop: int) -> None:
        """Keep all processes busy, and a few parts ready for the next one free."""
        while len(self._running) < self._pool.width + 2:
            span = None if self._interrupted.is_set() else self._next(stop)
            if span is None:
                return
            self._running[self._pool.submit(span)] = span

    def _next(self, stop: int) -> Span | None:
        """What is done again, else about pace.seconds of work, less towards the end."""
        if self._again:
            return self._again.popleft()
        start, size = self._at, FIRST_PART
        if self._rate is not None:
            size = int(self._rate * self._pace.seconds)
        if self._total is not None:
            size = min(size, -(-(self._total - start) // (2 * self._pool.width)))
        largest = LARGEST_PART if self._samples is None else LARGEST_SENT
        size = min(max(size, 1), largest, stop - start)
        if size <= 0:
            return None
        samples = None
        if self._samples is not None:
            samples = tuple(islice(self._samples, size))
            size = len(samples)
            if not size:
                return None
        self._at += size
        return Span(start=start, stop=self._at, samples=samples)

    def _suspect(self, span: Span) -> None:
        """Have a span done again whose process died.  CalibrationError: too often.

        One that killed two is done sample by sample, which finds the culprit.
        """
        suspect = replace(span, deaths=span.deaths + 1)
        if suspect.deaths == DEATHS:
            raise CalibrationError(
                f"sample {span.start}, counted from 0: {DEATHS} worker processes "
                "died while they observed it; if memory is short use fewer "
                "--workers"
            )
        if suspect.deaths > 1 and span.stop - span.start > 1:
            self._again.extend(suspect.singles())
        else:
            self._again.appendleft(suspect)


Executor = Local | Parallel
