# SPDX-License-Identifier: Apache-2.0
"""How the thresholds settle as samples come in, and when they are settled enough.

Measured after 8, 16, 32 ... samples and after the last: the mse threshold of every
group of tensors that share a scale. A movement is relative: the larger one of the two
ends, divided by the width of the new range.
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

FIRST = 8
TOLERANCE = 0.01
WORST = 10
"""Tensors in the text."""

Range = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """thresholds: (lo, hi) of each scale group, by its name, after `samples` samples.

    positions: in the data; more than samples where some are there twice.  of: digest
    of the set of these samples.
    """

    positions: int
    samples: int
    of: str
    thresholds: dict[str, Range]


def stops(count: int | None) -> Iterator[int]:
    """The positions at which a Point is due; without end if `count` is not known."""
    stop = FIRST
    while count is None or stop < count:
        yield stop
        stop *= 2
    yield count


def measure(observation: Observation, positions: int) -> Point:
    """The thresholds of what has been observed up to a position in the data."""
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
    """SHA-256, in hex, of the samples with these digests, in whatever order."""
    return hashlib.sha256("".join(sorted(samples)).encode()).hexdigest()


def movements(before: Point, after: Point) -> dict[str, float]:
    """How far each group's threshold moved; 0.01 is one percent."""
    result = {}
    for name, (lo, hi) in after.thresholds.items():
        old_lo, old_hi = before.thresholds[name]
        result[name] = max(abs(lo - old_lo), abs(hi - old_hi)) / (hi - lo)
    return result


def stable(points: Sequence[Point], tolerance: float) -> bool:
    """True if nothing moved by more when the data last doubled."""
    if len(points) > 1 and points[-1].positions < 2 * points[-2].positions:
        points = points[:-1]
    if len(points) < 2:
        return False
    return max(movements(*points[-2:]).values(), default=0.0) <= tolerance


def to_json(point: Point) -> list[Any]:
    """As a JSON value."""
    return [point.positions, point.samples, point.of, point.thresholds]


def from_json(value: Any) -> Point:
    """to_json() backwards."""
    positions, samples, of, found = value
    return Point(
        positions=positions,
        samples=samples,
        of=of,
        thresholds={n: (r[0], r[1]) for n, r in found.items()},
    )


def report(
    observation: Observation,
    points: Sequence[Point],
    names: Mapping[str, str],
    *,
    tolerance: float,
) -> dict[str, Any]:
    """As a JSON value.  names: digest -> name of samples, as far as known."""
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
    """The report as a short table: all points, and the tensors that moved most."""
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
