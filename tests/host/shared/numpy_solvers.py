# SPDX-License-Identifier: Apache-2.0
"""The C loops of the solvers once more in numpy; see numpy_statistics.py."""

import numpy as np
import numpy.typing as npt

Float64Array = npt.NDArray[np.float64]


def squared_error(
    counts: Float64Array, steps: Float64Array, levels: npt.NDArray[np.int64]
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
