# SPDX-License-Identifier: Apache-2.0
"""Convergence: how thresholds settle as samples come in, and when they are stable.

The mse threshold of every scale group is measured after 8, 16, 32 ... samples and after
the last. A movement is that of the end that moves more, divided by the width of the new
range.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Any

from neon8.calibrate.observation import Observation
from neon8.calibrate.statistics import histogram
from neon8.calibrate.statistics.observer import Extreme
from neon8.calibrate.thresholds import choose as thresholds
from neon8.calibrate.thresholds.guards import Range

FIRST = 8
TOLERANCE = 0.01
WORST = 10
"""How many tensors the text names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Thresholds after `samples` samples: scale group -> (lo, hi).

    positions: how far in the data; more than `samples` where it repeats some.  of:
    digest of the set of samples.
    """

    positions: int
    samples: int
    of: str
    thresholds: dict[str, Range]


def stops(count: int | None) -> Iterator[int]:
    """Positions at which to measure; endless if `count` is not known."""
    stop = FIRST
    while count is None or stop < count:
        yield stop
        stop *= 2
    yield count


def measure(observation: Observation, positions: int) -> Point:
    """Measure the thresholds of what was observed up to a position in the data."""
    groups: dict[str, list[histogram.Histogram]] = {}
    for name, tensor in observation.tensors.items():
        groups.setdefault(observation.scale_groups[name], []).append(tensor.histogram)
    solved = {
        name: thresholds.solve(
            reduce(histogram.merge, group), method="mse", scheme="auto"
        )
        for name, group in groups.items()
    }
    return Point(
        positions=positions,
        samples=len(observation.samples),
        of=set_digest(observation.samples),
        thresholds={name: found.threshold for name, found in solved.items()},
    )


def set_digest(samples: Iterable[str]) -> str:
    """SHA-256, in hex, of a set of sample digests; their order does not matter."""
    return hashlib.sha256("".join(sorted(samples)).encode()).hexdigest()


def movements(before: Point, after: Point) -> dict[str, float]:
    """Relative movement of each group's threshold; 0.01 is one percent."""
    result = {}
    for name, (lo, hi) in after.thresholds.items():
        old_lo, old_hi = before.thresholds[name]
        result[name] = max(abs(lo - old_lo), abs(hi - old_hi)) / (hi - lo)
    return result


def stable(points: Sequence[Point], tolerance: float) -> bool:
    """True if no threshold moved by more when the samples last doubled."""
    if len(points) > 1 and points[-1].positions < 2 * points[-2].positions:
        points = points[:-1]
    if len(points) < 2:
        return False
    return max(movements(*points[-2:]).values(), default=0.0) <= tolerance


def to_json(point: Point) -> list[Any]:
    """A point as a JSON value."""
    return [point.positions, point.samples, point.of, point.thresholds]


def from_json(value: Any) -> Point:
    """The point of which to_json() made `value`."""
    positions, samples, of, found = value
    thresholds = {name: (lo, hi) for name, (lo, hi) in found.items()}
    return Point(positions=positions, samples=samples, of=of, thresholds=thresholds)


def report(
    observation: Observation,
    points: Sequence[Point],
    names: Mapping[str, str],
    *,
    tolerance: float,
) -> dict[str, Any]:
    """The report as a JSON value.  names: digest -> name of known samples."""
    moved = [movements(a, b) for a, b in pairwise(points)]

    def extreme(found: Extreme | None) -> dict[str, Any] | None:
        if found is None:
            return None
        return {
            "value": found.value,
            "sample": names.get(found.sample),
            "digest": found.sample,
            "channel": found.channel,
        }

    return {
        "format": "neon8 convergence",
        "version": 1,
        "model": {"name": observation.model_name, "digest": observation.model_digest},
        "samples": [point.samples for point in points],
        "tolerance": tolerance,
        "stable": stable(points, tolerance),
        "moved": [max(each.values(), default=0.0) for each in moved],
        "groups": {
            name: {
                "threshold": [point.thresholds[name] for point in points],
                "moved": [each[name] for each in moved],
            }
            for name in (points[-1].thresholds if points else ())
        },
        "tensors": {
            name: {
                "group": observation.scale_groups[name],
                "smallest": extreme(tensor.smallest),
                "largest": extreme(tensor.largest),
            }
            for name, tensor in observation.tensors.items()
        },
    }


def as_text(value: Mapping[str, Any]) -> str:
    """The report as a table: all points, and the tensors that moved most."""
    samples, moved = value["samples"], value["moved"]
    groups: dict[str, Any] = value["groups"]
    lines = ["samples   largest movement of a threshold since the line above"]
    for index, count in enumerate(samples):
        text = "-"
        if index:
            name = max(groups, key=lambda n: groups[n]["moved"][index - 1], default="")
            text = f"{100 * moved[index - 1]:.2f} %  {name}"
        lines.append(f"{count:>7}   {text}")
    if len(samples) > 1:
        worst = sorted(groups, key=lambda n: -groups[n]["moved"][-1])[:WORST]
        lines.append("last movement   largest value, its sample and channel")
        for name in worst:
            last = f"{100 * groups[name]['moved'][-1]:>11.2f} %"
            lines.append(f"{last}   {name}: {_largest(value, name)}")
    limit = f"{100 * value['tolerance']:g} %"
    state = "stable" if value["stable"] else "not stable"
    lines.append(f"{state}: the limit is {limit} while the samples double")
    return "\n".join(lines)


def _largest(value: Mapping[str, Any], group: str) -> str:
    """The value of largest magnitude in the tensors of a group."""
    found = [
        extreme
        for tensor in value["tensors"].values()
        if tensor["group"] == group
        for extreme in (tensor["smallest"], tensor["largest"])
        if extreme is not None
    ]
    if not found:
        return "no values"
    most = max(found, key=lambda extreme: abs(extreme["value"]))
    where = most["sample"] or f"sample {most['digest'][:16]}"
    return f"{most['value']:.6g}, {where}, channel {most['channel']}"
