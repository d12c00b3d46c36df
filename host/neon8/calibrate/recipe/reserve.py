# SPDX-License-Identifier: Apache-2.0
"""What the histogram of a tensor cannot say of its range.

Averages.  The mean of n values has rounding errors smaller by sqrt(n), as if the values
had log2(n) / 2 bits more. What is clipped off them does not cancel, as all of it makes
large values smaller, and these lie together. So for what only such means read, the
method chooses as for these bits.

Few samples.  Others have larger values. With n samples a range ends SHARE (1 / sqrt(n)
- 1 / sqrt(ENOUGH)) of itself beyond what the method chose, but not beyond what the
activation lets through. Where the method clips, these samples have shown how large
values can be, and the more it clips the less their number matters: the reserve shrinks
by SHOWN times the share of the largest value that is cut off. Inputs are what the user
knows best, and stay as they are.
"""

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from neon8.calibrate.thresholds.guards import Range
from neon8.ir.graph import Graph
from neon8.quant.grid import covering
from neon8.quant.scale_table import TensorScale

AVERAGED = "averaged"
"""Reason code of a tensor that only means read."""
RESERVE = "reserve"
"""Reason code of a range that few samples made wider."""

ENOUGH = 64
"""With so many samples ranges end where the method says."""
SHARE = 0.75
"""More costs tensors with many values in each sample more than it brings others."""
SHOWN = 8
"""Where an eighth of the largest value is clipped, there is no reserve."""
LARGEST = 1e38
"""Ranges end there at most, so that what is beyond fits float32 as well."""


def averaged(graph: Graph, groups: Mapping[str, str]) -> dict[str, int]:
    """Scale group that only means read -> the bits that they add to its values."""
    means = {groups[name]: 1 for name in graph.outputs if name in groups}
    for node in graph.nodes:
        for group in {groups.get(name, "") for name in node.inputs}:
            if group != groups.get(node.output):
                means[group] = min(means.get(group, node.averaged), node.averaged)
    more = {group: (count.bit_length() - 1) // 2 for group, count in means.items()}
    return {group: bits for group, bits in more.items() if bits}


def bounds(graph: Graph, groups: Mapping[str, str]) -> dict[str, Range]:
    """Group -> what its values cannot exceed, of all groups without inputs."""
    given = {groups[name] for name in graph.inputs if name in groups}
    found: dict[str, Range] = {}
    for node in graph.nodes:
        group = groups.get(node.output, "")
        if group in {"", *given} or group in {groups.get(n) for n in node.inputs}:
            continue
        lo, hi = found.get(group, (math.inf, -math.inf))
        own = node.activation
        found[group] = min(lo, own.lo), max(hi, own.hi)
    return found


def with_reserve(entry: TensorScale, bound: Range, *, samples: int) -> TensorScale:
    """The entry with a range that `samples` samples leave room for."""
    more = SHARE * (1 / math.sqrt(samples) - 1 / math.sqrt(ENOUGH))
    largest = max(-(entry.min or 0.0), entry.max or 0.0)
    if more <= 0 or largest == 0 or "dead" in entry.reasons:
        return entry
    lo, hi = entry.threshold
    clipped = max(0.0, 1 - max(-lo, hi) / largest)
    more *= max(0.0, 1 - SHOWN * clipped)
    least, most = max(bound[0], -LARGEST), min(bound[1], LARGEST)
    lo, hi = min(lo, max((1 + more) * lo, least)), max(hi, min((1 + more) * hi, most))
    wider = covering(entry, lo, hi)
    if wider.scale <= np.float32(entry.scale):
        return entry
    return replace(wider, reasons=(RESERVE, *entry.reasons))
