# SPDX-License-Identifier: Apache-2.0
"""Work on samples by several threads at once, whose results come in order.

What comes out depends on the number of threads in nothing but time: the results, the
error that ends them, and how many come before it. Only what releases the GIL, as
decoding an image and running a network do, is faster by it.
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
"""Samples begun for each thread: one that is worked on, one that waits its turn."""


class Results(Generic[Result]):
    """The results in the order of the samples, to be gone through once.

    batch: how many samples the network takes at once, as of Samples.
    """

    def __init__(self, source: Iterator[Result], batch: int) -> None:
        self._source, self.batch = source, batch

    def __iter__(self) -> Iterator[Result]:
        """From the first to the last.  Raises what making or using a sample raises."""
        return self._source


class CountedResults(Results[Result]):
    """Those of samples whose number is known."""

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
    """The results of `work`, which `workers` threads call at the same time.

    Where each sample can be made without those before it, the threads make them, too;
    others are made by the thread that goes through the results. When the block is left,
    however it is, no thread works any more.
    """
    batch: int = getattr(samples, "batch", 1)
    if workers == 1:
        yield _results((work(sample) for sample in samples), batch, samples)
        return
    jobs = (partial(_made_and_used, make, work) for make in _makers(samples))
    pool = ThreadPoolExecutor(workers, thread_name_prefix="neon8-sample")
    try:
        yield _results(_in_order(jobs, pool, workers * AHEAD), batch, samples)
    finally:
        pool.shutdown(cancel_futures=True)


def _made_and_used(
    make: Callable[[], Sample], work: Callable[[Sample], Result]
) -> Result:
    return work(make())


def _makers(samples: Iterable[Sample]) -> Iterator[Callable[[], Sample]]:
    """For each sample a function that makes it, or gives it where it is made."""
    if isinstance(samples, Samples) and samples.apart:
        for position in range(len(samples)):
            yield partial(samples.at, position)
    else:
        for sample in samples:
            yield partial(_same, kept(sample))


def _same(sample: Sample) -> Sample:
    return sample


def _results(
    source: Iterator[Result], batch: int, samples: Iterable[Sample]
) -> Results[Result]:
    if isinstance(samples, Sized):
        return CountedResults(source, batch, len(samples))
    return Results(source, batch)


def _in_order(
    jobs: Iterator[Callable[[], Result]], pool: ThreadPoolExecutor, most: int
) -> Iterator[Result]:
    """What the jobs return, of which at most `most` are begun and not handed out."""
    rest = _begun(jobs, pool)
    begun = deque(islice(rest, most))
    while begun:
        result = begun.popleft().result()
        begun.extend(islice(rest, 1))
        yield result


def _begun(
    jobs: Iterator[Callable[[], Result]], pool: ThreadPoolExecutor
) -> Iterator[Future[Result]]:
    """The jobs, begun.  An error in making one comes as the last, in its place."""
    try:
        for job in jobs:
            yield pool.submit(job)
    except Exception as error:  # noqa: BLE001 - whoever takes the result gets it
        failed: Future[Result] = Future()
        failed.set_exception(error)
        yield failed
