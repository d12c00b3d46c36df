# SPDX-License-Identifier: Apache-2.0
"""What is told of long work."""

import pytest

from neon8.progress import through


class Pairs(list):
    """Runs on two samples each."""

    batch = 2


def told_of(items):
    """What was told before each item came, and at the end."""
    told, seen = [], []

    def tell(stage, done, total):
        told.append((stage, done, total))

    for item in through(items, tell, "samples"):
        seen += [item, told[-1]]
    return [*seen, told[-1]]


@pytest.mark.parametrize(
    ("items", "each", "total"),
    [(["a", "b"], 1, 2), (Pairs("ab"), 2, 4), (iter("ab"), 1, None)],
)
def test_each_is_told_when_it_is_done(items, each, total):
    """A bar is there before the first is, which may take long."""
    first, second, last = (("samples", each * done, total) for done in range(3))
    assert told_of(items) == ["a", first, "b", second, last]
