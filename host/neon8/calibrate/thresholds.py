# SPDX-License-Identifier: Apache-2.0
"""From a histogram to scale and zero point: schemes, methods and their guards."""

from bisect import bisect_left
from collections.abc import Callable

import numpy as np

from neon8.calibrate.histogram import BINS, Histogram
from neon8.calibrate.thresholds_kl import kl, kl2017
from neon8.calibrate.thresholds_mse import mse
from neon8.calibrate.thresholds_range import minmax, percentile
from neon8.table.scale_table import TensorScale

Range = tuple[float, float]

METHODS: dict[str, Callable[[Histogram, str], Range]] = {
    "mse": mse,
    "kl": kl,
    "kl2017": kl2017,
    "minmax": minmax,
    "percentile": percentile,
}
"""Each gives (lo, hi), lo <= 0 <= hi, for a histogram and the scheme of its tensor."""
SCHEMES = ("auto", "symmetric")

MAX_CLIPPED_ENERGY = 1e-3
"""Of all energy. Outside this no method chose anything sensible in measurements."""
STEPS = 1024
FEWEST_VALUES = 1000
FEWEST_BINS = 128
SMALLEST = 1e-26
"""A tensor below this is as good as zero: its scale would be near the least, 1e-30."""


def solve(histogram: Histogram, *, method: str, scheme: str) -> TensorScale:
    """Scale and zero point for the values in `histogram`, at least one.

    method: a key of METHODS.  scheme: "auto" (unsigned where no value is negative, else
    asymmetric) or "symmetric".
    """
    absmax = max(-histogram.minimum, histogram.maximum)
    if absmax < SMALLEST:
        return _tensor_scale(histogram, "symmetric", (-1.0, 1.0), ("dead",))
    kind = "unsigned" if histogram.minimum >= 0 else "asymmetric"
    if scheme == "symmetric":
        kind = scheme
    if method == "minmax":
        return _tensor_scale(histogram, kind, minmax(histogram, kind), ())
    occupied = np.count_nonzero(histogram.positive)
    occupied += np.count_nonzero(histogram.negative)
    if histogram.total < FEWEST_VALUES or occupied < FEWEST_BINS:
        return _tensor_scale(histogram, kind, minmax(histogram, kind), ("few",))
    chosen = METHODS[method](histogram, kind)
    limits = widen(histogram, kind, chosen)
    return _tensor_scale(
        histogram, kind, limits, ("guard",) if limits != chosen else ()
    )


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


def _tensor_scale(
    histogram: Histogram, kind: str, limits: Range, reasons: tuple[str, ...]
) -> TensorScale:
    """The grid of numerics (1) that covers `limits`; real 0 is on it."""
    lo, hi = limits
    lowest = -127 if kind == "symmetric" else -128
    if kind == "symmetric":
        scale, zero_point = max(-lo, hi) / 127, 0
    elif kind == "unsigned":
        scale, zero_point = hi / 255, -128
    else:
        scale = (hi - lo) / 255
        zero_point = int(np.clip(np.rint(-128 - lo / scale), -128, 127))
    step = np.float32(scale)
    return TensorScale(
        scale=float(step),
        zero_point=zero_point,
        scheme=kind,
        threshold=(
            float(step * np.float32(lowest - zero_point)),
            float(step * np.float32(127 - zero_point)),
        ),
        min=histogram.minimum,
        max=histogram.maximum,
        reasons=reasons,
    )
