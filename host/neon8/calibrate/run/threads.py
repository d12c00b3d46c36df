# SPDX-License-Identifier: Apache-2.0
"""Threads of this process: their number, reading ahead, and parallel work."""

import os
import queue
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:  # solving needs no samples, nor what reads them
    from neon8.data.samples import Sample

MOST = 4
"""More threads would wait for each other in Python."""
DEPTH = 2
"""Samples read ahead: enough to even out, few enough for any memory."""

State = TypeVar("State")


def cores() -> int:
    """How many threads this process may run at once."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def usable() -> int:
    """How many threads pay off where they share Python objects."""
    return min(cores(), MOST)


def prefetch(
    samples: "Iterable[Sample]",
) -> "Generator[tuple[Sample, str], None, None]":
    """Read samples and their digests ahead in another thread.

    An error in reading one is raised here, after the samples before it.
    """
    source = iter(samples)

    def make() -> "tuple[Sample, str] | None":
        sample = next(source, None)
        return None if sample is None else (sample, sample.digest)

    thread = ThreadPoolExecutor(1, thread_name_prefix="neon8-prefetch")
    try:
        waiting = deque(thread.submit(make) for _ in range(DEPTH))
        while (item := waiting.popleft().result()) is not None:
            waiting.append(thread.submit(make))
            yield item
    finally:
        thread.shutdown(cancel_futures=True)


class StatePool(Generic[State]):
    """A thread for each state; each piece of work has one state to itself.

    If a method raises, the pool must not be used afterwards.
    """

    def __init__(self, states: Sequence[State]) -> None:
        self._states = tuple(states)
        self._free: queue.SimpleQueue[State] = queue.SimpleQueue()
        for state in states:
            self._free.put(state)
        name = "neon8-session"
        self._threads = ThreadPoolExecutor(len(states), thread_name_prefix=name)
        self._pending: deque[Future[None]] = deque()

    def submit(self, work: Callable[[State], None]) -> None:
        """Start `work` as soon as a state is free.

        Raises what went wrong before, as wait() does.
        """
        state = self._free.get()
        while self._pending and self._pending[0].done():
            self._pending.popleft().result()
        self._pending.append(self._threads.submit(self._work, state, work))

    def wait(self) -> tuple[State, ...]:
        """All states, after all work is done.

        Raises the error of the work that was submitted first, if any failed.
        """
        while self._pending:
            self._pending.popleft().result()
        return self._states

    def _work(self, state: State, work: Callable[[State], None]) -> None:
        try:
            work(state)
        finally:
            self._free.put(state)
