# SPDX-License-Identifier: Apache-2.0
"""A task says what to observe; a part is what some positions of the data gave.

Whoever executes a task, this process, others or a cluster, opens it once and then
observes parts; parts are merged, so it does not matter who observed which.
"""

import hashlib
import json
import time
from collections.abc import Callable, Generator
from collections.abc import Set as AbstractSet
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from neon8.calibrate import calib_file
from neon8.calibrate.observation import Observation
from neon8.calibrate.run.ahead import ahead
from neon8.calibrate.run.collect import Collector, Network, open_network
from neon8.data.preprocess import Preprocess
from neon8.data.samples import Samples, open_samples
from neon8.errors import DataError

SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """model, data: paths.  shard: (i, n), 1 <= i <= n: only the i-th of n pieces."""

    model: str
    data: str
    preprocess: Preprocess | None = None
    limit: int | None = None
    skip: int = 0
    shard: tuple[int, int] | None = None
    ignore_nonfinite: bool = False

    @property
    def preprocess_digest(self) -> str:
        """SHA-256 of the settings, in hex; "" without."""
        if self.preprocess is None:
            return ""
        return hashlib.sha256(
            json.dumps(asdict(self.preprocess), sort_keys=True).encode()
        ).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """As a JSON value."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Task":
        """to_json() backwards."""

        def exact(item: Any) -> Any:
            return tuple(item) if isinstance(item, list) else item

        fields = {key: exact(item) for key, item in value.items()}
        if fields["preprocess"] is not None:
            inner = fields["preprocess"].items()
            fields["preprocess"] = Preprocess(**{k: exact(v) for k, v in inner})
        return cls(**fields)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Opened:
    """A task ready to be executed."""

    network: Network
    samples: Samples


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Part:
    """Of the samples at positions start .. stop.

    names: digest -> name, of the samples that set an extreme.  again: digest and name
    of those that were not new.
    """

    start: int
    stop: int
    observation: Observation
    names: dict[str, str]
    again: tuple[tuple[str, str], ...]

    def dumps(self) -> tuple[dict[str, Any], bytes]:
        """A JSON value and the observation's bytes."""
        head = {
            "start": self.start,
            "stop": self.stop,
            "names": self.names,
            "again": self.again,
        }
        return head, calib_file.dumps(self.observation)

    @classmethod
    def loads(cls, head: dict[str, Any], data: bytes, *, source: str) -> "Part":
        """dumps() backwards."""
        observation = calib_file.loads(data, source=source)
        again = tuple((digest, name) for digest, name in head["again"])
        return cls(**{**head, "again": again, "observation": observation})


class Executor(Protocol):
    """Observes parts of one task, somewhere."""

    def submit(self, start: int, stop: int, without: AbstractSet[str]) -> None:
        """Observe these positions but for samples with these digests."""

    def next(self) -> Part | None:
        """The next part that is ready, in any order; None: nothing for the moment.

        Every error of the network, the data or the workers.
        """

    def close(self) -> None:
        """Let go of everything."""


class Pace:
    """When to hand out what was observed so far: about once a second.

    Less often if that takes long, so that it stays below 1/50 of the time.
    seconds: None for the usual.
    """

    def __init__(self, seconds: float | None = None) -> None:
        self._least = self.seconds = SECONDS if seconds is None else seconds

    def cost(self, seconds: float) -> None:
        """It took so long this time."""
        self.seconds = max(self._least, 50 * seconds)


def open_task(task: Task, *, threads: int | None = None) -> Opened:
    """Read the model and list the data.  GraphError, DataError.

    threads: see open_network().
    """
    network = open_network(
        task.model,
        preprocess_digest=task.preprocess_digest,
        ignore_nonfinite=task.ignore_nonfinite,
        threads=threads,
    )
    samples = open_samples(
        task.data,
        network.graph,
        preprocess=task.preprocess,
        limit=task.limit,
        skip=task.skip,
    )
    if task.shard is not None:
        index, count = task.shard
        ends = (len(samples) * end // count for end in (index - 1, index))
        samples = samples.part(*ends)
    return Opened(network=network, samples=samples)


def observe_parts(
    opened: Opened,
    start: int,
    stop: int,
    *,
    without: AbstractSet[str],
    pace: Pace,
    tick: Callable[[], bool] = lambda: True,
) -> Generator[Part, None, None]:
    """Parts that make up start .. stop, each of some seconds of work.

    tick: called behind each sample; False ends the part there, and then all.
    """
    at = start
    known = set(without)
    with closing(ahead(opened.samples.part(start, stop))) as source:
        more = True
        while more and at < stop:
            first, due = at, time.monotonic() + pace.seconds
            collector = Collector(opened.network, known)
            again = []
            for sample, digest in source:
                if not collector.add(sample, digest):
                    again.append((digest, sample.name))
                at += 1
                more = tick()
                if not more or time.monotonic() >= due:
                    break
            else:
                if at < stop:
                    text = f"has {at} samples; {stop} were there a moment ago"
                    raise DataError(f"the data {text}")
            known.update(collector.names)
            yield _part(collector, first, at, tuple(again))


def _part(
    collector: Collector, start: int, stop: int, again: tuple[tuple[str, str], ...]
) -> Part:
    observation = collector.result()
    return Part(
        start=start,
        stop=stop,
        observation=observation,
        names=extreme_names(observation, collector.names),
        again=again,
    )


def extreme_names(observation: Observation, names: dict[str, str]) -> dict[str, str]:
    """Those of `names` whose samples set an extreme."""
    extremes = {
        extreme.sample
        for tensor in observation.tensors.values()
        for extreme in (tensor.smallest, tensor.largest)
        if extreme is not None
    }
    return {digest: names[digest] for digest in sorted(extremes) if digest in names}


class Local:
    """Executes in this process.  tick: called behind each sample; False: no more."""

    def __init__(self, opened: Opened, *, pace: Pace, tick: Callable[[], bool]) -> None:
        self._opened, self._pace, self._tick = opened, pace, tick
        self._parts: list[Generator[Part, None, None]] = []

    def submit(self, start: int, stop: int, without: AbstractSet[str]) -> None:
        """See Executor."""
        self._parts.append(
            observe_parts(
                self._opened,
                start,
                stop,
                without=without,
                pace=self._pace,
                tick=self._tick,
            )
        )

    def next(self) -> Part | None:
        """See Executor."""
        while self._parts:
            part = next(self._parts[0], None)
            if part is not None:
                return part
            del self._parts[0]
        return None

    def close(self) -> None:
        """See Executor."""
        while self._parts:
            self._parts.pop().close()
