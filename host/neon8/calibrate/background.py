# SPDX-License-Identifier: Apache-2.0
"""Count one sample while the network runs on the next."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor


class Background:
    """A thread that does one thing at a time.

    If an exception leaves a method, nothing of what follows is to be trusted.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="neon8-background")
        self._busy: Future[None] | None = None

    def submit(self, work: Callable[[], None]) -> None:
        """Wait for what was submitted before, then start `work`.

        Raises what the work before raised.
        """
        self.wait()
        self._busy = self._thread.submit(work)

    def wait(self) -> None:
        """Until all is done.  Raises what the work raised."""
        busy, self._busy = self._busy, None
        if busy is not None:
            busy.result()
