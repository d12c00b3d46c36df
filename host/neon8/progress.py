# SPDX-License-Identifier: Apache-2.0
"""Progress bars on stderr.  The only module that imports tqdm."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TypeVar

from tqdm import tqdm

Item = TypeVar("Item")
Watch = Callable[[Iterable[Item]], Iterable[Item]]


@contextmanager
def watcher(what: str, *, quiet: bool) -> Iterator[Watch[Item]]:
    """Yields a function that wraps samples so that going through them moves a bar.

    The bar shows itself only where stderr is a terminal, so logs stay clean, and is
    wiped away at the end, also when that is an error.
    """
    with ExitStack() as stack:

        def watch(samples: Iterable[Item]) -> Iterable[Item]:
            shown: Iterable[Item] = stack.enter_context(
                tqdm(
                    samples,
                    desc=what,
                    unit="sample",
                    leave=False,
                    dynamic_ncols=True,
                    disable=True if quiet else None,
                )
            )
            return shown

        yield watch
