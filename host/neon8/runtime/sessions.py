# SPDX-License-Identifier: Apache-2.0
"""Sessions: runs of one model by several threads at the same time."""

from collections import deque
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Protocol

from neon8.runtime.arrays import Array
from neon8.runtime.closable import Closable


class Runs(Protocol):
    """What runs a model, one sample at a time."""

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run once."""

    def close(self) -> None:
        """Give back what it holds."""


class Sessions(Closable):
    """As many sessions as threads run at once, each opened when it is needed.

    Close it when no thread runs any more.
    """

    __slots__ = ("_free", "_open", "_stack")

    def __init__(self, first: Runs, another: Callable[[], Runs]) -> None:
        """first: is there already.  another: opens one more."""
        self._open = another
        # The one that ran last has its memory in the cache; both ends are thread-safe.
        self._free = deque([first])
        self._stack = ExitStack()
        self._stack.callback(first.close)

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run once, in a session that no other thread has."""
        try:
            session = self._free.pop()
        except IndexError:
            session = self._open()
            self._stack.callback(session.close)
        try:
            return session.run(inputs)
        finally:
            self._free.append(session)

    def close(self) -> None:
        """Close all of them."""
        self._stack.close()
