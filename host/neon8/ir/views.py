# SPDX-License-Identifier: Apache-2.0
"""Tensors as flat lists of values that are seen under several shapes.

A tensor's values have one order, whatever its shape. So Reshape changes nothing, and
what a Transpose does can be told by any shape fine enough to have its axes: a view.
"""

import itertools
import math

View = tuple[int, ...]


def squeezed(view: View, order: View) -> tuple[View, View]:
    """The same permutation of values with as few axes as possible.

    view: sizes; order: where each axis of the result comes from.  Axes of one go, and
    axes that stay neighbours become one.
    """
    kept = [axis for axis in order if view[axis] > 1]
    joined: list[list[int]] = []
    for axis in kept:
        if joined and _follows(view, joined[-1][-1], axis):
            joined[-1].append(axis)
        else:
            joined.append([axis])
    sources = sorted(joined)
    sizes = tuple(math.prod(view[axis] for axis in run) for run in sources)
    return sizes, tuple(sources.index(run) for run in joined)


def inverse(view: View, order: View) -> tuple[View, View]:
    """The permutation of values that undoes another one."""
    turned = tuple(view[axis] for axis in order)
    return turned, tuple(order.index(axis) for axis in range(len(order)))


def _follows(view: View, first: int, second: int) -> bool:
    """True if nothing but ones stands between axis `first` and axis `second`."""
    return first < second and all(size == 1 for size in view[first + 1 : second])


def common(first: View, second: View) -> View | None:
    """The coarsest shape of which both are made by joining neighbours, or None.

    Both are of as many values.
    """
    # Reading from the right, an axis begins after as many values as these.
    ends = sorted({*_ends(first), *_ends(second)})
    sizes = []
    for low, high in itertools.pairwise(ends):
        if high % low:
            return None
        sizes.append(high // low)
    return tuple(reversed(sizes))


def _ends(shape: View) -> list[int]:
    ends = [1]
    for size in reversed(shape):
        ends.append(ends[-1] * size)
    return ends


def grouped(shape: View, fine: View) -> list[list[int]]:
    """For each axis of `shape`, the axes of `fine` that it joins."""
    groups: list[list[int]] = []
    at = 0
    for size in shape:
        group: list[int] = []
        while math.prod(fine[axis] for axis in group) < size:
            group.append(at)
            at += 1
        groups.append(group)
    return groups


def then(
    first: tuple[View, View], second: tuple[View, View], *, squeeze: bool = True
) -> tuple[View, View] | None:
    """One permutation that does `first` and then `second`, both (view, order).

    None if their axes have no common shape.  squeeze: with as few axes as possible.
    """
    view, order = first
    turned = tuple(view[axis] for axis in order)
    fine = common(turned, second[0])
    if fine is None:
        return None
    # Each axis of `view` falls into the pieces that `fine` makes of it.
    pieces = dict(zip(order, grouped(turned, fine), strict=True))
    flat = [piece for axis in range(len(view)) for piece in pieces[axis]]
    groups = grouped(second[0], fine)
    result = [piece for axis in second[1] for piece in groups[axis]]
    both = tuple(fine[piece] for piece in flat), tuple(flat.index(p) for p in result)
    return squeezed(*both) if squeeze else both
