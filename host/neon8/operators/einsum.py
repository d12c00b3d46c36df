# SPDX-License-Identifier: Apache-2.0
"""Einsum, as sums over axes, transposes, and a MatMul of two operands at a time."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from neon8.operators.composition import MAX_ELEMENTS, Parts
from neon8.operators.family import Family

ELLIPSIS = "..."
FIRST_BROADCAST = 0x100
"""Letters of the axes that an ellipsis stands for begin here, beyond those of ONNX."""


@dataclass(frozen=True, slots=True)
class Term:
    """A tensor and the letters of its axes, each of them once."""

    name: str
    axes: str


def einsum(p: Parts) -> bool:
    """Einsum of any number of tensors."""
    inputs, wanted = _parsed(p)
    sizes: dict[str, int] = {}
    terms = []
    for name, axes in zip(p.node.inputs, inputs, strict=True):
        shape = _shape(p, name)
        for axis, size in zip(axes, shape, strict=True):
            if sizes.setdefault(axis, size) != size:
                if 1 not in (size, sizes[axis]):
                    raise p.failure("its axes do not agree")
                text = "broadcasts an axis; export it with Expand"
                raise p.failure(text)
        terms.append(_diagonal(p, Term(name, axes), shape))
    first, *others = terms
    for at, term in enumerate(others):
        later = "".join(each.axes for each in others[at + 1 :]) + wanted
        first = _product(p, first, term, later, sizes)
    first = _summed(p, first, wanted)
    order = tuple(first.axes.index(axis) for axis in wanted)
    out = p.node.outputs[0]
    if len(order) > 1:
        p.add("Transpose", first.name, output=out, perm=order)
    else:
        p.add("Identity", first.name, output=out)
    return True


def _parsed(p: Parts) -> tuple[list[str], str]:
    """A letter for each axis of each input, and those of the output."""
    equation = p.node.text("equation", "").replace(" ", "")
    left, arrow, right = equation.partition("->")
    inputs = left.split(",")
    if len(inputs) != len(p.node.inputs):
        raise p.failure(f"equation {equation!r} is of other inputs")
    most = 0
    found = []
    for name, axes in zip(p.node.inputs, inputs, strict=True):
        before, dots, after = axes.partition(ELLIPSIS)
        count = len(_shape(p, name)) - len(before) - len(after)
        if count < 0 or (count and not dots) or "." in before + after:
            raise p.failure(f"equation {equation!r} has other axes")
        most = max(most, count)
        found.append((before, count, after))
    spread = "".join(chr(FIRST_BROADCAST + at) for at in range(most))
    terms = [
        before + spread[len(spread) - count :] + after for before, count, after in found
    ]
    if not arrow:
        letters = left.replace(",", "").replace(".", "")
        once = sorted({axis for axis in letters if letters.count(axis) == 1})
        return terms, spread + "".join(once)
    wanted = right.replace(ELLIPSIS, spread)
    known = {axis for term in terms for axis in term}
    if len(set(wanted)) != len(wanted) or not known.issuperset(wanted):
        raise p.failure(f"equation {equation!r} gives other axes")
    return terms, wanted


def _shape(p: Parts, name: str) -> tuple[int, ...]:
    if name in p.source.constants:
        return p.source.constants[name].shape
    shape = p.source.shapes.get(name)
    if shape is None or math.prod(shape) > MAX_ELEMENTS:
        raise p.failure(f"the shape of {name!r} is not known")
    return shape


def _diagonal(p: Parts, term: Term, shape: tuple[int, ...]) -> Term:
    """A letter that stands for two axes and more: their diagonal."""
    while len(set(term.axes)) < len(term.axes):
        axis = next(a for a in term.axes if term.axes.count(a) > 1)
        places = [at for at, a in enumerate(term.axes) if a == axis][:2]
        others = [at for at in range(len(shape)) if at not in places]
        size, kept = shape[places[0]], tuple(shape[at] for at in others)
        name = p.add("Transpose", term.name, perm=(*others, *places))
        name = p.add("Reshape", name, (*kept, size * size))
        name = p.add("Gather", name, np.arange(size) * (size + 1), axis=len(kept))
        term = Term(name, "".join(term.axes[at] for at in others) + axis)
        shape = (*kept, size)
    return term


def _summed(p: Parts, term: Term, kept: Iterable[str]) -> Term:
    """Without the axes that are not `kept`."""
    over = [at for at, axis in enumerate(term.axes) if axis not in kept]
    if not over:
        return term
    name = p.reduce("ReduceSum", term.name, over, keep=False)
    return Term(name, "".join(axis for axis in term.axes if axis in kept))


def _product(p: Parts, a: Term, b: Term, later: str, sizes: Mapping[str, int]) -> Term:
    """A MatMul of two terms, which sums over what neither is needed `later`."""
    a, b = _summed(p, a, b.axes + later), _summed(p, b, a.axes + later)
    batch = [axis for axis in a.axes if axis in b.axes and axis in later]
    inner = [axis for axis in a.axes if axis in b.axes and axis not in later]
    rows = [axis for axis in a.axes if axis not in b.axes]
    columns = [axis for axis in b.axes if axis not in a.axes]
    if math.prod(sizes[axis] for axis in (*batch, *rows, *columns)) > MAX_ELEMENTS:
        raise p.failure("makes a tensor too large for this")
    axes = "".join((*batch, *rows, *columns))

    def matrices(term: Term, *groups: list[str]) -> str:
        order = [term.axes.index(axis) for group in groups for axis in group]
        name = p.add("Transpose", term.name, perm=tuple(order))
        dims = [math.prod(sizes[axis] for axis in group) for group in groups[1:]]
        return p.add("Reshape", name, [*(sizes[x] for x in groups[0]), *dims])

    if inner:
        left, right = (
            matrices(a, batch, rows, inner),
            matrices(b, batch, inner, columns),
        )
        name = p.add("MatMul", left, right, layer=True)
    else:
        left, right = matrices(a, batch, rows, []), matrices(b, batch, [], columns)
        name = p.add("Mul", left, right)
    dims = [sizes[axis] for axis in axes]
    return Term(p.add("Reshape", name, dims), axes)


FAMILY = Family(compositions={"Einsum": einsum})
