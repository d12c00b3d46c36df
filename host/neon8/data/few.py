# SPDX-License-Identifier: Apache-2.0
"""A few samples of many, the same in whatever order they come."""

import bisect
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from neon8.data.arrays import Arrays
from neon8.data.samples import Sample, kept

BUDGET = 1 << 28
"""Bytes of the samples that are kept."""


@dataclass(frozen=True, slots=True, order=True)
class Kept:
    """A sample.  digest: Sample.digest.  inputs: by name, a copy of what it had."""

    digest: str
    inputs: Arrays = field(compare=False)


class Few:
    """Keeps those of the least digests, which say nothing of what is in a sample.

    samples: at most `most` of those that have passed by, and no more than BUDGET holds,
    by digest.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.samples: list[Kept] = []

    def watch(self, samples: Iterable[Sample]) -> Iterator[Sample]:
        """The same samples, of which some are kept."""
        for sample in samples:
            self.add(sample)
            yield sample

    def add(self, sample: Sample) -> None:
        """Keep it, if it is one of them so far."""
        size = sum(array.nbytes for array in sample.inputs.values())
        most = max(1, min(self._most, BUDGET // max(size, 1)))
        one = Kept(sample.digest, sample.inputs)
        place = bisect.bisect_left(self.samples, one)
        if place < most and self.samples[place : place + 1] != [one]:
            self.samples.insert(place, Kept(one.digest, kept(sample).inputs))
        del self.samples[most:]
