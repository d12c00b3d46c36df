# SPDX-License-Identifier: Apache-2.0
"""When thresholds are measured, how far they move, and what counts as settled."""

import pytest

from neon8.calibrate.run.convergence import (
    Point,
    movements,
    set_digest,
    stable,
)


def point(positions, **thresholds):
    return Point(
        positions=positions,
        samples=positions,
        of=set_digest(map(str, range(positions))),
        thresholds=thresholds,
    )


@pytest.mark.parametrize(
    ("before", "after", "moved"),
    [
        ((0, 1), (0, 1), 0),
        ((0, 1), (0, 1.25), 0.2),
        ((-1, 1), (-1, 0.6), 0.25),
        ((-1, 3), (-3, 2), 0.4),
    ],
)
def test_movements(before, after, moved):
    found = movements(point(8, t=before), point(16, t=after))
    assert found == {"t": pytest.approx(moved)}


def test_stable_looks_at_the_last_doubling():
    points = [point(8, t=(0, 1)), point(16, t=(0, 1.25)), point(20, t=(0, 1.25))]
    assert not stable(points[:1], 1.0)
    assert stable(points[:2], 0.2)
    assert not stable(points[:2], 0.19)
    assert not stable(points, 0.19)  # from 16 to 20 is no doubling
    assert not stable([points[0], point(9, t=(0, 1))], 1.0)
