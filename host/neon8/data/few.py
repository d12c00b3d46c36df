# SPDX-License-Identifier: Apache-2.0
"""A few of many samples, the same whatever their order."""

import bisect
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate

from neon8.data.arrays import Arrays
from neon8.data.samples import Sample, kept

BUDGET = 1 << 28
"""Bound on the bytes of the samples kept."""


@dataclass(frozen=True, slots=True, order=True)
class Kept:
    """A copy of a sample.  digest: Sample.digest.  inputs: by name."""

    digest: str
    inputs: Arrays = field(compare=False)

    @property
    def size(self) -> int:
        """Its bytes."""
        return sum(array.nbytes for array in self.inputs.values())


class Few:
    """Keeps the samples with the least digests, which is an arbitrary choice.

    samples: at most `most` of those seen, and no more than BUDGET holds, by digest.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.samples: list[Kept] = []
        self._first_left: Kept | None = None

    def watch(self, samples: Iterable[Sample]) -> Iterator[Sample]:
        """Pass the samples on, and keep some of them."""
        for sample in samples:
            self.add(sample)
            yield sample

    def add(self, sample: Sample) -> None:
        """Keep a sample if it is among those with the least digests so far."""
        one = Kept(sample.digest, sample.inputs)
        place = bisect.bisect_left(self.samples, one)
        if self.samples[place : place + 1] == [one]:
            return
        if self._first_left is not None and one >= self._first_left:
            return
        self.samples.insert(place, Kept(one.digest, kept(sample).inputs))
        total = accumulate(each.size for each in self.samples)
        most = max(1, min(self._most, sum(size <= BUDGET for size in total)))
        if most < len(self.samples):  # nor is there room for what comes after it
            self._first_left = Kept(self.samples[most].digest, {})
            del self.samples[most:]
