# SPDX-License-Identifier: Apache-2.0
"""A few of many samples, the same whatever their order."""

import bisect
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from neon8.data.arrays import Arrays
from neon8.data.samples import Sample, kept

BUDGET = 1 << 28
"""Bound on the bytes of the samples kept."""


@dataclass(frozen=True, slots=True, order=True)
class Kept:
    """A copy of a sample.  digest: Sample.digest.  inputs: by name."""

    digest: str
    inputs: Arrays = field(compare=False)


class Few:
    """Keeps the samples with the least digests, which is an arbitrary choice.

    samples: at most `most` of those seen, and no more than BUDGET holds, by digest.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.samples: list[Kept] = []

    def watch(self, samples: Iterable[Sample]) -> Iterator[Sample]:
        """Pass the samples on, and keep some of them."""
        for sample in samples:
            self.add(sample)
            yield sample

    def add(self, sample: Sample) -> None:
        """Keep a sample if it is among those with the least digests so far."""
        size = sum(array.nbytes for array in sample.inputs.values())
        most = max(1, min(self._most, BUDGET // max(size, 1)))
        one = Kept(sample.digest, sample.inputs)
        place = bisect.bisect_left(self.samples, one)
        if place < most and self.samples[place : place + 1] != [one]:
            self.samples.insert(place, Kept(one.digest, kept(sample).inputs))
        del self.samples[most:]
