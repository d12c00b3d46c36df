# SPDX-License-Identifier: Apache-2.0
"""The recipe: steps, offsets and factors of a network, and its scales with them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from neon8.arrays import DoubleArray
from neon8.calibrate.observation import Observation
from neon8.calibrate.recipe.balance import rounding_of
from neon8.calibrate.recipe.equalize import Equalized, equalize
from neon8.calibrate.recipe.lattice_step import steps_of
from neon8.calibrate.recipe.offsets import Absorbed, absorb
from neon8.calibrate.statistics import patches
from neon8.ir.graph import Graph
from neon8.operators.convolution import Conv2d, convolutions
from neon8.quant.grid import covering
from neon8.quant.scale_table import LayerScale, TensorScale
from neon8.quant.weights import weight_scales
from neon8.rewrite.absorption import with_offsets
from neon8.rewrite.equalization import EQUALIZED, with_factors

STEP = "step"
"""Reason code of a layer with the steps of its weights as scales."""
ABSORBED = "absorbed"
"""Reason code of a tensor with offsets."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recipe:
    """A network rewritten by the recipe, and what was observed of it.

    graph, observation: with all factors and offsets applied.  steps: of each layer, see
    lattice_step.steps_of().  means: (I,) channel means of each tensor that a layer
    reads.
    """

    graph: Graph
    observation: Observation
    absorbed: Absorbed
    equalized: Equalized
    steps: Mapping[str, DoubleArray]
    means: Mapping[str, DoubleArray]

    @property
    def groups(self) -> frozenset[str]:
        """The scale groups with factors or offsets."""
        names = (*self.equalized.factors, *self.absorbed.offsets)
        return frozenset(self.observation.scale_groups[name] for name in names)

    def with_groups(self, groups: dict[str, str]) -> "Recipe":
        """The same with other scale groups where there are no factors or offsets."""
        return replace(self, observation=replace(self.observation, scale_groups=groups))

    def tensor_scales(
        self, tensors: Mapping[str, TensorScale]
    ) -> dict[str, TensorScale]:
        """Move tensors with factors or offsets onto a grid over their new range."""
        return {name: self._tensor_scale(name, each) for name, each in tensors.items()}

    def _tensor_scale(self, name: str, entry: TensorScale) -> TensorScale:
        entry = _moved_entry(name, entry, self.absorbed)
        if name in self.equalized.factors:
            group = self.observation.scale_groups[name]
            limits, seen = self.equalized.limits[group], self.equalized.seen[group]
            return replace(
                _over(entry, limits, seen),
                factors=tuple(self.equalized.factors[name].tolist()),
                reasons=(EQUALIZED, *entry.reasons),
            )
        return entry

    def layer_scales(self, tensors: Mapping[str, TensorScale]) -> dict[str, LayerScale]:
        """Weight scales of all layers, one for each output channel."""
        nodes = convolutions(self.graph)
        return {n.name: self._layer_scale(n, tensors[n.inputs[0]]) for n in nodes}

    def _layer_scale(self, node: Conv2d, source: TensorScale) -> LayerScale:
        steps = self.steps[node.name]
        entry = weight_scales(
            node.name,
            source=node.inputs[0],
            absmax=np.abs(node.weight.reshape(len(node.weight), -1)).max(axis=1),
            steps=steps,
            bias=node.bias,
            input_scale=source.scale,
            input_bits=source.bits,
            groups=node.groups,
        )
        if not np.isnan(steps).all():
            entry = replace(entry, reasons=(STEP, *entry.reasons))
        seen = self.observation.layers[node.name].patches
        rounding = rounding_of(node, seen, np.array(entry.weight_scales))
        return replace(entry, rounding=rounding)


def _moved_entry(name: str, entry: TensorScale, absorbed: Absorbed) -> TensorScale:
    """The entry with the offsets of the tensor, if it has any."""
    if name not in absorbed.offsets:
        return entry
    signed = replace(entry, scheme=absorbed.scheme_for(entry))
    return replace(
        _over(signed, absorbed.limits[name], absorbed.seen[name]),
        offsets=tuple(absorbed.offsets[name].tolist()),
        reasons=(ABSORBED, *entry.reasons),
    )


def _over(
    entry: TensorScale, limits: tuple[float, float], seen: tuple[float, float]
) -> TensorScale:
    """The entry on a grid over `limits`, with the extremes `seen`."""
    lo, hi = (float(np.float32(end)) for end in seen)
    return replace(covering(entry, *limits), min=lo, max=hi)


def prepare(
    observation: Observation,
    graph: Graph,
    tensors: Mapping[str, TensorScale],
    closed: Iterable[str] = (),
    *,
    scheme: str,
) -> Recipe:
    """Apply the recipe to `graph`, the network that was observed.

    tensors: their scales without the recipe.  closed: tensors that must stay as they
    are.  scheme: of the table. Offsets are chosen first, then factors for what they
    leave.
    """
    closed = frozenset(closed)
    layers = {node.name: node for node in convolutions(graph)}
    steps = {name: steps_of(node) for name, node in layers.items()}
    exact = {name: ~np.isnan(each) for name, each in steps.items()}
    moved = absorb(graph, observation, tensors, closed, scheme=scheme)
    offsets = moved.offsets
    known = {n: _moved_entry(n, entry, moved) for n, entry in tensors.items()}
    found = equalize(graph, observation, known, exact, closed, offsets=offsets)
    changed = with_factors(with_offsets(graph, offsets), found.factors)
    means = {
        name: (observation.channels[name].mean() - offsets.get(name, 0.0))
        / found.factors.get(name, 1.0)
        for name in dict.fromkeys(node.inputs[0] for node in layers.values())
    }
    for node in convolutions(changed):
        if node is not layers[node.name]:
            steps[node.name] = moved_steps(steps[node.name], node, found.factors)
    return Recipe(
        graph=changed,
        observation=_rewritten(observation, changed, found.factors, offsets),
        absorbed=moved,
        equalized=found,
        steps=steps,
        means=means,
    )


def moved_steps(
    steps: DoubleArray, node: Conv2d, factors: Mapping[str, DoubleArray]
) -> DoubleArray:
    """The steps of a layer that has absorbed factors, (O,).

    An output channel whose input channels have different factors loses its step, unless
    its new weights happen to have one. Of any other the weights are only scaled.
    """
    count = len(steps)
    uneven = np.zeros(count, bool)
    if node.inputs[0] in factors:
        read = factors[node.inputs[0]].reshape(node.groups, -1)
        same = (read == read[:, :1]).all(axis=1)
        steps = steps * np.repeat(read[:, 0], count // node.groups)
        uneven = np.repeat(~same, count // node.groups)
    if node.output in factors:
        steps = steps / factors[node.output]
    rounded = steps.astype(np.float32).astype(np.float64)
    return np.where(uneven, steps_of(node), rounded) if uneven.any() else rounded


def _rewritten(
    observation: Observation,
    graph: Graph,
    factors: Mapping[str, DoubleArray],
    offsets: Mapping[str, DoubleArray],
) -> Observation:
    """The observation with rows as the rewritten network has them."""
    layers = dict(observation.layers)
    for node in convolutions(graph):
        rows, source = layers[node.name].patches.rows, node.inputs[0]
        taps = rows.shape[2]
        if source in offsets:
            rows = (rows - _by_taps(node, offsets[source], taps)).astype(np.float32)
        if source in factors:
            rows = (rows / _by_taps(node, factors[source], taps)).astype(np.float32)
        kept = layers[node.name].patches.keys
        taken = replace(patches.empty(node), keys=kept, rows=rows)
        layers[node.name] = replace(layers[node.name], patches=taken)
    return replace(observation, layers=layers)


def _by_taps(node: Conv2d, values: DoubleArray, count: int) -> DoubleArray:
    """Channel values, (I,), at K = `count` taps of the chosen groups, (G, K)."""
    by_group = values.reshape(node.groups, -1)[patches.chosen_groups(node)]
    result: DoubleArray = np.repeat(by_group, count // by_group.shape[1], axis=1)
    return result
