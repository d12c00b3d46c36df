# SPDX-License-Identifier: Apache-2.0
"""Thresholds from the ends of the distribution: minmax, percentile and legacy."""

import numpy as np

from neon8.calibrate.statistics.histogram import BINS, Counts, Histogram

KEEP = 0.9999


def minmax(histogram: Histogram, scheme: str) -> tuple[float, float]:
    """(lo, hi) that clip nothing; both ends of the same size if symmetric."""
    lo, hi = min(histogram.minimum, 0.0), max(histogram.maximum, 0.0)
    if scheme == "symmetric":
        return -max(-lo, hi), max(-lo, hi)
    return lo, hi


def percentile(
    histogram: Histogram, scheme: str, *, keep: float = KEEP, zeros: bool = False
) -> tuple[float, float]:
    """(lo, hi) that keep this share of the values, exact zeros counted only if asked.

    Symmetric and unsigned: the smallest bin edge t with P(|x| <= t) >= keep.
    Asymmetric: at most half of the others is beyond each end.
    """
    lo, hi = minmax(histogram, scheme)
    total = int(histogram.positive.sum()) + int(histogram.negative.sum())
    total += histogram.zeros if zeros else 0
    others = (1 - keep) * total + 1e-6  # 1 - keep is not exact, counts are
    if scheme == "asymmetric":
        return (
            max(lo, -_edge(histogram.negative, others / 2) * histogram.width),
            min(hi, _edge(histogram.positive, others / 2) * histogram.width),
        )
    both = histogram.positive + histogram.negative
    t = min(hi, _edge(both, others) * histogram.width)
    return (-t if scheme == "symmetric" else 0.0), t


def legacy(
    histogram: Histogram, scheme: str, *, keep: float = KEEP, cutoff: float = 1.0
) -> tuple[float, float]:
    """(lo, hi) as TensorRT's IInt8LegacyCalibrator finds them by its quantile.

    That interface has two numbers: a quantile that selects the maximum of the region
    to quantize, and a cutoff, a fraction of the largest value, for a regression that
    may select it instead and that was never published. Here the regression is left
    out: values above cutoff times the largest |x| do not count, and of all others,
    exact zeros included, the quantile of |x| is the threshold. It is rounded up to a
    bin edge and is the same on both sides, whatever the scheme, because that
    calibrator knew symmetric ranges only. quantile = cutoff = 1 is minmax.
    """
    lo, hi = minmax(histogram, scheme)
    region = cutoff * max(-lo, hi)
    bins = min(int(np.ceil(region / histogram.width)), BINS)
    both = (histogram.positive + histogram.negative)[:bins]
    others = (1 - keep) * (int(both.sum()) + histogram.zeros) + 1e-6
    t = min(region, _edge(both, others) * histogram.width)
    return max(lo, -t), min(hi, t)


def _edge(counts: Counts, others: float) -> int:
    """The first bin edge that has at most so many values above it."""
    above = np.concatenate([np.cumsum(counts[::-1])[::-1], [np.uint64(0)]])
    return int(np.argmax(above <= others))
