# SPDX-License-Identifier: Apache-2.0
"""What stands between a method's answer and a table that ruins a network.

A guard that changed something, or found something that the reader should know, leaves a
code in the table and a line in the log. The codes are these and no others.
"""

import logging
from bisect import bisect_left
from collections.abc import Iterator

import numpy as np

from neon8.calibrate.statistics.histogram import BINS, Histogram
from neon8.calibrate.thresholds.range import minmax
from neon8.quant.scale_table import ScaleTable

MEANINGS = {
    "dead": "nothing but zeros was seen; the scale is made up",
    "few:samples": "so few samples say little about the largest values; take more",
    "few:values": "fewer than 1000 values were seen; minimum and maximum were taken",
    "few:bins": "too few different values for the method; minimum and maximum were "
    "taken",
    "guard": "the method clipped more than 0.1 % of the energy; the range was widened",
    "nonfinite": "NaN or infinite values were seen and ignored",
    "floor": "the scale was raised: not every processor keeps it below 1e-30, or its "
    "product with the scale of the input",
    "signed": "negative values were seen where unsigned was asked for; it is symmetric",
    "unread": "no convolution reads the tensor; judged by the histogram instead of the "
    "output of a layer",
    "override": "set by the user",
    "imported": "taken from another tool's table",
    "bias": "the weight scale was enlarged so that the bias fits int32",
}
"""Of tensors and layers, and few:samples of a whole table. `dead`, `floor` and `bias`
of a layer come with a channel: `dead:7` is a channel without weights."""

MAX_CLIPPED_ENERGY = 1e-3
"""Of all energy. Outside this no method chose anything sensible in measurements."""
STEPS = 1024
FEWEST_SAMPLES = 8
FEWEST_VALUES = 1000
FEWEST_BINS = 128
SMALLEST = 1e-26
"""A tensor below this is as good as zero: its scale would be near the least, 1e-30."""

Range = tuple[float, float]


def dead(histogram: Histogram) -> bool:
    """True if no value is worth a scale."""
    return max(-histogram.minimum, histogram.maximum) < SMALLEST


def few(histogram: Histogram) -> str | None:
    """The code of what is missing for any method but minmax."""
    if histogram.total < FEWEST_VALUES:
        return "few:values"
    occupied = np.count_nonzero(histogram.positive)
    occupied += np.count_nonzero(histogram.negative)
    return "few:bins" if occupied < FEWEST_BINS else None


def clipped_energy(histogram: Histogram, lo: float, hi: float) -> float:
    """The share of sum(x * x) that values outside [lo, hi] lose by clipping."""
    centers = np.arange(BINS) + 0.5
    lost = total = 0.0
    for counts, limit in ((histogram.positive, hi), (histogram.negative, -lo)):
        over = np.maximum(centers - limit / histogram.width, 0.0)
        lost += float(counts @ (over * over))
        total += float(counts @ (centers * centers))
    return lost / total if total else 0.0


def widen(histogram: Histogram, kind: str, limits: Range) -> Range:
    """`limits`, or the first wider ones that clip no more than MAX_CLIPPED_ENERGY.

    They move in STEPS steps towards those that clip nothing.
    """
    full = minmax(histogram, kind)

    def moved(step: int) -> Range:
        share = step / STEPS
        return (
            limits[0] + share * (full[0] - limits[0]),
            limits[1] + share * (full[1] - limits[1]),
        )

    def fits(step: int) -> bool:
        return clipped_energy(histogram, *moved(step)) <= MAX_CLIPPED_ENERGY

    return moved(bisect_left(range(STEPS), True, key=fits))


def meaning(code: str) -> str:
    """Of a code, with or without a channel; "?" for one that is not of this list."""
    return MEANINGS.get(code) or MEANINGS.get(code.partition(":")[0], "?")


def lines(table: ScaleTable) -> Iterator[str]:
    """One for each guard that fired."""
    for code in table.reasons:
        yield f"{table.samples} samples: {code}: {meaning(code)}"
    for name, tensor in table.tensors.items():
        for code in tensor.reasons:
            yield f"tensor {name!r}: {code}: {meaning(code)}"
    for name, layer in table.layers.items():
        for code in layer.reasons:
            yield f"layer {name!r}: {code}: {meaning(code)}"


def log(table: ScaleTable) -> None:
    """Every guard that fired, as a warning of the logger "neon8.guards"."""
    for line in lines(table):
        logging.getLogger("neon8.guards").warning("%s", line)
