# SPDX-License-Identifier: Apache-2.0
"""Workers of a dask.distributed cluster.  The only module that imports it."""

import importlib
import threading
import time
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Any

from neon8.calibrate.run.task import Opened, Pace, Part, Task, observe_parts, open_task
from neon8.errors import CalibrationError, SetupError

SCHEME = "dask://"
RETRIES = 3
PATIENCE = 10
"""Seconds for a scheduler to answer."""
_NEVER = 1e9
_POLL = 0.05
_BUSY = threading.Lock()
"""A session's memory is used again and again, but a worker may have many threads."""

_Reply = tuple[dict[str, Any], bytes]


class Cluster:
    """Executes a task on the workers of a cluster.  See Executor.

    address: "dask://HOST:PORT" of its scheduler.  Model and data must be reachable
    under the same paths on all workers.  tick: called behind each sample.
    """

    def __init__(
        self,
        task: Task,
        address: str,
        *,
        known: AbstractSet[str],
        tick: Callable[[], bool],
    ) -> None:
        self._task, self._known, self._tick = task, known, tick
        try:
            self._dask = importlib.import_module("distributed")
        except ImportError as error:
            text = "dask.distributed is missing: pip install 'neon8[dask]'"
            raise SetupError(f"--engine {address}: {text}") from error
        host = "tcp://" + address.removeprefix(SCHEME)
        try:
            self._client = self._dask.Client(
                host, timeout=PATIENCE, set_as_default=False
            )
        except (OSError, ValueError) as error:
            text = "no dask scheduler answers there; is it running?"
            raise SetupError(f"--engine {address}: {text}") from error
        self._ready = self._dask.as_completed(
            loop=self._client.loop, raise_errors=False
        )

    def submit(self, start: int, stop: int, without: AbstractSet[str]) -> None:
        """See Executor."""
        self._ready.add(
            self._client.submit(
                _observe,
                self._task,
                start,
                stop,
                frozenset(self._known | without),
                pure=False,
                retries=RETRIES,
            )
        )

    def next(self) -> Part | None:
        """See Executor.  CalibrationError: workers keep dying."""
        if not self._ready.has_ready():
            time.sleep(_POLL)
            return None
        future = next(self._ready)
        try:
            head, data = future.result()
        except self._dask.KilledWorker as error:
            text = "workers of the cluster keep dying; are they short of memory?"
            raise CalibrationError(text) from error
        except self._dask.CancelledError as error:
            raise SetupError("the dask scheduler went away") from error
        part = Part.loads(head, data, source="a worker of the cluster")
        for _ in range(part.start, part.stop):
            self._tick()
        return part

    def close(self) -> None:
        """Withdraw what is not done, and disconnect."""
        self._client.cancel(list(self._ready.futures), force=True)
        self._client.close()


def _observe(task: Task, start: int, stop: int, without: AbstractSet[str]) -> _Reply:
    """On a worker: the whole part at once, and one part at a time."""
    with _BUSY:
        (part,) = observe_parts(
            _opened(task), start, stop, without=without, pace=Pace(_NEVER)
        )
    return part.dumps()


@lru_cache(maxsize=1)
def _opened(task: Task) -> Opened:
    """One session for each worker process."""
    return open_task(task, threads=1)
