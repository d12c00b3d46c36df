# SPDX-License-Identifier: Apache-2.0
"""How much of long work is done, for whoever wants to see it."""

from collections.abc import Callable, Iterable, Iterator, Sized
from typing import TypeVar

Count = Callable[[int, int | None], None]
"""Told how much is done, and of how much, None if that is not known."""
Stages = Callable[[str, int, int | None], None]
"""The same of a stage, such as "observe", "choose" or "search"."""
Item = TypeVar("Item")


def nobody(*_told: object) -> None:
    """Show nothing."""


def through(items: Iterable[Item], progress: Stages, stage: str) -> Iterator[Item]:
    """Yield the items, and report each when the caller is done with it; first none.

    Items that are runs on several samples, as their `batch` says, count as these.
    """
    batch = getattr(items, "batch", 1)
    total = len(items) * batch if isinstance(items, Sized) else None
    progress(stage, 0, total)
    for done, item in enumerate(items, 1):
        yield item
        progress(stage, done * batch, total)
