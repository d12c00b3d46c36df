# SPDX-License-Identifier: Apache-2.0
"""Workers of a dask.distributed cluster.  The only module that imports it."""

import importlib
from concurrent.futures import CancelledError, Future
from typing import Any

from neon8.calibrate.run.executors import Job, Part, Span, observe_span
from neon8.errors import CalibrationError, SetupError

SCHEME = "dask://"
RETRIES = 3
PATIENCE = 10
"""Seconds for a scheduler to answer."""


class DaskPool:
    """The workers of a scheduler.  address: "dask://HOST:PORT".  See executors.Pool.

    Model and data must have the same paths on all workers. If a worker dies, another
    repeats its work.  SetupError: no scheduler answers.
    """

    def __init__(self, job: Job, *, address: str) -> None:
        self._job = job
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
        self._executor = self._client.get_executor(pure=False, retries=RETRIES)

    @property
    def width(self) -> int:
        """The present number of threads of all workers."""
        threads: dict[str, int] = self._client.nthreads()
        return max(1, sum(threads.values()))

    def submit(self, span: Span) -> Future[Any]:
        """See Pool."""
        future: Future[Any] = self._executor.submit(observe_span, self._job, span)
        return future

    def result(self, future: Future[Any]) -> Part:
        """See Pool.  CalibrationError: workers keep dying."""
        try:
            part: Part = future.result()
        except self._dask.KilledWorker as error:
            text = "workers of the cluster keep dying; are they short of memory?"
            raise CalibrationError(text) from error
        except CancelledError as error:
            raise SetupError("the dask scheduler went away; is it running?") from error
        return part

    def close(self) -> None:
        """Cancel what is not done, and disconnect."""
        self._executor.shutdown(wait=False)
        self._client.close()
