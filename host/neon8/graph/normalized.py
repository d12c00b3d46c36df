# SPDX-License-Identifier: Apache-2.0
"""Normalizations that a file spells out become one node each.

Exporters to opsets before LayerNormalization, RMSNormalization and GroupNormalization
write the mean, the differences, their squares and so on; in int8 each of these would be
rounded. What computes the parts of such a node, read nowhere else, is dead after that.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from neon8.arrays import Array, DoubleArray
from neon8.ir.graph import FLOATS
from neon8.ir.names import unused
from neon8.operators.source import Attribute, OnnxNode, Source, float32

COPIES = ("Cast", "Identity")
EPSILONS = (1e-30, 1e30)
MOST = 4
"""Constants, one after the other, that multiply or are added to a normalization."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """A normalization of tensor `x` along axes, 0 and more, or over groups of channels.

    gain, bias: of the dimensions of x, 1 along axes that they do not depend on.
    """

    x: str
    epsilon: float
    axes: tuple[int, ...] = ()
    groups: int = 0
    centred: bool = True
    gain: DoubleArray = field(default_factory=lambda: np.ones(1))
    bias: DoubleArray = field(default_factory=lambda: np.zeros(1))

    @property
    def along(self) -> tuple[int, ...]:
        """The axes along which gain and bias have values."""
        return (1,) if self.groups else self.axes


def normalized(source: Source) -> Source:
    """The same network, where normalizations are single nodes."""
    finder = _Finder(source)
    live = {*source.outputs, *(name for n in source.nodes for name in n.captures)}
    nodes: list[OnnxNode] = []
    constants = dict(source.constants)
    for node in reversed(source.nodes):
        if live.isdisjoint(node.outputs):
            nodes.append(node)
            continue
        found = finder.found(node)
        made = None if found is None else _node(source, node, found, constants)
        nodes.append(made or node)
        live.update(nodes[-1].inputs)
    nodes.reverse()
    return replace(source, nodes=tuple(nodes), constants=constants)


def _node(
    source: Source, node: OnnxNode, found: _Found, constants: dict[str, Array]
) -> OnnxNode | None:
    """In place of `node`, which is the last of it.  None: no operator does that."""
    dims = source.shapes[found.x]
    rank = len(dims)
    attributes: dict[str, Attribute] = {"epsilon": found.epsilon}
    if found.groups:
        operator = "GroupNormalization"
        attributes["num_groups"] = found.groups
    else:
        operator = "LayerNormalization" if found.centred else "RMSNormalization"
        if found.axes == tuple(range(found.axes[0], rank)) and found.axes[0] > 0:
            attributes["axis"] = found.axes[0]
        elif found.axes == (1,):
            attributes["axes"] = found.axes
        else:
            return None
    size = tuple(dims[axis] if axis in found.along else 1 for axis in range(rank))
    inputs = [found.x]
    for what, values in (("scale", found.gain), ("bias", found.bias)):
        full = np.broadcast_to(values, size).reshape([dims[a] for a in found.along])
        name = unused(f"{node.name}:{what}", {*constants, *source.types})
        constants[name] = float32(full)
        inputs.append(name)
    return OnnxNode(
        name=node.name,
        operator=operator,
        inputs=tuple(inputs),
        outputs=node.outputs,
        attributes=attributes,
    )


class _Finder:
    """Looks from the last node of a pattern back to the first."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._makers = {
            node.outputs[0]: node
            for node in source.nodes
            if node.outputs and not node.fault
        }

    def found(self, node: OnnxNode) -> _Found | None:
        """What ends with `node`."""
        shapes = self._source.shapes
        found = self._affine(node) if len(node.outputs) == 1 else None
        if found is None or node.fault or found.x in self._source.constants:
            return None
        real = self._source.types.get(found.x) in FLOATS
        dims = shapes.get(found.x)
        return found if real and dims and dims == shapes.get(node.outputs[0]) else None

    def _affine(self, node: OnnxNode | None, depth: int = MOST) -> _Found | None:
        """A normalization, and what multiplies it and is added after it."""
        found = self._plain(node) or self._moments(node) or self._groups(node)
        if found is not None or node is None or node.operator not in ("Add", "Mul"):
            return found
        if depth == 0:
            return None
        for one, other in _pairs(node):
            constant = self._constant(other)
            if constant is None:
                continue
            inner = self._affine(self._makers.get(one), depth - 1)
            if inner is not None:
                return self._with(inner, node.operator, constant)
        return None

    def _with(
        self, found: _Found | None, operator: str, constant: DoubleArray | None
    ) -> _Found | None:
        """`found`, and a constant added or multiplied by."""
        if found is None or constant is None:
            return None
        dims = self._source.shapes.get(found.x, ())
        if constant.ndim > len(dims):
            return None
        full = constant.reshape((1,) * (len(dims) - constant.ndim) + constant.shape)
        shape: tuple[int, ...] = full.shape
        for axis, size in enumerate(shape):
            if size not in (1, dims[axis] if axis in found.along else 1):
                return None
        if operator == "Add":
            return replace(found, bias=found.bias + full)
        return replace(found, gain=found.gain * full, bias=found.bias * full)

    def _plain(self, node: OnnxNode | None) -> _Found | None:
        """What is divided by the deviation, or multiplied by its inverse."""
        if node is None or node.operator not in ("Div", "Mul"):
            return None
        if node.operator == "Div":
            return self._over(node.inputs[0], self._root(node.inputs[1]))
        both = (self._over(x, self._inverse(other)) for x, other in _pairs(node))
        return next(filter(None, both), None)

    def _over(self, x: str, found: _Found | None) -> _Found | None:
        """`found`, if it is of x: less its mean where that is subtracted."""
        if found is None:
            return None
        of = self._difference(x, found.axes) if found.centred else self._origin(x)
        return found if of == found.x else None

    def _moments(self, node: OnnxNode | None) -> _Found | None:
        """x * r + (bias - mean * r), with r of _inverse()."""
        if node is None or node.operator != "Add":
            return None
        for one, other in _pairs(node):
            rest = self._maker(other, "Sub")
            if rest is None:
                continue
            for x, rate in _pairs(self._maker(one, "Mul")):
                found = self._inverse(rate)
                for mean, same in _pairs(self._maker(rest.inputs[1], "Mul")):
                    if found is None or not found.centred or same != rate:
                        continue
                    of = self._mean(mean, found.axes)
                    if found.x == of == self._origin(x):
                        bias = self._constant(rest.inputs[0])
                        return self._with(found, "Add", bias)
        return None

    def _inverse(self, name: str, depth: int = MOST) -> _Found | None:
        """1 / deviation, or a constant times that."""
        node = self._maker(name, "Reciprocal", "Div", "Pow", "Mul")
        if node is None:
            return None
        if node.operator == "Reciprocal":
            return self._root(node.inputs[0])
        if node.operator == "Div":
            one = self._is(node.inputs[0], 1.0)
            return self._root(node.inputs[1]) if one else None
        if node.operator == "Pow":
            inverse = self._is(node.inputs[1], -0.5)
            return self._variance(node.inputs[0]) if inverse else None
        for other, gain in _pairs(node):
            constant = self._constant(gain)
            if constant is not None and depth > 0:
                return self._with(self._inverse(other, depth - 1), "Mul", constant)
        return None

    def _root(self, name: str) -> _Found | None:
        """The deviation, sqrt(variance + epsilon)."""
        node = self._maker(name, "Sqrt", "Pow")
        if node is None or (
            node.operator == "Pow" and not self._is(node.inputs[1], 0.5)
        ):
            return None
        return self._variance(node.inputs[0])

    def _variance(self, name: str) -> _Found | None:
        """The mean of squares, and epsilon."""
        for one, other in _pairs(self._maker(name, "Add")):
            epsilon = self._constant(other)
            mean = self._maker(one, "ReduceMean")
            if epsilon is None or epsilon.size != 1 or mean is None:
                continue
            value = float(epsilon.reshape(-1)[0])
            axes, squared = self._axes(mean), self._squared(mean.inputs[0])
            if not axes or not squared or not EPSILONS[0] <= value <= EPSILONS[1]:
                continue
            x = self._difference(squared, axes)
            return _Found(x=x or squared, epsilon=value, axes=axes, centred=bool(x))
        return None

    def _squared(self, name: str) -> str:
        """What `name` is the square of, "" if it is none."""
        node = self._maker(name, "Mul", "Pow")
        if node is None:
            return ""
        first, second = (self._origin(each) for each in node.inputs)
        same = first == second if node.operator == "Mul" else self._is(second, 2.0)
        return first if same else ""

    def _difference(self, name: str, axes: tuple[int, ...]) -> str:
        """What `name` is less its mean along `axes`, "" if it is not."""
        node = self._maker(name, "Sub")
        x = "" if node is None else self._origin(node.inputs[0])
        return x if node is not None and self._mean(node.inputs[1], axes) == x else ""

    def _mean(self, name: str, axes: tuple[int, ...]) -> str:
        """What `name` is the mean of along `axes`, "" if it is none."""
        node = self._maker(name, "ReduceMean")
        same = node is not None and self._axes(node) == axes
        return self._origin(node.inputs[0]) if node is not None and same else ""

    def _axes(self, mean: OnnxNode) -> tuple[int, ...]:
        """Along which it is taken, in order; none where dimensions go."""
        rank = len(self._source.shapes.get(mean.inputs[0], ()))
        listed = mean.integers("axes")
        if len(mean.inputs) > 1 and mean.inputs[1]:
            given = self._source.constants.get(mean.inputs[1])
            listed = None if given is None else tuple(given.reshape(-1).tolist())
        if not listed or not mean.integer("keepdims", 1):
            return ()
        fits = all(-rank <= axis < rank for axis in listed)
        return tuple(sorted({axis % rank for axis in listed})) if fits else ()

    def _groups(self, node: OnnxNode | None) -> _Found | None:
        """An InstanceNormalization of groups of channels that Reshapes make one."""
        if node is None or node.operator != "Reshape":
            return None
        norm = self._maker(node.inputs[0], "InstanceNormalization")
        view = None if norm is None else self._maker(norm.inputs[0], "Reshape")
        if norm is None or view is None:
            return None
        x = view.inputs[0]
        shapes = self._source.shapes
        dims, rows = shapes.get(x, ()), shapes.get(view.outputs[0], ())
        if len(dims) < 3 or len(rows) < 3 or dims[0] != rows[0] or dims[1] % rows[1]:
            return None
        each = (-1, *(1,) * (len(dims) - 2))
        groups = rows[1]
        values = [self._constant(name) for name in norm.inputs[1:]]
        if any(value is None or value.size != groups for value in values):
            return None
        gain, bias = (
            np.repeat(value.reshape(-1), dims[1] // groups).reshape(each)
            for value in values
            if value is not None
        )
        epsilon = norm.real("epsilon", 1e-5)
        return _Found(x=x, epsilon=epsilon, groups=groups, gain=gain, bias=bias)

    def _maker(self, name: str, *operators: str) -> OnnxNode | None:
        """What makes a tensor, if it is one of these operators."""
        node = self._makers.get(self._origin(name))
        return node if node is not None and node.operator in operators else None

    def _origin(self, name: str) -> str:
        """The tensor that `name` is a copy of."""
        node = self._makers.get(name)
        while node is not None and node.operator in COPIES:
            name = node.inputs[0]
            node = self._makers.get(name)
        return name

    def _constant(self, name: str) -> DoubleArray | None:
        value = self._source.constants.get(self._origin(name))
        if value is None or value.dtype.name not in FLOATS:
            return None
        double = value.astype(np.float64)
        return double if np.isfinite(double).all() else None

    def _is(self, name: str, wanted: float) -> bool:
        """True of a constant with this one value."""
        value = self._source.constants.get(self._origin(name))
        return value is not None and value.size == 1 and value.reshape(-1)[0] == wanted


def _pairs(node: OnnxNode | None) -> Iterator[tuple[str, str]]:
    """Its two operands, in both orders."""
    if node is not None and len(node.inputs) == 2:
        yield node.inputs[0], node.inputs[1]
        yield node.inputs[1], node.inputs[0]
