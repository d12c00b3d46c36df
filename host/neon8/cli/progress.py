# SPDX-License-Identifier: Apache-2.0
"""Progress bars on stderr.  The only module that imports tqdm.

It is imported only where a bar is visible: not in logs, and many runs are short.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from neon8.progress import Stages, nobody, through

Watch = Callable[[Iterable[Any]], Iterable[Any]]

UNITS = {
    "faster": "run",
    "choose": "layer",
    "search": "run",
    "remedies": "remedy",
    "shapes": "shape",
}
"""What a stage counts, if not samples."""


def _hidden(*, quiet: bool) -> bool:
    """True if a bar would be invisible; tqdm starts multiprocessing even then."""
    return quiet or sys.stderr is None or not sys.stderr.isatty()


@contextmanager
def stages(*, quiet: bool) -> Iterator[Stages]:
    """Yield a function to call with a stage, how much of it is done, and of how much.

    Each stage has a bar of its own, removed when the stage is done and at the end of
    the block, even after an error. Any thread may call the function.
    """
    if _hidden(quiet=quiet):
        yield nobody
        return
    from tqdm import tqdm

    with ExitStack() as stack:
        bars: dict[str, Any] = {}

        def told(stage: str, done: int, total: int | None) -> None:
            if stage not in bars:
                unit = UNITS.get(stage, "sample")
                bar = tqdm(desc=stage, unit=unit, leave=False, dynamic_ncols=True)
                bars[stage] = stack.enter_context(bar)
            bars[stage].total = total
            bars[stage].update(done - bars[stage].n)
            if done == total:
                bars[stage].close()

        yield told


@contextmanager
def watcher(what: str, *, quiet: bool) -> Iterator[Watch]:
    """Yield a function that wraps samples so that going through them moves a bar."""
    if _hidden(quiet=quiet):
        yield iter
        return
    with stages(quiet=quiet) as told:
        yield partial(through, progress=told, stage=what)
