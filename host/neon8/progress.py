# SPDX-License-Identifier: Apache-2.0
"""Progress bars on stderr.  The only module that imports tqdm."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tqdm import tqdm


@contextmanager
def bar(total: int, what: str, *, quiet: bool = False) -> Iterator[Callable[[int], None]]:
    """A bar of `total` samples; yields advance(done).

    It shows itself only where stderr is a terminal, so logs stay clean.
    """
    shown = tqdm(
        total=total,
        desc=what,
        unit="sample",
        leave=False,
        dynamic_ncols=True,
        disable=True if quiet else None,
    )
    with shown:
        yield shown.update
