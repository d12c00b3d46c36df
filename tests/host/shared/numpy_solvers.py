# SPDX-License-Identifier: Apache-2.0
"""The C loops of the solvers once more in numpy; see numpy_statistics.py."""

import numpy as np
import numpy.typing as npt

Float64Array = npt.NDArray[np.float64]


def divergence(
    counts: Float64Array, candidates: npt.NDArray[np.int64], levels: int
) -> Float64Array:
    """KL(P || Q) for each number of bins in `candidates`, infinite where Q = 0 < P.

    counts: (bins,).  Sums over bins come from running totals, so a candidate costs
    `levels` operations: with c the counts, o those above, q a group's count per filled
    bin, KL = (sum of P log P - sum of P log q) / total - log(total) + log(total of Q).
    """
    running = np.concatenate([[0.0], np.cumsum(counts)])
    filled = np.concatenate([[0], np.cumsum(counts > 0)])
    own = np.concatenate([[0.0], np.cumsum(_xlogx(counts))])
    total = running[-1]

    last = counts[candidates - 1]
    inside = running[candidates]
    above = total - inside
    p_log_p = own[candidates] - _xlogx(last) + _xlogx(last + above)

    # Bin j of i belongs to group j * levels // i; these are the groups' first bins.
    splits = -(-np.arange(levels + 1) * candidates[:, np.newaxis] // levels)
    mass = np.diff(running[splits], axis=1)
    bins = np.diff(filled[splits], axis=1)
    per_bin = mass / np.maximum(bins, 1)
    with np.errstate(divide="ignore"):
        logs = np.log(per_bin)
        tail = np.where(last > 0, logs[:, -1], -np.inf)
    groups = np.where(mass > 0, mass * np.where(mass > 0, logs, 0.0), 0.0).sum(axis=1)
    above_log_q = np.where(above > 0, above * np.where(above > 0, tail, 0.0), 0.0)
    log_inside = np.log(np.where(inside > 0, inside, 1.0))
    entropy = (p_log_p - groups - above_log_q) / total - np.log(total) + log_inside
    result: Float64Array = np.where(inside > 0, entropy, np.inf)
    return result


def _xlogx(values: Float64Array) -> Float64Array:
    return values * np.log(np.where(values > 0, values, 1.0))


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
