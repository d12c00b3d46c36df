# SPDX-License-Identifier: Apache-2.0
"""Thresholds by mean squared error: rounding inside against clipping outside.

Every grid that contains 0 is a step s and a number n of levels below zero. For each of
many steps and every n the expected error is computed from running sums, with values
spread evenly within a bin; then once more between the neighbours of the best step.
Exact zeros have no error on any grid. Lengths are in bins: nothing over- or underflows.
"""

import numpy as np
import numpy.typing as npt

from neon8.calibrate.histogram import Counts, Histogram
from neon8.calibrate.thresholds_range import minmax

Float64Array = npt.NDArray[np.float64]

COARSE = 128
FINE = 33


def mse(histogram: Histogram, scheme: str) -> tuple[float, float]:
    """(lo, hi) of the grid with the least expected squared error."""
    lo, hi = (limit / histogram.width for limit in minmax(histogram, scheme))
    if scheme == "symmetric":
        levels, below = 254, np.array([127])
    elif scheme == "unsigned":
        levels, below = 255, np.array([0])
    else:
        levels, below = 255, np.arange(256)
    # Rounding the zero point may cost one level of the widest grid that is needed.
    largest = (hi - lo) / (levels - (scheme == "asymmetric"))
    steps = np.linspace(largest, largest / COARSE, COARSE)
    best, _ = _least(histogram, steps, below, levels)
    around = (steps[max(best - 1, 0)], steps[min(best + 1, COARSE - 1)])
    steps = np.linspace(*around, FINE)
    best, split = _least(histogram, steps, below, levels)
    step = float(steps[best]) * histogram.width
    negative = int(below[split])
    return -negative * step, (levels - negative) * step


def _least(
    histogram: Histogram,
    steps: Float64Array,
    below: npt.NDArray[np.int64],
    levels: int,
) -> tuple[int, int]:
    """Indices into steps and below; of equal errors, the largest step."""
    above = _side(histogram.positive, steps, levels - below)
    errors = above + _side(histogram.negative, steps, below)
    step, split = np.unravel_index(int(np.argmin(errors)), errors.shape)
    return int(step), int(split)


def _side(
    counts: Counts, steps: Float64Array, levels: npt.NDArray[np.int64]
) -> Float64Array:
    """Error of one side for each step and number of levels on it: (steps, levels)."""
    used = int(np.flatnonzero(counts)[-1]) + 1 if counts.any() else 0
    if used == 0:
        return np.zeros((len(steps), len(levels)))
    weight = counts[:used].astype(np.float64)
    edges = np.arange(used + 1, dtype=np.float64)
    step = steps[:, np.newaxis]

    # The integral of (x - round(x / s) * s)**2 from 0 to e, at all edges e.
    nearest = np.rint(edges / step)
    rest = edges - nearest * step
    integral = nearest * (step**3 / 12) + rest * rest * rest / 3
    rounding = np.zeros((len(steps), used + 1))
    np.cumsum(np.diff(integral, axis=1) * weight, axis=1, out=rounding[:, 1:])

    centers = edges[:-1] + 0.5
    moments = (weight, weight * centers, weight * (centers * centers + 1 / 12))
    reach = step * levels
    at = np.minimum(reach, used)
    index = np.minimum(at.astype(np.int64), used - 1)
    share = at - index
    zeroth, first, second = (_above(moment, index, share) for moment in moments)
    clipping = np.maximum(second - 2 * reach * first + reach * reach * zeroth, 0.0)
    row = np.arange(len(steps))[:, np.newaxis]
    inside = rounding[row, index]
    inside += share * (rounding[row, index + 1] - inside)
    result: Float64Array = inside + np.where(reach < used, clipping, 0.0)
    return result


def _above(
    moment: Float64Array, index: npt.NDArray[np.int64], share: Float64Array
) -> Float64Array:
    """The sum of `moment` above the point `share` into bin `index`."""
    suffix = np.concatenate([np.cumsum(moment[::-1])[::-1], [0.0]])
    result: Float64Array = suffix[index] - share * moment[index]
    return result
