# SPDX-License-Identifier: Apache-2.0
"""Progress bars on stderr.  The only module that imports tqdm.

It does so where a bar is seen: many runs are short, and in logs there is none.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import ExitStack, contextmanager
from typing import Any

Watch = Callable[[Iterable[Any]], Iterable[Any]]


def _hidden(*, quiet: bool) -> bool:
    """True if nobody would see a bar; tqdm starts multiprocessing even for that."""
    return quiet or sys.stderr is None or not sys.stderr.isatty()


@contextmanager
def watcher(what: str, *, quiet: bool) -> Iterator[Watch]:
    """Yields a function that wraps samples so that going through them moves a bar.

    The bar shows itself only where stderr is a terminal, so logs stay clean, and is
    wiped away at the end, also when that is an error.
    """
    if _hidden(quiet=quiet):
        yield iter
        return
    from tqdm import tqdm

    with ExitStack() as stack:

        def watch(samples: Iterable[Any]) -> Iterable[Any]:
            batch = getattr(samples, "batch", 1)  # samples that come as one
            bar = stack.enter_context(
                tqdm(
                    desc=what,
                    total=len(samples) * batch if isinstance(samples, Sized) else None,
                    unit="sample",
                    leave=False,
                    dynamic_ncols=True,
                )
            )
            for sample in samples:
                yield sample
                bar.update(batch)

        yield watch


@contextmanager
def counter(
    what: str, unit: str = "sample", *, quiet: bool
) -> Iterator[Callable[[int, int | None], None] | None]:
    """Yields a function that is told how many units are done, and of how many.

    It may be called from any thread; the bar is the same as that of watcher(). None if
    nobody would see it.
    """
    if _hidden(quiet=quiet):
        yield None
        return
    from tqdm import tqdm

    with tqdm(
        desc=what,
        unit=unit,
        leave=False,
        dynamic_ncols=True,
    ) as bar:

        def count(done: int, total: int | None) -> None:
            bar.total = total
            bar.update(done - bar.n)
            if done == total:
                bar.close()

        yield count


@contextmanager
def stages(*, quiet: bool) -> Iterator[Callable[[str, int, int | None], None] | None]:
    """Yields a function that is told a stage, how much of it is done, and of how much.

    Each stage has a bar of its own. None if nobody would see it.
    """
    if _hidden(quiet=quiet):
        yield None
        return
    from tqdm import tqdm

    with ExitStack() as stack:
        bars: dict[str, Any] = {}

        def count(stage: str, done: int, total: int | None) -> None:
            if stage not in bars:
                bar = tqdm(desc=stage, total=total, leave=False, dynamic_ncols=True)
                bars[stage] = stack.enter_context(bar)
            bars[stage].update(done - bars[stage].n)

        yield count
