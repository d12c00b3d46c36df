# SPDX-License-Identifier: Apache-2.0
"""Thresholds from the ends of the distribution: minimum and maximum, percentile."""

import numpy as np

from neon8.calibrate.histogram import Counts, Histogram

KEEP = 0.9999


def minmax(histogram: Histogram, scheme: str) -> tuple[float, float]:
    """(lo, hi) that clip nothing; both ends of the same size if symmetric."""
    lo, hi = min(histogram.minimum, 0.0), max(histogram.maximum, 0.0)
    if scheme == "symmetric":
        return -max(-lo, hi), max(-lo, hi)
    return lo, hi


def percentile(
    histogram: Histogram, scheme: str, *, keep: float = KEEP
) -> tuple[float, float]:
    """(lo, hi) that keep this share of the values that are not zero.

    Symmetric and unsigned: the smallest bin edge t with P(|x| <= t) >= keep.
    Asymmetric: at most half of the others is beyond each end.
    """
    lo, hi = minmax(histogram, scheme)
    total = int(histogram.positive.sum()) + int(histogram.negative.sum())
    others = (1 - keep) * total + 1e-6  # 1 - keep is not exact, counts are
    if scheme == "asymmetric":
        return (
            max(lo, -_edge(histogram.negative, others / 2) * histogram.width),
            min(hi, _edge(histogram.positive, others / 2) * histogram.width),
        )
    both = histogram.positive + histogram.negative
    t = min(hi, _edge(both, others) * histogram.width)
    return (-t if scheme == "symmetric" else 0.0), t


def _edge(counts: Counts, others: float) -> int:
    """The first bin edge that has at most so many values above it."""
    above = np.concatenate([np.cumsum(counts[::-1])[::-1], [np.uint64(0)]])
    return int(np.argmax(above <= others))
