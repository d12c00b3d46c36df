# SPDX-License-Identifier: Apache-2.0
"""Threads that work side by side, each with something of its own to work on."""

import os
import queue
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

MOST = 4
"""More threads would wait for each other in Python."""

Lane = TypeVar("Lane")


def usable() -> int:
    """How many threads are worth it on this machine."""
    if sys.platform == "linux":
        return min(len(os.sched_getaffinity(0)), MOST)
    return min(os.cpu_count() or 1, MOST)


class Lanes(Generic[Lane]):
    """One thread for each lane; work goes to any lane that is free.

    If an exception leaves a method, the lanes are of no use afterwards.
    """

    def __init__(self, lanes: Sequence[Lane]) -> None:
        self._count = len(lanes)
        self._free: queue.SimpleQueue[Lane] = queue.SimpleQueue()
        for lane in lanes:
            self._free.put(lane)
        self._threads = ThreadPoolExecutor(len(lanes), thread_name_prefix="neon8-lane")
        self._submitted = 0
        self._errors: list[tuple[int, BaseException]] = []

    def submit(self, work: Callable[[Lane], None]) -> None:
        """Start `work` as soon as a lane is free.

        Raises what went wrong before, as wait() does.
        """
        lane = self._free.get()
        if self._errors:
            self._free.put(lane)
            self.wait()
        self._submitted += 1
        self._threads.submit(self._work, lane, work, self._submitted)

    def wait(self) -> list[Lane]:
        """Until all work is done; all lanes.

        Raises what went wrong in the work that was submitted first.
        """
        lanes = [self._free.get() for _ in range(self._count)]
        for lane in lanes:
            self._free.put(lane)
        if self._errors:
            _, error = min(self._errors, key=lambda pair: pair[0])
            raise error
        return lanes

    def _work(self, lane: Lane, work: Callable[[Lane], None], number: int) -> None:
        try:
            work(lane)
        except BaseException as error:  # noqa: BLE001 - raised again by wait()
            self._errors.append((number, error))
        finally:
            self._free.put(lane)
