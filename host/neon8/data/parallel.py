# SPDX-License-Identifier: Apache-2.0
"""Work on samples in several threads at once, with results in order.

The number of threads changes only the time, not the results, the error that ends them,
or how many come before it. Only work that releases the GIL gets faster, like decoding
an image or running a network.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import Generic, TypeVar

from neon8.data.samples import Sample, Samples, kept

Result = TypeVar("Result")

AHEAD = 2
"""Samples begun for each thread: one in work and one that waits."""


class Results(Generic[Result]):
    """The results in the order of the samples, to be iterated over once.

    batch: how many samples the network takes at once, as of Samples.
    """

    def __init__(self, source: Iterator[Result], batch: int) -> None:
        self._source, self.batch = source, batch

    def __iter__(self) -> Iterator[Result]:
        """From the first to the last.  Raises what making or using a sample raises."""
        return self._source


class CountedResults(Results[Result]):
    """Results of samples whose number is known."""

    def __init__(self, source: Iterator[Result], batch: int, count: int) -> None:
        super().__init__(source, batch)
        self._count = count

    def __len__(self) -> int:
        """How many there are, if nothing goes wrong."""
        return self._count


@contextmanager
def side_by_side(
    samples: Iterable[Sample], work: Callable[[Sample], Result], *, workers: int
) -> Iterator[Results[Result]]:
    """A context with the results of `work`, called by `workers` threads.

    The threads also make the samples, where each can be made without those before it;
    otherwise the thread that iterates over the results does. Once the block is left, in
    whatever way, no thread is at work.
    """
    batch: int = getattr(samples, "batch", 1)
    if workers == 1:
        yield _results((work(sample) for sample in samples), batch, samples)
        return
    pool = ThreadPoolExecutor(workers, thread_name_prefix="neon8-sample")
    try:
        yield _results(
            _in_order(_jobs(samples, work), pool, workers * AHEAD), batch, samples
        )
    finally:
        pool.shutdown(cancel_futures=True)


def _jobs(
    samples: Iterable[Sample], work: Callable[[Sample], Result]
) -> Iterator[Callable[[], Result]]:
    """The work on each sample, which includes making it where that is possible."""
    if isinstance(samples, Samples) and samples.apart:
        make = samples.at

        def made(position: int) -> Result:
            return work(make(position))

        for position in range(len(samples)):
            yield partial(made, position)
    else:
        for sample in samples:
            yield partial(work, kept(sample))


def _results(
    source: Iterator[Result], batch: int, samples: Iterable[Sample]
) -> Results[Result]:
    if isinstance(samples, Sized):
        return CountedResults(source, batch, len(samples))
    return Results(source, batch)


def _in_order(
    jobs: Iterator[Callable[[], Result]], pool: ThreadPoolExecutor, most: int
) -> Iterator[Result]:
    """The results of the jobs; at most `most` are begun and not yet yielded."""
    rest = _begun(jobs, pool)
    begun = deque(islice(rest, most))
    while begun:
        result = begun.popleft().result()
        begun.extend(islice(rest, 1))
        yield result


def _begun(
    jobs: Iterator[Callable[[], Result]], pool: ThreadPoolExecutor
) -> Iterator[Future[Result]]:
    """Start the jobs.  An error in making one comes last, in its place."""
    try:
        for job in jobs:
            yield pool.submit(job)
    except Exception as error:  # noqa: BLE001 - whoever takes the result gets it
        failed: Future[Result] = Future()
        failed.set_exception(error)
        yield failed
